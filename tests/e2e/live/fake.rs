//! A daemon that does what the scene says: the other end of the socket, scripted.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::home::Home;

const PATIENCE: Duration = Duration::from_secs(60);

/// What it says to a message: these lines.
type Script = Box<dyn FnMut(&Value) -> Vec<Value> + Send>;

/// A scripted daemon. Its socket goes with it, and its connections.
pub struct Fake {
    path: PathBuf,
    shared: Arc<Shared>,
}

struct Shared {
    script: Mutex<Script>,
    heard: Mutex<Heard>,
    more: Condvar,
}

#[derive(Default)]
struct Heard {
    /// Every message, in order, with the number of its connection as `$`.
    messages: Vec<Value>,
    /// How many of them have been waited for.
    taken: usize,
    connections: Vec<UnixStream>,
    open: usize,
}

impl Fake {
    /// One that says to each message what `script` says; it welcomes by itself.
    pub fn new(home: &Home, script: impl FnMut(&Value) -> Vec<Value> + Send + 'static) -> Fake {
        Fake::named(home, "state-1-1.sock", script)
    }

    /// The same, with this name for its socket.
    pub fn named(home: &Home, name: &str, script: impl FnMut(&Value) -> Vec<Value> + Send + 'static) -> Fake {
        let path = home.stage.path("runtime/pi-graft").join(name);
        let listener = UnixListener::bind(&path).expect("a socket");
        let script: Mutex<Script> = Mutex::new(Box::new(script));
        let shared = Arc::new(Shared { script, heard: Mutex::default(), more: Condvar::new() });
        let of = Arc::clone(&shared);
        std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| of.attend(stream)));
        Fake { path, shared }
    }

    /// One that answers no ask.
    pub fn silent(home: &Home) -> Fake {
        Fake::new(home, |_| Vec::new())
    }

    /// Waits for the next message of this kind; those before it are passed over.
    pub fn next(&self, kind: &str) -> Value {
        self.wait(&format!("{kind:?}"), |message| message.get(kind).is_some())
    }

    /// Waits for the next message that fits.
    pub fn wait(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut heard = self.shared.heard.lock().expect("no panic");
        loop {
            let taken = heard.taken;
            if let Some(at) = heard.messages[taken..].iter().position(&fits) {
                heard.taken = taken + at + 1;
                return heard.messages[taken + at].clone();
            }
            let (again, timeout) = self.shared.more.wait_timeout(heard, PATIENCE).expect("no panic");
            heard = again;
            assert!(!timeout.timed_out(), "waited in vain for {what}: {:#?}", heard.messages);
        }
    }

    /// All messages so far that have this member.
    pub fn all(&self, kind: &str) -> Vec<Value> {
        let heard = self.shared.heard.lock().expect("no panic");
        heard.messages.iter().filter(|message| message.get(kind).is_some()).cloned().collect()
    }

    /// Says something unasked, on the newest connection.
    pub fn say(&self, message: &Value) {
        let heard = self.shared.heard.lock().expect("no panic");
        let mut to = heard.connections.last().expect("a connection");
        to.write_all(format!("{message}\n").as_bytes()).expect("said");
    }

    /// Waits until nobody is connected.
    pub fn wait_for_none(&self) {
        let heard = self.shared.heard.lock().expect("no panic");
        let waited = self.shared.more.wait_timeout_while(heard, PATIENCE, |heard| heard.open > 0).expect("no panic");
        assert!(!waited.1.timed_out(), "still connected");
    }
}

impl Shared {
    fn attend(self: &Arc<Shared>, stream: UnixStream) {
        let mut heard = self.heard.lock().expect("no panic");
        heard.connections.push(stream.try_clone().expect("a second handle"));
        heard.open += 1;
        let (number, of) = (heard.connections.len(), Arc::clone(self));
        std::thread::spawn(move || {
            of.converse(&stream, number);
            of.heard.lock().expect("no panic").open -= 1;
            of.more.notify_all();
        });
    }

    fn converse(&self, stream: &UnixStream, number: usize) {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut message: Value = serde_json::from_str(&line).expect("a line of JSON");
            message["$"] = number.into();
            let said = (self.script.lock().expect("no panic"))(&message);
            let mut to = stream;
            if message.get("bridge").is_some() && !said.iter().any(|line| line.get("welcome").is_some()) {
                let _ = to.write_all(format!("{}\n", welcome(true)).as_bytes());
            }
            for line in said {
                // A text stands for bytes as they are; an empty one for the end of the connection.
                match line.as_str() {
                    Some("") => drop(stream.shutdown(std::net::Shutdown::Both)),
                    Some(text) => drop(to.write_all(text.as_bytes())),
                    None => drop(to.write_all(format!("{line}\n").as_bytes())),
                }
            }
            self.heard.lock().expect("no panic").messages.push(message);
            self.more.notify_all();
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        for stream in &self.shared.heard.lock().expect("no panic").connections {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// A welcome with limits that no scene reaches by accident.
pub fn welcome(serves: bool) -> Value {
    welcome_with(serves, 10_000)
}

/// A welcome with this limit, in milliseconds, for every kind of hook.
pub fn welcome_with(serves: bool, ms: u64) -> Value {
    json!({ "welcome": { "v": 1, "version": "0.0.0", "serves": serves, "turnEndMs": ms, "settleMs": ms, "compactMs": ms } })
}

/// The answer to an ask.
pub fn answer(ask: &Value, entries: &[Value]) -> Value {
    json!({ "answer": ask["ask"], "leaf": ask["leaf"], "entries": entries })
}

/// A receipt and what follows it.
pub fn batch(name: &str, drafts: &[Value]) -> Vec<Value> {
    let data = json!({ "batch": name, "plugin": "p", "version": "1", "digest": "d", "handler": "on-entry", "trigger": "t", "entries": drafts.len() });
    let receipt = json!({ "type": "custom", "customType": "pi-graft.run", "data": data });
    [&[receipt], drafts].concat()
}

/// A message for the model.
pub fn note(text: &str) -> Value {
    json!({ "type": "custom_message", "customType": "p.note", "content": text, "display": true })
}

/// Whether this is an ask at that boundary.
pub fn asks_at(message: &Value, at: &str) -> bool {
    message.get("ask").is_some() && message["at"] == at
}
