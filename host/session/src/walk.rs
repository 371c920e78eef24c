//! One walk over a line, from which all facts of its entry come.
//!
//! What is a string to be looked at later is kept as a span of the text; what is only counted is counted on the way.

use std::collections::HashMap;

use crate::entry::Replacement;
use crate::glued;
use crate::json::{Json, JsonError, Key, Kind as JsonKind};
use crate::paths::FileOf;
use crate::scan::Scan;

/// Strings and spans met on the walk, to be interned or counted by the tree.
#[derive(Default)]
pub(crate) struct Found<'a> {
    pub kind: Option<Json<'a>>,
    pub id: Option<Json<'a>>,
    pub parent: Option<Json<'a>>,
    pub timestamp: Option<Json<'a>>,
    pub custom_type: Option<Json<'a>>,
    pub target: Option<Json<'a>>,
    pub first_kept: Option<Json<'a>>,
    pub first_kept_index: Option<Json<'a>>,
    pub from: Option<Json<'a>>,
    pub usage: Usage,
    pub label: Option<Json<'a>>,
    pub name: Option<Json<'a>>,
    pub provider: Option<Json<'a>>,
    pub model: Option<Json<'a>>,
    pub version: Option<Json<'a>>,
    pub cwd: Option<Json<'a>>,
    pub parent_session: Option<Json<'a>>,
    pub summary: Option<Json<'a>>,
    pub summary_units: u64,
    pub tokens_before: Option<Json<'a>>,
    /// Few lines have this, or one of the next two, and all are moved: so they stand apart.
    pub system: Option<Box<Msg<'a>>>,
    pub from_hook: bool,
    pub content: Option<Box<Content>>,
    pub edit: Option<Box<(Replacement, Content)>>,
    pub message: Option<Msg<'a>>,
    pub display: Option<Json<'a>>,
    pub level: Option<Json<'a>>,
    /// Bytes that are not UTF-8 in a text.
    pub lossy: bool,
    /// The files of calls: in the blocks of its message, and of an edit's content.
    pub files: [Vec<FileOf<'a>>; 2],
    /// A carriage return stands between its members: where Pi lists sessions that ends a line.
    pub broken: bool,
}

/// A message met on the walk.
#[derive(Clone, Copy, Default)]
pub(crate) struct Msg<'a> {
    pub object: bool,
    /// Something else stands in its place, which JavaScript holds to be true.
    pub other: bool,
    pub role: Option<Json<'a>>,
    pub content: Content,
    pub stop: Option<Json<'a>>,
    pub usage: Usage,
    pub provider: Option<Json<'a>>,
    pub model: Option<Json<'a>>,
    pub api: Option<Json<'a>>,
    pub timestamp: Option<Json<'a>>,
    pub nested: Option<Json<'a>>,
    /// `toolsAdded` and `toolsRemoved`.
    pub tool_lists: [Option<Json<'a>>; 2],
    pub sections: u64,
    /// A section that is neither text nor `null`, or sections that are a text or a list.
    pub odd_section: bool,
    /// `replace: true` (S5.1).
    pub replace: bool,
    pub tools: u64,
    pub command: Option<u64>,
    pub output: Option<u64>,
    pub summary: Option<u64>,
}

/// The numbers of a `usage`: none where it is missing, no number (NaN) where it is something else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reported {
    pub total: Option<f64>,
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    pub cost: Option<f64>,
}

impl Reported {
    /// `totalTokens`, or if that is nothing the sum of the four parts; only if it is more than nothing (S9.6).
    pub fn context_tokens(self) -> Option<f64> {
        let parts = || Some(self.input? + self.output? + self.cache_read? + self.cache_write?);
        let total = self.total.filter(|total| *total != 0.0).or_else(parts);
        total.filter(|total| *total > 0.0)
    }

    fn numbers(self) -> [Option<f64>; 6] {
        [self.total, self.input, self.output, self.cache_read, self.cache_write, self.cost]
    }

    /// Something stands there that is no number, or one that has no end.
    pub fn is_odd(self) -> bool {
        self.numbers().into_iter().flatten().any(|number| !number.is_finite())
    }

    /// A number that Pi adds up is missing; the total is not one of those.
    pub fn is_partial(self) -> bool {
        self.numbers().into_iter().skip(1).any(|number| number.is_none())
    }
}

/// What is counted of a `content`: UTF-16 units by what they are.
#[derive(Clone, Copy, Default)]
pub(crate) struct Content {
    pub shape: Shape,
    pub text: u64,
    pub thinking: u64,
    pub calls: u64,
    pub images: u64,
    pub has_calls: bool,
    /// It stands there, as `null`.
    pub null: bool,
    /// What is wrong with its blocks.
    pub odd: Odd,
}

