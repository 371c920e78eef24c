//! What a session has used (S4.5), and the names it goes by (S4.6): over the whole file, whatever branches and edits say.

use pi_session::Tree;
use pi_session::totals::day_name;

const SESSION: &str = r#"{"type":"session","version":3,"id":"s"}
{"type":"message","id":"u","parentId":null,"message":{"role":"user","content":"hi","usage":{"input":1000}}}
{"type":"message","id":"a","parentId":"u","message":{"role":"assistant","provider":"p","model":"m","content":[],"usage":{"input":10,"output":5,"cacheRead":2,"cacheWrite":1,"cost":{"total":0.5}},"stopReason":"error"}}
{"type":"message","id":"t","parentId":"a","message":{"role":"toolResult","content":[],"usage":{"input":3,"output":1,"cacheRead":0,"cacheWrite":0,"cost":{"total":0.25}}}}
{"type":"usage","id":"n","parentId":"t","kind":"never heard of","provider":"p","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0}}
{"type":"context_edit","id":"e","parentId":"n","targetId":"a","replacement":null}
{"type":"compaction","id":"c","parentId":"e","summary":"s","firstKeptEntryId":"c","tokensBefore":9,"usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"cost":{"total":1}}}
{"type":"branch_summary","id":"b","parentId":"u","fromId":"c","summary":"s","usage":{"input":1e400,"output":2,"cacheRead":null,"cacheWrite":"x"}}
{"type":"label","id":"l1","parentId":"b","targetId":"u","label":"first"}
{"type":"label","id":"l2","parentId":"l1","targetId":"a","label":"second"}
{"type":"label","id":"l3","parentId":"l2","targetId":"u"}
{"type":"session_info","id":"i1","parentId":"l3","name":" a name "}
"#;

#[test]
fn everything_that_was_paid_for_counts_once() {
    let tree = Tree::from_bytes(SESSION.as_bytes());
    let all = tree.totals().all;
    assert_eq!((all.input, all.output, all.cache_read, all.cache_write), (114.0, 19.0, 2.0, 1.0));
    assert_eq!(all.cost, 1.75);
    let model = tree.totals().by_model["p/m"];
    assert_eq!((model.input, model.output, model.cost), (11.0, 6.0, 0.5));
}

#[test]
fn labels_and_names_are_set_and_cleared() {
    let mut tree = Tree::from_bytes(SESSION.as_bytes());
    assert_eq!((tree.label("u"), tree.label("a")), (None, Some("second")));
    assert_eq!(tree.name(), Some("a name"));
    tree.push(0, br#"{"type":"session_info","id":"i2","parentId":"i1","name":""}"#);
    assert_eq!(tree.name(), None);
}

/// Pi keeps such an entry where nothing can hang on it (S2.2), but looks at it wherever it looks at all of the file.
#[test]
fn what_an_entry_without_an_id_says_of_the_session_counts() {
    let mut tree = Tree::from_bytes(SESSION.as_bytes());
    tree.push(0, br#"{"type":"label","parentId":"a","targetId":"u","label":"again"}"#);
    tree.push(0, br#"{"type":"session_info","id":7,"parentId":"a","name":"new"}"#);
    tree.push(0, br#"{"type":"usage","id":"","parentId":"a","kind":"k","usage":{"input":6,"cost":{"total":1}}}"#);
    assert_eq!((tree.label("u"), tree.name()), (Some("again"), Some("new")));
    assert_eq!((tree.totals().all.input, tree.totals().all.cost), (120.0, 2.75));
}

#[test]
fn what_was_paid_for_is_told_by_day_and_entry_by_entry() {
    let mut tree = Tree::from_bytes(b"{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n");
    let mut pay = |id: &str, time: &str, cost: f64| {
        let line = format!(
            r#"{{"type":"usage","id":"{id}","parentId":null,"timestamp":"{time}","kind":"k","provider":"p","model":"m","usage":{{"input":1,"cost":{{"total":{cost}}}}}}}"#
        );
        tree.push(0, line.as_bytes());
        tree.totals().clone()
    };
    pay("a", "2026-12-01T23:59:59.999Z", 1.0);
    pay("b", "no time at all", 2.0);
    let totals = pay("c", "2026-12-02T00:00:00.000Z", 4.0);
    let days: Vec<_> = totals.by_day.iter().map(|(day, usage)| (day_name(*day), usage.cost)).collect();
    assert_eq!(days, [("2026-12-01".into(), 1.0), ("2026-12-02".into(), 4.0)]);
    let last = totals.last.expect("the last");
    assert_eq!((last.line, last.usage.cost, last.model.as_str()), (4, 4.0, "p/m"));
    assert_eq!(totals.all.cost, 7.0);
}
