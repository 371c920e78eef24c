//! The first line of a session (S3).

use crate::json::{Json, Kind};
use crate::walk::Found;

/// The format version of a file, as Pi takes it (S3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// A list: no ids, no parents.
    V1,
    /// A tree with the role `hookMessage`.
    V2,
    /// What Pi writes now.
    V3,
    /// Newer than this program: read as 3, never written.
    Newer,
}

impl Version {
    /// As JavaScript compares it: missing, `null` and all below 2 is 1; from 2 to below 3 is 2; anything else counts as 3,
    /// of which a number of 4 or more is a newer one.
    fn of(value: Option<Json<'_>>) -> Version {
        let Some(number) = value.filter(|v| !v.is_null()).map(js_number) else {
            return Version::V1;
        };
        match number {
            n if n < 2.0 => Version::V1,
            n if n < 3.0 => Version::V2,
            n if n > 3.0 => Version::Newer,
            _ => Version::V3,
        }
    }
}

/// A value as JavaScript's `<` takes it.
fn js_number(value: Json<'_>) -> f64 {
    match value.kind() {
        Kind::Number => value.as_f64().unwrap_or(f64::NAN),
        Kind::Bool => f64::from(value.as_bool() == Some(true)),
        Kind::String => {
            let text = value.as_str().unwrap_or_default();
            if text.trim().is_empty() { 0.0 } else { text.trim().parse().unwrap_or(f64::NAN) }
        }
        // A list is the text of its items to JavaScript: of none, or of one that is nothing, that is no text.
        Kind::Array => match (value.items().next(), value.items().nth(1)) {
            (None, _) => 0.0,
            (Some(only), None) if only.is_null() => 0.0,
            (Some(only), None) if only.kind() != Kind::Bool => js_number(only),
            _ => f64::NAN,
        },
        _ => f64::NAN,
    }
}

/// A session's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The session's id.
    pub id: String,
    /// The format version, as Pi takes it.
    pub version: Version,
    /// When the session was made, as text.
    pub timestamp: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The file that this one was forked, cloned or created from.
    pub parent_session: Option<String>,
}

impl Header {
    pub(crate) fn new(id: &str, found: &Found<'_>) -> Header {
        let text = |value: Option<Json<'_>>| value.and_then(Json::as_str).map(|t| t.into_owned());
        Header {
            id: id.to_owned(),
            version: Version::of(found.version),
            timestamp: text(found.timestamp),
            cwd: text(found.cwd),
            parent_session: text(found.parent_session),
        }
    }

    /// The header's time, Unix milliseconds.
    #[must_use]
    pub fn time_ms(&self) -> Option<i64> {
        self.timestamp.as_deref().and_then(crate::time::parse_iso)
    }
}
