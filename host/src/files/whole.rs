//! Whole session files, for the user's own commands only (never the daemon): a new one, a migrated one in place of an old
//! one, one that goes. What was there before stays reachable, as a backup or in the trash, unless the user says otherwise.

#![expect(
    clippy::disallowed_methods,
    reason = "`session migrate` renames over, and `session rm` deletes, as asked for"
)]

use std::fs::{File, Metadata, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::append::{Place, open_locked};
use super::backup::{Backup, Link};
use super::named::{sync_dir, take_free_name};
use super::tail::Reading;
use super::{FileId, FilesError, shown};
use pi_session::tree::Source;

/// Bytes that are in memory at a time while a file is copied.
pub(super) const PIECE: usize = 1 << 20;
/// The rights of a file that only its owner reads and writes.
const OWNER: u32 = 0o600;
/// What the name of a file ends in that is still being written; no session's does (S13.5).
const NEW: &str = ".pi-graft-new";

/// Writes a file that is not there yet, and sees it to the disk. It appears whole or not at all, also if the process is
/// killed: it is written under a name that no session has.
///
/// # Errors
/// What `write` says; [`FilesError::Exists`] if something has that name; [`FilesError::Io`].
pub fn create<E: From<FilesError>>(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), E>) -> Result<(), E> {
    appear(path, |file| file.sync_all(), write)
}

/// The same for what holds the text of a session: nobody may read it who may not read the session, whose metadata this is.
///
/// # Errors
/// As [`create`].
pub fn create_like<E: From<FilesError>>(
    path: &Path,
    session: &Metadata,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    // The owner may always write to it: Pi is to go on with a fork of a session that is read only.
    let rights = Permissions::from_mode(session.mode() & 0o777 | OWNER);
    appear(path, |file| file.set_permissions(rights).and_then(|()| file.sync_all()), write)
}

/// Writes it beside its name, and gives it that.
fn appear<E: From<FilesError>>(
    path: &Path,
    finish: impl FnOnce(&File) -> io::Result<()>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(FilesError::Exists { path: path.to_path_buf() }.into());
    }
    let beside = with_suffix(path, &format!("{NEW}-{}", std::process::id()));
    create_as(&beside, finish, write)?;
    let named = take_free_name(&beside, path);
    if named.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    Ok(named?)
}

/// Writes a new file, with a last step, under a name that does not last. Until then it is for its owner's eyes only. Half a
/// file is not left behind.
pub(super) fn create_as<E: From<FilesError>>(
    path: &Path,
    finish: impl FnOnce(&File) -> io::Result<()>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let made = File::options().write(true).create_new(true).mode(OWNER).open(path);
    let file = made.map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => FilesError::Exists { path: path.to_path_buf() },
        _ => FilesError::io(path)(source),
    })?;
    let mut to = BufWriter::with_capacity(PIECE, New { file: &file, path });
    let written = write(&mut to).and_then(|()| {
        let flushed = to.flush().and_then(|()| finish(&file));
        Ok(flushed.map_err(FilesError::io(path))?)
    });
    // What is still to be written of half a file is not worth writing.
    let _ = to.into_parts();
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Owner, rights and time of the file that it is to replace: whoever could go on with that one can go on with this one.
pub(super) fn in_place_of(file: &File, old: &Metadata) -> io::Result<()> {
    let meta = file.metadata()?;
    if (meta.uid(), meta.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(old.permissions())?;
    old.modified().map_or(Ok(()), |time| file.set_modified(time))?;
    file.sync_all()
}

/// A new file, whose errors say which it is.
struct New<'f> {
    file: &'f File,
    path: &'f Path,
}

impl Write for New<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", shown(self.path)));
        self.file.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies a span of a session, a piece at a time; `done` is told how many bytes more were copied.
///
/// # Errors
/// What reading or writing says.
pub fn copy(from: &Reading, offset: u64, len: u64, to: &mut dyn Write, done: impl Fn(u64)) -> io::Result<()> {
    let (mut at, end) = (offset, offset + len);
    while at < end {
        let piece = (end - at).min(PIECE as u64) as usize;
        let bytes = from.read(at, piece).map_err(io::Error::other)?;
        to.write_all(&bytes)?;
        done(piece as u64);
        at += piece as u64;
    }
    Ok(())
}

