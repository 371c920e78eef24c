//! Which parts of an entry the model sees and an edit can change.
use std::ops::Range;

use crate::json::Cursor;

/// A part of an entry's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// The inside of a text, or the arguments of a tool call, as JSON.
    Text(Range<usize>),
    /// A block of an image.
    Image(Range<usize>),
    /// The inside of thinking that the provider has signed. It goes back only to the model that wrote it, and changed it
    /// would be refused.
    Signed(Range<usize>),
}

/// The content of an entry, and its parts in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// The whole, as JSON.
    pub(crate) range: Range<usize>,
    /// What stands in it.
    pub(crate) parts: Vec<Part>,
}

/// The content of the entry in this line; none if it has none.
pub(crate) fn content(line: &[u8]) -> Option<Content> {
    let entry = Cursor::whole(line);
    let content = entry.member("message").unwrap_or(entry).member("content")?;
    let parts = match content.string() {
        Some(text) => vec![Part::Text(text)],
        None => content.items().flat_map(|block| block_parts(line, block)).collect(),
    };
    Some(Content { range: content.range(), parts })
}

/// The members of a block that matter, gone over once.
#[derive(Default)]
struct Block<'a> {
    kind: Option<Range<usize>>,
    text: Option<Range<usize>>,
    thinking: Option<Range<usize>>,
    signature: Option<Range<usize>>,
    arguments: Option<Cursor<'a>>,
}

fn block_parts(line: &[u8], block: Cursor<'_>) -> Vec<Part> {
    let mut of = Block::default();
    for (name, value) in block.members() {
        match name {
            b"type" => of.kind = value.string(),
            b"text" => of.text = value.string(),
            b"thinking" => of.thinking = value.string(),
            b"thinkingSignature" => of.signature = value.string(),
            b"arguments" => of.arguments = Some(value),
            _ => {}
        }
    }
    let is_signed = of.signature.is_some_and(|signature| !signature.is_empty());
    let part = match of.kind.map(|kind| &line[kind]) {
        Some(b"text") => of.text.map(Part::Text),
        Some(b"thinking") if is_signed => of.thinking.map(Part::Signed),
        Some(b"thinking") => of.thinking.map(Part::Text),
        Some(b"toolCall") => of.arguments.map(|arguments| Part::Text(arguments.range())),
        Some(b"image") => Some(Part::Image(block.range())),
        _ => None,
    };
    part.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_every_kind_of_content() {
        let line = br#"{"type":"message","id":"a","message":{"role":"assistant","content":[{"type":"text","text":"T"},{"type":"thinking","thinking":"U"},{"type":"thinking","thinking":"S","thinkingSignature":"sig"},{"type":"toolCall","id":"c","name":"bash","arguments":{"x":"A"}},{"type":"image","data":"I"},{"type":"later","text":"L"}],"stopReason":"stop"}}"#;
        let content = content(line).expect("content");
        let shown: Vec<_> = content
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(range) => format!("text {}", String::from_utf8_lossy(&line[range.clone()])),
                Part::Image(range) => format!("image {}", String::from_utf8_lossy(&line[range.clone()])),
                Part::Signed(range) => format!("signed {}", String::from_utf8_lossy(&line[range.clone()])),
            })
            .collect();
        assert_eq!(
            shown,
            ["text T", "text U", "signed S", r#"text {"x":"A"}"#, r#"image {"type":"image","data":"I"}"#]
        );
    }

    #[test]
    fn a_text_or_nothing() {
        assert_eq!(content(br#"{"type":"custom_message","content":"hi"}"#).map(|content| content.parts.len()), Some(1));
        assert_eq!(
            content(br#"{"type":"message","message":{"role":"user","content":null}}"#).map(|content| content.parts),
            Some(vec![])
        );
        assert_eq!(content(br#"{"type":"message"}"#), None);
    }
}
