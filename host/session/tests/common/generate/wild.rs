//! Sessions in which any value of any line may be of another type, missing or there twice.

use pi_session::json::{Json, Kind};

use super::value::Rng;

/// What may stand in place of a value, whatever was expected there.
const WILD: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "7.5",
    "1e400",
    "-1e400",
    "9007199254740993",
    "8640000000000001",
    "-62167219200001",
    "\"\"",
    "\"x\"",
    "\" \"",
    "\"0\"",
    "\"null\"",
    "\"__proto__\"",
    "\"constructor\"",
    "\"toString\"",
    "\"length\"",
    "\"\\ud800\"",
    "\"\u{2028}\"",
    "\"\\u0000\"",
    "\"text\"",
    "\"session\"",
    "\"message\"",
    "\"compaction\"",
    "\"context_edit\"",
    "\"label\"",
    "\"system\"",
    "\"user\"",
    "\"assistant\"",
    "\"toolResult\"",
    "\"custom\"",
    "\"hookMessage\"",
    "\"bashExecution\"",
    "\"branchSummary\"",
    "\"compactionSummary\"",
    "[]",
    "[null]",
    "[0]",
    "[\"x\"]",
    "[[]]",
    "[{}]",
    "[{\"type\":\"text\"}]",
    "[{\"type\":\"text\",\"text\":null}]",
    "[{\"type\":\"text\",\"text\":\"t\"},null]",
    "[{\"type\":\"toolCall\"}]",
    "[{\"type\":\"toolCall\",\"name\":5,\"arguments\":null}]",
    "[{\"type\":\"toolCall\",\"name\":\"read\",\"arguments\":\"path\"}]",
    "[{\"type\":\"toolCall\",\"name\":\"read\",\"arguments\":[\"a\"]}]",
    "[{\"type\":\"toolCall\",\"name\":\"edit\",\"arguments\":{\"path\":7}}]",
    "[{\"type\":\"thinking\"}]",
    "[{\"name\":\"read\"}]",
    "[{\"name\":null}]",
    "{}",
    "{\"content\":null}",
    "{\"content\":\"x\"}",
    "{\"content\":[]}",
    "{\"length\":1}",
    "{\"length\":2,\"0\":\"a\"}",
    "{\"role\":\"user\",\"content\":\"x\"}",
    "{\"role\":\"system\",\"content\":[]}",
    "{\"role\":\"assistant\"}",
    "{\"toJSON\":1}",
    "{\"__proto__\":{\"type\":\"text\"}}",
    "{\"__proto__\":null}",
    "{\"a\":1,\"a\":2}",
];

/// What may stand in place of a time.
const TIMES: &[&str] =
    &["null", "true", "false", "0", "-1", "7.5", "1e400", "8640000000000001", "\"\"", "\"x\"", "{}", "{\"toJSON\":1}"];

/// Names that a member may have in place of its own, or besides.
const NAMES: &[&str] = &[
    "type",
    "id",
    "parentId",
    "timestamp",
    "message",
    "role",
    "content",
    "summary",
    "replacement",
    "targetId",
    "label",
    "name",
    "usage",
    "stopReason",
    "sections",
    "toolsAdded",
    "toolsRemoved",
    "nestedCalls",
    "details",
    "fromHook",
    "systemMessage",
    "firstKeptEntryId",
    "firstKeptEntryIndex",
    "tokensBefore",
    "version",
    "__proto__",
    "toJSON",
    "\\u0069d",
];

/// The session with some of its values changed: each with the chance `per_mille`.
pub fn wilder(session: &[u8], rng: &mut Rng, per_mille: u32) -> Vec<u8> {
    let mut wild = Wild { rng, per_mille, out: Vec::new() };
    for (number, line) in session.split_inclusive(|byte| *byte == b'\n').enumerate() {
        wild.line(number, line);
    }
    wild.out
}

struct Wild<'r> {
    rng: &'r mut Rng,
    per_mille: u32,
    out: Vec<u8>,
}

impl Wild<'_> {
    /// The header mostly stays: without it there is no session.
    fn line(&mut self, number: usize, line: &[u8]) {
        let spared = number == 0 && !self.rng.per_mille(30);
        match Json::parse(line) {
            Ok(json) if !spared => {
                self.value(json);
                self.out.extend_from_slice(&line[line.trim_ascii_end().len()..]);
            }
            _ => self.out.extend_from_slice(line),
        }
    }

    fn strikes(&mut self) -> bool {
        let chance = self.per_mille;
        self.rng.per_mille(chance)
    }

    fn wild(&mut self) {
        let value = self.rng.pick(WILD);
        self.out.extend_from_slice(value.as_bytes());
    }

    /// A member of this name. A time is none of those that JavaScript reads and we mean not to (S4.1).
    fn wild_member(&mut self, key: &[u8]) {
        self.named(key);
        match key {
            b"timestamp" => self.out.extend_from_slice(self.rng.pick(TIMES).as_bytes()),
            _ => self.wild(),
        }
    }

    fn value(&mut self, json: Json<'_>) {
        match json.kind() {
            Kind::Object => self.object(json),
            Kind::Array => self.list(json),
            _ => self.out.extend_from_slice(json.raw()),
        }
    }

    fn list(&mut self, list: Json<'_>) {
        self.out.push(b'[');
        for (at, item) in list.items().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            if self.strikes() { self.wild() } else { self.value(item) }
        }
        self.out.push(b']');
    }

    fn object(&mut self, object: Json<'_>) {
        self.out.push(b'{');
        let mut first = true;
        for (key, value) in object.members() {
            let (before, fate) = (self.out.len(), if self.strikes() { self.rng.below(7) } else { 7 });
            if !first {
                self.out.push(b',');
            }
            if !self.member(key.raw(), value, fate) {
                self.out.truncate(before);
                continue;
            }
            first = false;
        }
        self.out.push(b'}');
    }

    /// One member, as fate has it; false where it is to go.
    fn member(&mut self, key: &[u8], value: Json<'_>, fate: u32) -> bool {
        match fate {
            0 => return false,
            1 => {
                let name = self.rng.pick(NAMES);
                self.named(name.as_bytes());
                self.value(value);
            }
            2 => {
                self.wild_member(key);
                self.out.push(b',');
                self.named(key);
                self.value(value);
            }
            3 => {
                self.named(key);
                self.value(value);
                let name = self.rng.pick(NAMES);
                self.out.push(b',');
                self.wild_member(name.as_bytes());
            }
            4..7 => self.wild_member(key),
            _ => {
                self.named(key);
                self.value(value);
            }
        }
        true
    }

    fn named(&mut self, key: &[u8]) {
        self.out.push(b'"');
        self.out.extend_from_slice(key);
        self.out.extend_from_slice(b"\":");
    }
}
