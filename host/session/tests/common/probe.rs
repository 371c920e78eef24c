//! What the real Pi does with a session, step by step: `probe.mjs` asks it.

use std::path::Path;

use super::beside::Beside;
use super::js::Js;

/// The steps, as the script names them.
const STEPS: [&str; 12] =
    ["open", "list", "changed", "leaf", "context", "tokens", "plan", "send", "chat", "tree", "footer", "name"];

/// A running script.
pub struct Probe(Beside);

impl Probe {
    /// Starts it, if there is a real Pi.
    pub fn start() -> Option<Probe> {
        Beside::start("probe.mjs", &[]).map(Probe)
    }

    /// What is not as it should be, such as `tokens throws, send throws`, and behind a bar what the model is given.
    pub fn ask(&mut self, file: &Path) -> String {
        let answer = self.0.ask(&file.display().to_string());
        let text = |step: &'static str| Some((step, answer.get(step)?.as_text()?));
        let odd = STEPS.into_iter().filter_map(text).filter(|(_, does)| !matches!(&**does, "ok" | "no"));
        let odd: Vec<String> = odd.map(|(step, does)| format!("{step} {does}")).collect();
        let shows = answer.get("shows").map_or(&[][..], Js::items).iter().filter_map(Js::as_text).collect::<Vec<_>>();
        format!("{} | {}", odd.join(", "), shows.join(" / ")).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
