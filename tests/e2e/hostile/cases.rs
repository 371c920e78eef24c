//! Every kind of mischief that we know, and what the log must say of each.

use super::{bombs, wat};
use crate::stage::{Stage, scripted};

/// What only the other session says.
pub const OTHERS_SECRET: &str = "the word is xyzzy";
/// What an edit takes out of the session before anybody is asked to look at it.
pub const EDITED_OUT: &str = "the word was plugh";
/// The entry that said it.
pub const EDITED: &str = "00000002";
/// Notes each user message.
pub const GOOD: &str = r#"{"needs":["append:custom"],"on":["message:user"],"entry":[{"custom":{"type":"good","data":{"of":"$trigger"}}}]}"#;
/// All that can be granted without a model.
const ALL: [&str; 5] =
    ["append:custom", "append:custom_message", "append:compaction", "append:context_edit", "session:raw"];

/// A plugin that does what it should not.
pub struct Case {
    pub name: &'static str,
    /// Its table in the config.
    pub table: String,
    /// What a line of the log about it must say.
    said: &'static str,
}

impl Case {
    /// Whether the log explains it.
    pub fn is_told(&self, log: &str) -> bool {
        let names = [format!("plugin=\"{}\"", self.name), format!("plugin \"{}\"", self.name)];
        log.lines().any(|line| names.iter().any(|name| line.contains(name)) && line.contains(self.said))
    }
}

/// All of them.
pub fn all(stage: &Stage) -> Vec<Case> {
    let kinds = [
        without_end(),
        too_much(),
        forged(stage),
        not_granted(),
        while_loading(stage),
        of_wat(stage),
        declared(stage),
        around_a_call(stage),
    ];
    kinds.into_iter().flatten().collect()
}

/// Proposes something first, which must be dropped, and then does this.
fn behind_a_proposal(name: &'static str, steps: &str, said: &'static str) -> Case {
    let script = format!(
        r#"{{"needs":["append:custom"],"on":["message:user"],"entry":[{{"custom":{{"type":"{name}"}}}},{steps}]}}"#
    );
    Case { name, table: scripted(name, &ALL, &script), said }
}

