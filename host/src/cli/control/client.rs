//! The command line's end of the daemon's socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::files::lock::{is_private, runtime_dir, socket_path};
use crate::wire::control::{Reply, Request};
use crate::wire::{self, VERSION};

use super::Failure;

/// A connection to the daemon of a config.
pub(in crate::cli) struct Client {
    to: UnixStream,
    from: BufReader<UnixStream>,
}

impl Client {
    /// Connects; none if no daemon runs for this config.
    pub(in crate::cli) fn connect(config: &Config) -> Result<Option<Client>, Failure> {
        // Without a state directory there never was one.
        let Ok(path) = socket_path(&runtime_dir(), &config.state.dir) else { return Ok(None) };
        if path.parent().is_some_and(Path::exists) {
            // What stands in a directory that others can write to may be anybody's.
            is_private(&runtime_dir())?;
        }
        let to = match UnixStream::connect(&path) {
            Ok(to) => to,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(e) => return Err(Failure::problem(format!("{}: {e}", path.display()))),
        };
        let from = BufReader::new(to.try_clone()?);
        Ok(Some(Client { to, from }))
    }

    /// The same where nothing can be done without one.
    pub(in crate::cli) fn needed(config: &Config) -> Result<Client, Failure> {
        let none = || Failure::problem("no daemon runs for this config; start one with `pi-graft run`");
        Client::connect(config)?.ok_or_else(none)
    }

    /// Sends a request.
    pub(in crate::cli) fn say(&mut self, request: &Request) -> Result<(), Failure> {
        let mut message = serde_json::to_value(request).map_err(Failure::problem)?;
        message["v"] = VERSION.into();
        self.to.write_all(&wire::line(&message)).map_err(gone)
    }

    /// The next answer; none when there are no more.
    pub(in crate::cli) fn hear<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Failure> {
        let mut line = Vec::new();
        if self.from.read_until(b'\n', &mut line).map_err(gone)? == 0 {
            return Ok(None);
        }
        understood(serde_json::from_slice(&line).map_err(Failure::problem)?).map(Some)
    }

    /// Sends a request that has one answer.
    pub(in crate::cli) fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, Failure> {
        self.say(request)?;
        self.hear()?.ok_or_else(|| Failure::problem("the daemon ended before it answered"))
    }
}

fn gone(error: io::Error) -> Failure {
    Failure::problem(format!("the daemon is gone: {error}"))
}

/// What an answer says.
pub(in crate::cli) fn understood<T: DeserializeOwned>(reply: Reply) -> Result<T, Failure> {
    match reply {
        Reply::Error { error } => Err(Failure::problem(error)),
        Reply::Ok { ok } => {
            serde_json::from_value(ok).map_err(|e| Failure::problem(format!("an answer that is not understood ({e})")))
        }
    }
}
