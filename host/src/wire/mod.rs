//! What goes over the daemon's socket: one JSON value a line, both ways. Pure: no I/O, no clock.
//!
//! The first line of a client says who it is: a [`bridge`] in a running Pi, or a [`control`] request of the command line.
//! Each carries the version of the protocol; unknown members are passed over, so that a newer side may say more.

pub mod bridge;
pub mod compact;
pub mod control;
mod paths;
pub mod quarantine;
pub mod rows;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// The version of the protocol that this program speaks.
pub const VERSION: u32 = 1;
/// The most bytes of one line, its `\n` apart; a longer one ends the connection.
pub const MOST_LINE: usize = 8 << 20;
/// The most bytes of a name, an id or a path: they are kept for as long as the connection lasts.
pub const MOST_NAME: usize = 16 << 10;

/// A member that is a name, an id or a path.
fn name<'de, D: Deserializer<'de>, T: Deserialize<'de> + Named>(from: D) -> Result<T, D::Error> {
    let name = T::deserialize(from)?;
    match name.bytes() {
        len if len > MOST_NAME => Err(D::Error::custom(format_args!(
            "a name, an id or a path of {len} bytes, which may have {MOST_NAME} at most"
        ))),
        _ => Ok(name),
    }
}

/// What [`name`] reads.
trait Named {
    fn bytes(&self) -> usize;
}

impl Named for String {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Named for std::path::PathBuf {
    fn bytes(&self) -> usize {
        self.as_os_str().len()
    }
}

impl<T: Named> Named for Option<T> {
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, Named::bytes)
    }
}

/// Why a line was not understood. The text goes back to the sender.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// No JSON, or a member is missing or of another type.
    #[error("not understood: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A first line that says neither `bridge` nor `control`, or a later one without any known member.
    #[error("not understood: neither a bridge's message nor a control request")]
    Unknown,
    /// Another version of the protocol.
    #[error("this pi-graft speaks version {VERSION} of the protocol, not {0}; install one version on both sides")]
    Version(u32),
    /// A line beyond [`MOST_LINE`].
    #[error("a line of more than {MOST_LINE} bytes")]
    TooLong,
    /// Others take all the room that there is for peers.
    #[error("too many connections, or too much that is said at once; try again later")]
    Crowded,
    /// No first line.
    #[error("nothing was said")]
    Silent,
}

/// What a client says first.
#[derive(Debug)]
pub enum First {
    /// A bridge, with its hello.
    Bridge(bridge::Hello),
    /// The command line, with what it wants.
    Control(control::Request),
}

impl First {
    /// Reads a client's first line.
    ///
    /// # Errors
    /// [`WireError`]: it is to be told, and the connection closed.
    pub fn parse(line: &[u8]) -> Result<First, WireError> {
        #[derive(Deserialize)]
        struct Kind {
            v: Option<u32>,
            bridge: Option<serde::de::IgnoredAny>,
            control: Option<serde::de::IgnoredAny>,
        }
        let kind: Kind = serde_json::from_slice(line)?;
        match kind.v {
            Some(VERSION) => {}
            Some(other) => return Err(WireError::Version(other)),
            None => return Err(WireError::Unknown),
        }
        match (kind.bridge, kind.control) {
            (Some(_), None) => Ok(First::Bridge(serde_json::from_slice(line)?)),
            (None, Some(_)) => Ok(First::Control(serde_json::from_slice(line)?)),
            _ => Err(WireError::Unknown),
        }
    }
}

/// What ends a connection, in words for the other side.
#[derive(Debug, Serialize)]
pub struct Closing {
    /// Why.
    pub error: String,
    /// The version that is spoken here.
    pub v: u32,
}

impl Closing {
    /// For this reason.
    #[must_use]
    pub fn because(why: impl std::fmt::Display) -> Closing {
        Closing { error: why.to_string(), v: VERSION }
    }
}

/// A message as its line, `\n` included.
///
/// # Panics
/// Never: the messages have text for keys and no value that JSON lacks.
#[must_use]
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages are plain JSON");
    // JSON taken over from elsewhere may be laid out on several lines; in a text a line end is always escaped.
    line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<First, String> {
        First::parse(line.as_bytes()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_client_says_who_it_is() {
        let hello = r#"{"v":1,"bridge":"hello","pid":7,"session":{"id":"a","file":null,"cwd":"/w"},"leaf":null,"idle":true,"why":"startup","more":1}"#;
        assert!(matches!(parse(hello), Ok(First::Bridge(hello)) if hello.pid == 7 && hello.session.file.is_none()));
        assert!(matches!(
            parse(r#"{"v":1,"control":"status"}"#),
            Ok(First::Control(control::Request::Status { all: false }))
        ));
    }

    #[test]
    fn what_is_not_understood_is_told_in_words() {
        let error = |line| parse(line).expect_err("an error");
        assert!(error(r#"{"v":9,"control":"status"}"#).contains("version 1 of the protocol, not 9"));
        assert!(error(r#"{"control":"status"}"#).contains("neither"));
        assert!(error(r#"{"v":1}"#).contains("neither"));
        assert!(error(r#"{"v":1,"control":"dance"}"#).contains("dance"));
        assert!(error("what?").starts_with("not understood"));
    }

    #[test]
    fn a_message_is_one_line() {
        let raw = serde_json::value::RawValue::from_string("{\n \"a\": \"\\n\"\n}".to_owned()).expect("JSON");
        let line = line(&bridge::ToPi::Answer { answer: 1, leaf: None, entries: vec![raw] });
        assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        assert!(String::from_utf8_lossy(&line).contains(r#""a": "\n""#));
    }
}

#[cfg(test)]
mod described {
    use super::bridge::FromPi;
    use super::*;

    /// The lines that PROTOCOL.md shows are lines that are understood.
    #[test]
    fn the_description_speaks_the_protocol() {
        let lines = include_str!("PROTOCOL.md").lines().filter_map(|line| line.strip_prefix("> "));
        let mut seen = 0;
        for line in lines {
            seen += 1;
            let understood = match line.starts_with("{\"v\"") {
                true => First::parse(line.as_bytes()).map(drop),
                false => FromPi::parse(line.as_bytes()).map(drop),
            };
            assert!(understood.is_ok(), "{line}: {understood:?}");
        }
        assert_eq!(seen, 18);
    }
}
