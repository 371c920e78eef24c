//! The desktop's trash, as freedesktop.org describes it (Trash specification 1.0): a directory with `files`, what was
//! thrown away, and `info`, for each a note of where it was and when it went.
//!
//! What lies on the file system of the home directory goes to the home trash; what lies on another to the trash of that
//! one, so that nothing is copied. A trash that others could have laid a link in is not used.

#![expect(clippy::disallowed_methods, reason = "`session rm` moves a session to the trash, as asked for")]

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::FilesError;
use super::append::{Place, open_locked};
use super::named::sync_dir;
use super::whole::{create, unchanged, with_suffix};

/// Set on a directory in which everybody may make, but nobody may remove what is another's.
const STICKY: u32 = 0o1000;

/// A trash that a file can be moved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trash {
    dir: PathBuf,
    /// The top of the file system that it is the trash of; none for the home trash, where paths are absolute.
    top: Option<PathBuf>,
}

impl Trash {
    /// The trash for the file at `path`, `home` being the home trash, which must be there.
    ///
    /// # Errors
    /// [`FilesError::Io`] if there is none on the file's own file system.
    pub fn of(path: &Path, home: &Path) -> Result<Trash, FilesError> {
        let dev = |path: &Path| std::fs::symlink_metadata(path).map(|meta| meta.dev()).map_err(FilesError::io(path));
        let device = dev(path)?;
        if std::fs::metadata(home).map_err(FilesError::io(home))?.dev() == device {
            return Ok(Trash { dir: home.to_path_buf(), top: None });
        }
        let path = std::fs::canonicalize(path).map_err(FilesError::io(path))?;
        let same = path.ancestors().skip(1).take_while(|dir| dev(dir).is_ok_and(|dev| dev == device));
        let top = same.last().unwrap_or(Path::new("/")).to_path_buf();
        let dir = of_volume(&top, rustix::process::getuid().as_raw()).map_err(FilesError::io(&top))?;
        Ok(Trash { dir, top: Some(top) })
    }

    /// Moves the session at `path` there, if it still is what `place` says: first the note, then the file. `deleted` is
    /// the local time. Gives its place there.
    ///
    /// # Errors
    /// [`FilesError::Changed`], [`FilesError::Busy`], [`FilesError::Io`]: the session is where it was.
    pub fn take(&self, path: &Path, place: Place, deleted: &str) -> Result<PathBuf, FilesError> {
        let file = open_locked(path)?;
        unchanged(&file, path, place)?;
        let (files, notes) = (self.dir.join("files"), self.dir.join("info"));
        for dir in [&files, &notes] {
            private(dir).map_err(FilesError::io(dir))?;
        }
        let note = format!("[Trash Info]\nPath={}\nDeletionDate={deleted}\n", self.from(path)?);
        let (name, note) = take_name(path, &notes, &files, note.as_bytes())?;
        let to = files.join(name);
        if let Err(source) = std::fs::rename(path, &to).and_then(|()| sync_dir(path)) {
            let _ = std::fs::remove_file(note);
            return Err(FilesError::Io { path: to, source });
        }
        Ok(to)
    }

    /// Where it was, as in a URL: below the top of its file system, or from the root on.
    fn from(&self, path: &Path) -> Result<String, FilesError> {
        let Some(top) = &self.top else {
            let path = std::path::absolute(path).map_err(FilesError::io(path))?;
            return Ok(percent_encoded(&path));
        };
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let dir = std::fs::canonicalize(dir).map_err(FilesError::io(dir))?;
        let below = dir.strip_prefix(top).unwrap_or(&dir).join(path.file_name().unwrap_or_default());
        Ok(percent_encoded(&below))
    }
}

/// The trash of a volume: in the one that its owner set up for all, else one of this user's own.
fn of_volume(top: &Path, uid: u32) -> io::Result<PathBuf> {
    let common = top.join(".Trash");
    let set_up = std::fs::symlink_metadata(&common).is_ok_and(|meta| meta.is_dir() && meta.mode() & STICKY != 0);
    let shared = common.join(uid.to_string());
    if set_up && private(&shared).is_ok() {
        return Ok(shared);
    }
    let own = top.join(format!(".Trash-{uid}"));
    private(&own).map(|()| own)
}

/// A directory of this user's, made if it is not there. A link is none.
fn private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let meta = std::fs::symlink_metadata(dir)?;
    let ours = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    if ours { Ok(()) } else { Err(io::Error::other("not a directory of yours, so no trash")) }
}

/// A name that is free in the trash, taken by making its note.
fn take_name(path: &Path, notes: &Path, files: &Path, note: &[u8]) -> Result<(OsString, PathBuf), FilesError> {
    let own = path.file_name().unwrap_or_default();
    for number in 1..1000 {
        let mut name = own.to_owned();
        if number > 1 {
            name.push(format!(".{number}"));
        }
        let info = with_suffix(&notes.join(&name), ".trashinfo");
        if std::fs::symlink_metadata(files.join(&name)).is_ok() {
            continue;
        }
        let write = |to: &mut dyn Write| to.write_all(note).map_err(FilesError::io(&info));
        match create(&info, write) {
            Err(FilesError::Exists { .. }) => {}
            made => return made.map(|()| (name, info)),
        }
    }
    Err(FilesError::Io { path: notes.to_path_buf(), source: io::Error::other("its name is taken 999 times") })
}

/// A path as in a URL.
fn percent_encoded(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary directory")
    }

    fn set_mode(dir: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode)).expect("set");
    }

    #[test]
    fn a_volume_has_the_trash_that_its_owner_set_up_or_one_of_the_user_s_own() {
        let volume = volume();
        assert_eq!(of_volume(volume.path(), 7).expect("made"), volume.path().join(".Trash-7"));
        let common = volume.path().join(".Trash");
        std::fs::create_dir(&common).expect("made");
        set_mode(&common, 0o777);
        assert_eq!(
            of_volume(volume.path(), 7).expect("made"),
            volume.path().join(".Trash-7"),
            "anybody could take it away"
        );
        set_mode(&common, 0o1777);
        assert_eq!(of_volume(volume.path(), 7).expect("made"), common.join("7"));
        let mode = std::fs::metadata(common.join("7")).expect("there").mode() & 0o777;
        assert_eq!(mode, 0o700);
    }

    #[test]
    fn a_link_is_no_trash() {
        let volume = volume();
        std::os::unix::fs::symlink("/", volume.path().join(".Trash-7")).expect("linked");
        assert!(of_volume(volume.path(), 7).is_err());
    }

    #[test]
    fn on_a_volume_the_note_says_where_it_was_below_the_top() {
        let volume = volume();
        let top = volume.path().canonicalize().expect("a path");
        let dir = top.join("a b");
        std::fs::create_dir(&dir).expect("made");
        let path = dir.join("100%.jsonl");
        std::fs::write(&path, "").expect("written");
        let meta = std::fs::metadata(&path).expect("there");
        let place = Place::new(super::super::FileId::of(&meta), 0);
        let trash = Trash { dir: of_volume(&top, 7).expect("made"), top: Some(top.clone()) };
        let to = trash.take(&path, place, "2026-12-01T16:19:01").expect("moved");
        assert_eq!(to, top.join(".Trash-7/files/100%.jsonl"));
        let note = std::fs::read_to_string(top.join(".Trash-7/info/100%.jsonl.trashinfo")).expect("a note");
        assert_eq!(note, "[Trash Info]\nPath=a%20b/100%25.jsonl\nDeletionDate=2026-12-01T16:19:01\n");
        assert!(!path.exists());
    }
}
