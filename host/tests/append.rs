//! The one function that writes, with a disk that fails at a chosen step, and with somebody who writes in between.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pi_graft::files::append::{Disk, Landed, LastLine, Mtime, Place, RealDisk, append, complete};
use pi_graft::files::{FileId, FilesError};

const BEFORE: &str = "{\"type\":\"session\"}\n";
const BATCH: &[u8] = b"{\"id\":\"aaaa\"}\n{\"id\":\"bbbb\"}\n";

/// What goes wrong.
enum Fault {
    NoRoom,
    Denied,
    /// Only so many bytes are written, then the disk is full.
    Short(usize),
    /// Somebody writes this line right before our write.
    Line(&'static str),
    /// Only so many bytes of ours are written, and then somebody writes this line.
    ShortThenLine(usize, &'static str),
    /// The same, but they write when it was seen that nobody had, right before the rest.
    ShortThenLineBeforeRest(usize, &'static str),
}

struct Faulty {
    fault: Fault,
    path: PathBuf,
}

impl Faulty {
    fn other_writes(&self, line: &str) -> io::Result<()> {
        File::options().append(true).open(&self.path)?.write_all(line.as_bytes())
    }
}

impl Disk for Faulty {
    fn allocate(&self, file: &File, offset: u64, len: u64) -> io::Result<()> {
        match self.fault {
            Fault::NoRoom => Err(io::ErrorKind::StorageFull.into()),
            Fault::Denied => Err(io::ErrorKind::PermissionDenied.into()),
            _ => RealDisk.allocate(file, offset, len),
        }
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        let is_first = bytes.len() >= BATCH.len();
        match self.fault {
            Fault::Short(at) if is_first => RealDisk.write(file, &bytes[..at]),
            Fault::ShortThenLine(at, line) if is_first => {
                let written = RealDisk.write(file, &bytes[..at])?;
                self.other_writes(line)?;
                Ok(written)
            }
            Fault::ShortThenLineBeforeRest(at, _) if is_first => RealDisk.write(file, &bytes[..at]),
            Fault::Short(_) => Err(io::ErrorKind::StorageFull.into()),
            Fault::Line(line) | Fault::ShortThenLineBeforeRest(_, line) => {
                self.other_writes(line)?;
                RealDisk.write(file, bytes)
            }
            _ => RealDisk.write(file, bytes),
        }
    }
}

fn scene() -> (tempfile::TempDir, PathBuf, Place) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s.jsonl");
    fs::write(&path, BEFORE).expect("a session");
    let place = place_of(&path);
    (dir, path, place)
}

fn place_of(path: &Path) -> Place {
    let meta = fs::metadata(path).expect("its metadata");
    Place::new(FileId::of(&meta), meta.len())
}

fn with(fault: Fault) -> (Result<Landed, FilesError>, String, tempfile::TempDir, PathBuf) {
    let (dir, path, place) = scene();
    let disk = Faulty { fault, path: path.clone() };
    let landed = append(&disk, &path, place, BATCH, Mtime::Move);
    let text = fs::read_to_string(&path).expect("the session");
    (landed, text, dir, path)
}

fn batch() -> &'static str {
    std::str::from_utf8(BATCH).expect("text")
}

#[test]
fn without_room_or_rights_not_one_byte_is_written() {
    let (landed, text, ..) = with(Fault::NoRoom);
    assert!(matches!(landed, Err(FilesError::NoRoom { .. })), "{landed:?}");
    assert_eq!(text, BEFORE);
    let (landed, text, ..) = with(Fault::Denied);
    assert!(matches!(landed, Err(FilesError::Unwritable { .. })), "{landed:?}");
    assert_eq!(text, BEFORE);
}

#[test]
fn a_file_that_grew_was_replaced_or_ends_in_half_a_line_is_not_written() {
    let (_dir, path, place) = scene();
    fs::write(&path, format!("{BEFORE}{{}}\n")).expect("somebody writes");
    assert!(matches!(append(&RealDisk, &path, place, BATCH, Mtime::Move), Err(FilesError::Changed { .. })));
    fs::write(&path, "{\"type\":\"sessio").expect("half a line");
    assert!(matches!(append(&RealDisk, &path, place_of(&path), BATCH, Mtime::Move), Err(FilesError::Changed { .. })));
    fs::rename(&path, path.with_extension("old")).expect("renamed");
    fs::write(&path, BEFORE).expect("another file");
    assert!(matches!(append(&RealDisk, &path, place, BATCH, Mtime::Move), Err(FilesError::Changed { .. })));
}

#[test]
fn a_line_in_between_is_told() {
    let (landed, text, ..) = with(Fault::Line("{\"id\":\"pi\"}\n"));
    assert_eq!(landed.expect("written").between, 12);
    assert_eq!(text, format!("{BEFORE}{{\"id\":\"pi\"}}\n{}", batch()));
}

#[test]
fn a_write_cut_short_is_completed_later() {
    for at in [1, 13, 14, 20, BATCH.len() - 1] {
        let (landed, text, _dir, path) = with(Fault::Short(at));
        let Err(FilesError::Torn { offset, written, .. }) = landed else { panic!("{landed:?}") };
        assert_eq!((offset, written), (BEFORE.len() as u64, at));
        assert_eq!(text, format!("{BEFORE}{}", &batch()[..at]));
        assert!(complete(&RealDisk, &path, offset, BATCH).expect("completed"));
        assert_eq!(fs::read_to_string(&path).expect("the session"), format!("{BEFORE}{}", batch()));
        assert!(complete(&RealDisk, &path, offset, BATCH).expect("nothing to do"), "a second time changes nothing");
        assert_eq!(fs::read_to_string(&path).expect("the session"), format!("{BEFORE}{}", batch()));
    }
}

/// Pi's line is glued to our torn one: that line is lost, and the next one of Pi's must not be.
#[test]
fn behind_a_torn_line_that_somebody_wrote_on_nothing_is_repeated() {
    let (landed, text, _dir, path) = with(Fault::ShortThenLine(20, "{\"id\":\"pi\"}\n"));
    assert_eq!(text, format!("{BEFORE}{}{{\"id\":\"pi\"}}\n", &batch()[..20]));
    let Err(FilesError::Torn { offset, .. }) = landed else { panic!("{landed:?}") };
    assert!(!complete(&RealDisk, &path, offset, BATCH).expect("looked at"));
    assert_eq!(fs::read_to_string(&path).expect("the session"), text, "it ends a line already: nothing to add");
}

/// Of what was left, only the end of the cut line is tried first: a whole line behind it would hang on nothing.
#[test]
fn a_line_that_comes_right_before_the_rest_costs_the_cut_line_alone() {
    let (landed, text, ..) = with(Fault::ShortThenLineBeforeRest(5, "{\"id\":\"pi\"}\n"));
    assert!(matches!(landed, Err(FilesError::Torn { .. })), "{landed:?}");
    assert_eq!(text, format!("{BEFORE}{}{{\"id\":\"pi\"}}\n{}", &batch()[..5], &batch()[5..14]));
}

/// Our write comes right behind half a line of somebody's: what it made is no whole graft, and that is said.
#[test]
fn half_a_line_of_somebodys_right_before_ours_is_told() {
    let (landed, text, ..) = with(Fault::Line("{\"id\":\"p"));
    assert!(matches!(landed, Err(FilesError::Glued { .. })), "{landed:?}");
    assert_eq!(text, format!("{BEFORE}{{\"id\":\"p{}", batch()));
}

/// A last line without its end gets it in the same write, and only if it is still the very line that was looked at.
#[test]
fn a_line_without_its_end_is_ended_by_the_same_write() {
    let bytes = [b"\n", BATCH].concat();
    for (now, is_same) in [("{\"id\":\"half\"}", true), ("{\"id\":\"HALF\"}", false), ("{\"id\":\"half\"}\n", false)] {
        let (_dir, path, whole) = scene();
        let last = LastLine::new(whole.len, b"{\"id\":\"half\"}");
        fs::write(&path, format!("{BEFORE}{now}")).expect("the session");
        let place = Place { len: whole.len + 13, last: Some(last), ..place_of(&path) };
        let landed = append(&RealDisk, &path, place, &bytes, Mtime::Move);
        let text = fs::read_to_string(&path).expect("the session");
        if is_same {
            landed.expect("written");
            assert_eq!(text, format!("{BEFORE}{now}\n{}", batch()));
        } else {
            assert!(matches!(landed, Err(FilesError::Changed { .. })), "{landed:?}");
            assert_eq!(text, format!("{BEFORE}{now}"));
        }
    }
}

/// Pi's next line stands behind our torn one, whole, and it has begun another: that one is Pi's to finish.
#[test]
fn somebodys_unfinished_line_elsewhere_is_not_ended() {
    let (_dir, path, place) = scene();
    let text = format!("{BEFORE}{}{{\"id\":\"pi\"}}\n{{\"id\":\"p", &batch()[..20]);
    fs::write(&path, &text).expect("the session");
    assert!(!complete(&RealDisk, &path, place.len, BATCH).expect("looked at"));
    assert_eq!(fs::read_to_string(&path).expect("the session"), text);
}

#[test]
fn a_torn_line_that_cannot_be_completed_is_ended() {
    let (_dir, path, place) = scene();
    fs::write(&path, format!("{BEFORE}{{\"id\":\"aaXX")).expect("another text");
    assert!(!complete(&RealDisk, &path, place.len, BATCH).expect("looked at"));
    assert_eq!(fs::read_to_string(&path).expect("the session"), format!("{BEFORE}{{\"id\":\"aaXX\n"));
}

/// Pi wrote at that moment, so it is the newest by now (S13.3).
#[test]
fn the_time_of_an_older_session_that_somebody_wrote_to_meanwhile_becomes_now() {
    let (_dir, path, place) = scene();
    let old = std::time::SystemTime::UNIX_EPOCH;
    File::options().append(true).open(&path).and_then(|file| file.set_modified(old)).expect("its time");
    let disk = Faulty { fault: Fault::Line("{\"id\":\"pi\"}\n"), path: path.clone() };
    append(&disk, &path, place, BATCH, Mtime::Keep).expect("written");
    assert!(fs::metadata(&path).and_then(|meta| meta.modified()).expect("its time") > old);
}

#[test]
fn the_time_of_an_older_session_is_put_back() {
    let (_dir, path, place) = scene();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    File::options().append(true).open(&path).and_then(|f| f.set_modified(old)).expect("an old time");
    append(&RealDisk, &path, place, BATCH, Mtime::Keep).expect("written");
    assert_eq!(fs::metadata(&path).and_then(|m| m.modified()).expect("its time"), old);
    append(&RealDisk, &path, place_of(&path), BATCH, Mtime::Move).expect("written");
    assert!(fs::metadata(&path).and_then(|m| m.modified()).expect("its time") > old);
}

#[test]
fn a_link_is_not_followed_and_a_locked_file_is_left_alone() {
    let (dir, path, place) = scene();
    let link = dir.path().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    assert!(matches!(append(&RealDisk, &link, place, BATCH, Mtime::Move), Err(FilesError::Link { .. })));
    let held = File::open(&path).expect("opened");
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    assert!(matches!(append(&RealDisk, &path, place, BATCH, Mtime::Move), Err(FilesError::Busy { .. })));
    assert_eq!(fs::read_to_string(&path).expect("the session"), BEFORE);
}