/// Is refused each time, and does nothing else.
fn refused(name: &'static str, grants: &[&str], step: &str, said: &'static str) -> Case {
    let script = format!(r#"{{"can_use":["append:custom"],"on":["message:user"],"entry":[{step}]}}"#);
    Case { name, table: scripted(name, grants, &script), said }
}

/// Is asked for `on-settled`, proposes something there, and then does this.
fn when_settled(name: &'static str, step: &str, said: &'static str) -> Case {
    let script = format!(
        r#"{{"needs":["append:custom"],"on":["message:user"],"entry":[{{"later":"n"}}],"settled":[{{"custom":{{"type":"{name}"}}}},{step}]}}"#
    );
    Case { name, table: scripted(name, &ALL, &script), said }
}

/// Does this while it describes itself.
fn describing(name: &'static str, step: &str, said: &'static str) -> Case {
    Case { name, table: scripted(name, &ALL, &format!(r#"{{"describe":[{step}]}}"#)), said }
}

/// A plugin of these bytes.
fn of_bytes(stage: &Stage, name: &'static str, bytes: &[u8], said: &'static str) -> Case {
    let path = stage.path(&format!("{name}.wasm"));
    std::fs::write(&path, bytes).expect("a file");
    let table = format!("[[plugin]]\nname = {name:?}\npath = {path:?}\ngrants = [\"append:custom\"]\n\n");
    Case { name, table, said }
}

fn without_end() -> Vec<Case> {
    let fuel = "used 300,000,000 of 300,000,000 fuel (limits.fuel)";
    vec![
        behind_a_proposal("loops", r#"{"loop":true}"#, fuel),
        when_settled("loops-settled", r#"{"loop":true}"#, fuel),
        behind_a_proposal("recurses", r#"{"recurse":true}"#, "used 524,288 of 524,288 bytes of stack"),
        behind_a_proposal("calls", r#"{"calls":10000000}"#, fuel),
        behind_a_proposal("is-refused", r#"{"custom":{"type":""},"times":4000000000}"#, fuel),
        behind_a_proposal("logs", r#"{"flood":1000000,"times":1000}"#, "lines in the log (limits.log-lines)"),
    ]
}

fn too_much() -> Vec<Case> {
    let memory = "of 16,777,216 bytes of memory (limits.memory)";
    vec![
        behind_a_proposal("eats", r#"{"eat_memory":true}"#, memory),
        behind_a_proposal("reads-it-all", r#"{"read":"$first"},{"err":"it was short"}"#, memory),
        behind_a_proposal(
            "says-much",
            r#"{"flood":9000000}"#,
            "used 4,194,304 of 4,194,304 bytes that one call may hand over",
        ),
        behind_a_proposal("traps", r#"{"trap":true}"#, "trap"),
        behind_a_proposal("panics", r#"{"panic":"oh"}"#, "oh"),
        behind_a_proposal("errs", r#"{"err":"I give up"}"#, "error: I give up"),
        when_settled("traps-settled", r#"{"trap":true}"#, "trap"),
    ]
}

fn forged(stage: &Stage) -> Vec<Case> {
    let huge = format!(r#"{{"custom":{{"type":"huge","data":"{}"}}}}"#, "x".repeat(300_000));
    let (id, many) = ("ffffffff", r#"{"custom":{"type":"many"},"times":33},{"err":"enough"}"#);
    vec![
        refused("edits-forged", &ALL, &format!(r#"{{"edits":[{{"target":"{id}","text":"x"}}]}}"#), id),
        refused("keeps-forged", &ALL, &format!(r#"{{"compaction":{{"summary":"s","first_kept":"{id}"}}}}"#), id),
        refused("forges-receipts", &ALL, r#"{"custom":{"type":"pi-graft.run","data":{"batch":"b"}}}"#, "pi-graft.run"),
        refused("says-no-message", &ALL, r#"{"custom_message":{"type":"m","content":{"no":"message"}}}"#, "refused"),
        refused("is-huge", &ALL, &huge, "of 262,144 bytes of an entry (limits.entry-bytes)"),
        behind_a_proposal("is-many", many, "used 33 of 32 drafts (limits.proposals)"),
        of_bytes(stage, "forges-members", &wat::proposing(r"1,\22id\22:\22deadbeef\22,\22parentId\22:null"), "refused"),
        of_bytes(stage, "is-no-text", &wat::proposing(r"\ff\fe\22"), "utf-8"),
    ]
}

fn not_granted() -> Vec<Case> {
    let elsewhere = r#"{"on":["custom:wake"],"entry":[{"read":"00000004"},{"err":"it was there"}]}"#;
    let needs = r#"{"needs":["append:custom"],"on":["message:user"]}"#;
    let raw = format!(r#"{{"on":["context_edit"],"entry":[{{"raw":"{EDITED}"}}]}}"#);
    vec![
        refused("ungranted", &[], r#"{"custom":{"type":"ungranted"}}"#, "is not granted"),
        refused("asks-a-model", &ALL, r#"{"complete":"summary"}"#, "handler"),
        refused("edits", &["append:custom"], r#"{"edits":[{"target":"$trigger"}]}"#, "append:context_edit"),
        refused("compacts", &["append:custom"], r#"{"compaction":{"summary":"s"}}"#, "append:compaction"),
        refused(
            "speaks",
            &["append:custom"],
            r#"{"custom_message":{"type":"m","content":"x"}}"#,
            "append:custom_message",
        ),
        Case { name: "reads-raw", table: scripted("reads-raw", &ALL[..4], &raw), said: "session:raw" },
        Case {
            name: "reads-elsewhere",
            table: scripted("reads-elsewhere", &ALL, elsewhere),
            said: "no entry 00000004",
        },
        Case { name: "greedy", table: scripted("greedy", &[], needs), said: "which is not granted" },
    ]
}

fn while_loading(stage: &Stage) -> Vec<Case> {
    let start = |body: &str| wat::plugin(&format!("(func $start {body}) (start $start)"), "(i32.const 3000)");
    let interfaces = [
        ("wants-files", "wasi:filesystem/types@0.2.0"),
        ("wants-sockets", "wasi:sockets/tcp@0.2.0"),
        ("wants-environment", "wasi:cli/environment@0.2.0"),
        ("wants-time", "wasi:clocks/wall-clock@0.2.0"),
        ("wants-ticks", "wasi:clocks/monotonic-clock@0.2.0"),
        ("wants-chance", "wasi:random/random@0.2.0"),
        ("wants-http", "wasi:http/outgoing-handler@0.2.0"),
    ];
    let importing = interfaces.map(|(name, interface)| of_bytes(stage, name, &wat::importing(interface), interface));
    let preview1 = r#"(import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32)))"#;
    let mut cases = vec![
        of_bytes(stage, "loops-at-start", &start("(loop (br 0))"), "of 300,000,000 fuel (limits.fuel)"),
        of_bytes(stage, "traps-at-start", &start("unreachable"), "unreachable"),
        of_bytes(stage, "wants-preview1", &wat::plugin(preview1, "(i32.const 3000)"), "wasi_snapshot_preview1"),
        describing("loops-describing", r#"{"loop":true}"#, "of 300,000,000 fuel (limits.fuel)"),
        describing("traps-describing", r#"{"trap":true}"#, "trap"),
        describing("eats-describing", r#"{"eat_memory":true}"#, "bytes of memory (limits.memory)"),
    ];
    cases.extend(importing);
    cases
}

fn of_wat(stage: &Stage) -> Vec<Case> {
    let grow = "(loop $more (br_if $more (i32.ge_s (table.grow $table (ref.null func) (i32.const 1000)) (i32.const 0)))) unreachable";
    let text = r#"(import "pi-graft:plugin/session@0.1.0" "text" (func $text (param i32 i64 i32 i32)))"#;
    let read = "(local $n i32) (loop $more
        (call $text (i32.const 0) (i64.mul (i64.const 65536) (i64.extend_i32_u (local.get $n))) (i32.const 65536) (i32.const 5000))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $more (i32.lt_u (local.get $n) (i32.const 10000000)))) (i32.const 3000)";
    let elsewhere = "(i32.const -8)";
    vec![
        of_bytes(stage, "grows-tables", &wat::plugin("", grow), "of 20,000 table elements"),
        of_bytes(stage, "reads-on-and-on", &wat::plugin(text, read), "of 300,000,000 fuel (limits.fuel)"),
        of_bytes(stage, "answers-elsewhere", &wat::plugin("", elsewhere), "trap"),
    ]
}

fn declared(stage: &Stage) -> Vec<Case> {
    let elements = "(table 10000000 funcref)";
    let tables = "(table 1 funcref)".repeat(20);
    vec![
        of_bytes(stage, "begins-with-much", &wat::with_pages(8192), "of 16,777,216 bytes of memory"),
        of_bytes(stage, "declares-memory", &wat::with_pages(65536), "memory"),
        of_bytes(stage, "declares-a-table", &bombs::declaring(elements), "of 20,000"),
        of_bytes(stage, "declares-tables", &bombs::declaring(&tables), "tables"),
        of_bytes(stage, "declares-functions", &bombs::functions(30_000), "unreachable"),
        of_bytes(stage, "declares-data", &bombs::pieces_of_data(90_000), "unreachable"),
        of_bytes(stage, "declares-too-much-data", &bombs::pieces_of_data(100_001), "data"),
        of_bytes(stage, "declares-variables", &bombs::variables(1_000_000), "locals"),
        of_bytes(stage, "is-far-too-long", &bombs::padded(50 << 20), "of 33,554,432 bytes of a plugin's file"),
        of_bytes(stage, "is-a-thousand", &bombs::instances(900), "instances"),
        of_bytes(stage, "is-too-many", &bombs::instances(100_000), "instances"),
        of_bytes(stage, "holds-too-many", &bombs::components(100_000), "components"),
    ]
}

/// What the host calls on the way into a plugin and out of it is the plugin's too.
fn around_a_call(stage: &Stage) -> Vec<Case> {
    let after = |body: &str| {
        let export = "cabi_post_pi-graft:plugin/handler@0.1.0#on-entry";
        wat::proposing_and(&format!("(func (export \"{export}\") (param i32) {body})"), "1")
    };
    let receiving = |body: &str| wat::receiving(body);
    let fuel = "of 300,000,000 fuel (limits.fuel)";
    vec![
        of_bytes(stage, "traps-afterwards", &after("unreachable"), "unreachable"),
        of_bytes(stage, "loops-afterwards", &after("(loop (br 0))"), fuel),
        of_bytes(stage, "traps-receiving", &receiving("unreachable"), "unreachable"),
        of_bytes(stage, "loops-receiving", &receiving("(loop (br 0)) unreachable"), fuel),
        of_bytes(stage, "receives-elsewhere", &receiving("(i32.const -8)"), "realloc"),
    ]
}
