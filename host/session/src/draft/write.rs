//! Drafts as the entries that they become, in the order of keys in which Pi writes them.

use super::Draft;
use crate::json::quoted;
use crate::strict::RawJson;

/// What the host gives every entry.
pub(crate) struct Stamp<'a> {
    /// The new id.
    pub id: &'a str,
    /// Id of the entry it hangs on.
    pub parent: Option<&'a str>,
    /// ISO 8601 text.
    pub timestamp: &'a str,
}

/// What the host adds to a compaction (S12.5).
pub(crate) struct Counted<'a> {
    /// Tokens of the context just before, as JSON.
    pub tokens_before: &'a str,
    /// The replayed system message as JSON, if there is one (S6.2).
    pub system_message: Option<&'a str>,
}

impl Draft {
    /// The entry as one JSON object, its keys in the order in which Pi writes them.
    ///
    /// Without a stamp it has no id, parent and time; a compaction without `counted` has none of its fields.
    pub(crate) fn entry_json(&self, stamp: Option<&Stamp<'_>>, counted: Option<&Counted<'_>>) -> String {
        let mut entry = Members::begin(self.type_name());
        match self {
            Draft::Custom { custom_type, data } => {
                entry.text("customType", custom_type).option("data", data.as_ref()).stamp(stamp);
            }
            Draft::CustomMessage { custom_type, content, display, details } => {
                entry.text("customType", custom_type).raw("content", content.as_str());
                entry.raw("display", if *display { "true" } else { "false" });
                entry.option("details", details.as_ref()).stamp(stamp);
            }
            Draft::Compaction { summary, first_kept, details, usage } => {
                let own = stamp.map(|stamp| stamp.id);
                entry.stamp(stamp).text("summary", summary);
                entry.text_or_null("firstKeptEntryId", first_kept.as_deref().or(own));
                entry.counted_before(counted).option("details", details.as_ref());
                entry.option("usage", usage.as_ref()).counted_after(counted);
            }
            Draft::ContextEdit { target, replacement } => {
                let replacement = replacement.as_ref().map_or("null", RawJson::as_str);
                entry.stamp(stamp).text("targetId", target).raw("replacement", replacement);
            }
        }
        entry.end()
    }
}

/// A JSON object that is being put together.
struct Members(String);

impl Members {
    fn begin(kind: &str) -> Members {
        Members(format!("{{\"type\":{}", quoted(kind)))
    }

    fn raw(&mut self, key: &str, json: &str) -> &mut Members {
        self.0.push_str(&format!(",\"{key}\":{json}"));
        self
    }

    fn text(&mut self, key: &str, text: &str) -> &mut Members {
        self.raw(key, &quoted(text))
    }

    fn text_or_null(&mut self, key: &str, text: Option<&str>) -> &mut Members {
        match text {
            Some(text) => self.text(key, text),
            None => self.raw(key, "null"),
        }
    }

    fn option(&mut self, key: &str, json: Option<&RawJson>) -> &mut Members {
        match json {
            Some(json) => self.raw(key, json.as_str()),
            None => self,
        }
    }

    fn stamp(&mut self, stamp: Option<&Stamp<'_>>) -> &mut Members {
        match stamp {
            Some(stamp) => {
                self.text("id", stamp.id).text_or_null("parentId", stamp.parent).text("timestamp", stamp.timestamp)
            }
            None => self,
        }
    }

    fn counted_before(&mut self, counted: Option<&Counted<'_>>) -> &mut Members {
        match counted {
            Some(counted) => self.raw("tokensBefore", counted.tokens_before),
            None => self,
        }
    }

    fn counted_after(&mut self, counted: Option<&Counted<'_>>) -> &mut Members {
        let Some(counted) = counted else { return self };
        self.raw("fromHook", "true");
        match counted.system_message {
            Some(message) => self.raw("systemMessage", message),
            None => self,
        }
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
