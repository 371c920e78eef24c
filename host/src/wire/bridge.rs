//! Between a bridge, which is an extension in a running Pi, and the daemon (product.md section 5).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::WireError;

/// A bridge's first line, and again whenever its session or the session's file is another one.
#[derive(Clone, Debug, Deserialize)]
pub struct Hello {
    /// Pi's process, as it knows itself: in a container by another number than here.
    pub pid: u32,
    /// What Pi has open.
    pub session: PiSession,
    /// The entry that Pi goes on from; none in an empty session.
    #[serde(default, deserialize_with = "super::name")]
    pub leaf: Option<String>,
    /// Whether Pi waits for its user, nothing queued.
    #[serde(default)]
    pub idle: bool,
    /// Pi's reason: `startup`, `reload`, `new`, `resume` or `fork`.
    #[serde(default, deserialize_with = "super::name")]
    pub why: String,
}

/// The session that a Pi has open.
#[derive(Clone, Debug, Deserialize)]
pub struct PiSession {
    /// Its id.
    #[serde(deserialize_with = "super::name")]
    pub id: String,
    /// Its file, absolute; it need not be there yet. None: Pi keeps the session in memory only.
    #[serde(default, deserialize_with = "super::name")]
    pub file: Option<PathBuf>,
    /// Its working directory.
    #[serde(default, deserialize_with = "super::name")]
    pub cwd: String,
}

/// What a bridge says.
#[derive(Clone, Debug)]
pub enum FromPi {
    /// Who it is, and what it has open.
    Hello(Hello),
    /// Its leaf or its idleness is another one.
    Moved(Moved),
    /// It stands at a boundary and asks what is to be taken in.
    Ask(Ask),
    /// This ask is over: aborted, or out of time.
    Cancel(u64),
    /// What became of a push.
    Pushed(Pushed),
    /// Pi leaves this session: `quit`, `new`, `resume`, `fork`, or `reload` (of its extensions; the session stays).
    Bye(String),
}

/// Pi's leaf and whether it is idle.
#[derive(Clone, Debug, Deserialize)]
pub struct Moved {
    /// The entry that Pi goes on from.
    #[serde(default, deserialize_with = "super::name")]
    pub leaf: Option<String>,
    /// Whether Pi waits for its user, nothing queued.
    pub idle: bool,
    /// The name of Pi's event.
    #[serde(default, deserialize_with = "super::name")]
    pub on: String,
    /// The question ([`ToPi::Leaf`]) that this answers.
    #[serde(default)]
    pub re: Option<u64>,
}

/// A question at one of Pi's boundaries. Pi waits for the answer, for `ms` at most.
#[derive(Clone, Debug, Deserialize)]
pub struct Ask {
    /// Its number, the bridge's own.
    pub ask: u64,
    /// The boundary: `turn_end`, `agent_before_settle` or `session_before_compact`.
    #[serde(deserialize_with = "super::name")]
    pub at: String,
    /// The entry that Pi goes on from.
    #[serde(default, deserialize_with = "super::name")]
    pub leaf: Option<String>,
    /// At `turn_end`: how the turn ended (`completed`, …).
    #[serde(default, deserialize_with = "super::name")]
    pub outcome: Option<String>,
    /// At `turn_end`: why the model stopped.
    #[serde(default, rename = "stopReason", deserialize_with = "super::name")]
    pub stop_reason: Option<String>,
    /// Drafts that other extensions have put there before us, as they stand.
    #[serde(default)]
    pub others: Vec<Box<RawValue>>,
    /// Of a compaction: `manual`, `threshold` or `overflow`.
    #[serde(default, deserialize_with = "super::name")]
    pub reason: Option<String>,
    /// Of a compaction: the user's instructions.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Of a compaction that the daemon began ([`ToPi::Compact`]): its token.
    #[serde(default, deserialize_with = "super::name")]
    pub token: Option<String>,
    /// Milliseconds that Pi waits.
    pub ms: u64,
}

impl Ask {
    /// Whether a compaction is wanted, rather than entries.
    #[must_use]
    pub fn wants_compaction(&self) -> bool {
        self.at == "session_before_compact"
    }
}

/// What became of a push.
#[derive(Clone, Debug, Deserialize)]
pub struct Pushed {
    /// The push's number.
    pub pushed: u64,
    /// Whether all of it was handed to Pi.
    pub ok: bool,
    /// Pi's leaf afterwards.
    #[serde(default, deserialize_with = "super::name")]
    pub leaf: Option<String>,
    /// Why not.
    #[serde(default, deserialize_with = "super::name")]
    pub why: Option<String>,
}