/// What is wrong with some block of a content (S12.9).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Odd {
    /// `null`.
    pub null: bool,
    /// No object.
    pub no_object: bool,
    /// A text block whose text is none.
    pub text: bool,
    /// A thinking block whose thinking is none.
    pub thinking: bool,
    /// A call without a text for its id or its name, or without arguments.
    pub call: bool,
    /// A type that is not known.
    pub unknown: bool,
    /// A thinking block or a call, which only an assistant may have.
    pub assistants: bool,
}

/// A `usage`, and whether Pi can add it up.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) enum Usage {
    /// None, or one that counts as none.
    #[default]
    None,
    /// Not with a cost: Pi fails when it adds it up.
    Bad(Option<Reported>),
    /// Its numbers.
    Fine(Reported),
}

impl Usage {
    pub fn reported(self) -> Option<Reported> {
        match self {
            Usage::None => None,
            Usage::Bad(reported) => reported,
            Usage::Fine(reported) => Some(reported),
        }
    }

    pub fn is_bad(self) -> bool {
        matches!(self, Usage::Bad(_))
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    #[default]
    Missing,
    Text,
    Blocks,
    Wrong,
}

/// Characters an image counts for (S9.5).
const IMAGE_CHARS: u64 = 4800;

impl Content {
    pub fn as_user(&self) -> u64 {
        self.text + self.images * IMAGE_CHARS
    }

    pub fn as_assistant(&self) -> u64 {
        self.text + self.thinking + self.calls
    }

    /// An assistant's content that stands as text counts for nothing: Pi looks for blocks in it.
    pub fn as_assistants_own(&self) -> u64 {
        if self.shape == Shape::Text { 0 } else { self.as_assistant() }
    }
}

/// What one line turned out to be.
pub(crate) enum Line<'a> {
    /// White space.
    Blank,
    /// More than 4 GiB.
    TooLong,
    /// Not JSON; and where on the line another entry begins, if one does (S2.4).
    Bad(JsonError, Option<u32>),
    /// JSON, but no object.
    Value(Json<'a>),
    /// An object, and the length of the line. What is found on it is much, and stays where it is.
    Object(u32, Box<Found<'a>>),
}

/// Reads one line.
pub(crate) fn read(line: &[u8]) -> Line<'_> {
    let Ok(len) = u32::try_from(line.len()) else { return Line::TooLong };
    if is_blank(line) {
        return Line::Blank;
    }
    let mut scan = Scan::new(line);
    if scan.peek() != Some(b'{') {
        return Json::parse(line).map_or_else(|error| bad(line, error), Line::Value);
    }
    match object(&mut scan) {
        Ok(found) => Line::Object(len, found),
        Err(error) => bad(line, error),
    }
}

fn bad(line: &[u8], error: JsonError) -> Line<'_> {
    Line::Bad(error, glued::on(line))
}

fn object<'a>(scan: &mut Scan<'a>) -> Result<Box<Found<'a>>, JsonError> {
    let mut found = Box::<Found<'a>>::default();
    let returns = scan.returns();
    scan.object(|key, scan| top(&mut found, key, scan))?;
    found.broken = scan.returns() > returns;
    scan.end()?;
    found.lossy = scan.is_lossy();
    Ok(found)
}

/// White space, as JavaScript trims it.
fn is_blank(line: &[u8]) -> bool {
    match line.first() {
        None => true,
        Some(b'{') => false,
        Some(_) => std::str::from_utf8(line).is_ok_and(|text| text.chars().all(is_js_space)),
    }
}

/// What JavaScript trims: a byte order mark too, but not U+0085.
pub(crate) fn is_js_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

fn top<'a>(f: &mut Found<'a>, key: Key<'a>, scan: &mut Scan<'a>) -> Result<(), JsonError> {
    match &*key.name() {
        b"message" => {
            f.message = Some(message(scan)?);
            f.files[0] = scan.take_files();
        }
        b"systemMessage" => f.system = Some(Box::new(message(scan)?)),
        b"content" => f.content = Some(Box::new(content(scan)?)),
        b"replacement" => {
            f.edit = Some(Box::new(replacement(scan)?));
            f.files[1] = scan.take_files();
        }
        b"usage" => f.usage = usage(scan)?,
        b"fromHook" => f.from_hook = scan.value()?.is_truthy(),
        b"summary" => {
            let value = scan.value()?;
            f.summary = Some(value);
            f.summary_units = if value.kind() == JsonKind::String { scan.units() } else { 0 };
        }
        name => {
            let value = scan.value()?;
            if let Some(slot) = top_slot(f, name) {
                *slot = Some(value);
            }
        }
    }
    Ok(())
}

