//! The daemon's Unix socket: a listener and one task a connection, which turn lines into events. They own nothing else.
//!
//! Only this user may connect: the directory is private, the socket's mode is 0600, and the other side's user is looked at
//! once more when it connects. A peer that does not read what it is sent is dropped, so that nothing heaps up here.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::deliver::process::UNSEEN;
use crate::files::lock::private_dir;
use crate::files::{FileId, FilesError};
use crate::wire::bridge::FromPi;
use crate::wire::control::Request;
use crate::wire::{self, Closing, First, MOST_LINE, WireError};

use super::Event;
use super::room::{Held, Place, Room};

/// Lines that may wait for a peer to read them.
const MOST_WAITING: usize = 1024;
/// Bytes that may wait so before one more line.
const MOST_UNREAD: usize = 16 << 20;
/// How long a peer may take to say who it is.
const FIRST_LINE: Duration = Duration::from_secs(10);
/// What a line's buffer keeps for the next one.
const KEEP_LINE: usize = 64 << 10;

/// Why there is no socket. The daemon goes on without one.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path does not fit in a socket's address.
    #[error("{}: too long for a socket's path; set PI_GRAFT_RUNTIME_DIR to a shorter directory", .0.display())]
    TooLong(PathBuf),
    /// Something that is no socket stands there.
    #[error("{}: stands where the socket belongs, and is none; move it away", .0.display())]
    Occupied(PathBuf),
    /// Its directory cannot be used.
    #[error(transparent)]
    Dir(#[from] FilesError),
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
    /// The process at the other end, as the system tells it; none within this process, or where it does not.
    peer: Option<u32>,
    /// Bytes that wait to be read; none within this process.
    unread: Option<Arc<AtomicUsize>>,
    stop: CancellationToken,
}

impl Conn {
    /// A connection within this process: whoever reads the other end hears what a bridge would.
    #[must_use]
    pub fn within(id: u64) -> (Conn, Receiver<Vec<u8>>) {
        let (to, from) = channel(MOST_WAITING);
        (Conn { id, to, peer: None, unread: None, stop: CancellationToken::new() }, from)
    }

    /// Its number: no two of a daemon's life are the same.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The process at the other end, which says of itself that it is `said`. In a container it has another number there than
    /// here, so what the system tells is what counts; [`UNSEEN`] if it cannot be seen from here at all.
    #[must_use]
    pub fn process(&self, said: u32) -> u32 {
        self.peer.unwrap_or(said)
    }

