//! The model context without the plugins and with them, as a diff of messages.

use std::collections::HashMap;

use pi_session::branch::Branch;
use pi_session::json::Json;

use crate::cli::failure::Failure;
use crate::cli::out::{Out, grouped, quoted};
use crate::cli::paint::{Ink, Row};
use crate::cli::preview;

/// Messages that are compared each with each; where there are more between what is the same, they count as all different.
const MOST: usize = 2000;
/// Equal messages that are shown around what is different.
const AROUND: usize = 2;
/// Messages in a row that go, of which a short diff shows all.
const SHORT: usize = 6;

/// One message of a context.
struct Message {
    /// Its entry's id; none for what is not in the file.
    id: String,
    tokens: u64,
    json: String,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Same,
    Gone,
    New,
}

/// Writes the diff of two contexts for people.
///
/// # Errors
/// [`Failure`] if a text cannot be read back.
pub(super) fn write(before: &Branch, after: &Branch, out: &mut Out) -> Result<(), Failure> {
    write_most(before, after, usize::MAX, out)
}

/// The same, but of messages in a row that all go only the first and the last are shown.
///
/// # Errors
/// [`Failure`] if a text cannot be read back.
pub(in crate::cli) fn write_short(before: &Branch, after: &Branch, out: &mut Out) -> Result<(), Failure> {
    write_most(before, after, SHORT, out)
}

fn write_most(before: &Branch, after: &Branch, most: usize, out: &mut Out) -> Result<(), Failure> {
    let (before, after) = (messages(before)?, messages(after)?);
    let lines = diff(&before, &after);
    if lines.iter().all(|(sign, _)| *sign == Sign::Same) {
        out.line("  the model sees the same as without the plugins")?;
        return Ok(());
    }
    let mut at = 0;
    for run in lines.chunk_by(|(a, _), (b, _)| a == b) {
        let (sign, first, last) = (run[0].0, at == 0, at + run.len() == lines.len());
        let (head, tail) = match sign {
            Sign::Same => (if first { 0 } else { AROUND }, if last { 0 } else { AROUND }),
            Sign::Gone if run.len() > most => (SHORT / 2, SHORT / 2),
            Sign::Gone | Sign::New => (run.len(), 0),
        };
        write_run(run, head, tail, out)?;
        at += run.len();
    }
    Ok(())
}

/// The first and the last messages of a row of the same kind.
fn write_run(run: &[(Sign, &Message)], head: usize, tail: usize, out: &mut Out) -> Result<(), Failure> {
    let head = head.min(run.len());
    let tail = run.len().saturating_sub(tail).max(head);
    run[..head].iter().try_for_each(|(sign, message)| Ok::<_, Failure>(out.paint(&row(*sign, message)?)?))?;
    if tail > head {
        let more = tail - head;
        let text = match run[0].0 {
            Sign::Same => format!("      … {more} messages as before"),
            Sign::Gone | Sign::New => format!("  {} … {more} more", mark(run[0].0).0),
        };
        out.paint(&Row::new().and(Ink::Dim, &text))?;
    }
    run[tail..].iter().try_for_each(|(sign, message)| Ok(out.paint(&row(*sign, message)?)?))
}

fn mark(sign: Sign) -> (&'static str, Ink) {
    match sign {
        Sign::Same => (" ", Ink::Dim),
        Sign::Gone => ("-", Ink::Red),
        Sign::New => ("+", Ink::Green),
    }
}

fn row(sign: Sign, message: &Message) -> Result<Row, Failure> {
    let json = Json::parse(message.json.as_bytes()).map_err(Failure::problem)?;
    let role = json.get("role").and_then(Json::as_str).unwrap_or_default();
    let (mark, ink) = mark(sign);
    let id = preview::one_line(&message.id);
    let head = format!("  {mark} {id:<8} {:>8}  {role:<17} ", grouped(message.tokens));
    Ok(Row::new().and(ink, &head).and(ink, &preview::message(json)))
}

/// The diff as a JSON list; equal messages in a row are counted.
///
/// # Errors
/// [`Failure`] if a text cannot be read back.
pub(in crate::cli) fn to_json(before: &Branch, after: &Branch) -> Result<String, Failure> {
    let (before, after) = (messages(before)?, messages(after)?);
    let mut list: Vec<String> = Vec::new();
    let mut same = 0;
    let tell_same = |list: &mut Vec<String>, same: &mut usize| {
        if *same > 0 {
            list.push(format!("{{\"same\":{}}}", std::mem::take(same)));
        }
    };
    for (sign, message) in diff(&before, &after) {
        if sign == Sign::Same {
            same += 1;
            continue;
        }
        tell_same(&mut list, &mut same);
        let (name, id) = (if sign == Sign::Gone { "gone" } else { "new" }, quoted(&message.id));
        list.push(format!("{{\"{name}\":{},\"id\":{id},\"tokens\":{}}}", message.json, message.tokens));
    }
    tell_same(&mut list, &mut same);
    Ok(format!("[{}]", list.join(",")))
}

