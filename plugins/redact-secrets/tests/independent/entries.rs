//! Cases as entries of a session, and what the plugin makes of them.
use pi_graft_plugin::testing::FakeHost;
use pi_graft_plugin::{Json, Plugin, Run};
use redact_secrets::RedactSecrets;
use redact_secrets::config::Config;

use crate::dice::Dice;

/// A text, and the secrets in it.
pub struct Case {
    pub group: &'static str,
    pub text: String,
    pub secrets: Vec<String>,
}

impl Case {
    /// A place with a name and secrets in it.
    pub fn with(group: &'static str, place: &str, name: &str, secrets: &[&str]) -> Case {
        let text = place.replace("NAME", name).replacen("@@", secrets[0], 1);
        Case { group, text, secrets: secrets.iter().map(|secret| (*secret).to_owned()).collect() }
    }
}

/// What came of a case.
pub struct Outcome {
    /// Nothing is left of any secret.
    pub gone: bool,
    /// What else was taken out.
    pub others: usize,
}

/// `user:password` in base64.
pub fn pair(dice: &mut Dice) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let pair = format!("me:{}", dice.part("A13"));
    let digits = |three: &[u8]| {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        (0..4)
            .map(
                move |at| if at > three.len() { '=' } else { char::from(SIGNS[(bits >> (18 - 6 * at)) as usize & 63]) },
            )
            .collect::<String>()
    };
    pair.as_bytes().chunks(3).map(digits).collect()
}

/// The entries in which a text stands, in turns; `$` is the text as JSON.
const ENTRIES: [&str; 9] = [
    r#"{"type":"message","id":"e","message":{"role":"user","content":$}}"#,
    r#"{"type":"message","id":"e","message":{"role":"user","content":[{"type":"text","text":$}]}}"#,
    r#"{"type":"message","id":"e","message":{"role":"assistant","content":[{"type":"text","text":$}]}}"#,
    r#"{"type":"message","id":"e","message":{"role":"assistant","content":[{"type":"thinking","thinking":$}]}}"#,
    r#"{"type":"message","id":"e","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{"command":$}}]}}"#,
    r#"{"type":"message","id":"e","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"edit","arguments":{"edits":[{"oldText":"x","newText":$}]}}]}}"#,
    r#"{"type":"message","id":"e","message":{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"ok"},{"type":"text","text":$}]}}"#,
    r#"{"type":"custom_message","id":"e","customType":"x","content":$,"display":true}"#,
    r#"{"type":"message","id":"e","message":{"role":"bashExecution","command":"x","output":$}}"#,
];

/// The entry with this number, as one of three writers of JSON writes it.
fn entry(at: usize, text: &str) -> String {
    let json = Json::text(text).as_str().to_owned();
    let json = match at % 5 {
        // Slashes escaped, as PHP does; signs of HTML escaped, as Go does.
        3 => json.replace('/', "\\/"),
        4 => json.replace('=', "\\u003d").replace('&', "\\u0026").replace('<', "\\u003C").replace('\'', "\\u0027"),
        _ => json,
    };
    ENTRIES[at % ENTRIES.len()].replace('$', &json)
}

/// Runs the plugin on a case.
pub fn run(at: usize, case: &Case) -> Outcome {
    let host = FakeHost::new(&[
        r#"{"type":"message","id":"r","message":{"role":"system","content":"x"}}"#,
        &entry(at, &case.text),
    ]);
    RedactSecrets::on_entry(&Config::default(), &Run::on(&host)).expect("it runs");
    let edits = host.edits.borrow();
    let Some(edit) = edits.first() else {
        // Where no edit can be made, what is found is told.
        let logs = host.logs.borrow();
        let told = logs.first().map_or("", |(_, text)| text.split(" in ").next().unwrap_or_default());
        let count: usize = told.split(", ").filter_map(|one| one.split(' ').next()?.parse::<usize>().ok()).sum();
        let expected = usize::from(!case.secrets.is_empty());
        return Outcome { gone: count >= expected && expected > 0, others: count.saturating_sub(expected) };
    };
    let shown = edit.replacement.as_ref().expect("a content").as_str().replace("\\/", "/");
    let found = shown.matches("[redacted ").count();
    let left = |secret: &String| {
        let json = Json::text(secret).as_str().to_owned();
        let body = &json[1..json.len() - 1];
        let third = (body.len() / 3).max(4).min(body.len());
        [&body[..third], &body[body.len() - third..]].iter().any(|part| shown.contains(part))
            && !is_prefix_only(&shown, body)
    };
    // A text may hold what was thrown for its frame too, and all lines of a key are one secret.
    let expected = usize::from(!case.secrets.is_empty());
    Outcome {
        gone: !case.secrets.iter().any(left) && found >= expected && expected > 0,
        others: found.saturating_sub(expected),
    }
}

/// Nothing but the beginning of it is left.
fn is_prefix_only(shown: &str, body: &str) -> bool {
    !shown.contains(&body[body.len() / 2..]) && !shown.contains(&body[body.len().saturating_sub(12)..])
}

/// What the model sees of a text; the text itself where nothing is taken out.
pub fn shown(at: usize, text: &str) -> String {
    let root = r#"{"type":"message","id":"r","message":{"role":"system","content":"x"}}"#;
    let host = FakeHost::new(&[root, &entry(at % 8, text)]);
    RedactSecrets::on_entry(&Config::default(), &Run::on(&host)).expect("it runs");
    let edits = host.edits.borrow();
    edits
        .first()
        .and_then(|edit| edit.replacement.as_ref())
        .map_or_else(|| text.to_owned(), |content| content.as_str().to_owned())
}
