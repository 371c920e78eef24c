//! Paths in an answer. JSON is text and a path may be none, so what is no UTF-8 in it stands as U+FFFD: one odd name must not
//! cost the whole answer.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// One path.
pub(super) fn one<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    path.to_string_lossy().serialize(to)
}

/// One, if there is one.
pub(super) fn some<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

/// Several.
pub(super) fn all<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}