fn messages(branch: &Branch) -> Result<Vec<Message>, Failure> {
    let mut all = Vec::new();
    for entry in &branch.context().entries {
        let id = branch.item(entry.place).id.unwrap_or_default();
        let tokens = branch.shown_tokens(entry);
        let json = branch.messages(entry)?.into_iter();
        all.extend(json.map(|json| Message { id: id.to_owned(), tokens, json }));
    }
    Ok(all)
}

/// What is the same, gone and new, in order. Reported usage is no difference: a model does not see it.
fn diff<'m>(before: &'m [Message], after: &'m [Message]) -> Vec<(Sign, &'m Message)> {
    let (before_keys, after_keys) = keys(before, after);
    let head = before_keys.iter().zip(&after_keys).take_while(|(a, b)| a == b).count();
    let rest = before_keys.len().min(after_keys.len()) - head;
    let tail = before_keys.iter().rev().zip(after_keys.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (old, new) = (head..before.len() - tail, head..after.len() - tail);
    let kept = common(&before_keys[old.clone()], &after_keys[new.clone()]);
    let mut lines: Vec<_> = before[..head].iter().map(|m| (Sign::Same, m)).collect();
    let (mut at_old, mut at_new) = (old.start, new.start);
    for (a, b) in kept.into_iter().map(|(a, b)| (old.start + a, new.start + b)).chain([(old.end, new.end)]) {
        lines.extend(before[at_old..a].iter().map(|m| (Sign::Gone, m)));
        lines.extend(after[at_new..b].iter().map(|m| (Sign::New, m)));
        lines.extend(after.get(b).filter(|_| b < new.end).map(|m| (Sign::Same, m)));
        (at_old, at_new) = (a + 1, b + 1);
    }
    lines.extend(after[new.end..].iter().map(|m| (Sign::Same, m)));
    lines
}

/// A number for each different message.
fn keys(before: &[Message], after: &[Message]) -> (Vec<usize>, Vec<usize>) {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut number = |message: &Message| {
        let next = known.len();
        *known.entry(without_usage(&message.json)).or_insert(next)
    };
    (before.iter().map(&mut number).collect(), after.iter().map(&mut number).collect())
}

fn without_usage(message: &str) -> String {
    let json = Json::parse(message.as_bytes()).ok().filter(|json| json.members().next().is_some());
    let Some(json) = json else { return message.to_owned() };
    let members = json.members().filter(|(key, _)| !key.is("usage"));
    members.map(|(key, value)| format!("{}:{},", key.text(), value.to_text())).collect()
}

/// The places of the longest common subsequence.
fn common(a: &[usize], b: &[usize]) -> Vec<(usize, usize)> {
    if a.len() > MOST || b.len() > MOST {
        return Vec::new();
    }
    let wide = b.len() + 1;
    let mut best = vec![0_u16; (a.len() + 1) * wide];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            let skip = best[(i + 1) * wide + j].max(best[i * wide + j + 1]);
            best[i * wide + j] = if a[i] == b[j] { best[(i + 1) * wide + j + 1] + 1 } else { skip };
        }
    }
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            found.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * wide + j] >= best[i * wide + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &[&str], after: &[&str]) -> String {
        let of = |texts: &[&str]| -> Vec<Message> {
            texts.iter().map(|text| Message { id: String::new(), tokens: 0, json: format!("\"{text}\"") }).collect()
        };
        let (before, after) = (of(before), of(after));
        let sign = |sign| match sign {
            Sign::Same => ' ',
            Sign::Gone => '-',
            Sign::New => '+',
        };
        diff(&before, &after).iter().map(|(s, m)| format!("{}{} ", sign(*s), m.json.trim_matches('"'))).collect()
    }

    #[test]
    fn what_is_between_the_same_is_gone_or_new() {
        assert_eq!(told(&["a", "b", "c"], &["a", "b", "c"]), " a  b  c ");
        assert_eq!(told(&["a", "b", "c"], &["a", "x", "c"]), " a -b +x  c ");
        assert_eq!(told(&["a", "b", "c", "d"], &["s", "c", "d"]), "-a -b +s  c  d ");
        assert_eq!(told(&["a", "b", "c"], &["x", "b", "y"]), "-a +x  b -c +y ");
        assert_eq!(told(&[], &["n"]), "+n ");
    }
}