/// Puts what `write` writes in the place of the session at `path`, if that still is what `place` says: written beside it,
/// flushed and renamed over it. The old file keeps a name of its own, which is given back (S11.2). Owner, rights and time stay.
///
/// # Errors
/// [`FilesError::Changed`] and [`FilesError::Busy`]: the session was not touched. What `write` says, and
/// [`FilesError::Io`], likewise.
pub fn replace<E: From<FilesError>>(
    path: &Path,
    place: Place,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<PathBuf, E> {
    replace_by(&|from, to| std::fs::hard_link(from, to), path, place, write)
}

fn replace_by<E: From<FilesError>>(
    link: Link<'_>,
    path: &Path,
    place: Place,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let old = open_locked(path)?;
    let meta = unchanged(&old, path, place)?;
    let beside = beside(path, NEW)?;
    create_as(&beside, |file| in_place_of(file, &meta), write)?;
    let replaced = Backup::of(&old, path, place, link).and_then(|backup| swap(&old, path, place, &beside, backup));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    Ok(replaced?)
}

/// A name beside a session's that nothing has. The session's lock is ours, so what has it was left by a killed migration.
pub(super) fn beside(path: &Path, suffix: &str) -> Result<PathBuf, FilesError> {
    let beside = with_suffix(path, suffix);
    if std::fs::symlink_metadata(&beside).is_ok_and(|meta| meta.is_file()) {
        std::fs::remove_file(&beside).map_err(FilesError::io(&beside))?;
    }
    Ok(beside)
}

/// Renames the new file over the old one. Where somebody wrote to the old one meanwhile, that one is the session still.
fn swap(old: &File, path: &Path, place: Place, beside: &Path, backup: Backup) -> Result<PathBuf, FilesError> {
    let new = std::fs::symlink_metadata(beside).map_err(FilesError::io(beside))?;
    let renamed = unchanged(old, path, place)
        .and_then(|_| std::fs::rename(beside, path).and_then(|()| sync_dir(path)).map_err(FilesError::io(path)));
    match renamed {
        Ok(()) => look_back(old, path, place, &new, backup),
        Err(error) => {
            backup.forget(old);
            Err(error)
        }
    }
}

/// Whoever had opened the old file before it was renamed over may have written to it since.
fn look_back(old: &File, path: &Path, place: Place, new: &Metadata, backup: Backup) -> Result<PathBuf, FilesError> {
    if !old.metadata().is_ok_and(|meta| meta.len() != place.len) {
        return Ok(backup.path);
    }
    backup.catch_up(old, place.len)?;
    Err(put_back(path, new, &backup.path))
}

/// The old file in its place again, unless somebody wrote to the new one too: then it stays beside it.
fn put_back(path: &Path, new: &Metadata, backup: &Path) -> FilesError {
    let untouched = |now: Metadata| FileId::of(&now) == FileId::of(new) && now.len() == new.len();
    let back = std::fs::symlink_metadata(path).is_ok_and(untouched) && std::fs::rename(backup, path).is_ok();
    if back {
        let _ = sync_dir(path);
        return FilesError::Changed { path: path.to_path_buf() };
    }
    let source = io::Error::other("somebody wrote to it while it was replaced; what came stands at the backup's end");
    FilesError::Io { path: backup.to_path_buf(), source }
}

/// Deletes the session at `path`, if it still is what `place` says.
///
/// # Errors
/// [`FilesError::Changed`], [`FilesError::Busy`], [`FilesError::Io`].
pub fn delete(path: &Path, place: Place) -> Result<(), FilesError> {
    let file = open_locked(path)?;
    unchanged(&file, path, place)?;
    std::fs::remove_file(path).and_then(|()| sync_dir(path)).map_err(FilesError::io(path))
}

/// The file's metadata, if it still is what was read and is what the path names.
pub(super) fn unchanged(file: &File, path: &Path, place: Place) -> Result<Metadata, FilesError> {
    let meta = file.metadata().map_err(FilesError::io(path))?;
    let named = std::fs::symlink_metadata(path).map_err(FilesError::io(path))?;
    let same = FileId::of(&meta) == place.file && FileId::of(&named) == place.file && meta.len() == place.len;
    if same { Ok(meta) } else { Err(FilesError::Changed { path: path.to_path_buf() }) }
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session of 3 bytes, readable for this user alone.
    fn session() -> (tempfile::TempDir, PathBuf, Place) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("a.jsonl");
        std::fs::write(&path, "old").expect("written");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
        let place = Place::new(FileId::of(&std::fs::metadata(&path).expect("there")), 3);
        (dir, path, place)
    }

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let names = std::fs::read_dir(dir.path()).expect("read").map(|entry| entry.expect("read").file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).expect("read")
    }

    fn more(path: &Path) {
        let file = File::options().append(true).open(path);
        file.and_then(|mut file| file.write_all(b" and more")).expect("written");
    }

    fn write_new(to: &mut dyn Write) -> Result<(), FilesError> {
        to.write_all(b"the new one").map_err(FilesError::io(Path::new("new")))
    }

    #[test]
    fn what_only_its_owner_may_read_nobody_else_reads_while_it_is_written_anew() {
        let (dir, path, place) = session();
        let mode = |name: &str| std::fs::metadata(dir.path().join(name)).expect("there").mode() & 0o777;
        replace(&path, place, |to| {
            assert_eq!(mode("a.jsonl.pi-graft-new"), 0o600);
            write_new(to)
        })
        .expect("replaced");
        assert_eq!((text(&path).as_str(), mode("a.jsonl"), mode("a.jsonl.bak")), ("the new one", 0o600, 0o600));
    }

    #[test]
    fn a_new_session_has_no_session_s_name_until_it_is_whole() {
        let (dir, path, _) = session();
        let new = dir.path().join("b.jsonl");
        create(&new, |to| {
            assert!(!new.exists() && names(&dir).iter().all(|name| name == "a.jsonl" || !name.ends_with(".jsonl")));
            write_new(to)
        })
        .expect("written");
        assert_eq!((text(&new).as_str(), names(&dir).len()), ("the new one", 2));
        let taken = create(&dir.path().join("c.jsonl"), |to| {
            more(&path);
            std::fs::copy(&path, dir.path().join("c.jsonl")).expect("somebody was faster");
            write_new(to)
        });
        assert!(matches!(taken, Err(FilesError::Exists { .. })), "{taken:?}");
        assert_eq!((text(&dir.path().join("c.jsonl")).as_str(), names(&dir).len()), ("old and more", 3));
    }

    #[test]
    fn what_a_killed_migration_left_is_in_nobody_s_way() {
        let (dir, path, place) = session();
        std::fs::write(dir.path().join("a.jsonl.pi-graft-new"), "half a ses").expect("written");
        replace(&path, place, write_new).expect("replaced");
        assert_eq!((text(&path).as_str(), names(&dir).len()), ("the new one", 2));
    }

    #[test]
    fn a_copy_is_for_those_who_may_read_the_session_and_can_be_gone_on_with() {
        let (dir, path, _) = session();
        for (rights, copied) in [(0o600, 0o600), (0o640, 0o640), (0o444, 0o644)] {
            std::fs::set_permissions(&path, Permissions::from_mode(rights)).expect("set");
            let copy = dir.path().join(format!("{rights:o}.jsonl"));
            create_like(&copy, &std::fs::metadata(&path).expect("there"), write_new).expect("written");
            assert_eq!(std::fs::metadata(&copy).expect("there").mode() & 0o777, copied);
        }
    }

    #[test]
    fn a_session_of_another_user_stays_theirs() {
        let (_dir, path, place) = session();
        if std::os::unix::fs::chown(&path, Some(4711), Some(4712)).is_err() {
            return; // Only root may give a file away.
        }
        replace(&path, place, write_new).expect("replaced");
        let meta = std::fs::metadata(&path).expect("there");
        assert_eq!((meta.uid(), meta.gid()), (4711, 4712));
    }

    #[test]
    fn who_writes_while_the_new_one_is_written_keeps_the_old_one() {
        for link in LINKS {
            let (dir, path, place) = session();
            let replaced = replace_by(link, &path, place, |to| {
                more(&path);
                write_new(to)
            });
            assert!(matches!(replaced, Err(FilesError::Changed { .. })), "{replaced:?}");
            assert_eq!((text(&path).as_str(), names(&dir)), ("old and more", vec!["a.jsonl".into()]));
        }
    }

    fn linked(from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    /// What a file system says that has no hard links: FAT, and many that are not of this machine.
    fn no_links(_: &Path, _: &Path) -> io::Result<()> {
        Err(rustix::io::Errno::PERM.into())
    }

    fn not_supported(_: &Path, _: &Path) -> io::Result<()> {
        Err(rustix::io::Errno::OPNOTSUPP.into())
    }

    const LINKS: [Link<'_>; 3] = [&linked, &no_links, &not_supported];

    #[test]
    fn the_old_one_is_kept_as_it_was_also_where_there_are_no_hard_links() {
        for link in LINKS {
            let (dir, path, place) = session();
            let modified = || std::fs::metadata(&path).and_then(|meta| meta.modified()).expect("its time");
            let time = modified();
            std::fs::write(dir.path().join("a.jsonl.bak"), "an older one").expect("written");
            std::fs::write(dir.path().join("a.jsonl.pi-graft-old"), "half of o").expect("left by a killed one");
            let backup = replace_by(link, &path, place, write_new).expect("replaced");
            assert_eq!(backup, dir.path().join("a.jsonl.bak2"));
            assert_eq!((text(&path).as_str(), text(&backup).as_str(), modified()), ("the new one", "old", time));
            let meta = std::fs::metadata(&backup).expect("there");
            assert_eq!((meta.mode() & 0o777, meta.modified().expect("its time"), meta.nlink()), (0o600, time, 1));
            let left = names(&dir).into_iter().filter(|name| name.contains("pi-graft-new")).count();
            assert_eq!(left, 0);
        }
    }

    /// A backup has its name only once it is whole, and until the rename nothing but the backup was made.
    #[test]
    fn who_is_killed_before_the_rename_has_the_old_session() {
        for link in LINKS {
            let (dir, path, place) = session();
            let old = open_locked(&path).expect("opened");
            Backup::of(&old, &path, place, link).expect("backed up");
            assert_eq!((text(&path).as_str(), text(&dir.path().join("a.jsonl.bak")).as_str()), ("old", "old"));
            assert_eq!(names(&dir).len(), 2);
        }
    }

    /// Between the last look and the rename: whoever opened the file before writes to the old one.
    struct RenamedOver {
        old: File,
        late: File,
        new: Metadata,
        backup: Backup,
    }

    impl RenamedOver {
        fn at(path: &Path, place: Place, link: Link<'_>) -> RenamedOver {
            let old = open_locked(path).expect("opened");
            let late = File::options().append(true).open(path).expect("opened");
            let backup = Backup::of(&old, path, place, link).expect("backed up");
            std::fs::remove_file(path).expect("renamed over");
            std::fs::write(path, "the new one").expect("renamed over");
            RenamedOver { old, late, new: std::fs::metadata(path).expect("there"), backup }
        }

        /// Somebody was late, and it is looked once more.
        fn looked_at(mut self, path: &Path, place: Place) -> FilesError {
            self.late.write_all(b" and more").expect("written");
            look_back(&self.old, path, place, &self.new, self.backup).expect_err("somebody wrote")
        }
    }

    #[test]
    fn who_writes_in_the_moment_of_the_rename_keeps_the_old_one() {
        for link in LINKS {
            let (dir, path, place) = session();
            let said = RenamedOver::at(&path, place, link).looked_at(&path, place);
            assert!(matches!(said, FilesError::Changed { .. }), "{said}");
            assert_eq!((text(&path).as_str(), names(&dir)), ("old and more", vec!["a.jsonl".into()]));
        }
    }

    #[test]
    fn what_two_wrote_to_both_files_is_lost_in_neither() {
        for link in LINKS {
            let (dir, path, place) = session();
            let renamed = RenamedOver::at(&path, place, link);
            more(&path);
            let said = renamed.looked_at(&path, place).to_string();
            assert!(said.contains("a.jsonl.bak: somebody wrote to it"), "{said}");
            let backup = text(&dir.path().join("a.jsonl.bak"));
            assert_eq!((text(&path).as_str(), backup.as_str()), ("the new one and more", "old and more"));
        }
    }
}
