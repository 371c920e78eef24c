//! Two reports compared, number by number: with a baseline, or of two versions side by side.

use serde_json::{Value, json};

/// What is another one without anything having changed that counts.
const PASSED_OVER: [&str; 3] = ["path", "version", "digest"];

/// One thing that is different.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// The session's id.
    pub session: String,
    /// Where in the report, such as `plugins.count-turns.fuel`.
    pub what: String,
    /// What it was.
    pub before: Value,
    /// What it is.
    pub now: Value,
}

impl Change {
    pub(super) fn to_json(&self) -> Value {
        json!({ "session": self.session, "what": self.what, "before": self.before, "now": self.now })
    }
}

/// What differs between two reports, session by session.
pub(super) fn compare(before: &Value, now: &Value) -> Vec<Change> {
    let (before, now) = (sessions(before), sessions(now));
    let mut changes = Vec::new();
    for (id, told) in &now {
        let known = before.iter().find(|(other, _)| other == id).map_or(&Value::Null, |(_, told)| told);
        walk(id, "", known, told, &mut changes);
    }
    for (id, told) in before.iter().filter(|(id, _)| now.iter().all(|(other, _)| other != id)) {
        walk(id, "", told, &Value::Null, &mut changes);
    }
    changes
}

fn sessions(report: &Value) -> Vec<(String, &Value)> {
    let list = report["sessions"].as_array().into_iter().flatten();
    list.map(|told| (told["session"].as_str().unwrap_or_default().to_owned(), told)).collect()
}

fn walk(session: &str, what: &str, before: &Value, now: &Value, changes: &mut Vec<Change>) {
    match (before, now) {
        (Value::Object(old), Value::Object(new)) => {
            let gone = old.keys().filter(|key| !new.contains_key(*key));
            for key in new.keys().chain(gone).filter(|key| !PASSED_OVER.contains(&key.as_str())) {
                let (old, new) = (old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null));
                walk(session, &join(what, key), old, new, changes);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (old, new)) in old.iter().zip(new).enumerate() {
                let name =
                    new["plugin"].as_str().filter(|_| what == "plugins").map_or_else(|| at.to_string(), str::to_owned);
                walk(session, &join(what, &name), old, new, changes);
            }
        }
        _ if before == now => {}
        _ => {
            let (before, now) = (short(before), short(now));
            changes.push(Change { session: session.to_owned(), what: what.to_owned(), before, now });
        }
    }
}

fn join(what: &str, key: &str) -> String {
    if what.is_empty() { key.to_owned() } else { format!("{what}.{key}") }
}

/// Lists and objects by their size: they are in the reports.
fn short(value: &Value) -> Value {
    match value {
        Value::Array(list) => format!("{} of them", list.len()).into(),
        Value::Object(_) => "there".into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_digests_do_not_count() {
        let told = |fuel: u64, digest: &str, grafts: Value| {
            let plugin = json!({ "plugin": "p", "digest": digest, "fuel": fuel });
            json!({ "sessions": [{ "session": "s", "path": digest, "plugins": [plugin], "grafts": grafts }] })
        };
        let before = told(10, "a", json!([]));
        assert_eq!(compare(&before, &told(10, "b", json!([]))), []);
        let changes = compare(&before, &told(11, "b", json!([{}])));
        let mut said: Vec<_> = changes.iter().map(|c| (c.what.as_str(), c.now.clone())).collect();
        said.sort_by_key(|(what, _)| *what);
        assert_eq!(said, [("grafts", json!("1 of them")), ("plugins.p.fuel", json!(11))]);
    }

    #[test]
    fn a_session_that_is_new_or_gone_is_a_change() {
        let one = json!({ "sessions": [{ "session": "s" }] });
        let none = json!({ "sessions": [] });
        assert_eq!(compare(&none, &one)[0].now, json!("there"));
        assert_eq!(compare(&one, &none)[0].now, Value::Null);
    }
}
