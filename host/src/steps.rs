//! Labelled steps of a delivery, so that tests can end the process at each of them, as `kill -9` would.

/// The environment variable that names the step at which the process ends at once.
pub const DIE_AT: &str = "PI_GRAFT_TEST_DIE_AT";

/// A step was reached. Ends the process without any clean-up if a test has asked for it.
pub fn reached(step: &str) {
    static DIE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    if DIE.get_or_init(|| std::env::var(DIE_AT).ok()).as_deref() == Some(step) {
        std::process::abort();
    }
}
