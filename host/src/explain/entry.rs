//! An entry by itself: what it is, on which branch it stands, how it shows in the context, and who edited it.

use pi_session::branch::{Branch, BranchError};
use pi_session::context::Shown;
use pi_session::entry::{Entry, EntryKind, Replacement};
use pi_session::grafts::REJOIN_TYPE;
use pi_session::json::Json;
use pi_session::tree::EntryIx;
use serde::Serialize;

use super::InFile;

/// An entry in a few words.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Brief {
    /// Its id.
    pub id: String,
    /// Its type; `message:ROLE`, `custom:TYPE` and `custom_message:TYPE` as plugins name them. None if it is not in the file.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Its time, Unix milliseconds.
    pub at_ms: Option<i64>,
    /// Whether it is on the active branch, which ends in the file's last entry.
    pub active: bool,
}

/// An entry as it stands in the file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryTold {
    /// What it is.
    #[serde(flatten)]
    pub brief: Brief,
    /// Its parent, if that is in the file.
    pub parent: Option<String>,
    /// Where the newest branch ends that it is on.
    pub leaf: String,
    /// How it shows in the context of the active branch: `as it is`, `edited`, `left out`, `hidden` (by a compaction),
    /// `nothing` (it gives none), `off the branch`.
    pub shows: &'static str,
    /// The edit or compaction that makes it so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shows_by: Option<String>,
}

/// An edit of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditTold {
    /// The edit.
    #[serde(flatten)]
    pub brief: Brief,
    /// Whether it leaves the entry out; else it shows other content.
    pub omits: bool,
    /// The plugin that made it; none if Pi did, or somebody by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The handler that proposed it; `undo` of what takes the plugin's work back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// Its batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
}

impl InFile {
    /// What is said of the entry with this id; also where there is none.
    pub(super) fn brief_of(&self, id: &str) -> Brief {
        match self.tree.by_id(id) {
            Some(ix) => self.brief(ix),
            None => Brief { id: id.to_owned(), kind: None, at_ms: None, active: false },
        }
    }

    pub(super) fn brief(&self, ix: EntryIx) -> Brief {
        let entry = self.tree.entry(ix);
        Brief {
            id: self.tree.id(ix).to_owned(),
            kind: Some(kind_text(entry, self.tree.word(entry))),
            at_ms: entry.time_ms,
            active: self.is_active(ix),
        }
    }

    pub(super) fn entry_told(&self, ix: EntryIx) -> Result<EntryTold, BranchError> {
        let (shows, by) = self.shows(ix)?;
        Ok(EntryTold {
            brief: self.brief(ix),
            parent: self.tree.parent(ix).map(|parent| self.tree.id(parent).to_owned()),
            leaf: self.tree.id(self.newest_below(ix)).to_owned(),
            shows,
            shows_by: by,
        })
    }

    /// The newest entry that goes on from this one.
    fn newest_below(&self, ix: EntryIx) -> EntryIx {
        let mut below = vec![false; self.tree.entries().len()];
        below[ix.index()] = true;
        let mut newest = ix;
        // Parents stand before their children in all but odd files; where one does not, an older end is named.
        for other in self.tree.all().skip(ix.index() + 1) {
            if self.tree.parent(other).is_some_and(|parent| below[parent.index()]) {
                below[other.index()] = true;
                newest = other;
            }
        }
        newest
    }

    fn shows(&self, ix: EntryIx) -> Result<(&'static str, Option<String>), BranchError> {
        let branch = match Branch::of_leaf(&self.tree, self.source.clone()) {
            Err(BranchError::Cycle(_)) => return Ok(("off the branch", None)),
            branch => branch?,
        };
        let Some(place) = branch.place_of(self.tree.id(ix)).filter(|_| self.is_active(ix)) else {
            return Ok(("off the branch", None));
        };
        let id = |place: u32| branch.item(place).id.map(str::to_owned);
        let found = branch.context().entries.into_iter().find(|entry| entry.place == place);
        Ok(match found.map(|entry| entry.shown) {
            None if !branch.facts(place).gives => ("nothing", None),
            None => ("hidden", branch.last_compaction().and_then(id)),
            Some(Shown::Nothing) => ("nothing", None),
            Some(Shown::AsIs) => ("as it is", None),
            Some(Shown::Omitted { by }) => ("left out", id(by)),
            Some(Shown::Replaced { by }) => ("edited", id(by)),
        })
    }

    pub(super) fn edits_of(&self, ix: EntryIx) -> Vec<EditTold> {
        let target = self.tree.entry(ix).id;
        let edits = self.tree.all().filter(|edit| {
            let entry = self.tree.entry(*edit);
            entry.kind == EntryKind::ContextEdit && entry.names == Some(target)
        });
        let told = |edit| {
            let receipt = self.graft_of(edit).map(|graft| &graft.receipt);
            EditTold {
                brief: self.brief(edit),
                omits: self.tree.entry(edit).replacement == Replacement::Omit,
                plugin: receipt.map(|receipt| receipt.plugin.clone()),
                handler: receipt.map(|receipt| receipt.handler.clone()),
                batch: receipt.map(|receipt| receipt.batch.clone()),
            }
        };
        edits.map(told).collect()
    }

    /// The batch behind which the host has led back to Pi's branch, if the entry does that.
    pub(super) fn rejoins(&self, ix: EntryIx) -> Result<Option<String>, BranchError> {
        let entry = self.tree.entry(ix);
        if entry.kind != EntryKind::Custom || self.tree.word(entry) != REJOIN_TYPE {
            return Ok(None);
        }
        let line = self.source.read(entry.offset, entry.len as usize)?;
        let json = Json::parse(&line).map_err(|reason| BranchError::Changed { offset: entry.offset, reason })?;
        Ok(json.get("data").and_then(|data| Some(data.get("batch")?.as_str()?.into_owned())))
    }
}

/// The type as plugins name it in `on`.
fn kind_text(entry: &Entry, word: &str) -> String {
    match entry.kind {
        EntryKind::Message if word.is_empty() => format!("message:{}", entry.role.as_str()),
        EntryKind::Message => format!("message:{word}"),
        EntryKind::Other => word.to_owned(),
        kind if word.is_empty() => kind.as_str().to_owned(),
        kind => format!("{}:{word}", kind.as_str()),
    }
}
