//! The other side of the daemon's socket: a bridge as a Pi would have it, or anybody who connects.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Stage, until};

/// One connection.
pub struct Peer {
    to: UnixStream,
    from: BufReader<UnixStream>,
}

impl Peer {
    /// Connects to the daemon of a stage.
    pub fn connect(stage: &Stage) -> Peer {
        Peer::at(&socket_of(stage))
    }

    /// Connects to a socket.
    pub fn at(socket: &Path) -> Peer {
        let to = UnixStream::connect(socket).expect("a daemon listens");
        to.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let from = BufReader::new(to.try_clone().expect("the other half"));
        Peer { to, from }
    }

    /// Connects as the bridge of a Pi that has this session open; gives what it is told.
    pub fn bridge(stage: &Stage, session: &Path, leaf: Option<&str>) -> (Peer, Value) {
        let mut peer = Peer::connect(stage);
        let id = session.file_stem().expect("a name").to_string_lossy();
        peer.say(&json!({
            "v": 1, "bridge": "hello", "pid": std::process::id(), "leaf": leaf, "idle": true, "why": "startup",
            "session": { "id": id, "file": session, "cwd": "/work" },
        }));
        let welcome = peer.hear().expect("an answer");
        (peer, welcome["welcome"].clone())
    }

    pub fn say(&mut self, message: &Value) {
        self.say_text(&format!("{message}\n"));
    }

    pub fn say_text(&mut self, text: &str) {
        // A daemon that has closed the connection says why in what it sent before.
        let _ = self.to.write_all(text.as_bytes());
    }

    /// The next message; none when the connection has ended.
    pub fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) => None,
            // Cut off in the middle of it.
            Ok(_) if !line.ends_with('\n') => None,
            Ok(_) => Some(serde_json::from_str(&line).expect("JSON")),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(e) => panic!("waited in vain for an answer: {e}"),
        }
    }
}

/// Where the stage's daemon listens.
pub fn socket_of(stage: &Stage) -> PathBuf {
    let mut found = None;
    until("the socket", || {
        let names = std::fs::read_dir(stage.path("runtime/pi-graft")).into_iter().flatten().flatten();
        found = names.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|ext| ext == "sock"));
        found.is_some()
    });
    found.expect("the socket")
}