/// The id of the call that a tool result answers, if it stands in this beginning of its line.
pub(crate) fn call_in_head(head: &[u8]) -> Option<String> {
    let mut call = None;
    let done = Err(JsonError { at: 0, what: "enough" });
    // Cut off as it is, the text is no JSON: what was found before it ended counts.
    let _ = Scan::new(head).object(|key, scan| match &*key.name() {
        b"message" if scan.peek() == Some(b'{') => scan.object(|key, scan| {
            let value = scan.value()?;
            if key.is("toolCallId") {
                call = value.as_str().map(|call| call.into_owned());
                return done;
            }
            Ok(())
        }),
        _ => scan.value().map(drop),
    });
    call
}

fn top_slot<'f, 'a>(f: &'f mut Found<'a>, name: &[u8]) -> Option<&'f mut Option<Json<'a>>> {
    Some(match name {
        b"type" => &mut f.kind,
        b"id" => &mut f.id,
        b"parentId" => &mut f.parent,
        b"timestamp" => &mut f.timestamp,
        b"customType" => &mut f.custom_type,
        b"targetId" => &mut f.target,
        b"firstKeptEntryId" => &mut f.first_kept,
        b"firstKeptEntryIndex" => &mut f.first_kept_index,
        b"fromId" => &mut f.from,
        b"label" => &mut f.label,
        b"name" => &mut f.name,
        b"provider" => &mut f.provider,
        b"modelId" | b"model" => &mut f.model,
        b"version" => &mut f.version,
        b"cwd" => &mut f.cwd,
        b"parentSession" => &mut f.parent_session,
        b"tokensBefore" => &mut f.tokens_before,
        b"display" => &mut f.display,
        b"thinkingLevel" => &mut f.level,
        _ => return None,
    })
}

fn message<'a>(scan: &mut Scan<'a>) -> Result<Msg<'a>, JsonError> {
    let mut m = Msg::default();
    if scan.peek() != Some(b'{') {
        m.other = scan.value()?.is_truthy();
        return Ok(m);
    }
    m.object = true;
    scan.object(|key, scan| {
        match &*key.name() {
            b"content" => m.content = content(scan)?,
            b"sections" => (m.sections, m.odd_section) = sections(scan.value()?),
            b"usage" => m.usage = usage(scan)?,
            b"toolsAdded" => {
                let (tools, written) = scan.value_and_written()?;
                m.tools = if tools.is_truthy() { written } else { 0 };
                m.tool_lists[0] = Some(tools);
            }
            name => {
                let value = scan.value()?;
                message_member(&mut m, name, value, scan.units());
            }
        }
        Ok(())
    })?;
    Ok(m)
}

fn message_member<'a>(m: &mut Msg<'a>, name: &[u8], value: Json<'a>, units: u64) {
    let text = (value.kind() == JsonKind::String).then_some(units);
    match name {
        b"role" => m.role = Some(value),
        b"stopReason" => m.stop = Some(value),
        b"provider" => m.provider = Some(value),
        b"model" => m.model = Some(value),
        b"api" => m.api = Some(value),
        b"timestamp" => m.timestamp = Some(value),
        b"nestedCalls" => m.nested = Some(value),
        b"toolsRemoved" => m.tool_lists[1] = Some(value),
        b"replace" => m.replace = value.as_bool() == Some(true),
        b"command" => m.command = text,
        b"output" => m.output = text,
        b"summary" => m.summary = text,
        _ => {}
    }
}

/// Of two sections with one name the last counts. Of a text or a list JavaScript makes sections, too.
fn sections(value: Json<'_>) -> (u64, bool) {
    if value.kind() != JsonKind::Object {
        let units = value.utf16_len() + value.items().map(|text| text.utf16_len()).sum::<u64>();
        return (units, value.utf16_len() > 0 || value.items().next().is_some());
    }
    let named: HashMap<_, _> = value.members().map(|(key, text)| (key.units(), text)).collect();
    // Numbers and `true` have no length for JavaScript to add, `0` and `false` are passed over.
    let is_odd = |text: &Json<'_>| text.is_truthy() && text.kind() != JsonKind::String;
    (named.values().map(|text| text.utf16_len()).sum(), named.values().any(is_odd))
}

fn usage(scan: &mut Scan<'_>) -> Result<Usage, JsonError> {
    if scan.peek() != Some(b'{') {
        let value = scan.value()?;
        return Ok(if value.is_truthy() { Usage::Bad(None) } else { Usage::None });
    }
    let (mut r, mut has_cost) = (Reported::default(), false);
    scan.object(|key, scan| {
        match &*key.name() {
            b"totalTokens" => r.total = number(scan)?,
            b"input" => r.input = number(scan)?,
            b"output" => r.output = number(scan)?,
            b"cacheRead" => r.cache_read = number(scan)?,
            b"cacheWrite" => r.cache_write = number(scan)?,
            b"cost" => (has_cost, r.cost) = cost(scan)?,
            _ => drop(scan.value()?),
        }
        Ok(())
    })?;
    Ok(if has_cost { Usage::Fine(r) } else { Usage::Bad(Some(r)) })
}

