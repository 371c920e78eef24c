//! Answers that somebody gave beforehand, for trying a plugin: nobody is asked, and it is the same each time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::Raw;
use super::ask::Request;
use super::error::AskError;

/// Answers that are left, and what was asked.
#[derive(Debug, Default)]
pub(super) struct Given(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    left: VecDeque<String>,
    asked: Vec<Asked>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// What was asked.
    pub request: Request,
    /// The answer; none if there was none left.
    pub answer: Option<String>,
}

impl Given {
    pub(super) fn of(texts: Vec<String>) -> Given {
        Given(Mutex::new(Held { left: texts.into(), asked: Vec::new() }))
    }

    /// The next answer.
    pub(super) fn ask(&self, request: &Request) -> Result<Raw, AskError> {
        // A panic while it was held leaves a whole list.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = held.left.pop_front();
        held.asked.push(Asked { request: request.clone(), answer: answer.clone() });
        answer.map(|text| Raw { text, cut_off: false, usage: None }).ok_or(AskError::NoneLeft)
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).asked.clone()
    }
}
