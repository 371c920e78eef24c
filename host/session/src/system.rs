//! The replay of system messages: each is a delta, together they give the prompt and the tools in force (S5.1).

use std::collections::{BTreeMap, HashMap};

use crate::json::{Json, Kind, quoted};
use crate::splice::{self, Member};

/// The state after some system messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    content: Vec<String>,
    sections: Named,
    tools: Named,
    timestamp: Option<String>,
}

/// JSON texts by name, in the order the names came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Named {
    /// The place of each name among `texts`.
    places: HashMap<String, u64>,
    texts: BTreeMap<u64, (String, String)>,
    next: u64,
}

impl Named {
    /// A name keeps its place when it is set again.
    fn set(&mut self, name: String, value: Json<'_>) {
        let place = *self.places.entry(name.clone()).or_insert(self.next);
        self.next += 1;
        self.texts.insert(place, (name, value.to_text().into_owned()));
    }

    fn remove(&mut self, name: &str) {
        if let Some(place) = self.places.remove(name) {
            self.texts.remove(&place);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &(String, String)> {
        self.texts.values()
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

impl Replay {
    /// Takes in the next system message.
    pub fn add(&mut self, message: Json<'_>) {
        if message.get("replace").and_then(Json::as_bool) == Some(true) {
            *self = Replay { timestamp: self.timestamp.take(), ..Replay::default() };
        }
        // One that is `null` makes way for a later one, but counts as one (S5.1).
        if self.timestamp.as_deref().is_none_or(|time| time == "null") {
            self.timestamp = message.get("timestamp").map(|t| t.to_text().into_owned()).or(self.timestamp.take());
        }
        let text = message.get("content").map(content_text).unwrap_or_default();
        if !text.is_empty() {
            self.content.push(text);
        }
        for (name, value) in message.get("sections").into_iter().flat_map(Json::members) {
            match value.is_null() {
                true => self.sections.remove(&name.text()),
                false => self.sections.set(name.text().into_owned(), value),
            }
        }
        for tool in message.get("toolsRemoved").into_iter().flat_map(Json::items) {
            self.tools.remove(&tool_name(tool));
        }
        for tool in message.get("toolsAdded").into_iter().flat_map(Json::items) {
            self.tools.set(tool_name(tool), tool);
        }
    }

    /// The one system message that the replay gives, as JSON; none if it ends with neither a timestamp nor tools. With
    /// `timestamp`, that is its time (S6.2), else the first message's.
    #[must_use]
    pub fn message(&self, timestamp: Option<i64>) -> Option<String> {
        if self.timestamp.is_none() && self.tools.is_empty() {
            return None;
        }
        let content = quoted(&self.content.join("\n\n"));
        let sections = self.sections_json();
        let tools = self.tools_json();
        let time = timestamp.map(|t| t.to_string());
        let time =
            time.or_else(|| self.timestamp.clone().filter(|time| time != "null")).unwrap_or_else(|| "0".to_owned());
        let mut members = vec![Member::text("role", "\"system\""), Member::text("content", &content)];
        members.extend(sections.as_deref().map(|s| Member::text("sections", s)));
        members.extend(tools.as_deref().map(|t| Member::text("toolsAdded", t)));
        members.push(Member::text("timestamp", &time));
        Some(splice::object(&members))
    }

    fn sections_json(&self) -> Option<String> {
        let parts: Vec<_> = self.sections.iter().map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
        (!parts.is_empty()).then(|| format!("{{{}}}", parts.join(",")))
    }

    fn tools_json(&self) -> Option<String> {
        let parts: Vec<&str> = self.tools.iter().map(|(_, tool)| tool.as_str()).collect();
        (!parts.is_empty()).then(|| format!("[{}]", parts.join(",")))
    }

    /// Its estimated tokens (S9.5).
    #[must_use]
    pub fn tokens(&self) -> u64 {
        if self.timestamp.is_none() && self.tools.is_empty() {
            return 0;
        }
        let units = |text: &str| text.encode_utf16().count() as u64;
        let length = |json: &str| Json::parse(json.as_bytes()).map_or(0, |j| j.utf16_len());
        let sections: u64 = self.sections.iter().map(|(_, value)| length(value)).sum();
        let tools = self.tools_json().map_or(0, |t| Json::parse(t.as_bytes()).map_or(0, Json::stringify_len));
        (units(&self.content.join("\n\n")) + sections + tools).div_ceil(4)
    }
}

/// Text, or the text blocks joined by line ends.
fn content_text(content: Json<'_>) -> String {
    match content.kind() {
        Kind::String => content.as_str().unwrap_or_default().into_owned(),
        _ => {
            let is_text = |block: &Json<'_>| block.get("type").and_then(Json::as_str).as_deref() == Some("text");
            let text = |block: Json<'_>| block.get("text").and_then(Json::as_str).map(|t| t.into_owned());
            content.items().filter(is_text).filter_map(text).collect::<Vec<_>>().join("\n")
        }
    }
}

fn tool_name(tool: Json<'_>) -> String {
    tool.get("name").map_or_else(|| "undefined".to_owned(), |n| n.as_str().unwrap_or_else(|| n.to_text()).into_owned())
}
