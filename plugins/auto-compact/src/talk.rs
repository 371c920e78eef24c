//! The conversation as text for a model, within a size: what tools gave is shortened first, then the oldest is left out.
use crate::summary::{Message, clip_middle};

/// Bytes of one text of the user's or the model's.
const SAID: usize = 8 * 1024;
/// Bytes of a tool's output, the most that has room for all of it counts.
const OUTPUTS: [usize; 4] = [4000, 1500, 500, 120];
/// Bytes of the first request, which is the goal, where the rest of the beginning is left out.
const FIRST: usize = 4 * 1024;

/// The messages as text, in at most `max` bytes.
pub fn talk(messages: &[Message], max: usize) -> String {
    let whole = OUTPUTS.iter().map(|output| lines(messages, *output)).find(|lines| size(lines) <= max);
    let lines = whole.unwrap_or_else(|| newest(lines(messages, OUTPUTS[3]), max));
    lines.join("\n\n")
}

fn lines(messages: &[Message], output: usize) -> Vec<String> {
    messages.iter().map(|message| line(message, output)).filter(|line| !line.is_empty()).collect()
}

fn size(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 2).sum()
}

/// The first of them, and as many of the newest as have room.
fn newest(mut lines: Vec<String>, max: usize) -> Vec<String> {
    let first = lines.first().map(|first| clip_middle(first, FIRST.min(max / 4)).into_owned()).unwrap_or_default();
    let mut room = max.saturating_sub(first.len() + 80);
    let fits = |line: &&String| {
        let fits = line.len() + 2 <= room;
        room -= if fits { line.len() + 2 } else { 0 };
        fits
    };
    let kept = lines.iter().skip(1).rev().take_while(fits).count();
    let left_out = lines.len().saturating_sub(kept + 1);
    let rest = lines.split_off(lines.len() - kept);
    let note = ["[", &left_out.to_string(), " messages are left out here for want of room]"].concat();
    [first, note].into_iter().chain(rest).collect()
}

fn line(message: &Message, output: usize) -> String {
    match message {
        Message::User { text } => ["[User]\n", &clip_middle(text, SAID)].concat(),
        Message::Assistant { text, calls, error, .. } => {
            let calls = calls.iter().map(|call| {
                let about = call.command.as_deref().or(call.path.as_deref()).unwrap_or_default();
                ["[Calls ", &call.tool, "] ", &clip_middle(about, output)].concat()
            });
            let error = error.iter().map(|error| ["[Broke off] ", &clip_middle(error, output)].concat());
            let said = (!text.trim().is_empty()).then(|| ["[Assistant]\n", &clip_middle(text, SAID)].concat());
            said.into_iter().chain(calls).chain(error).collect::<Vec<_>>().join("\n")
        }
        Message::ToolResult { tool, text, failed, .. } => {
            let failed = if *failed { ", failed" } else { "" };
            ["[Result of ", tool, failed, "]\n", &clip_middle(text, output)].concat()
        }
        Message::Bash { command, output: text, failed } => {
            let failed = if *failed { ", failed" } else { "" };
            ["[The user ran", failed, "] ", &clip_middle(command, output), "\n", &clip_middle(text, output)].concat()
        }
        Message::Note { text } => ["[Note]\n", &clip_middle(text, SAID)].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: String) -> Message {
        Message::ToolResult { call: "1".into(), tool: "bash".into(), text, failed: false }
    }

    fn user(text: &str) -> Message {
        Message::User { text: text.into() }
    }

    #[test]
    fn outputs_are_shortened_before_anything_is_left_out() {
        let messages = [user("build it"), result("x".repeat(100_000)), user("and test it")];
        let text = talk(&messages, 3000);
        assert!(text.len() <= 3000, "{}", text.len());
        assert!(text.contains("build it") && text.contains("[Result of bash]") && text.contains("and test it"));
    }

    #[test]
    fn where_that_is_not_enough_the_first_request_and_the_newest_stay() {
        let mut messages = vec![user("port the parser")];
        messages.extend((0..200).map(|n| user(&["request number ", &n.to_string(), &" and so on".repeat(9)].concat())));
        let text = talk(&messages, 2000);
        assert!(text.len() <= 2000, "{}", text.len());
        assert!(text.starts_with("[User]\nport the parser") && text.contains("request number 199"));
        assert!(text.contains("messages are left out here") && !text.contains("request number 1 "));
    }
}
