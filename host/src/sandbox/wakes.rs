//! What wakes a plugin.

/// What is asked about an entry in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waker<'a> {
    /// Its type.
    pub(super) kind: &'a str,
    /// Its role, or its `customType`.
    pub(super) sub: Option<&'a str>,
    /// The plugin that grafted it.
    pub(super) grafted_by: Option<&'a str>,
}

/// A list of patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Patterns(Vec<Pattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// `*`
    Any,
    /// `graft`
    Graft,
    /// `TYPE`, `TYPE:*`
    Kind(String),
    /// `message:ROLE`, `custom:TYPE`, `custom_message:TYPE`
    Sub(String, String),
}

impl Patterns {
    /// Reads patterns; the error is the one that is none.
    pub(super) fn parse(texts: &[String]) -> Result<Self, String> {
        texts.iter().map(|text| parse(text).ok_or_else(|| text.clone())).collect::<Result<_, _>>().map(Self)
    }

    /// Whether one of them fits. A graft wakes only who asks for grafts, and never its own maker.
    pub(super) fn fit(&self, plugin: &str, waker: Waker<'_>) -> bool {
        match waker.grafted_by {
            Some(maker) => maker != plugin && self.0.contains(&Pattern::Graft),
            None => self.0.iter().any(|pattern| pattern.fits(waker)),
        }
    }
}

impl Pattern {
    fn fits(&self, waker: Waker<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Graft => false,
            Self::Kind(kind) => kind == waker.kind,
            Self::Sub(kind, sub) => kind == waker.kind && Some(sub.as_str()) == waker.sub,
        }
    }
}

fn parse(text: &str) -> Option<Pattern> {
    match (text, text.split_once(':')) {
        ("*", _) => Some(Pattern::Any),
        ("graft", _) => Some(Pattern::Graft),
        (kind, None) => (!kind.is_empty() && !kind.contains('*')).then(|| Pattern::Kind(kind.into())),
        (_, Some((kind @ ("message" | "custom" | "custom_message"), sub))) => match sub {
            "" => None,
            "*" => Some(Pattern::Kind(kind.into())),
            sub => Some(Pattern::Sub(kind.into(), sub.into())),
        },
        (_, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wakes(patterns: &[&str], kind: &str, sub: Option<&str>, grafted_by: Option<&str>) -> bool {
        let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
        Patterns::parse(&patterns).expect("patterns").fit("me", Waker { kind, sub, grafted_by })
    }

    #[test]
    fn patterns_name_types_roles_and_custom_types() {
        assert!(wakes(&["*"], "label", None, None));
        assert!(wakes(&["message:user"], "message", Some("user"), None));
        assert!(!wakes(&["message:user"], "message", Some("assistant"), None));
        assert!(wakes(&["message:*"], "message", Some("assistant"), None));
        assert!(wakes(&["custom:todo"], "custom", Some("todo"), None));
        assert!(!wakes(&["custom_message:todo"], "custom", Some("todo"), None));
        assert!(wakes(&["compaction", "label"], "label", None, None));
        assert!(!wakes(&[], "label", None, None));
    }

    #[test]
    fn a_graft_wakes_who_asks_for_it_but_not_its_maker() {
        assert!(!wakes(&["*", "custom:todo"], "custom", Some("todo"), Some("other")));
        assert!(wakes(&["graft"], "custom", Some("todo"), Some("other")));
        assert!(!wakes(&["graft"], "custom", Some("todo"), Some("me")));
        assert!(!wakes(&["graft"], "custom", Some("todo"), None));
    }

    #[test]
    fn what_is_no_pattern_is_named() {
        for bad in ["", "message:", "label:x", "message*", "mess:*"] {
            assert_eq!(Patterns::parse(&[bad.into()]), Err(bad.to_string()));
        }
    }
}