/// Whether there is a cost, and its total.
fn cost(scan: &mut Scan<'_>) -> Result<(bool, Option<f64>), JsonError> {
    if scan.peek() != Some(b'{') {
        return Ok((!scan.value()?.is_null(), None));
    }
    let mut total = None;
    scan.object(|key, scan| {
        let value = scan.value()?;
        if key.is("total") {
            total = Some(as_number(value));
        }
        Ok(())
    })?;
    Ok((true, total))
}

fn number(scan: &mut Scan<'_>) -> Result<Option<f64>, JsonError> {
    scan.value().map(|value| Some(as_number(value)))
}

/// A number as JavaScript adds it up: `null` and `false` are nothing.
fn as_number(value: Json<'_>) -> f64 {
    match value.kind() {
        JsonKind::Number => value.as_f64().unwrap_or(f64::NAN),
        JsonKind::Null => 0.0,
        JsonKind::Bool if value.as_bool() == Some(false) => 0.0,
        _ => f64::NAN,
    }
}

fn content(scan: &mut Scan<'_>) -> Result<Content, JsonError> {
    let mut c = Content::default();
    // Of several contents the last counts.
    scan.forget_files();
    match scan.peek() {
        Some(b'[') => {
            c.shape = Shape::Blocks;
            scan.array(|scan| block(&mut c, scan))?;
        }
        Some(b'n') => c.null = scan.value()?.is_null(),
        _ => {
            let value = scan.value()?;
            (c.shape, c.text) = match value.kind() {
                JsonKind::String => (Shape::Text, scan.units()),
                _ => (Shape::Wrong, 0),
            };
        }
    }
    Ok(c)
}

fn block(c: &mut Content, scan: &mut Scan<'_>) -> Result<(), JsonError> {
    if scan.peek() != Some(b'{') {
        let is_null = scan.value()?.is_null();
        c.odd.null |= is_null;
        c.odd.no_object |= !is_null;
        return Ok(());
    }
    let (mut kind, mut tool, mut arguments) = (None, None, None);
    let [mut text, mut thinking, mut id] = [None; 3];
    scan.object(|key, scan| {
        match &*key.name() {
            b"type" => kind = Some(scan.value()?),
            b"text" => text = string(scan)?,
            b"thinking" => thinking = string(scan)?,
            b"id" => id = string(scan)?,
            b"name" => tool = Some((scan.value()?, scan.units())),
            b"arguments" => arguments = Some(scan.written_and_member("path")?),
            _ => drop(scan.value()?),
        }
        Ok(())
    })?;
    match kind.and_then(Json::word).unwrap_or_default().as_ref() {
        b"text" => {
            c.odd.text |= text.is_none();
            c.text += text.unwrap_or(0);
        }
        b"thinking" => {
            c.odd.assistants = true;
            c.odd.thinking |= thinking.is_none();
            c.thinking += thinking.unwrap_or(0);
        }
        b"image" => c.images += 1,
        b"toolCall" => {
            c.has_calls = true;
            c.odd.assistants = true;
            let name = tool.filter(|(name, _)| name.kind() == JsonKind::String);
            c.odd.call |= id.is_none() || name.is_none() || arguments.is_none();
            c.calls += name.map_or(0, |(_, units)| units) + arguments.map_or(0, |(written, _)| written);
            scan.note_file(FileOf::of(name.map(|(name, _)| name), arguments.and_then(|(_, path)| path)));
        }
        _ => c.odd.unknown = true,
    }
    Ok(())
}

/// The units of a string; none of anything else.
fn string(scan: &mut Scan<'_>) -> Result<Option<u64>, JsonError> {
    let value = scan.value()?;
    Ok((value.kind() == JsonKind::String).then(|| scan.units()))
}

fn replacement(scan: &mut Scan<'_>) -> Result<(Replacement, Content), JsonError> {
    match scan.peek() {
        Some(b'n') => {
            scan.value()?;
            Ok((Replacement::Omit, Content::default()))
        }
        Some(b'{') => {
            let mut inner = Content::default();
            scan.object(|key, scan| {
                match &*key.name() {
                    b"content" => inner = content(scan)?,
                    _ => drop(scan.value()?),
                }
                Ok(())
            })?;
            Ok((Replacement::Content, inner))
        }
        _ => {
            scan.value()?;
            Ok((Replacement::Content, Content::default()))
        }
    }
}
