//! Models as they answered then: each question is held against the one that was asked, and answered as it was.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pi_session::figures::hex;
use pi_session::json::Json;
use sha2::{Digest, Sha256};

use crate::sandbox::{Answered, Models, NotAnswered};

/// The answers of one run, in the order in which they were given.
pub(super) struct Answers {
    state: Mutex<State>,
}

struct State {
    left: std::vec::IntoIter<String>,
    wrong: Option<String>,
}

impl Answers {
    /// Answers as the daemon keeps them: JSON with `model`, the request's SHA-256, and what was said or refused.
    pub(super) fn new(texts: Vec<String>) -> Answers {
        Answers { state: Mutex::new(State { left: texts.into_iter(), wrong: None }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while it was held leaves whole answers.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was asked otherwise than then, if something was.
    pub(super) fn wrong(&self) -> Option<String> {
        let state = self.state();
        let left = state.left.len();
        let fewer = (left > 0).then(|| format!("it asked models {left} times fewer than then"));
        state.wrong.clone().or(fewer)
    }
}

impl Models for Answers {
    fn complete(&self, name: &str, request: &str) -> Result<Answered, NotAnswered> {
        let mut state = self.state();
        let said = match state.left.next() {
            None => Err("it asked a model once more than then".to_owned()),
            Some(text) => answer(&text, name, request),
        };
        said.unwrap_or_else(|wrong| {
            let refusal = NotAnswered::Refused { rule: "model".to_owned(), message: wrong.clone() };
            state.wrong.get_or_insert(wrong);
            Err(refusal)
        })
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// What was answered then; or what is another question now.
fn answer(text: &str, name: &str, request: &str) -> Result<Result<Answered, NotAnswered>, String> {
    let json = Json::parse(text.as_bytes()).map_err(|_| "an answer in the log cannot be read".to_owned())?;
    let member = |key: &str| json.get(key).and_then(Json::as_str).map(|text| text.into_owned());
    if member("model").as_deref() != Some(name) {
        return Err(format!("it asked model {name:?}, and {:?} then", member("model").unwrap_or_default()));
    }
    if member("request") != Some(hex(&Sha256::digest(request))) {
        return Err(format!("it asked model {name:?} something else than then"));
    }
    Ok(match (member("text"), member("stop"), member("usage")) {
        (Some(text), Some(stop), Some(usage)) => Ok(Answered { text, stop, usage }),
        _ => Err(NotAnswered::Refused {
            rule: member("rule").unwrap_or_default(),
            message: member("message").unwrap_or_default(),
        }),
    })
}
