//! A server that answers as it is told, on a thread of its own: what stands in for a model's.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What it does with one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// This status, these headers and this body.
    Say(u16, &'static str, String),
    /// These bytes, and the connection ends.
    Raw(Vec<u8>),
    /// Takes the request and says nothing, until the client goes.
    Nothing,
}

/// The server.
pub struct Server {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    /// Head and body of each request, and how many clients went before they were answered.
    seen: Mutex<(Vec<(String, String)>, usize)>,
    changed: Condvar,
}

/// An answer of a model, as a completion.
pub fn completion(text: &str, finish: &str) -> Reply {
    let text = serde_json::Value::from(text);
    let body = format!(
        r#"{{"id":"c","object":"chat.completion","model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":{text}}},"finish_reason":"{finish}"}}],"usage":{{"prompt_tokens":120,"completion_tokens":30,"total_tokens":150}}}}"#
    );
    Reply::Say(200, "", body)
}

impl Server {
    /// One that gives these answers in turn, and the last one from then on.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared { replies: Mutex::new(replies.into_iter().collect()), ..Shared::default() });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                thread::spawn(move || shared.serve(stream));
            }
        });
        Server { port, shared }
    }

    /// What goes into `base-url`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Head and body of each request so far.
    pub fn requests(&self) -> Vec<(String, String)> {
        self.shared.seen.lock().expect("the list").0.clone()
    }

    /// Waits until there were so many requests.
    pub fn wait_for_requests(&self, count: usize) {
        self.wait(|seen| seen.0.len() >= count);
    }

    /// Waits until a client went away before it was answered.
    pub fn wait_for_leaving(&self) {
        self.wait(|seen| seen.1 > 0);
    }

    fn wait(&self, is_it: impl Fn(&(Vec<(String, String)>, usize)) -> bool) {
        let seen = self.shared.seen.lock().expect("the list");
        let waited = self.shared.changed.wait_timeout_while(seen, Duration::from_secs(60), |seen| !is_it(seen));
        assert!(!waited.expect("the list").1.timed_out(), "it did not come");
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = read_request(&mut stream) else { return };
        let reply = {
            let mut replies = self.replies.lock().expect("the list");
            if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
        };
        self.tell(|seen| seen.0.push(request));
        match reply.expect("it was told what to say") {
            Reply::Say(status, headers, body) => {
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n",
                    body.len()
                );
                let _ = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat());
            }
            Reply::Raw(bytes) => drop(stream.write_all(&bytes)),
            Reply::Nothing => {
                // Ends with the connection.
                let _ = stream.read(&mut [0; 1]);
                self.tell(|seen| seen.1 += 1);
            }
        }
    }

    fn tell(&self, what: impl FnOnce(&mut (Vec<(String, String)>, usize))) {
        what(&mut self.seen.lock().expect("the list"));
        self.changed.notify_all();
    }
}

fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 65536]);
    loop {
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some((head.to_owned(), body.to_owned()));
        }
    }
}
