//! How many secrets are found, and how often something harmless is taken for one. `cargo test -p redact-secrets --test measure
//! -- --nocapture` prints the figures; `MEASURE=FILE:FILE` looks through files of one's own too.
mod labelled;
mod thrown;

use std::collections::BTreeMap;

use labelled::Labelled;
use redact_secrets::config::Config;
use redact_secrets::find::{Found, find};
use thrown::Dice;

/// A text as it stands in a line of a session, and what is found in it.
fn found(text: &str) -> (String, Vec<Found>) {
    let json = pi_graft_plugin::Json::text(text).as_str().to_owned();
    let found = find(json.as_bytes(), 1, json.len() - 1, &Config::default());
    (json, found)
}

/// Whether nothing of the secret is left. Of a URL's or header's the name may be.
fn is_gone(labelled: &Labelled) -> bool {
    let (json, found) = found(&labelled.text);
    let mut rest = String::new();
    let mut at = 0;
    for one in &found {
        rest.push_str(&json[at..one.start]);
        at = one.end;
    }
    rest.push_str(&json[at..]);
    let secret = pi_graft_plugin::Json::text(labelled.secret.as_deref().expect("one")).as_str().to_owned();
    let secret = secret.trim_matches('"');
    let tail = &secret[secret.len() * 2 / 3..];
    !found.is_empty() && !rest.contains(tail)
}

#[test]
fn nearly_all_secrets_are_found_and_nearly_nothing_else() {
    let dice = &mut Dice(20_261_202);
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for labelled in (0..10).flat_map(|_| labelled::secrets(dice)) {
        let group = groups.entry(labelled.group).or_default();
        group.1 += 1;
        match is_gone(&labelled) {
            true => group.0 += 1,
            false => println!("missed ({}): {}", labelled.group, labelled.text),
        }
    }
    let harmless: Vec<_> = (0..10).flat_map(|_| labelled::harmless(dice)).collect();
    let alarms: Vec<_> = harmless.iter().filter(|labelled| !found(&labelled.text).1.is_empty()).collect();
    alarms.iter().for_each(|alarm| println!("false alarm: {} {:?}", alarm.text, found(&alarm.text).1));
    let (hits, all) = groups.values().fold((0, 0), |(hits, all), group| (hits + group.0, all + group.1));
    groups.iter().for_each(|(name, (hits, all))| println!("{name}: {hits} of {all}"));
    println!(
        "recall {:.3}, precision {:.3} ({} false alarms in {} harmless texts)",
        hits as f64 / all as f64,
        hits as f64 / (hits + alarms.len()) as f64,
        alarms.len(),
        harmless.len()
    );
    assert!(hits * 100 >= all * 98, "recall");
    assert!(alarms.len() * 100 <= harmless.len(), "false alarms");
}

/// The sources of this very workspace: code about sessions, tokens and keys, without a secret in it.
#[test]
fn ordinary_code_raises_no_alarm() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // This plugin's own tests and scenes hold values that are meant to be found.
    let own = ["redact-secrets", "redact.rs"];
    let (mut bytes, mut alarms, mut open) = (0, Vec::new(), vec![root]);
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let skipped = name.starts_with('.') || ["target", "prebuilt", "node_modules"].contains(&name.as_str());
            let skipped = skipped || own.contains(&name.as_str());
            if skipped {
                continue;
            }
            if entry.is_dir() {
                open.push(entry);
            } else if let Some(text) = std::fs::read_to_string(&entry).ok().filter(|_| entry.is_file()) {
                bytes += text.len();
                let (json, found) = found(&text);
                alarms.extend(
                    found.iter().map(|one| format!("{} {}: {}", entry.display(), one.kind, &json[one.start..one.end])),
                );
            }
        }
    }
    // The session of the pages has a password that is meant to be found.
    alarms.retain(|alarm| !alarm.ends_with("Kr8!vhq2x"));
    println!("{} alarms in {} KB of sources: {alarms:#?}", alarms.len(), bytes / 1000);
    assert!(alarms.len() <= 2, "{alarms:#?}");
}

#[test]
fn files_of_ones_own() {
    for path in std::env::var("MEASURE").unwrap_or_default().split(':').filter(|path| !path.is_empty()) {
        let bytes = std::fs::read(path).expect("the file");
        let found = find(&bytes, 0, bytes.len(), &Config::default());
        let shown: Vec<_> = found
            .iter()
            .map(|one| (one.kind.clone(), String::from_utf8_lossy(&bytes[one.start..one.end]).into_owned()))
            .collect();
        println!("{path}: {shown:#?}");
    }
}
