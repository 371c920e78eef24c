//! The same drafts, appended by the real Pi and by us: the same lines, and the same context after them.
//!
//! Needs Pi: `tests/oracle/setup.sh DIR` installs it, `PI_DIR` and `ORACLE_NODE` say where.

mod common;

use std::path::{Path, PathBuf};

use common::generate;
use common::js::Js;
use common::oracle::Oracle;
use common::scene::{Scene, compaction, counter, message_draft, omit, replace};
use pi_session::branch::Branch;
use pi_session::compose::{Composed, compose};
use pi_session::draft::Draft;
use pi_session::entry::Role;
use pi_session::json::Json;
use pi_session::time::iso;
use pi_session::validate::{DraftLimits, accept_list};

/// Behind the entries of every session here.
const NOW_MS: i64 = 4_000_000_000_000;

#[test]
fn drafts_on_real_sessions_come_out_as_pi_writes_them() {
    common::deep(|| {
        let Some(oracle) = Oracle::start() else { return };
        let mut check = Check::new(oracle, "real", true);
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/real");
        for case in std::fs::read_dir(cases).expect("the cases are in the repository") {
            let path = case.expect("the cases can be listed").path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                check.session(&path.display().to_string(), &std::fs::read(&path).expect("a case can be read"));
            }
        }
        check.end(100);
    });
}

#[test]
fn drafts_on_random_sessions_come_out_as_pi_writes_them() {
    common::deep(|| {
        let Some(oracle) = Oracle::start() else { return };
        let mut check = Check::new(oracle, "random", false);
        let count = std::env::var("ORACLE_SESSIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(60u64);
        for seed in 1..=count {
            check.session(&format!("seed {seed}"), &generate::session(seed));
        }
        check.end(count);
    });
}

/// What is compared, and what came of it.
struct Check {
    oracle: Oracle,
    file: PathBuf,
    /// Lines are compared byte by byte; else as values, since what stands in a random session may be spelt in many ways,
    /// which we keep and Pi does not.
    exact: bool,
    appended: u64,
    refused: u64,
    differences: Vec<String>,
}

impl Check {
    fn new(oracle: Oracle, name: &str, exact: bool) -> Check {
        let file = std::env::temp_dir().join(format!("pi-session-append-{name}-{}.jsonl", std::process::id()));
        Check { oracle, file, exact, appended: 0, refused: 0, differences: Vec::new() }
    }

    /// Appends every list of drafts that this session allows.
    fn session(&mut self, name: &str, bytes: &[u8]) {
        let Ok(text) = String::from_utf8(bytes.to_vec()) else { return };
        if !text.ends_with('\n') {
            return;
        }
        let scene = Scene { text };
        let Some(branch) = scene.try_branch().filter(|branch| !is_broken(branch)) else { return };
        for list in lists(&branch) {
            match accept_list(&branch, &list, DraftLimits::default()) {
                Ok(accepted) => match compose(&branch, &accepted, None, NOW_MS, &mut counter()) {
                    Ok(composed) => self.compare(name, &scene, &list, &composed),
                    Err(_) => self.refused += 1,
                },
                Err(_) => self.refused += 1,
            }
        }
    }

    fn compare(&mut self, name: &str, scene: &Scene, list: &[Draft], composed: &Composed) {
        self.appended += 1;
        let drafts = format!("[{}]", list.iter().map(Draft::to_json).collect::<Vec<_>>().join(","));
        self.write(&scene.text);
        let pis = self.oracle.append(&self.file, &drafts);
        self.write(&scene.with(composed).text);
        let ours = self.oracle.dump(&self.file, 20_000);
        if let Err(difference) =
            same_lines(composed, &pis, self.exact).and_then(|()| same_context(composed, &ours, &pis))
        {
            self.differences.push(format!("{name}, {drafts}:\n{difference}"));
        }
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.file, text).expect("the temporary directory can be written to");
    }

    fn end(self, least: u64) {
        let _ = std::fs::remove_file(&self.file);
        eprintln!("{} lists of drafts compared with Pi, {} refused", self.appended, self.refused);
        let some: Vec<_> = self.differences.iter().take(5).cloned().collect();
        assert!(self.differences.is_empty(), "{} differ:\n{}", self.differences.len(), some.join("\n\n"));
        assert!(self.appended >= least, "only {} lists could be appended", self.appended);
    }
}

/// Whether something stands on the branch that Pi throws at, whatever is appended.
fn is_broken(branch: &Branch) -> bool {
    (0..branch.len()).any(|place| branch.facts(place).breaks)
}