    /// Sends a message. One that the peer will never read is lost, and nobody minds.
    pub fn send(&self, message: &impl serde::Serialize) {
        let line = wire::line(message);
        let waits = self.unread.as_ref().map_or(0, |unread| unread.fetch_add(line.len(), Ordering::Relaxed));
        if waits > MOST_UNREAD || self.to.try_send(line).is_err() {
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
    /// Which file it is, so that another's that came to its path is left alone.
    id: Option<FileId>,
    stop: CancellationToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
        if self.stands_at(&self.path) {
            remove(&self.path);
        }
    }
}

impl Listening {
    /// Whether whoever connects to `path` comes here.
    #[must_use]
    pub fn stands_at(&self, path: &Path) -> bool {
        self.path == path && self.id.is_some() && id_at(path) == self.id
    }
}

fn id_at(path: &Path) -> Option<FileId> {
    std::fs::symlink_metadata(path).ok().map(|meta| FileId::of(&meta))
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
    path.parent().map_or(Ok(()), private_dir)?;
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => remove(path),
        Ok(_) => return Err(SocketError::Occupied(path.to_path_buf())),
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(io)?;
    let listening = Listening { path: path.to_path_buf(), id: id_at(path), stop: CancellationToken::new() };
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
    let room = Room::default();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if is_ours(&stream) => match room.enter() {
                Some(place) => {
                    let id = NUMBER.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(serve(id, stream, to.clone(), stop.child_token(), place));
                }
                None => turn_away(&stream),
            },
            Ok(_) => warn!("another user's process tried to connect; closed"),
            Err(e) => {
                // Most often too many open files: it passes, and trying again at once would only spin.
                warn!("nobody can connect at this moment: {e}");
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
    }
}

/// Says that there are too many; a peer that is not ready to hear it is let go without a word.
fn turn_away(stream: &UnixStream) {
    debug!("turned away: {}", WireError::Crowded);
    let _ = stream.try_write(&wire::line(&Closing::because(WireError::Crowded)));
}

fn is_ours(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// One connection from its first line to its end.
async fn serve(id: u64, stream: UnixStream, to: UnboundedSender<Event>, stop: CancellationToken, place: Place) {
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid()).map(|pid| u32::try_from(pid).unwrap_or(UNSEEN));
    let (read, write) = stream.into_split();
    let (lines, waiting) = channel(MOST_WAITING);
    let unread = Arc::<AtomicUsize>::default();
    let writer = tokio::spawn(write_lines(write, waiting, Arc::clone(&unread), stop.clone()));
    let conn = Conn { id, to: lines, peer, unread: Some(unread), stop: stop.clone() };
    let heard = tokio::select! {
        () = stop.cancelled() => Ok(()),
        heard = hear(BufReader::new(read), &conn, place.room(), &to) => heard,
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
async fn hear(
    mut from: BufReader<OwnedReadHalf>,
    conn: &Conn,
    room: &Room,
    to: &UnboundedSender<Event>,
) -> Result<(), WireError> {
    let mut line = Vec::new();
    let first = tokio::time::timeout(FIRST_LINE, next_line(&mut from, &mut line, room)).await;
    let Some(held) = first.map_err(|_| WireError::Silent)?? else { return Ok(()) };
    let tell = |message, held| drop(to.send(Event::FromPi(conn.clone(), message, held)));
    match First::parse(&line)? {
        First::Bridge(hello) => tell(FromPi::Hello(hello), held),
        First::Control(request) => {
            // Whoever asks may end its own side at once; the answer ends the connection. But a compaction takes long, and
            // perhaps money: if nobody waits for it, it is given up.
            let waits = matches!(request, Request::Compact(_));
            let _ = to.send(Event::Control(conn.clone(), request));
            tokio::select! {
                () = conn.stop.cancelled() => {}
                _ = next_line(&mut from, &mut line, room), if waits => {}
            }
            return Ok(());
        }
    }
    while let Some(held) = next_line(&mut from, &mut line, room).await? {
        tell(FromPi::parse(&line)?, held);
    }
    Ok(())
}

/// The next whole line without its `\n`, and the room that it takes; none at the end. A peer that fails is one that goes.
async fn next_line(
    from: &mut BufReader<OwnedReadHalf>,
    line: &mut Vec<u8>,
    room: &Room,
) -> Result<Option<Held>, WireError> {
    line.clear();
    line.shrink_to(KEEP_LINE);
    let mut held = room.begin();
    loop {
        let Ok(there) = from.fill_buf().await else { return Ok(None) };
        let end = memchr::memchr(b'\n', there);
        let (part, used) = end.map_or((there, there.len()), |end| (&there[..end], end + 1));
        if used == 0 {
            return Ok(None);
        }
        if line.len() + part.len() > MOST_LINE {
            return Err(WireError::TooLong);
        }
        if !held.grow(used) {
            return Err(WireError::Crowded);
        }
        line.extend_from_slice(part);
        from.consume(used);
        if end.is_some() {
            return Ok(Some(held));
        }
    }
}

async fn write_lines(
    mut to: OwnedWriteHalf,
    mut lines: Receiver<Vec<u8>>,
    unread: Arc<AtomicUsize>,
    stop: CancellationToken,
) {
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
        unread.fetch_sub(line.len(), Ordering::Relaxed);
    }
    stop.cancel();
}
