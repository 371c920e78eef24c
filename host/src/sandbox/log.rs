//! The capability `log`: lines for the user, so many and so long. Needs no grant.
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use super::instance::{Guest, enter};
use super::limits::MAX_LOG_BYTES;
use super::pieces::cut;
use super::report::LogLine;

/// Bytes of a level's name.
const MAX_LEVEL_BYTES: usize = 16;

/// The lines of a run.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) lines: Vec<LogLine>,
    pub(super) dropped: u64,
    limit: u32,
}

impl Log {
    pub(super) fn new(limit: u32) -> Self {
        Self { lines: Vec::new(), dropped: 0, limit }
    }

    fn line(&mut self, level: &str, text: &str) {
        if self.lines.len() >= self.limit as usize {
            self.dropped += 1;
            return;
        }
        let (level, text) = (cut(level, MAX_LEVEL_BYTES).into(), cut(text, MAX_LOG_BYTES).into());
        self.lines.push(LogLine { level, text });
    }
}

/// Puts the capability where plugins find it.
pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut log = linker.instance("pi-graft:plugin/log@0.1.0")?;
    log.func_wrap("log", |mut cx: StoreContextMut<'_, Guest>, (level, text): (String, String)| {
        enter(&mut cx, text.len() as u64)?;
        cx.data_mut().log.line(&level, &text);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_over_the_limit_are_counted_and_long_ones_cut() {
        let mut log = Log::new(1);
        log.line("info", &"ä".repeat(MAX_LOG_BYTES));
        log.line("info", "one too many");
        assert_eq!(log.lines[0].text.len(), MAX_LOG_BYTES);
        assert_eq!((log.lines.len(), log.dropped), (1, 1));
    }
}
