//! A scene: a session given as a few lines, for trying a plugin on it (`plugin-api/TESTING.md`).
//!
//! A line is a short form ([`short`]), a wish for a compaction, or an entry as it stands in a session. What a line leaves out
//! is made, and the same each time: ids `e0`, `e1` and so on, the entry before as parent, a second more for each entry.

mod short;

use pi_session::json::{Json, Kind};
use pi_session::time::{iso, parse_iso};
use serde_json::{Map, Value, json};

use crate::files::scratch::Scratch;

use super::ReplayError;
use super::recorded::Recorded;
use short::Calls;

/// When a scene begins that does not say: 2026-01-01, Unix milliseconds.
const BEGIN_MS: i64 = 1_767_225_600_000;
/// From one entry to the next, milliseconds.
const STEP_MS: i64 = 1000;
/// What an entry has, whatever it is.
const COMMON: [&str; 3] = ["id", "parentId", "timestamp"];

/// Why a line is none of a scene.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SceneError {
    /// A line does not hold.
    #[error("line {line} of the session: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// There is nothing to run on.
    #[error("the session has no entry: give at least a line such as {{\"user\":\"hi\"}}")]
    Empty,
}

/// A session that was given as a few lines.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    header: String,
    /// Entries, each its line.
    lines: Vec<String>,
    wants: Vec<Want>,
}

/// A compaction is wanted here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// Behind so many entries.
    pub after: usize,
    /// `manual`, `threshold` or `overflow`.
    pub reason: String,
    /// What the user says to it.
    pub instructions: Option<String>,
}

impl Scene {
    /// Reads one.
    ///
    /// # Errors
    /// [`SceneError`].
    pub fn parse(text: &str) -> Result<Scene, SceneError> {
        let mut making = Making::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            making.line(line.trim()).map_err(|why| SceneError::Line { line: at + 1, why })?;
        }
        if making.scene.lines.is_empty() {
            return Err(SceneError::Empty);
        }
        let mut scene = making.scene;
        if scene.header.is_empty() {
            scene.header = header(Map::new()).to_string();
        }
        Ok(scene)
    }

    /// Wants a compaction at the end.
    ///
    /// # Errors
    /// Says which reasons there are.
    pub fn want(&mut self, reason: &str) -> Result<(), String> {
        let want = Want { after: self.lines.len(), reason: known_reason(reason)?, instructions: None };
        self.wants.push(want);
        Ok(())
    }

    /// Where compactions are wanted, in order.
    pub(super) fn wants(&self) -> &[Want] {
        &self.wants
    }

    /// The session as it would have been recorded, in a file that nobody else sees.
    pub(super) fn record(&self) -> Result<Recorded, ReplayError> {
        let mut scratch = Scratch::new()?;
        for line in std::iter::once(&self.header).chain(&self.lines) {
            scratch.line(line.as_bytes())?;
        }
        scratch.flush()?;
        Recorded::open(scratch.path(), &|_| ())
    }
}

/// A scene in the making.
#[derive(Debug, Default)]
struct Making {
    scene: Scene,
    ids: Vec<String>,
    last_ms: Option<i64>,
    calls: Calls,
}

