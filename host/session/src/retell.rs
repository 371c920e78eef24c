//! A recorded line as it stands in a session that is told anew, with other entries around it: only what must differ does,
//! every other byte stays.

use crate::fork::json_or_null;
use crate::json::{Json, JsonError, quoted};
use crate::splice::{Change, edit};

/// What is to be different.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retold<'a> {
    /// Its parent; the inner none makes it a root.
    pub parent: Option<Option<&'a str>>,
    /// Its first kept entry.
    pub first_kept: Option<&'a str>,
    /// The tokens of the context that its message reports (S9.6). The parts of the usage, which are what was paid for, stay.
    pub context_tokens: Option<u64>,
}

/// The line with what is to be different.
///
/// # Errors
/// [`JsonError`] if it is no JSON.
pub fn retell(line: &[u8], retold: &Retold<'_>) -> Result<Vec<u8>, JsonError> {
    let entry = Json::parse(line)?;
    let mut changes = Vec::new();
    if let Some(parent) = retold.parent {
        changes.push(Change::Set("parentId", json_or_null(parent).into_bytes()));
    }
    if let Some(first_kept) = retold.first_kept {
        changes.push(Change::Set("firstKeptEntryId", quoted(first_kept).into_bytes()));
    }
    if let Some(tokens) = retold.context_tokens {
        changes.extend(with_tokens(entry, tokens).map(|message| Change::Set("message", message)));
    }
    Ok(edit(line, entry, &changes))
}

/// The entry's message with other tokens, if it reports any.
fn with_tokens(entry: Json<'_>, tokens: u64) -> Option<Vec<u8>> {
    let message = entry.get("message")?;
    let usage = message.get("usage")?;
    let total = Change::Set("totalTokens", tokens.to_string().into_bytes());
    let usage = edit(usage.raw(), usage, &[total]);
    Some(edit(message.raw(), message, &[Change::Set("usage", usage)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str, retold: Retold<'_>) -> String {
        String::from_utf8(retell(line.as_bytes(), &retold).expect("JSON")).expect("text")
    }

    #[test]
    fn only_what_must_differ_does() {
        let line = r#"{"id":"b", "parentId":"a","x":1e400,"message":{"usage":{"input":5,"totalTokens":9},"role":"assistant"}}"#;
        assert_eq!(told(line, Retold::default()), line);
        let retold = Retold { parent: Some(Some("g")), context_tokens: Some(7), ..Retold::default() };
        let expected = line.replace("\"a\"", "\"g\"").replace('9', "7");
        assert_eq!(told(line, retold), expected);
    }

    #[test]
    fn a_message_without_usage_stays_as_it_is() {
        let line = r#"{"id":"b","parentId":null,"message":{"role":"user"}}"#;
        let retold = Retold { context_tokens: Some(7), ..Retold::default() };
        assert_eq!(told(line, retold), line);
        let retold = Retold { parent: Some(None), first_kept: Some("k"), ..Retold::default() };
        assert_eq!(told(line, retold), line.replace("}}", "},\"firstKeptEntryId\":\"k\"}"));
    }
}
