//! A script that runs beside the tests with the real Pi in it: a line is asked, and a line answered.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::js::Js;

/// A running script. It ends with this.
pub struct Beside {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Beside {
    /// Starts a script of `tests/oracle`, if `PI_DIR` and `ORACLE_NODE` say where Pi and its Node are
    /// (`tests/oracle/setup.sh` installs both).
    pub fn start(script: &str, args: &[&str]) -> Option<Beside> {
        let (Some(node), Some(_)) = (std::env::var_os("ORACLE_NODE"), std::env::var_os("PI_DIR")) else {
            eprintln!("skipped: set PI_DIR and ORACLE_NODE (see tests/oracle/setup.sh) to compare with the real Pi");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle").join(script);
        let mut command = Command::new(node);
        command.arg(script).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("ORACLE_NODE must be a Node that runs");
        let asks = child.stdin.take().expect("it was asked to be piped");
        let answers = BufReader::new(child.stdout.take().expect("it was asked to be piped"));
        Some(Beside { child, asks, answers })
    }

    /// What it answers.
    pub fn ask(&mut self, line: &str) -> Js {
        writeln!(self.asks, "{line}").expect("the script runs");
        let mut answer = Vec::new();
        self.answers.read_until(b'\n', &mut answer).expect("the script answers");
        Js::parse(&answer)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
