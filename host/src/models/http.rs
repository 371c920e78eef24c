//! One request over HTTP, and what came back. Alone names ureq.
//!
//! The exchange runs on a thread of its own, so that it can be left: ureq's agent is shut down, which closes the socket.

use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::error::AskError;
use super::retry::LOOK;

/// Bytes of an answer, its JSON included.
const MOST_BODY: u64 = 4 << 20;
/// How long a server may take to take the connection.
const CONNECT: Duration = Duration::from_secs(10);

/// What is posted.
pub(super) struct Post {
    pub(super) url: String,
    /// The key, for the header.
    pub(super) key: Option<String>,
    pub(super) body: Vec<u8>,
    pub(super) roots: Option<RootCerts>,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// `Retry-After`, in seconds.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

/// The certificates of `ca-file`.
pub(super) fn certificates(path: &Path) -> Result<RootCerts, AskError> {
    let wrong = |why: String| AskError::Certificates(format!("{}: {why}", path.display()));
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|_| wrong("not PEM".to_owned()))? {
            found.push(certificate.to_owned());
        }
    }
    if found.is_empty() { Err(wrong("there is no certificate in it".to_owned())) } else { Ok(RootCerts::from(found)) }
}

/// Posts, and waits for the whole answer; at most until then, or until nobody waits.
pub(super) fn post(post: Post, until: Instant, over: &dyn Fn() -> bool) -> Result<Reply, AskError> {
    let agent = agent(&post, until);
    let (to, from) = channel();
    let (working, begun) = (agent.clone(), Instant::now());
    let spawned = thread::Builder::new().name("model".into()).spawn(move || drop(to.send(exchange(&working, post))));
    spawned.map_err(|error| AskError::Unreachable(error.to_string()))?;
    loop {
        match from.recv_timeout(LOOK) {
            Ok(reply) => return reply,
            Err(RecvTimeoutError::Disconnected) => return Err(AskError::BrokenOff),
            Err(RecvTimeoutError::Timeout) if over() => {
                agent.shutdown();
                return Err(AskError::Over);
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() >= until => {
                agent.shutdown();
                return Err(AskError::Timeout(begun.elapsed()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn agent(post: &Post, until: Instant) -> Agent {
    let left = until.saturating_duration_since(Instant::now());
    let tls = TlsConfig::builder().root_certs(post.roots.clone().unwrap_or(RootCerts::WebPki)).build();
    // A key is for the server that the config names: no redirect is followed.
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(left.max(LOOK)))
        .timeout_connect(Some(CONNECT.min(left.max(LOOK))))
        .user_agent(concat!("pi-graft/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .build();
    Agent::new_with_config(config)
}

fn exchange(agent: &Agent, post: Post) -> Result<Reply, AskError> {
    let mut request = agent.post(&post.url).header("content-type", "application/json");
    if let Some(key) = &post.key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let mut response = request.send(&post.body[..]).map_err(|error| fault(&error))?;
    let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let body = response.body_mut().with_config().limit(MOST_BODY).read_to_vec().map_err(|error| broken(&error))?;
    let (status, retry_after) = (response.status().as_u16(), retry_after.map(Duration::from_secs));
    Ok(Reply { status, retry_after, body })
}

/// What failed before there was an answer.
fn fault(error: &ureq::Error) -> AskError {
    match error {
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            AskError::Unreachable("it does not take the connection".to_owned())
        }
        ureq::Error::Timeout(_) => AskError::Timeout(Duration::ZERO),
        ureq::Error::HostNotFound => AskError::Unreachable("there is no such host".to_owned()),
        ureq::Error::Io(error) if is_broken(error.kind()) => AskError::BrokenOff,
        ureq::Error::Io(error) => AskError::Unreachable(error.kind().to_string()),
        ureq::Error::Rustls(error) => AskError::Unreachable(format!("TLS: {error}")),
        ureq::Error::Tls(why) => AskError::Unreachable(format!("TLS: {why}")),
        ureq::Error::Protocol(_) => AskError::Garbage,
        // The others may hold a header's value.
        _ => AskError::Unreachable("the request cannot be made; is base-url right?".to_owned()),
    }
}

fn is_broken(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

/// What failed in the middle of one.
fn broken(error: &ureq::Error) -> AskError {
    match error {
        ureq::Error::Timeout(_) => AskError::Timeout(Duration::ZERO),
        ureq::Error::BodyExceedsLimit(_) => AskError::TooLong,
        _ => AskError::BrokenOff,
    }
}
