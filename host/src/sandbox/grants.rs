//! What the user lets a plugin do. A missing or empty list grants nothing.
use std::collections::BTreeSet;

/// The capabilities that there are, beside `model:NAME`.
const CAPABILITIES: [&str; 5] =
    ["append:custom", "append:custom_message", "append:compaction", "append:context_edit", "session:raw"];

/// Granted capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Grants(BTreeSet<String>);

impl Grants {
    pub(super) fn new(names: &[String]) -> Self {
        Self(names.iter().cloned().collect())
    }

    /// Whether this one is granted, by its exact name.
    pub(super) fn has(&self, capability: &str) -> bool {
        self.0.contains(capability)
    }

    /// The line of the config that would grant these too.
    pub(super) fn line_with(&self, missing: &[String]) -> String {
        let all: BTreeSet<_> = self.0.iter().chain(missing).map(|name| format!("{name:?}")).collect();
        format!("grants = [{}]", all.into_iter().collect::<Vec<_>>().join(", "))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Whether there is such a capability at all.
pub(super) fn is_known(capability: &str) -> bool {
    let model = capability.strip_prefix("model:").is_some_and(|name| !name.is_empty());
    model || CAPABILITIES.contains(&capability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_but_what_is_named() {
        let none = Grants::new(&[]);
        assert!(!none.has("append:custom"));
        let one = Grants::new(&["append:custom".into()]);
        assert!(one.has("append:custom"));
        assert!(!one.has("append:custom_message"));
        assert_eq!(one.line_with(&["session:raw".into()]), r#"grants = ["append:custom", "session:raw"]"#);
    }

    #[test]
    fn a_model_needs_a_name() {
        assert!(is_known("model:summary"));
        assert!(!is_known("model:"));
        assert!(!is_known("append:message"));
    }
}
