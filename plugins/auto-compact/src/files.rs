//! The files that were read and changed: in the details of a compaction, and at the end of its summary (S10.5).
use std::collections::BTreeSet;

use pi_graft_plugin::serde::{self, Deserialize, Serialize};
use pi_graft_plugin::{Json, Plan};

/// Most bytes of both lists in the details: files that were only read go first.
const MOST: usize = 96 * 1024;

/// Files, each in one of the lists, sorted by UTF-16 units.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(crate = "self::serde", rename_all = "camelCase", default)]
pub struct Files {
    /// Only read.
    #[serde(rename = "readFiles")]
    pub read: Vec<String>,
    /// Written or edited.
    #[serde(rename = "modifiedFiles")]
    pub modified: Vec<String>,
}

impl Files {
    /// Those of the plan and of the compaction before, whoever made that; `listed` is what its summary lists.
    pub fn of(plan: &Plan, listed: Self) -> Self {
        let before = plan.previous_details.as_deref().map(Self::of_details).unwrap_or_default();
        let all = |lists: [Vec<String>; 3]| lists.into_iter().flatten().filter(|path| is_path(path)).collect();
        let mut files = Self {
            read: all([before.read, listed.read, plan.read_files.clone()]),
            modified: all([before.modified, listed.modified, plan.modified_files.clone()]),
        };
        files.sort();
        files.limit();
        files
    }

    /// Those in the details of a compaction; none where there are none that can be read.
    fn of_details(details: &str) -> Self {
        Json::from_text(details.into()).to().unwrap_or_default()
    }

    fn sort(&mut self) {
        let modified: BTreeSet<_> = self.modified.drain(..).collect();
        let read: BTreeSet<_> = self.read.drain(..).filter(|path| !modified.contains(path)).collect();
        self.read = by_units(read);
        self.modified = by_units(modified);
    }

    fn limit(&mut self) {
        let mut room = MOST;
        for list in [&mut self.modified, &mut self.read] {
            list.retain(|path| {
                let fits = path.len() + 8 <= room;
                room -= if fits { path.len() + 8 } else { 0 };
                fits
            });
        }
    }

    /// The blocks that end a summary, in at most `max` bytes, and how many files they leave out. Changed files come
    /// first, then those that were touched last.
    pub fn blocks(&self, max: usize, touched: impl Fn(&str) -> u64) -> (String, usize) {
        let tags = 80;
        let mut room = max.saturating_sub(tags);
        let mut pick = |list: &[String]| {
            let mut order: Vec<_> = list.iter().collect();
            order.sort_by_key(|path| std::cmp::Reverse(touched(path)));
            order.retain(|path| {
                let fits = path.len() < room;
                room -= if fits { path.len() + 1 } else { 0 };
                fits
            });
            by_units(order.into_iter().cloned().collect())
        };
        let modified = pick(&self.modified);
        let read = pick(&self.read);
        let left_out = self.modified.len() + self.read.len() - modified.len() - read.len();
        let blocks = [block("read-files", &read), block("modified-files", &modified)];
        (blocks.into_iter().flatten().collect::<Vec<_>>().join("\n\n"), left_out)
    }
}

/// A path that can stand on a line of its own.
fn is_path(path: &str) -> bool {
    !path.is_empty() && !path.contains(['\n', '\r']) && !path.starts_with(['<', ' '])
}

fn by_units(paths: BTreeSet<String>) -> Vec<String> {
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    paths
}

fn block(tag: &str, paths: &[String]) -> Option<String> {
    (!paths.is_empty()).then(|| ["<", tag, ">\n", &paths.join("\n"), "\n</", tag, ">"].concat())
}

/// Takes the blocks out of a summary: what is left, and what they list.
pub fn strip_blocks(summary: &str) -> (String, Files) {
    let (mut rest, mut files, mut within) = (String::new(), Files::default(), None);
    for line in summary.lines() {
        match (within, line.trim_end()) {
            (None, tag @ ("<read-files>" | "<modified-files>")) => within = Some(tag == "<read-files>"),
            (Some(_), "</read-files>" | "</modified-files>") => within = None,
            (Some(true), path) => files.read.push(path.into()),
            (Some(false), path) => files.modified.push(path.into()),
            (None, _) => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
    }
    (rest, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| (*path).into()).collect()
    }

    fn plan(details: &str, read: &[&str], modified: &[&str]) -> Plan {
        Plan {
            first_kept: None,
            split_turn: false,
            tokens_before: 0,
            previous: None,
            previous_summary: None,
            previous_details: Some(details.into()),
            to_summarize: Vec::new(),
            turn_prefix: Vec::new(),
            read_files: list(read),
            modified_files: list(modified),
        }
    }

    #[test]
    fn those_of_the_compaction_before_go_on_and_changed_wins_over_read() {
        let before = r#"{"readFiles":["a","b"],"modifiedFiles":["c"],"pi-graft":{"batch":"x"}}"#;
        let files = Files::of(&plan(before, &["c", "z", "\u{ff5e}", "\u{1f600}"], &["b"]), Files::default());
        assert_eq!(files.read, ["a", "z", "\u{1f600}", "\u{ff5e}"]);
        assert_eq!(files.modified, ["b", "c"]);
    }

    #[test]
    fn details_of_another_shape_are_none() {
        for details in ["null", "[1]", r#"{"readFiles":7}"#, "no json"] {
            assert_eq!(Files::of(&plan(details, &[], &[]), Files::default()), Files::default());
        }
    }

    #[test]
    fn blocks_are_written_and_read_back() {
        let files = Files { read: list(&["a.rs", "b.rs"]), modified: list(&["c.rs"]) };
        let (blocks, left_out) = files.blocks(500, |_| 0);
        assert_eq!(blocks, "<read-files>\na.rs\nb.rs\n</read-files>\n\n<modified-files>\nc.rs\n</modified-files>");
        assert_eq!(left_out, 0);
        assert_eq!(strip_blocks(&["## Goal\n- x\n\n", &blocks].concat()), ("## Goal\n- x\n\n\n".into(), files));
    }

    #[test]
    fn where_there_is_no_room_for_all_the_changed_and_the_newest_are_listed() {
        let files = Files { read: list(&["old.rs", "young.rs"]), modified: list(&["c.rs"]) };
        let (blocks, left_out) = files.blocks(80 + 15, |path| u64::from(path == "young.rs"));
        assert_eq!(left_out, 1);
        assert!(blocks.contains("young.rs") && blocks.contains("c.rs"), "{blocks}");
    }

    #[test]
    fn an_open_block_ends_with_the_text() {
        assert_eq!(strip_blocks("x\n<read-files>\na").1.read, ["a"]);
    }
}
