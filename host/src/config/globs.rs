//! Globs on paths: which sessions are followed.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A list of globs. `*` and `?` stop at `/`, `**` does not; `[…]` and `{a,b}` work as in a shell. One that does not begin
/// with `/` may match below any directory.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    texts: Vec<String>,
    set: GlobSet,
}

impl Globs {
    /// Makes a set of globs; `home` stands for a leading `~`.
    ///
    /// # Errors
    /// The place in the list of the first that is none, and why.
    pub(super) fn new(texts: Vec<String>, home: Option<&Path>) -> Result<Globs, (usize, String)> {
        let mut set = GlobSetBuilder::new();
        for (at, text) in texts.iter().enumerate() {
            let glob = GlobBuilder::new(&anchored(text, home)).literal_separator(true).build();
            set.add(glob.map_err(|e| (at, format!("{text:?} is no glob: {}", e.kind())))?);
        }
        let set = set.build().map_err(|e| (0, e.to_string()))?;
        Ok(Globs { texts, set })
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The globs as they were written.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether one of them matches.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }
}

fn anchored(text: &str, home: Option<&Path>) -> String {
    match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => format!("{}/{rest}", globset::escape(&home.display().to_string())),
        _ if text.starts_with('/') || text.starts_with("**") => text.to_owned(),
        _ => format!("**/{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &str, path: &str) -> bool {
        let globs = Globs::new(vec![glob.to_owned()], Some(Path::new("/home/[me]"))).expect("a glob");
        globs.matches(Path::new(path))
    }

    #[test]
    fn a_star_stops_at_a_slash_and_two_do_not() {
        assert!(matches("/code/*", "/code/a"));
        assert!(!matches("/code/*", "/code/a/b"));
        assert!(matches("/code/**", "/code/a/b"));
    }

    #[test]
    fn a_glob_without_a_root_matches_below_any_directory() {
        assert!(matches("--work--/*.jsonl", "/x/sessions/--work--/1.jsonl"));
        assert!(!matches("--work--/*.jsonl", "/x/sessions/--work--more/1.jsonl"));
    }

    #[test]
    fn home_is_no_glob_itself() {
        assert!(matches("~/code/**", "/home/[me]/code/a"));
        assert!(!matches("~/code/**", "/home/m/code/a"));
    }

    #[test]
    fn what_is_no_glob_is_said() {
        let (at, why) = Globs::new(vec!["fine".into(), "a[".into()], None).expect_err("no glob");
        assert_eq!(at, 1);
        assert!(why.contains("a["), "{why}");
    }
}
