//! `session context`: what the model sees.

use std::path::Path;

use clap::Args;
use pi_session::Branch;
use pi_session::context::{Context as Entries, ContextEntry, ModelName, Shown};
use pi_session::json::Json;

use super::File;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::out::{Out, grouped, js_number, quoted};
use crate::cli::paint::{Ink, Row};
use crate::cli::preview;

/// Arguments of `session context`.
#[derive(Debug, Args)]
pub struct Context {
    #[command(flatten)]
    file: File,
    /// The leaf to look from; default: where Pi would go on.
    #[arg(long, value_name = "ID")]
    leaf: Option<String>,
}

impl Context {
    pub(super) fn run(&self, config: Option<&Path>, out: &mut Out) -> Result<Outcome, Failure> {
        let opened = self.file.session(config)?;
        let branch = opened.branch(self.leaf.as_deref())?;
        let context = branch.context();
        if out.json {
            write_json(&branch, &context, out)?
        } else {
            write_text(&branch, &context, out)?
        }
        Ok(Outcome::Done)
    }
}

/// The messages are read twice, and never held all at once.
fn write_json(branch: &Branch, context: &Entries, out: &mut Out) -> Result<(), Failure> {
    let tokens = branch.tokens(context)?.total;
    let model = model_json(branch.model()?);
    let thinking = branch.thinking_level()?;
    out.put(&format!("{{\"leafId\":{},\"entryIds\":[", id_json(branch.leaf_id())))?;
    for (at, entry) in context.entries.iter().enumerate() {
        out.put(if at > 0 { "," } else { "" })?;
        out.put(&id_json(branch.item(entry.place).id))?;
    }
    out.put("],\"projection\":[")?;
    for (at, entry) in context.entries.iter().enumerate() {
        let (comma, id) = (if at > 0 { "," } else { "" }, id_json(branch.item(entry.place).id));
        out.put(&format!("{comma}{{\"sourceId\":{id},\"messages\":["))?;
        write_list(&branch.messages(entry)?, &mut true, out)?;
        out.put("]}")?;
    }
    out.put("],\"messages\":[")?;
    let mut first = true;
    for entry in &context.entries {
        write_list(&branch.messages(entry)?, &mut first, out)?;
    }
    let tokens = js_number(tokens);
    out.line(format!("],\"thinkingLevel\":{thinking},\"model\":{model},\"tokens\":{tokens}}}"))?;
    Ok(())
}

/// JSON texts with commas between them; `first` is false once one was written.
pub(super) fn write_list(texts: &[String], first: &mut bool, out: &mut Out) -> Result<(), Failure> {
    for text in texts {
        if !std::mem::take(first) {
            out.put(",")?;
        }
        out.put(text)?;
    }
    Ok(())
}

fn id_json(id: Option<&str>) -> String {
    id.map_or_else(|| "null".to_owned(), quoted)
}

fn model_json(model: Option<ModelName>) -> String {
    let Some(ModelName { provider, model }) = model else { return "null".to_owned() };
    let member = |name, value: Option<String>| value.map(|value| format!("\"{name}\":{value}"));
    let members: Vec<_> = [member("provider", provider), member("modelId", model)].into_iter().flatten().collect();
    format!("{{{}}}", members.join(","))
}

fn write_text(branch: &Branch, context: &Entries, out: &mut Out) -> Result<(), Failure> {
    let tokens = branch.tokens(context)?;
    let ModelName { provider, model } = branch.model()?.unwrap_or(ModelName { provider: None, model: None });
    let name = |json: Option<String>| json.map_or_else(|| "?".to_owned(), |json| json.trim_matches('"').to_owned());
    let how = if tokens.usage_at.is_some() { "as reported, and estimated behind it" } else { "estimated" };
    let lines = [
        ("leaf", branch.leaf_id().unwrap_or("none").to_owned()),
        ("model", format!("{}/{}", name(provider), name(model))),
        ("thinking", branch.thinking_level()?.trim_matches('"').to_owned()),
        ("tokens", format!("{} ({how})", grouped(tokens.total as u64))),
    ];
    for (name, value) in lines {
        out.paint(&Row::new().column(Ink::Dim, 10, name).and(Ink::Plain, &value))?;
    }
    out.line("")?;
    for entry in &context.entries {
        write_row(branch, entry, out)?;
    }
    Ok(())
}

fn write_row(branch: &Branch, entry: &ContextEntry, out: &mut Out) -> Result<(), Failure> {
    let item = branch.item(entry.place);
    let id = preview::one_line(item.id.unwrap_or("-"));
    let row = |tokens: &str, what: &str, ink| {
        let row = Row::new().and(Ink::Dim, &format!("{id:<8} {tokens:>8} "));
        row.and(Ink::Magenta, mark(entry.shown)).and(ink, &format!(" {what:<17} "))
    };
    if let Shown::Omitted { by } = entry.shown {
        let by = branch.item(by).id.unwrap_or("-");
        let row = row("0", item.facts.role.as_str(), Ink::Dim);
        out.paint(&row.and(Ink::Dim, &format!("left out by {by}")))?;
    }
    let tokens = grouped(branch.shown_tokens(entry));
    for message in branch.messages(entry)? {
        let json = Json::parse(message.as_bytes()).map_err(Failure::problem)?;
        let role = json.get("role").and_then(Json::as_str).unwrap_or_default();
        out.paint(&row(&tokens, &role, preview::ink(&role)).and(Ink::Plain, &preview::message(json)))?;
    }
    Ok(())
}

/// A sign for entries that an edit changes.
fn mark(shown: Shown) -> &'static str {
    match shown {
        Shown::Replaced { .. } => "~",
        Shown::Omitted { .. } => "-",
        Shown::AsIs | Shown::Nothing => " ",
    }
}
