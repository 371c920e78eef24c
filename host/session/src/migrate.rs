//! The text of a version 1 or 2 session as version 3 has it (S11).
//!
//! Only what the migration changes is written anew: lines that are no entries, and all else in a line, stay byte for byte.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::header::Version;
use crate::json::{Json, Kind, quoted};
use crate::splice::{Change, edit};
use crate::time;
use crate::tree::{Status, Tree};

/// Why there is nothing to migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// It does not begin with a header, or with nothing at all (S2.3).
    #[error("S2.3: no Pi session: it does not begin with a header")]
    NotASession,
    /// Its version is newer than 3 (S3).
    #[error("S3: a version newer than 3; what it means is not known here")]
    Newer,
    /// Its version is older than 3, and it has to be migrated first.
    #[error("S11: a session of version 1 or 2, which has to be migrated first")]
    Old,
}

/// The version of a session, as Pi takes it (S3).
///
/// # Errors
/// [`MigrateError::NotASession`].
pub fn version(session: &[u8]) -> Result<Version, MigrateError> {
    let mut tree = Tree::new();
    for line in session.split(|byte| *byte == b'\n') {
        tree.push(0, line);
        if tree.status() != Status::NotBegun {
            break;
        }
    }
    tree.header().map(|header| header.version).ok_or(MigrateError::NotASession)
}

/// The session with the changes of S11.1 and S11.3; one of version 3 as it stands. A last line gets its `\n`.
///
/// `random` gives 16 random bytes at each call: version 1 knows no ids.
///
/// ```
/// use pi_session::migrate::migrate;
///
/// let old = b"{\"type\":\"session\",\"id\":\"s\"}\n{\"type\":\"message\",\"message\":{\"role\":\"hookMessage\"}}\n";
/// let new = migrate(old, &mut || [0xab; 16])?;
/// assert_eq!(std::str::from_utf8(&new), Ok(concat!(
///     "{\"type\":\"session\",\"id\":\"s\",\"version\":3}\n",
///     "{\"type\":\"message\",\"message\":{\"role\":\"custom\"},\"id\":\"abababab\",\"parentId\":null}\n",
/// )));
/// # Ok::<_, pi_session::migrate::MigrateError>(())
/// ```
///
/// # Errors
/// [`MigrateError`].
pub fn migrate<'t>(session: &'t [u8], random: &mut dyn FnMut() -> [u8; 16]) -> Result<Cow<'t, [u8]>, MigrateError> {
    let Some(mut old) = Migration::of(version(session)?, random)? else { return Ok(Cow::Borrowed(session)) };
    let mut out = Vec::with_capacity(session.len() + session.len() / 8);
    let ended = session.strip_suffix(b"\n").unwrap_or(session);
    for line in ended.split(|byte| *byte == b'\n') {
        out.extend_from_slice(&old.line(line));
        out.push(b'\n');
    }
    Ok(Cow::Owned(out))
}

/// A migration on its way down a file, line by line: for who does not hold the file in memory.
///
/// ```
/// use pi_session::header::Version;
/// use pi_session::migrate::Migration;
///
/// let mut random = || [0xab; 16];
/// let mut migration = Migration::of(Version::V1, &mut random)?.ok_or("nothing to do")?;
/// assert_eq!(&*migration.line(b"{\"type\":\"session\",\"id\":\"s\"}"), b"{\"type\":\"session\",\"id\":\"s\",\"version\":3}");
/// assert_eq!(&*migration.line(b"no JSON"), b"no JSON");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Migration<'r> {
    version: Version,
    /// The new id of every value that parsed, the header's included: `firstKeptEntryIndex` counts these (S6.4).
    lines: Vec<Option<String>>,
    /// The header was met.
    begun: bool,
    taken: HashSet<String>,
    /// The id given last.
    last: Option<String>,
    random: &'r mut dyn FnMut() -> [u8; 16],
}

impl<'r> Migration<'r> {
    /// That of a session of this version; none where there is nothing to do.
    ///
    /// # Errors
    /// [`MigrateError::Newer`].
    pub fn of(
        version: Version,
        random: &'r mut dyn FnMut() -> [u8; 16],
    ) -> Result<Option<Migration<'r>>, MigrateError> {
        match version {
            Version::Newer => Err(MigrateError::Newer),
            Version::V3 => Ok(None),
            Version::V1 | Version::V2 => {
                let (lines, taken) = (Vec::new(), HashSet::new());
                Ok(Some(Migration { version, lines, begun: false, taken, last: None, random }))
            }
        }
    }

    /// The next line, without its `\n`, as version 3 has it.
    pub fn line<'l>(&mut self, line: &'l [u8]) -> Cow<'l, [u8]> {
        let Some(value) = Json::parse(line).ok().filter(|value| value.is_truthy()) else { return line.into() };
        let is = |name, text: &str| value.get(name).and_then(Json::as_str).as_deref() == Some(text);
        if value.kind() != Kind::Object || is("type", "session") {
            self.lines.push(None);
            let is_header = !std::mem::replace(&mut self.begun, true);
            return if is_header { edit(line, value, &[set("version", "3")]).into() } else { line.into() };
        }
        let mut changes = Vec::new();
        if self.version == Version::V1 {
            changes.extend(self.identity());
        }
        if self.version == Version::V1 && is("type", "compaction") {
            changes.extend(self.first_kept(value));
        }
        if is("type", "message") {
            changes.extend(role(value));
        }
        if changes.is_empty() { line.into() } else { edit(line, value, &changes).into() }
    }

    /// A new id, and the entry before as parent.
    fn identity(&mut self) -> [Change<'static>; 2] {
        let id = time::fresh_id(|id| self.taken.contains(id), self.random);
        self.taken.insert(id.clone());
        let parent = self.last.replace(id.clone()).map_or("null".to_owned(), |parent| quoted(&parent));
        self.lines.push(Some(id.clone()));
        [set("id", &quoted(&id)), set("parentId", &parent)]
    }

    /// The index becomes the id; one of the header, or out of range, names nothing and goes (S11.3).
    fn first_kept(&self, entry: Json<'_>) -> Vec<Change<'static>> {
        let Some(index) = entry.get("firstKeptEntryIndex").and_then(Json::as_f64) else { return Vec::new() };
        let whole = Some(index).filter(|index| *index >= 0.0 && index.fract() == 0.0);
        let id = whole.and_then(|index| self.lines.get(index as usize)).and_then(Option::as_deref);
        let kept = id.map(|id| set("firstKeptEntryId", &quoted(id)));
        kept.into_iter().chain([Change::Remove("firstKeptEntryIndex")]).collect()
    }
}

/// The role `hookMessage` is called `custom` now.
fn role(entry: Json<'_>) -> Option<Change<'static>> {
    let message = entry.get("message").filter(|message| message.kind() == Kind::Object)?;
    let role = message.get("role").and_then(Json::as_str)?;
    let text = message.raw();
    (role == "hookMessage").then(|| Change::Set("message", edit(text, message, &[set("role", "\"custom\"")])))
}

fn set(name: &'static str, value: &str) -> Change<'static> {
    Change::Set(name, value.as_bytes().to_vec())
}
