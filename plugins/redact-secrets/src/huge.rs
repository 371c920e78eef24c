//! Entries that are too large to be read whole. No model can take such a text, so a note stands in its place if it holds a
//! secret, and also if it is too large even to be gone over: what nobody has looked through is not shown.
use pi_graft_plugin::{Info, Json, Level, Result, Run};

use crate::config::Config;
use crate::find::{self, Found};
use crate::{PIECE, plain, told};

/// Bytes that are gone over: fuel is limited.
const MOST: usize = 8 << 20;
/// Bytes that are looked at at once.
const WINDOW: usize = 1 << 20;
/// Of these, what is only looked at to see where a secret ends: more than any has.
const MARGIN: usize = 64 << 10;
/// Bytes before a place that are kept, to see what stands before a secret: more than any rule looks at.
const BEFORE: usize = 1 << 10;

/// Puts a note in place of the entry's content if there is a secret in it, or may be.
pub(crate) fn redact(config: &Config, run: &Run, entry: &Info) -> Result {
    let (found, read) = gone_over(config, run, entry)?;
    let (id, bytes) = (entry.id.as_deref().unwrap_or("?"), entry.bytes);
    let rest = read < bytes;
    if found.is_empty() && !rest {
        return Ok(());
    }
    let what = match (found.is_empty(), rest) {
        (true, _) => format!("only the first {read} of {bytes} bytes were looked through"),
        (false, true) => {
            format!("{} among the first {read} of {bytes} bytes, and no more was looked through", told::count(&found))
        }
        (false, false) => format!("{} among {bytes} bytes", told::count(&found)),
    };
    if entry.role.as_deref() == Some("assistant") {
        let text = format!("{id} is too large to be written anew with its tool calls: {what}");
        run.log(Level::Warn, &text);
        return Ok(());
    }
    run.log(Level::Warn, &format!("{id} is not shown: {what}"));
    let text = format!("[redact-secrets left out {bytes} bytes, which are too many to be written anew: {what}]");
    crate::propose(run, entry, &Json::text(&text), &found)
}

/// The secrets in an entry's line, and how many bytes of it were gone over. Memory stays bounded.
pub(crate) fn gone_over(config: &Config, run: &Run, entry: &Info) -> Result<(Vec<Found>, u64)> {
    let mut windows = Windows::new(config, WINDOW, MARGIN);
    let (mut read, mut next) = (0, Some(0));
    while let Some(offset) = next.filter(|_| read < MOST) {
        let piece = run.host().text(entry.place, offset, PIECE)?;
        windows.push(&piece.text);
        read += piece.text.len();
        next = piece.next;
    }
    Ok((windows.end(), read as u64))
}

/// A text that comes in pieces, looked through window by window. Each goes on exactly where the one before has stopped, with
/// what stands before that place and enough of what stands behind it, so nothing is missed at a seam.
struct Windows<'a> {
    config: &'a Config,
    size: usize,
    margin: usize,
    /// The end of what came, which may be half an escape.
    rest: String,
    window: String,
    /// Where to go on.
    at: usize,
    found: Vec<Found>,
}

impl<'a> Windows<'a> {
    fn new(config: &'a Config, size: usize, margin: usize) -> Self {
        Self { config, size, margin, rest: String::new(), window: String::new(), at: 0, found: Vec::new() }
    }

    fn push(&mut self, piece: &str) {
        self.rest.push_str(piece);
        self.take(plain::whole_escapes(&self.rest));
        if self.window.len() >= self.size {
            self.look(self.window.len() - self.margin);
            let gone = self.window.floor_char_boundary(self.at.saturating_sub(BEFORE).min(self.window.len()));
            self.window.drain(..gone);
            self.at -= gone;
        }
    }

    fn take(&mut self, len: usize) {
        let text = &self.rest[..len];
        match plain::plain(text) {
            Some(plain) => self.window.push_str(&plain),
            None => self.window.push_str(text),
        }
        self.rest.drain(..len);
    }

    fn look(&mut self, until: usize) {
        let (found, at) = find::find_on(self.window.as_bytes(), self.at, until, self.config);
        self.found.extend(found);
        self.at = at;
    }

    fn end(mut self) -> Vec<Found> {
        self.take(self.rest.len());
        self.look(self.window.len());
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str, piece: usize) -> Vec<String> {
        let config = Config::default();
        let mut windows = Windows::new(&config, 2048, 1024);
        let mut rest = text;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.floor_char_boundary(piece.min(rest.len())).max(1));
            windows.push(now);
            rest = later;
        }
        windows.end().into_iter().map(|found| found.kind).collect()
    }

    #[test]
    fn no_secret_passes_at_a_seam() {
        let token = ["gh", "p_", "x7Kq2mWz9LpR4tVb8NcY1sDf6GhJ3aEu5Qo0"].concat();
        let block = format!(
            r"-----BEGIN {0} KEY-----\n{1}\n-----END {0} KEY-----",
            "PRIVATE",
            "Zr8kP2vB5nM1qLw0XyTe".repeat(8)
        );
        let secrets = [
            (token.as_str(), "github-token"),
            (r"DB_PASSWORD=Kr8!vhq2x\n", "password"),
            (r"DB_PASSWORD\u003dKr8!vhq2x\n", "password"),
            (r#"\"api_key\": \"q7Wm2Zx9Lp4Tn8RvK3sD\""#, "token"),
            ("postgres://app:Kr8!vhq2x@db.test", "password"),
            ("curl -u admin:Kr8!vhq2x x.test", "password"),
            (block.as_str(), "private-key"),
        ];
        for (secret, kind) in secrets {
            for before in (0..4200).step_by(1 + usize::from(secret.len() > 100) * 6) {
                let text = format!(
                    "{}{secret} {}",
                    "word é ".repeat(before / 8) + &"x ".repeat(before % 8),
                    "lorem ".repeat(500)
                );
                let found = kinds(&text, 700);
                assert_eq!(found, [kind], "{secret:?} behind {before} bytes");
            }
        }
    }
}
