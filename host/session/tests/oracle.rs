//! Random sessions, each read by the real Pi and by us: whatever Pi makes of one, we make of it.
//!
//! Needs Pi: `tests/oracle/setup.sh DIR` installs it, `PI_DIR` and `ORACLE_NODE` say where. `ORACLE_SEED` and
//! `ORACLE_SESSIONS` choose which sessions and how many.

mod common;

use std::path::Path;

use common::generate;
use common::js::Js;
use common::oracle::Oracle;
use common::report::{Answer, compare, compare_replay};

#[test]
fn two_thousand_random_sessions_mean_the_same_to_pi_and_to_us() {
    compare_with_pi("random", 2000, generate::session);
}

/// Any value of any line may be another one, or missing, or there twice.
#[test]
fn a_thousand_wild_sessions_mean_the_same_to_pi_and_to_us() {
    compare_with_pi("wild", 1000, generate::wild);
}

fn compare_with_pi(kind: &'static str, usually: u64, make: fn(u64) -> Vec<u8>) {
    common::deep(move || {
        let Some(mut oracle) = Oracle::start() else { return };
        let first = number("ORACLE_SEED", 1);
        let count = number("ORACLE_SESSIONS", usually);
        let file = std::env::temp_dir().join(format!("pi-session-oracle-{kind}-{}.jsonl", std::process::id()));
        let mut seen = Seen::default();
        let mut differences = Vec::new();
        for seed in first..first + count {
            match one(&mut oracle, &file, seed, make) {
                Ok(answer) => seen.add(answer),
                Err(difference) => differences.push(difference),
            }
        }
        let _ = std::fs::remove_file(&file);
        eprintln!("{count} sessions compared with Pi: {seen:?}");
        let some: Vec<_> = differences.iter().take(number("ORACLE_SHOWN", 20) as usize).cloned().collect();
        assert!(differences.is_empty(), "{} sessions differ:\n{}", differences.len(), some.join("\n"));
        assert!(seen.leaves > count / 2, "the generator must make sessions with leaves to compare");
    });
}

/// What was compared, so that a run that compares nothing is seen.
#[derive(Debug, Default)]
struct Seen {
    leaves: u64,
    plans: u64,
    broken_in_pi: u64,
}

impl Seen {
    fn add(&mut self, answer: Answer) {
        self.leaves += answer.leaves;
        self.plans += answer.plans;
        self.broken_in_pi += answer.broken_in_pi;
    }
}

/// Compares the session of one seed; where it differs, the session is kept for whoever looks into it.
fn one(oracle: &mut Oracle, file: &Path, seed: u64, make: fn(u64) -> Vec<u8>) -> Result<Answer, String> {
    let session = make(seed);
    std::fs::write(file, &session).expect("the temporary directory can be written to");
    let keep = [5, 50, 500, 20_000][(seed % 4) as usize];
    let pi: Js = oracle.dump(file, keep);
    // On a cycle Pi would eat gigabytes before it answers (S8.5).
    let cycle =
        pi.get("leaves").is_some_and(|leaves| leaves.items().iter().any(|leaf| leaf.get("parentCycle").is_some()));
    let replayed = match cycle {
        true => Ok(()),
        false => compare_replay(&session, &oracle.append(file, r#"[{"type":"compaction","summary":"s"}]"#)),
    };
    replayed.and_then(|()| compare(&session, &pi, keep)).map_err(|difference| {
        let kept = std::env::temp_dir().join(format!("pi-session-differs-{seed}.jsonl"));
        std::fs::write(&kept, &session).expect("the temporary directory can be written to");
        format!("seed {seed}, keep {keep}, session {}: {difference}", kept.display())
    })
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}
