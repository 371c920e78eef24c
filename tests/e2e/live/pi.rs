//! A Pi in rpc mode: commands in, events out.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a scene waits for what must come. Reached only when it does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running Pi, killed at the end of the scene if it still runs.
pub struct Pi {
    child: Child,
    commands: Option<ChildStdin>,
    events: Receiver<Value>,
    /// All events so far.
    seen: Vec<Value>,
    asked: u32,
}

impl Pi {
    pub fn start(mut command: Command) -> Pi {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("Pi starts");
        let stdout = child.stdout.take().expect("it was asked to be piped");
        let commands = child.stdin.take();
        Pi { child, commands, events: read(stdout), seen: Vec::new(), asked: 0 }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command without waiting for anything; its id.
    pub fn send(&mut self, kind: &str, members: Value) -> String {
        self.asked += 1;
        let mut command = members;
        command["type"] = kind.into();
        command["id"] = format!("r{}", self.asked).into();
        let commands = self.commands.as_mut().expect("it still listens");
        writeln!(commands, "{command}").expect("a command is sent");
        format!("r{}", self.asked)
    }

    /// Sends a command and waits for its response.
    pub fn command(&mut self, kind: &str, members: Value) -> Value {
        let id = self.send(kind, members);
        self.wait(&format!("the response to {kind}"), |event| event["type"] == "response" && event["id"] == id.as_str())
    }

    /// Prompts without waiting for the answer.
    pub fn begin(&mut self, text: &str) {
        self.send("prompt", json!({ "message": text }));
    }

    /// Waits until a run has settled.
    pub fn settled(&mut self) {
        self.wait("a settled run", |event| event["type"] == "agent_settled");
    }

    /// Prompts, and waits until the run has settled.
    pub fn prompt(&mut self, text: &str) {
        self.begin(text);
        self.settled();
    }

    /// Waits for an event that has not been waited for yet.
    pub fn wait(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(event) = self.events.recv_timeout(left) else { panic!("no {what}: {}", self.trouble()) };
            self.seen.push(event.clone());
            if fits(&event) {
                return event;
            }
        }
    }

    /// What went wrong in extensions so far.
    pub fn errors(&self) -> Vec<String> {
        let is = |event: &&Value| event["type"] == "extension_error";
        self.seen.iter().filter(is).map(|event| event.to_string()).collect()
    }

    fn trouble(&mut self) -> String {
        let _ = self.child.kill();
        let mut stderr = String::new();
        if let Some(pipe) = &mut self.child.stderr {
            let _ = pipe.read_to_string(&mut stderr);
        }
        let last: Vec<String> = self.seen.iter().rev().take(5).map(Value::to_string).collect();
        format!("{last:#?}\n{stderr}")
    }

    /// Ends it in order. No extension may have failed.
    pub fn quit(mut self) {
        assert!(self.leave().success());
        assert_eq!(self.errors(), [] as [String; 0]);
    }

    /// Ends it in order, whatever failed; the errors.
    pub fn quit_anyhow(mut self) -> Vec<String> {
        assert!(self.leave().success());
        self.errors()
    }

    fn leave(&mut self) -> ExitStatus {
        self.commands.take();
        let status = self.child.wait().expect("it ends");
        self.seen.extend(self.events.iter());
        status
    }

    /// As the power does.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Pi {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(stdout: ChildStdout) -> Receiver<Value> {
    let (to, events) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let Ok(event) = serde_json::from_str(&line) else { continue };
            if to.send(event).is_err() {
                return;
            }
        }
    });
    events
}
