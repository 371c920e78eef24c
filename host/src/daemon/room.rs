//! How much peers may have us hold: connections, and the bytes of what they said and nobody has handled yet. Whoever would
//! take more than there is left is told, and let go; sessions are followed whatever happens on the socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};

use crate::wire::MOST_LINE;

/// Connections at one time, at most.
const MOST_PEERS: usize = 256;
/// Of the files that this process may have open, connections take one part in so many at most.
const PART_OF_FILES: u64 = 4;
/// Bytes of lines that are arriving, or wait to be handled: eight of the longest.
const MOST_HELD: usize = 8 * MOST_LINE;
/// What a message counts for at least: it takes some room, however short its line is.
const LEAST: usize = 512;

/// What is taken by all peers together. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Room(Arc<Taken>);

#[derive(Debug, Default)]
struct Taken {
    peers: AtomicUsize,
    bytes: AtomicUsize,
}

/// A connection's place; it is given back when this is dropped.
#[derive(Debug)]
pub struct Place(Room);

/// The bytes of one message; they are given back when this is dropped.
#[derive(Debug)]
pub struct Held {
    room: Room,
    bytes: usize,
}

impl Room {
    /// A place for one more connection, if there is one.
    #[must_use]
    pub fn enter(&self) -> Option<Place> {
        let place = Place(self.clone());
        (self.0.peers.fetch_add(1, Ordering::Relaxed) < most_peers()).then_some(place)
    }

    /// For a message that begins to arrive.
    #[must_use]
    pub fn begin(&self) -> Held {
        Held { room: self.clone(), bytes: 0 }
    }
}

impl Place {
    /// What all peers share.
    #[must_use]
    pub fn room(&self) -> &Room {
        &self.0
    }
}

impl Held {
    /// Takes room for so many bytes more; false if there is none.
    #[must_use]
    pub fn grow(&mut self, more: usize) -> bool {
        let more = if self.bytes == 0 { more.max(LEAST) } else { more };
        self.bytes += more;
        self.room.0.bytes.fetch_add(more, Ordering::Relaxed) + more <= MOST_HELD
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.peers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.0.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Files for sessions must be left, whatever the limit is.
fn most_peers() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files / PART_OF_FILES).unwrap_or(usize::MAX).clamp(1, MOST_PEERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let room = Room::default();
        let places: Vec<Place> = std::iter::from_fn(|| room.enter()).take(MOST_PEERS + 1).collect();
        assert_eq!(places.len(), most_peers());
        drop(places);
        assert!(room.enter().is_some());

        let mut first = room.begin();
        assert!(first.grow(MOST_HELD - LEAST) && !room.begin().grow(LEAST + 1));
        drop(first);
        assert!(room.begin().grow(MOST_HELD));
    }
}
