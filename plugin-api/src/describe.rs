//! Descriptions, built up by name.
use crate::Description;

/// The config of a plugin that has none: any key in it is an error.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
#[serde(crate = "serde", deny_unknown_fields)]
pub struct NoConfig {}

impl Description {
    /// A plugin that needs nothing and is woken by nothing.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        let (name, version) = (name.into(), version.into());
        Self { name, version, needs: Vec::new(), can_use: Vec::new(), on: Vec::new() }
    }

    /// Capabilities that it cannot do without, such as `append:custom`.
    #[must_use]
    pub fn needs<S: Into<String>>(mut self, capabilities: impl IntoIterator<Item = S>) -> Self {
        self.needs.extend(capabilities.into_iter().map(Into::into));
        self
    }

    /// Capabilities that it uses if they are granted.
    #[must_use]
    pub fn can_use<S: Into<String>>(mut self, capabilities: impl IntoIterator<Item = S>) -> Self {
        self.can_use.extend(capabilities.into_iter().map(Into::into));
        self
    }

    /// What wakes it: `*`, `message:ROLE`, `message:*`, another entry type, `custom:TYPE`, `custom_message:TYPE`, `graft`.
    #[must_use]
    pub fn on<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.on.extend(patterns.into_iter().map(Into::into));
        self
    }
}