/// Lists of drafts of all four kinds that name the entries of this branch; not all of them may stand.
fn lists(branch: &Branch) -> Vec<Vec<Draft>> {
    let state = Draft::custom("test", Some("{\"a\":[1,\"é\u{2028}\\n\"]}")).expect("well formed");
    let details = Draft::custom_message("test", r#"[{"type":"text","text":"a"}]"#, false, Some("null"));
    let mut lists = vec![
        vec![state.clone()],
        vec![message_draft("a note")],
        vec![details.expect("well formed"), compaction(None)],
        vec![compaction(None)],
    ];
    let shown: Vec<u32> = branch.context().entries.iter().map(|entry| entry.place).collect();
    for id in shown.iter().filter_map(|place| branch.item(*place).id) {
        lists.push(vec![replace(id, "\"other words\""), message_draft("note"), compaction(Some(id))]);
        lists.push(vec![omit(id)]);
        lists.push(vec![state.clone(), compaction(Some(id)), message_draft("behind it"), replace(id, "[]")]);
    }
    for place in shown {
        lists.push(turn(branch, place).into_iter().map(|id| omit(&id)).collect());
    }
    lists.retain(|list| !list.is_empty());
    lists
}

/// The ids of the assistant message at a place and of the tool results behind it.
fn turn(branch: &Branch, place: u32) -> Vec<String> {
    let role = |place: &u32| branch.facts(*place).role;
    let results = (place + 1..branch.len()).take_while(|place| role(place) == Role::ToolResult);
    let with = std::iter::once(place).filter(|place| role(place) == Role::Assistant).chain(results);
    with.filter_map(|place| branch.item(place).id.map(str::to_owned)).collect()
}

/// The lines, ids and times aside.
fn same_lines(composed: &Composed, pis: &Js, exact: bool) -> Result<(), String> {
    let results = pis.get("results").map(Js::items).unwrap_or_default();
    if let Some(failed) = results.iter().find(|result| result.get("error").is_some()) {
        return Err(format!("Pi refuses: {}", failed.canonical()));
    }
    let theirs = pis.get("appendedLines").map(Js::items).unwrap_or_default();
    let theirs = theirs.iter().filter_map(Js::as_text).filter(|line| !line.is_empty());
    let theirs = without_identity(&theirs.collect::<Vec<_>>().join("\n"), &pi_identity(pis));
    let ours = String::from_utf8(composed.bytes()).map_err(|error| error.to_string())?;
    let ours = without_identity(ours.trim_end(), &our_identity(composed));
    if exact {
        return same("lines", &ours, &theirs);
    }
    let values =
        |text: &str| text.lines().map(|line| Js::parse(line.as_bytes()).canonical()).collect::<Vec<_>>().join("\n");
    same("lines", &values(&ours), &values(&theirs))
}

/// The context that Pi builds of our lines, and of its own.
fn same_context(composed: &Composed, ours: &Js, pis: &Js) -> Result<(), String> {
    let ours = ours.get("leaves").and_then(|leaves| leaves.items().first()).unwrap_or(&Js::Null);
    let theirs = pis.get("contextAfter").unwrap_or(&Js::Null);
    let ours = without_identity(&without_sum(ours), &our_identity(composed));
    let theirs = without_identity(&without_sum(theirs), &pi_identity(pis));
    same("contexts", &ours, &theirs)
}

/// Where two texts begin to differ.
fn same(what: &str, ours: &str, theirs: &str) -> Result<(), String> {
    if ours == theirs {
        return Ok(());
    }
    let at = ours.chars().zip(theirs.chars()).take_while(|(our, their)| our == their).count().saturating_sub(200);
    let part = |text: &str| text.chars().skip(at).take(400).collect::<String>();
    Err(format!("{what}\n ours {}\n Pi's {}", part(ours), part(theirs)))
}

/// All but the digest of the messages, which depends on the times in them.
fn without_sum(context: &Js) -> String {
    let Js::Object(members) = context else { return context.canonical() };
    let is_sum = |key: &[u16]| String::from_utf16_lossy(key) == "llmMessagesSha256";
    Js::Object(members.iter().filter(|(key, _)| !is_sum(key)).map(|(k, v)| (k.clone(), v.clone())).collect())
        .canonical()
}

/// Ids and ISO times of the entries that Pi appended.
fn pi_identity(pis: &Js) -> Vec<(String, String)> {
    let text = |entry: &Js, key: &str| entry.get(key).and_then(Js::as_text).unwrap_or_default();
    let entries = pis.get("results").map(Js::items).unwrap_or_default();
    entries.iter().filter_map(|result| result.get("entry")).map(|e| (text(e, "id"), text(e, "timestamp"))).collect()
}

/// The same of ours.
fn our_identity(composed: &Composed) -> Vec<(String, String)> {
    composed.entries().iter().map(|entry| (entry.id.clone(), iso(NOW_MS))).collect()
}

/// `text` with the ids by number, and one word for the times.
fn without_identity(text: &str, identity: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (at, (id, time)) in identity.iter().enumerate() {
        let ms = pi_session::time::parse_iso(time).expect("entries have times").to_string();
        text =
            text.replace(&format!("\"{id}\""), &format!("\"new {at}\"")).replace(time, "now").replace(&ms, "\"now\"");
    }
    text
}

#[test]
fn what_is_compared_is_compared() {
    let scene = Scene::new("u1 user: hi\na1 assistant: hello");
    let branch = scene.branch();
    let made = lists(&branch);
    let allowed = made.iter().filter(|list| accept_list(&branch, list, DraftLimits::default()).is_ok()).count();
    assert!(allowed > 8, "{allowed} of {}", made.len());
    assert!(made.iter().flatten().all(|draft| Json::parse(draft.to_json().as_bytes()).is_ok()));
}