impl Making {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let read = Json::parse(line.as_bytes()).map_err(|error| format!("not JSON: {error}"))?;
        if read.kind() != Kind::Object {
            return Err("not an object in braces".to_owned());
        }
        if read.get("type").and_then(Json::as_str).as_deref() == Some("session") {
            return self.header(line);
        }
        // A whole entry stays as it stands, whatever numbers it holds.
        if read.get("type").is_some() && COMMON.iter().all(|name| read.get(name).is_some()) {
            self.calls.note(read.get("message"));
            let text = |name| read.get(name).and_then(Json::as_str).map(|text| text.into_owned());
            return self.put(text("id").unwrap_or_default(), text("timestamp"), line.to_owned());
        }
        let object = serde_json::from_str(line).map_err(|error| format!("not JSON that can be filled in: {error}"))?;
        self.filled(object)
    }

    fn header(&mut self, line: &str) -> Result<(), String> {
        if !self.scene.header.is_empty() || !self.ids.is_empty() {
            return Err("S2.3: a header stands first, and once".to_owned());
        }
        let given: Map<String, Value> = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        let header = header(given);
        if header["version"] != 3 {
            return Err(
                "S11.2: not of version 3; try it on what `pi-graft session migrate -o FILE` makes of it".to_owned()
            );
        }
        self.last_ms = header["timestamp"].as_str().and_then(parse_iso).map(|ms| ms - STEP_MS);
        self.scene.header = header.to_string();
        Ok(())
    }

    /// Makes an entry of a short form, or of one that lacks something.
    fn filled(&mut self, mut given: Map<String, Value>) -> Result<(), String> {
        if given.contains_key("compact") {
            return self.want(given);
        }
        let number = self.ids.len();
        let common = COMMON.map(|name| given.shift_remove(name));
        let [id, parent, at] = common;
        let id = text("id", id)?.unwrap_or_else(|| format!("e{number}"));
        let before = self.ids.last().map_or(Value::Null, |id| Value::from(id.as_str()));
        let at_ms = self.last_ms.map_or(BEGIN_MS, |ms| ms + STEP_MS);
        let at = text("timestamp", at)?.unwrap_or_else(|| iso(at_ms));
        let body = short::body(given, parse_iso(&at).unwrap_or(at_ms), &mut self.calls)?;
        let mut entry = Map::new();
        entry.insert("type".to_owned(), body.get("type").cloned().unwrap_or_default());
        entry.insert("id".to_owned(), Value::from(id.as_str()));
        entry.insert("parentId".to_owned(), parent.unwrap_or(before));
        entry.insert("timestamp".to_owned(), Value::from(at.as_str()));
        entry.extend(body.into_iter().filter(|(name, _)| name != "type"));
        self.put(id, Some(at), Value::from(entry).to_string())
    }

    fn put(&mut self, id: String, at: Option<String>, line: String) -> Result<(), String> {
        if id.is_empty() || self.ids.contains(&id) {
            return Err(format!("S4.2: the id {id:?} is no text, or there already"));
        }
        self.last_ms = at.as_deref().and_then(parse_iso).or(self.last_ms);
        self.ids.push(id);
        self.scene.lines.push(line);
        Ok(())
    }

    fn want(&mut self, mut given: Map<String, Value>) -> Result<(), String> {
        let reason = text("compact", given.shift_remove("compact"))?.unwrap_or_default();
        let instructions = text("instructions", given.shift_remove("instructions"))?;
        if let Some(name) = given.keys().next() {
            return Err(format!("{name:?} is no member of a wanted compaction: `compact`, `instructions`"));
        }
        if self.ids.is_empty() {
            return Err("nothing stands before it that could be compacted".to_owned());
        }
        self.scene.wants.push(Want { after: self.ids.len(), reason: known_reason(&reason)?, instructions });
        Ok(())
    }
}

fn header(given: Map<String, Value>) -> Value {
    let mut header =
        json!({ "type": "session", "version": 3, "id": "scene", "timestamp": iso(BEGIN_MS), "cwd": "/scene" });
    given.into_iter().for_each(|(name, value)| header[name] = value);
    header
}

fn known_reason(reason: &str) -> Result<String, String> {
    match reason {
        "manual" | "threshold" | "overflow" => Ok(reason.to_owned()),
        _ => Err(format!("{reason:?} is no reason for a compaction: `manual`, `threshold` or `overflow`")),
    }
}

fn text(name: &str, value: Option<Value>) -> Result<Option<String>, String> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{name:?} is a text, not {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Value> {
        let scene = Scene::parse(text).expect("a scene");
        scene.lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn error(text: &str) -> String {
        Scene::parse(text).expect_err("no scene").to_string()
    }

    #[test]
    fn what_a_line_leaves_out_is_made_and_the_same_each_time() {
        let text = "{\"user\":\"hi\"}\n\n{\"custom\":\"count\",\"data\":1}\n{\"user\":\"there\",\"parentId\":\"e0\",\"id\":\"x\"}";
        let made = lines(text);
        assert_eq!(made, lines(text));
        let placed: Vec<_> = made.iter().map(|entry| (&entry["id"], &entry["parentId"], &entry["timestamp"])).collect();
        let (e0, x) = (json!("e0"), json!("x"));
        let at = |second: u8| json!(format!("2026-01-01T00:00:0{second}.000Z"));
        let (e1, null) = (json!("e1"), Value::Null);
        assert_eq!(placed, [(&e0, &null, &at(0)), (&e1, &e0, &at(1)), (&x, &e0, &at(2))]);
        assert_eq!(made[1]["customType"], "count");
    }

    #[test]
    fn a_whole_entry_stays_as_it_stands() {
        let entry = r#"{"type":"custom","id":"a","parentId":null,"timestamp":"2026-02-01T00:00:00.000Z","customType":"x","data":1e400}"#;
        let scene = Scene::parse(&format!("{entry}\n{{\"user\":\"hi\"}}")).expect("a scene");
        assert_eq!(scene.lines[0], entry);
        assert!(scene.lines[1].contains("\"2026-02-01T00:00:01.000Z\""), "a second later: {}", scene.lines[1]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert_eq!(error("\n"), SceneError::Empty.to_string());
        assert!(error("{\"user\":\"hi\"}\n{\"usr\":\"hi\"}").contains("line 2"));
        assert!(error("{\"compact\":\"manual\"}").contains("nothing stands before it"));
        assert!(error("{\"user\":\"hi\"}\n{\"compact\":\"soon\"}").contains("`manual`, `threshold` or `overflow`"));
        assert!(error("{\"user\":\"hi\",\"id\":\"a\"}\n{\"user\":\"hi\",\"id\":\"a\"}").contains("S4.2"));
        assert!(error("{\"type\":\"session\",\"version\":2}").contains("S11.2"));
        assert!(error("[]").contains("braces"));
    }
}
