//! The shape of what drafts carry: message content, blocks, usage (S12.3).
//!
//! Pi checks none of this when appending, and then lives with it badly (S12.9): a text block without text,
//! say, ends every later request of that session. Messages here complete the sentence "`content` …".

use crate::json::{Json, Kind};

/// Whose content it is, which decides what blocks it may hold (S5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A user or custom message, or a tool result: text and images.
    Plain,
    /// An assistant message: text, thinking and tool calls.
    Assistant,
    /// Not known yet: any of these.
    Any,
}

impl Owner {
    /// The block types that such content may hold.
    fn block_types(self) -> &'static [&'static str] {
        match self {
            Owner::Plain => &["text", "image"],
            Owner::Assistant => &["text", "thinking", "toolCall"],
            Owner::Any => &["text", "image", "thinking", "toolCall"],
        }
    }
}

/// What a value is, for a person.
pub(crate) fn kind_name(json: Json<'_>) -> &'static str {
    match json.kind() {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "a list",
        Kind::Object => "an object",
    }
}

/// Content is a string or a list of blocks that its owner may hold.
pub(crate) fn check_content(content: Json<'_>, owner: Owner) -> Result<(), String> {
    match content.kind() {
        Kind::String => Ok(()),
        Kind::Array => content
            .items()
            .enumerate()
            .try_for_each(|(at, block)| check_block(block, owner).map_err(|why| format!("block {at} {why}"))),
        _ => Err(format!("is {}: give a string, or a list of blocks", kind_name(content))),
    }
}

/// One block of a list.
fn check_block(block: Json<'_>, owner: Owner) -> Result<(), String> {
    if block.kind() != Kind::Object {
        return Err(format!("is {}: give an object such as {{\"type\":\"text\",\"text\":…}}", kind_name(block)));
    }
    let name = text_of(block, "type")?;
    let allowed = owner.block_types();
    if !allowed.contains(&name.as_str()) {
        return Err(format!("has the type {name:?}: allowed here are {}", allowed.join(", ")));
    }
    match name.as_str() {
        "image" => check_image(block),
        "toolCall" => check_call(block),
        text => text_of(block, text).map(drop),
    }
}

/// An image has base64 data and a MIME type.
fn check_image(image: Json<'_>) -> Result<(), String> {
    let mime = text_of(image, "mimeType")?;
    if !is_image_type(&mime) {
        return Err(format!("has the `mimeType` {mime:?}: give one such as \"image/png\""));
    }
    match is_base64(&text_of(image, "data")?) {
        true => Ok(()),
        false => Err("has `data` that is not base64: encode the bytes with the standard alphabet and padding".into()),
    }
}

/// `image/` and a subtype of the characters that RFC 6838 allows.
fn is_image_type(mime: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
    mime.strip_prefix("image/").is_some_and(|subtype| !subtype.is_empty() && subtype.chars().all(allowed))
}

/// Non-empty base64 of the standard alphabet, padded to a multiple of four (RFC 4648).
fn is_base64(data: &str) -> bool {
    let digits = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let allowed = |c: u8| c.is_ascii_alphanumeric() || c == b'+' || c == b'/';
    !digits.is_empty() && data.len().is_multiple_of(4) && digits.bytes().all(allowed)
}

/// A tool call has an id, a name and arguments.
fn check_call(call: Json<'_>) -> Result<(), String> {
    for field in ["id", "name"] {
        if text_of(call, field)?.is_empty() {
            return Err(format!("has an empty `{field}`"));
        }
    }
    match call.get("arguments") {
        Some(arguments) if arguments.kind() == Kind::Object => Ok(()),
        Some(other) => Err(format!("has `arguments` that are {}: give an object", kind_name(other))),
        None => Err("has no `arguments`: give an object, if need be an empty one".into()),
    }
}

/// The text under `field`, which must be there.
pub(crate) fn text_of(object: Json<'_>, field: &str) -> Result<String, String> {
    match object.get(field) {
        Some(value) => match value.as_str() {
            Some(text) => Ok(text.into_owned()),
            None => Err(format!("has a `{field}` that is {}: give a string", kind_name(value))),
        },
        None => Err(format!("has no `{field}`: give a string")),
    }
}

/// Usage as Pi sums it up: every counter a number, and the costs too (S4.5).
pub(crate) fn check_usage(usage: Json<'_>) -> Result<(), String> {
    const COUNTERS: [&str; 5] = ["input", "output", "cacheRead", "cacheWrite", "totalTokens"];
    const COSTS: [&str; 5] = ["input", "output", "cacheRead", "cacheWrite", "total"];
    check_numbers(usage, &COUNTERS)?;
    match usage.get("cost") {
        Some(cost) => check_numbers(cost, &COSTS).map_err(|why| format!("has a `cost` that {why}")),
        None => Err(format!("has no `cost`: give an object of the numbers {}", COSTS.join(", "))),
    }
}

/// An object that has a number under each of `fields`.
fn check_numbers(object: Json<'_>, fields: &[&str]) -> Result<(), String> {
    if object.kind() != Kind::Object {
        return Err(format!("is {}: give an object of the numbers {}", kind_name(object), fields.join(", ")));
    }
    let is_number = |field: &&str| object.get(field).is_some_and(|value| value.kind() == Kind::Number);
    match fields.iter().find(|field| !is_number(field)) {
        Some(field) => Err(format!("has no number `{field}`: give 0 if it is not known")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str, owner: Owner) -> Result<(), String> {
        check_content(Json::parse(text.as_bytes()).unwrap(), owner)
    }

    #[track_caller]
    fn refused(text: &str, owner: Owner, word: &str) {
        let why = content(text, owner).expect_err("this must be refused");
        assert!(why.contains(word), "{why:?} does not speak of {word:?}");
    }

    #[test]
    fn content_is_text_or_blocks() {
        assert_eq!(content(r#""hello""#, Owner::Plain), Ok(()));
        assert_eq!(content("[]", Owner::Plain), Ok(()));
        assert_eq!(content(r#"[{"type":"text","text":""}]"#, Owner::Assistant), Ok(()));
        refused("7", Owner::Plain, "is a number");
        refused("null", Owner::Plain, "is null");
        refused("[null]", Owner::Plain, "block 0 is null");
        refused(r#"[{"type":"text"}]"#, Owner::Plain, "no `text`");
        refused(r#"[{"type":"text","text":"a"},{"type":"text","text":1}]"#, Owner::Plain, "block 1");
        refused(r#"[{"text":"a"}]"#, Owner::Plain, "no `type`");
    }

    #[test]
    fn each_role_holds_its_own_blocks() {
        let thinking = r#"[{"type":"thinking","thinking":"hm"}]"#;
        assert_eq!(content(thinking, Owner::Assistant), Ok(()));
        refused(thinking, Owner::Plain, "allowed here are text, image");
        let image = r#"[{"type":"image","data":"AAAA","mimeType":"image/png"}]"#;
        assert_eq!(content(image, Owner::Plain), Ok(()));
        refused(image, Owner::Assistant, "allowed here are text, thinking, toolCall");
        refused(r#"[{"type":"video","text":""}]"#, Owner::Any, "\"video\"");
    }

    #[test]
    fn images_are_base64_with_a_mime_type() {
        let image = |data: &str, mime: &str| {
            content(&format!(r#"[{{"type":"image","data":"{data}","mimeType":"{mime}"}}]"#), Owner::Plain)
        };
        for data in ["QQ==", "QUI=", "QUJD", "+/+/"] {
            assert_eq!(image(data, "image/jpeg"), Ok(()), "{data}");
        }
        for data in ["", "Q", "QQ", "QQ=", "Q===", "====", "QU JD", "QUJ-", "data:image/png;base64,QUJD"] {
            assert!(image(data, "image/jpeg").is_err(), "{data}");
        }
        for mime in ["", "png", "image/", "text/plain", "image/p ng"] {
            assert!(image("QUJD", mime).is_err(), "{mime}");
        }
        refused(r#"[{"type":"image","data":"QUJD"}]"#, Owner::Plain, "no `mimeType`");
    }

    #[test]
    fn calls_have_id_name_and_arguments() {
        let call = r#"[{"type":"toolCall","id":"c1","name":"read","arguments":{}}]"#;
        assert_eq!(content(call, Owner::Assistant), Ok(()));
        refused(r#"[{"type":"toolCall","id":"","name":"read","arguments":{}}]"#, Owner::Assistant, "empty `id`");
        refused(r#"[{"type":"toolCall","id":"c","name":"read"}]"#, Owner::Assistant, "no `arguments`");
        refused(r#"[{"type":"toolCall","id":"c","name":"read","arguments":"{}"}]"#, Owner::Assistant, "a string");
    }

    #[test]
    fn usage_has_every_number_that_pi_adds_up() {
        let usage = |text: &str| check_usage(Json::parse(text.as_bytes()).unwrap());
        let cost = r#""cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5}"#;
        let whole = format!(r#"{{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,{cost}}}"#);
        assert_eq!(usage(&whole), Ok(()));
        assert!(usage("3").unwrap_err().contains("is a number"));
        assert!(usage(&whole.replace("\"input\":1", "\"input\":\"1\"")).unwrap_err().contains("`input`"));
        assert!(usage(&whole.replace(cost, "\"cost\":0")).unwrap_err().contains("`cost` that is a number"));
    }
}
