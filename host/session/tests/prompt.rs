//! The replay of system messages (S5.1), with the one thing that no released Pi does: `replace`.

use std::sync::Arc;

use pi_session::{Branch, Tree};

/// A session of system messages, one after the other, and their replay.
fn replay(messages: &[&str]) -> String {
    let mut text = String::from("{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n");
    for (at, message) in messages.iter().enumerate() {
        let parent = at.checked_sub(1).map_or("null".to_owned(), |before| format!("\"{before}\""));
        text.push_str(&format!("{{\"type\":\"message\",\"id\":\"{at}\",\"parentId\":{parent},\"message\":{{\"role\":\"system\",{message}}}}}\n"));
    }
    let tree = Arc::new(Tree::from_bytes(text.as_bytes()));
    let branch = Branch::of_leaf(&tree, Arc::new(text.into_bytes())).expect("there is no cycle");
    let replay = branch.system(&branch.context()).expect("memory can be read");
    replay.message(None).unwrap_or_default()
}

#[test]
fn texts_are_joined_sections_patched_and_tools_set_by_name() {
    let first =
        r#""content":"one","sections":{"a":"A","b":"B"},"toolsAdded":[{"name":"read"},{"name":"bash"}],"timestamp":1"#;
    let second =
        r#""content":"two","sections":{"a":"A2","b":null,"c":"C"},"toolsRemoved":[{"name":"read"}],"timestamp":2"#;
    assert_eq!(
        replay(&[first, second]),
        r#"{"role":"system","content":"one\n\ntwo","sections":{"a":"A2","c":"C"},"toolsAdded":[{"name":"bash"}],"timestamp":1}"#
    );
}

#[test]
fn replace_drops_all_that_was_before_it() {
    let first = r#""content":"one","sections":{"a":"A"},"toolsAdded":[{"name":"read"}],"timestamp":1"#;
    let second = r#""replace":true,"content":"two","sections":{"b":"B"},"timestamp":2"#;
    assert_eq!(replay(&[first, second]), r#"{"role":"system","content":"two","sections":{"b":"B"},"timestamp":1}"#);
    let not = second.replace("true", "\"true\"");
    assert!(replay(&[first, &not]).contains("one"), "only the value true replaces");
}

#[test]
fn without_a_time_and_without_tools_there_is_no_prompt() {
    assert_eq!(replay(&[r#""content":"lost""#]), "");
    assert_eq!(replay(&[]), "");
}
