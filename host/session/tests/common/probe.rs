//! What the real Pi does with a session, step by step: `probe.mjs` asks it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::js::Js;

/// The steps, as the script names them.
const STEPS: [&str; 12] =
    ["open", "list", "changed", "leaf", "context", "tokens", "plan", "send", "chat", "tree", "footer", "name"];

/// A running script.
pub struct Probe {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Probe {
    /// Starts it, if `PI_DIR` and `ORACLE_NODE` say where Pi and its Node are.
    pub fn start() -> Option<Probe> {
        let (Some(node), Some(_)) = (std::env::var_os("ORACLE_NODE"), std::env::var_os("PI_DIR")) else {
            eprintln!("skipped: set PI_DIR and ORACLE_NODE (see tests/oracle/setup.sh) to see what the real Pi does");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/probe.mjs");
        let mut child = Command::new(node)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ORACLE_NODE must be a Node that runs");
        let asks = child.stdin.take().expect("it was asked to be piped");
        let answers = BufReader::new(child.stdout.take().expect("it was asked to be piped"));
        Some(Probe { child, asks, answers })
    }

    /// What is not as it should be, such as `tokens throws, send throws`, and behind a bar what the model is given.
    pub fn ask(&mut self, file: &Path) -> String {
        writeln!(self.asks, "{}", file.display()).expect("the script runs");
        let mut answer = Vec::new();
        self.answers.read_until(b'\n', &mut answer).expect("the script answers");
        let answer = Js::parse(&answer);
        let text = |step: &'static str| Some((step, answer.get(step)?.as_text()?));
        let odd = STEPS.into_iter().filter_map(text).filter(|(_, does)| !matches!(&**does, "ok" | "no"));
        let odd: Vec<String> = odd.map(|(step, does)| format!("{step} {does}")).collect();
        let shows = answer.get("shows").map_or(&[][..], Js::items).iter().filter_map(Js::as_text).collect::<Vec<_>>();
        format!("{} | {}", odd.join(", "), shows.join(" / ")).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
