//! Models, as one `on-settled` run may ask them: within the day's budget, as long as somebody waits for the run, and each
//! answer noted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pi_session::figures::hex;
use serde_json::json;
use sha2::{Digest, Sha256};
use tracing::{info, warn};

use crate::journal::{Journal, Text};
use crate::models::{AskError, Model, Models, Request};
use crate::sandbox::{self, Answered, NotAnswered};

use super::world::{Ending, World, now_ms};

/// What an answer may have in tokens where the request does not say.
const USUAL_ANSWER: u64 = 4_096;

/// Models for one run.
pub struct Asking {
    journal: Arc<Journal>,
    models: Arc<Models>,
    ending: Ending,
    /// Whoever waits for the run in Pi: set when that one gave up.
    over: Option<Arc<AtomicBool>>,
    /// When it is too late for that one.
    until: Option<Instant>,
    /// Whose run it is.
    plugin: String,
    /// What was answered so far.
    answers: Mutex<Vec<Text>>,
}

impl Asking {
    /// For a run that is made because the branch is at rest.
    pub(super) fn of(world: &World, plugin: &str) -> Asking {
        let (journal, models) = (Arc::clone(&world.journal), Arc::clone(&world.settings.models));
        let (ending, plugin) = (world.ending(), plugin.to_owned());
        Asking { journal, models, ending, over: None, until: None, plugin, answers: Mutex::default() }
    }

    /// The same where somebody waits for it; until then at most, if there is a limit.
    pub(super) fn waited_for(self, over: Arc<AtomicBool>, until: Option<Instant>) -> Asking {
        Asking { over: Some(over), until, ..self }
    }

    /// What was answered, in order, as JSON: `model`, the request's SHA-256, and `text`, `stop`, `usage`, or `rule` and
    /// `message` of a refusal. A replay takes it from the run log, and so needs no model.
    pub(super) fn answers(&self) -> Vec<Text> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ask(&self, name: &str, request: &str) -> Result<Answered, NotAnswered> {
        let refused = |error: &AskError| not_answered(name, error);
        let model = self.models.get(name).ok_or_else(|| {
            refuse("model", format!("the config has no [models.{name}]; write that table, or do without"))
        })?;
        let request = Request::parse(request).map_err(|error| refused(&error))?;
        let aside = crate::models::Usage::of_request(&request) + request.max_tokens.unwrap_or(USUAL_ANSWER);
        let at = self.set_aside(name, model, aside)?;
        let begun = Instant::now();
        let answer = model.ask(&request, &|| self.over());
        let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let tokens = match &answer {
            Ok(answer) => answer.usage.total(),
            Err(error) if error.may_have_cost() => aside,
            Err(_) => 0,
        };
        if let Err(error) = self.journal.spent(at, name, aside, tokens) {
            warn!("{error}");
        }
        let answer = answer.map_err(|error| {
            warn!(plugin = self.plugin, model = name, millis, "a model gave no answer: {error}");
            refused(&error)
        })?;
        info!(plugin = self.plugin, model = name, millis, tokens, "a model answered");
        let stop = if answer.cut_off { "length" } else { "stop" };
        Ok(Answered { text: answer.text, stop: stop.to_owned(), usage: answer.usage.to_json().to_string() })
    }

    /// What the call may cost is used before it is made. Gives the moment by whose day it counts.
    fn set_aside(&self, name: &str, model: &Model, tokens: u64) -> Result<i64, NotAnswered> {
        let (at, most) = (now_ms(), model.max_tokens_per_day());
        match self.journal.spend(at, name, tokens, most) {
            Ok(Ok(())) => Ok(at),
            Ok(Err(used)) => {
                let message = format!(
                    "{used} of {most} tokens of model {name:?} are used today, and this call may take {tokens} \
                     (max-tokens-per-day); the next day begins at 00:00 UTC"
                );
                warn!(plugin = self.plugin, "{message}");
                Err(refuse("budget", message))
            }
            Err(error) => Err(refuse("model", error.to_string())),
        }
    }

    fn note(&self, name: &str, request: &str, answer: &Result<Answered, NotAnswered>) {
        let request = hex(&Sha256::digest(request));
        let said = match answer {
            Ok(Answered { text, stop, usage }) => {
                json!({ "model": name, "request": request, "text": text, "stop": stop, "usage": usage })
            }
            Err(NotAnswered::Refused { rule, message }) => {
                json!({ "model": name, "request": request, "rule": rule, "message": message })
            }
            Err(NotAnswered::Over) => return,
        };
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(Text::new(said.to_string()));
    }

    fn over(&self) -> bool {
        let given_up = self.over.as_ref().is_some_and(|over| over.load(Ordering::Relaxed));
        given_up || self.until.is_some_and(|until| Instant::now() >= until) || self.ending.has_come()
    }
}

impl sandbox::Models for Asking {
    fn complete(&self, name: &str, request: &str) -> Result<Answered, NotAnswered> {
        let answer = self.ask(name, request);
        self.note(name, request, &answer);
        answer
    }

    fn is_over(&self) -> bool {
        self.over()
    }
}

fn refuse(rule: &str, message: String) -> NotAnswered {
    NotAnswered::Refused { rule: rule.to_owned(), message }
}

fn not_answered(name: &str, error: &AskError) -> NotAnswered {
    match error {
        AskError::Over => NotAnswered::Over,
        error => refuse("model", format!("model {name:?}: {error}")),
    }
}
