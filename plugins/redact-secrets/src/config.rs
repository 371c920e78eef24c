//! The plugin's config, checked strictly: an error names its key.
use std::collections::BTreeMap;

use pi_graft_plugin::Json;
use pi_graft_plugin::config::{bytes, typed, wrong};
use pi_graft_plugin::serde::{Deserialize, Deserializer, de::Error as _};

/// The keys there are.
const KEYS: &str = "allow, ignore, names, named-values, prefixes, keep-bytes, note";
/// Fewest letters of a name or prefix: with less everything would be a secret.
const SHORTEST: usize = 3;

/// What `[plugin.config]` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Values that are no secrets; with `*` at the end, all that begin so.
    pub allow: Vec<String>,
    /// Kinds that are left alone.
    pub ignore: Vec<String>,
    /// Further names that tell that their value is a secret; only letters, small.
    pub names: Vec<String>,
    /// Whether values count that only the name beside them makes secrets.
    pub named_values: bool,
    /// Further credentials that are known by how they begin, with their kind.
    pub prefixes: Vec<(String, String)>,
    /// Most bytes of a rewritten content; of what is longer the middle and images go.
    pub keep_bytes: usize,
    /// Whether a `custom` entry says once that secrets stand where they cannot be edited.
    pub note: bool,
}

impl Default for Config {
    fn default() -> Self {
        let (allow, ignore, names, prefixes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { allow, ignore, names, named_values: true, prefixes, keep_bytes: 240 << 10, note: true }
    }
}

impl Config {
    /// Whether this kind is left alone.
    #[must_use]
    pub fn ignores(&self, kind: &str) -> bool {
        self.ignore.iter().any(|ignored| ignored == kind)
    }

    /// Whether this value is no secret.
    #[must_use]
    pub fn allows(&self, value: &[u8]) -> bool {
        self.allow.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(beginning) => value.starts_with(beginning.as_bytes()),
            None => value == allowed.as_bytes(),
        })
    }

    fn read(keys: &BTreeMap<String, Json>) -> Result<Self, String> {
        let mut config = Self::default();
        for (key, value) in keys {
            config.set(key, value)?;
        }
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &Json) -> Result<(), String> {
        match key {
            "allow" => self.allow = values(key, value)?,
            "ignore" => self.ignore = values(key, value)?,
            "names" => {
                self.names = values(key, value)?.iter().map(|name| letters(key, name)).collect::<Result<_, _>>()?
            }
            "named-values" => self.named_values = typed(key, value, "true or false")?,
            "prefixes" => self.prefixes = prefixes(key, value)?,
            "keep-bytes" => self.keep_bytes = size(key, value)?,
            "note" => self.note = typed(key, value, "true or false")?,
            _ => return Err(format!("unknown key `{key}`; there are {KEYS}")),
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = BTreeMap::<String, Json>::deserialize(deserializer)?;
        Self::read(&keys).map_err(D::Error::custom)
    }
}

fn values(key: &str, value: &Json) -> Result<Vec<String>, String> {
    let values: Vec<String> = typed(key, value, "a list of texts")?;
    match values.iter().find(|value| value.trim_end_matches('*').is_empty()) {
        Some(empty) => Err(format!("`{key}` holds {empty:?}, which is everything; say what is meant")),
        None => Ok(values),
    }
}

/// A name as it is compared: its letters, small.
fn letters(key: &str, name: &str) -> Result<String, String> {
    let letters: String = name.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect();
    if letters.len() < SHORTEST {
        return Err(format!("`{key}` holds {name:?}: a name has at least {SHORTEST} letters (a to z)"));
    }
    Ok(letters)
}

/// Prefixes with their kinds, such as `{ int_ = "internal-token" }`.
fn prefixes(key: &str, value: &Json) -> Result<Vec<(String, String)>, String> {
    let table: BTreeMap<String, String> = typed(key, value, "a table such as { int_ = \"internal-token\" }")?;
    let check = |(prefix, kind): (String, String)| {
        let begins = prefix.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let is_kind = !kind.is_empty()
            && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !begins || prefix.len() < SHORTEST || !prefix.is_ascii() {
            return Err(format!(
                "`{key}.\"{prefix}\"`: a prefix begins with a letter or digit and has at least {SHORTEST} signs"
            ));
        }
        if is_kind {
            Ok((prefix, kind))
        } else {
            Err(format!("`{key}.\"{prefix}\"` must be a kind such as \"internal-token\", not {kind:?}"))
        }
    };
    table.into_iter().map(check).collect()
}

/// A number of bytes, or text such as "240KiB".
fn size(key: &str, value: &Json) -> Result<usize, String> {
    let size = bytes(value).and_then(|bytes| usize::try_from(bytes).ok());
    let wanted = "a size from \"4KiB\" to \"480KiB\" (and below `limits.entry-bytes`)";
    size.filter(|size| (4096..=480 << 10).contains(size)).ok_or_else(|| wrong(key, value, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Config, String> {
        Json::from_text(json.into()).to().map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_a_config_too_and_every_key_is_read() {
        assert_eq!(read("{}"), Ok(Config::default()));
        let config = read(
            r#"{"allow":["abc","dev-*"],"ignore":["jwt"],"names":["Kenn-Wort"],"named-values":false,
            "prefixes":{"int_":"internal-token"},"keep-bytes":"64KiB","note":false}"#,
        )
        .expect("it is right");
        assert!(config.allows(b"abc") && config.allows(b"dev-1") && !config.allows(b"abcd") && config.ignores("jwt"));
        assert_eq!((config.names, config.keep_bytes), (vec!["kennwort".to_owned()], 65_536));
        assert!(!config.named_values && !config.note);
    }

    #[test]
    fn an_error_names_the_key_and_what_it_may_be() {
        let wrong = [
            (r#"{"alow":[]}"#, "`alow`"),
            (r#"{"allow":"x"}"#, "`allow`"),
            (r#"{"allow":["*"]}"#, "everything"),
            (r#"{"names":["x1"]}"#, "letters"),
            (r#"{"named-values":1}"#, "`named-values`"),
            (r#"{"prefixes":["a"]}"#, "`prefixes`"),
            (r#"{"prefixes":{"_x":"a"}}"#, "`prefixes.\"_x\"`"),
            (r#"{"prefixes":{"int_":"Internal Token"}}"#, "\"internal-token\""),
            (r#"{"keep-bytes":"1KiB"}"#, "`keep-bytes`"),
            (r#"{"note":null}"#, "`note`"),
        ];
        for (json, named) in wrong {
            let error = read(json).expect_err(json);
            assert!(error.contains(named), "{json}: {error}");
        }
    }
}