impl FromPi {
    /// Reads a bridge's line.
    ///
    /// # Errors
    /// [`WireError`]: it is to be told, and the connection closed.
    pub fn parse(line: &[u8]) -> Result<FromPi, WireError> {
        #[derive(Deserialize)]
        struct Kind {
            bridge: Option<serde::de::IgnoredAny>,
            ask: Option<u64>,
            cancel: Option<u64>,
            pushed: Option<u64>,
            #[serde(default, deserialize_with = "super::name")]
            bye: Option<String>,
            idle: Option<bool>,
        }
        let kind: Kind = serde_json::from_slice(line)?;
        match kind {
            Kind { bridge: Some(_), .. } => Ok(FromPi::Hello(serde_json::from_slice(line)?)),
            Kind { ask: Some(_), .. } => Ok(FromPi::Ask(serde_json::from_slice(line)?)),
            Kind { cancel: Some(ask), .. } => Ok(FromPi::Cancel(ask)),
            Kind { pushed: Some(_), .. } => Ok(FromPi::Pushed(serde_json::from_slice(line)?)),
            Kind { bye: Some(why), .. } => Ok(FromPi::Bye(why)),
            Kind { idle: Some(_), .. } => Ok(FromPi::Moved(serde_json::from_slice(line)?)),
            _ => Err(WireError::Unknown),
        }
    }
}

/// What the daemon says to a bridge.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ToPi {
    /// The answer to a hello.
    Welcome {
        /// How the two go on.
        welcome: Welcome,
    },
    /// The answer to an ask for entries.
    Answer {
        /// The ask's number.
        answer: u64,
        /// The leaf that they were checked against.
        leaf: Option<String>,
        /// Receipt, drafts, receipt, drafts …; empty: nothing.
        entries: Vec<Box<RawValue>>,
    },
    /// The answer to an ask for a compaction.
    Compaction {
        /// The ask's number.
        answer: u64,
        /// The leaf that it was made for.
        leaf: Option<String>,
        /// The compaction as Pi takes it; none: Pi is to make its own.
        compaction: Option<Box<RawValue>>,
    },
    /// To be appended while Pi is idle and still on this leaf.
    Push {
        /// Its number, the daemon's own.
        push: u64,
        /// The leaf that they were checked against.
        leaf: Option<String>,
        /// A receipt and its drafts, `custom` and `custom_message` only.
        entries: Vec<Box<RawValue>>,
    },
    /// Pi is to compact now, if it is idle and still on this leaf.
    Compact {
        /// Its number, the daemon's own.
        compact: u64,
        /// The leaf.
        leaf: Option<String>,
        /// Comes back with the ask that follows.
        token: String,
    },
    /// Where is your leaf?
    Leaf {
        /// Its number, the daemon's own; comes back as `re`.
        #[serde(rename = "leaf?")]
        leaf: u64,
    },
}

/// How a bridge and the daemon go on.
#[derive(Clone, Debug, Serialize)]
pub struct Welcome {
    /// The version of the protocol.
    pub v: u32,
    /// The daemon's version.
    pub version: String,
    /// Whether this daemon serves the session; if not, the bridge closes the connection.
    pub serves: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Milliseconds that Pi may wait at `turn_end`, at most.
    #[serde(rename = "turnEndMs")]
    pub turn_end_ms: u64,
    /// The same at `agent_before_settle`.
    #[serde(rename = "settleMs")]
    pub settle_ms: u64,
    /// The same at `session_before_compact`.
    #[serde(rename = "compactMs")]
    pub compact_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::super::line;
    use super::*;

    #[test]
    fn each_message_is_told_by_its_member() {
        let parse = |line: &str| FromPi::parse(line.as_bytes());
        let moved = parse(r#"{"leaf":"a","idle":false,"on":"turn_start"}"#);
        assert!(matches!(moved, Ok(FromPi::Moved(m)) if !m.idle && m.leaf.as_deref() == Some("a") && m.re.is_none()));
        let ask =
            parse(r#"{"ask":3,"at":"turn_end","leaf":"a","stopReason":"stop","others":[{"type":"custom"}],"ms":500}"#);
        assert!(matches!(ask, Ok(FromPi::Ask(a)) if a.ask == 3 && a.others[0].get() == r#"{"type":"custom"}"#));
        assert!(matches!(parse(r#"{"cancel":3}"#), Ok(FromPi::Cancel(3))));
        assert!(matches!(parse(r#"{"pushed":4,"ok":false,"leaf":null,"why":"busy"}"#), Ok(FromPi::Pushed(p)) if !p.ok));
        assert!(matches!(parse(r#"{"bye":"quit"}"#), Ok(FromPi::Bye(why)) if why == "quit"));
        assert!(matches!(parse(r#"{"hum":1}"#), Err(WireError::Unknown)));
        assert!(matches!(parse(r#"{"ask":3}"#), Err(WireError::Malformed(_))));
    }

    #[test]
    fn drafts_of_others_come_through_as_they_are() {
        let odd = r#"{"a":1e400,"b":"\ud800","a":2}"#;
        let text = format!(r#"{{"ask":1,"at":"turn_end","leaf":null,"others":[{odd}],"ms":1}}"#);
        let Ok(FromPi::Ask(ask)) = FromPi::parse(text.as_bytes()) else { panic!("an ask") };
        assert_eq!(ask.others[0].get(), odd);
    }

    #[test]
    fn what_the_daemon_says_is_told_by_its_member_too() {
        let text = |message: &ToPi| String::from_utf8(line(message)).expect("text");
        assert_eq!(text(&ToPi::Leaf { leaf: 2 }), "{\"leaf?\":2}\n");
        let none = ToPi::Compaction { answer: 1, leaf: None, compaction: None };
        assert_eq!(text(&none), "{\"answer\":1,\"leaf\":null,\"compaction\":null}\n");
    }
}
