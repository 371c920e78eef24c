//! The daemon's Unix socket: a listener and one task a connection, which turn lines into events. They own nothing else.
//!
//! Only this user may connect: the directory is private, the socket's mode is 0600, and the other side's user is looked at
//! once more when it connects. A peer that does not read what it is sent is dropped, so that nothing heaps up here.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::wire::bridge::FromPi;
use crate::wire::{self, Closing, First, MOST_LINE, WireError};

use super::Event;

/// Lines that may wait for a peer to read them.
const MOST_WAITING: usize = 1024;

/// Why there is no socket. The daemon goes on without one.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path does not fit in a socket's address.
    #[error("{}: too long for a socket's path; set PI_GRAFT_RUNTIME_DIR to a shorter directory", .0.display())]
    TooLong(PathBuf),
    /// Something that is no socket stands there.
    #[error("{}: stands where the socket belongs, and is none; move it away", .0.display())]
    Occupied(PathBuf),
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// One connection, to be spoken to. Cheap to clone; the connection ends when the peer goes or [`Conn::close`] is called.
#[derive(Clone, Debug)]
pub struct Conn {
    id: u64,
    to: Sender<Vec<u8>>,
    stop: CancellationToken,
}

impl Conn {
    /// A connection within this process: whoever reads the other end hears what a bridge would.
    #[must_use]
    pub fn within(id: u64) -> (Conn, Receiver<Vec<u8>>) {
        let (to, from) = channel(MOST_WAITING);
        (Conn { id, to, stop: CancellationToken::new() }, from)
    }

    /// Its number: no two of a daemon's life are the same.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Sends a message. One that the peer will never read is lost, and nobody minds.
    pub fn send(&self, message: &impl serde::Serialize) {
        if self.to.try_send(wire::line(message)).is_err() {
            debug!(conn = self.id, "does not read what it is sent, or is gone; closed");
            self.stop.cancel();
        }
    }

    /// Ends the connection once what was sent before is on its way.
    pub fn close(&self) {
        // An empty line is the writer's sign to end.
        if self.to.try_send(Vec::new()).is_err() {
            self.stop.cancel();
        }
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.to.is_closed()
    }
}

/// A listening socket, which is removed when this is dropped.
#[derive(Debug)]
pub struct Listening {
    path: PathBuf,
    stop: CancellationToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
        remove(&self.path);
    }
}

/// Listens at `path`, for this user alone. What a daemon that died left there is replaced: the store's lock says that we
/// are the only one.
///
/// # Errors
/// [`SocketError`].
pub fn listen(path: &Path, to: UnboundedSender<Event>) -> Result<Listening, SocketError> {
    let io = |source| SocketError::Io { path: path.to_path_buf(), source };
    if std::os::unix::net::SocketAddr::from_pathname(path).is_err() {
        return Err(SocketError::TooLong(path.to_path_buf()));
    }
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => remove(path),
        Ok(_) => return Err(SocketError::Occupied(path.to_path_buf())),
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(io)?;
    let listening = Listening { path: path.to_path_buf(), stop: CancellationToken::new() };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(io)?;
    tokio::spawn(accept(listener, to, listening.stop.clone()));
    Ok(listening)
}

#[expect(clippy::disallowed_methods, reason = "the socket is the daemon's own")]
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

async fn accept(listener: UnixListener, to: UnboundedSender<Event>, stop: CancellationToken) {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if is_ours(&stream) => {
                let id = NUMBER.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(id, stream, to.clone(), stop.child_token()));
            }
            Ok(_) => warn!("another user's process tried to connect; closed"),
            Err(e) => {
                // Most often too many open files: it passes, and trying again at once would only spin.
                warn!("nobody can connect at this moment: {e}");
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
    }
}

fn is_ours(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// One connection from its first line to its end.
async fn serve(id: u64, stream: UnixStream, to: UnboundedSender<Event>, stop: CancellationToken) {
    let (read, write) = stream.into_split();
    let (lines, waiting) = channel(MOST_WAITING);
    let writer = tokio::spawn(write_lines(write, waiting, stop.clone()));
    let conn = Conn { id, to: lines, stop: stop.clone() };
    let heard = tokio::select! {
        () = stop.cancelled() => Ok(()),
        heard = hear(BufReader::new(read), &conn, &to) => heard,
    };
    if let Err(why) = heard {
        debug!(conn = id, "closed: {why}");
        conn.send(&Closing::because(why));
    }
    // The receiver is gone only when the daemon ends.
    let _ = to.send(Event::Gone(id));
    conn.close();
    drop(conn);
    let _ = writer.await;
}

/// Turns the lines of one peer into events until it goes.
async fn hear(mut from: BufReader<OwnedReadHalf>, conn: &Conn, to: &UnboundedSender<Event>) -> Result<(), WireError> {
    let mut line = Vec::new();
    if !next_line(&mut from, &mut line).await? {
        return Ok(());
    }
    let tell = |message| drop(to.send(Event::FromPi(conn.clone(), message)));
    match First::parse(&line)? {
        First::Bridge(hello) => tell(FromPi::Hello(hello)),
        First::Control(request) => {
            // Whoever asks may end its own side at once; the answer ends the connection.
            let _ = to.send(Event::Control(conn.clone(), request));
            conn.stop.cancelled().await;
            return Ok(());
        }
    }
    while next_line(&mut from, &mut line).await? {
        tell(FromPi::parse(&line)?);
    }
    Ok(())
}

/// The next whole line without its `\n`; false at the end. A peer that fails is one that goes.
async fn next_line(from: &mut BufReader<OwnedReadHalf>, line: &mut Vec<u8>) -> Result<bool, WireError> {
    line.clear();
    let mut limited = from.take(MOST_LINE as u64 + 1);
    let read = limited.read_until(b'\n', line).await;
    match line.pop() {
        Some(b'\n') if read.is_ok() => Ok(true),
        Some(_) if line.len() >= MOST_LINE => Err(WireError::TooLong),
        _ => Ok(false),
    }
}

async fn write_lines(mut to: OwnedWriteHalf, mut lines: Receiver<Vec<u8>>, stop: CancellationToken) {
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = stop.cancelled() => None,
        };
        let Some(line) = line.filter(|line| !line.is_empty()) else { break };
        let written = tokio::select! {
            written = to.write_all(&line) => written.is_ok(),
            () = stop.cancelled() => false,
        };
        if !written {
            break;
        }
    }
    stop.cancel();
}
