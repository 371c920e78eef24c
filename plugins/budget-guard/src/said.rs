//! What the branch has been told already.
use pi_graft_plugin::serde::{self, Deserialize, Serialize};
use pi_graft_plugin::{Json, Run};

use crate::TYPE;
use crate::passed::Passed;

/// Most of a message that is read: ours are small.
const MOST: usize = 64 << 10;

/// The `details` of a message.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(crate = "self::serde", default)]
struct Details {
    passed: Vec<Passed>,
}

#[derive(Default, Deserialize)]
#[serde(crate = "self::serde", default)]
struct Message {
    details: Details,
}

/// The `details` of a message about these.
pub(crate) fn details(passed: &[Passed]) -> Json {
    Json::of(&Details { passed: passed.to_vec() }).unwrap_or_default()
}

/// Those of which no message on the branch speaks, be it pending.
pub(crate) fn unsaid(run: &Run, mut passed: Vec<Passed>) -> Vec<Passed> {
    let ours = run.branch().filter(|info| info.custom_type.as_deref() == Some(TYPE) && info.kind == "custom_message");
    for info in ours {
        let text = run.text(info.place, MOST).unwrap_or_default();
        let message: Message = Json::from_text(text).to().unwrap_or_default();
        passed.retain(|new| !message.details.passed.iter().any(|old| covers(old, new)));
        if passed.is_empty() {
            break;
        }
    }
    passed
}

/// Whether who has heard of `old` need not hear of `new`.
fn covers(old: &Passed, new: &Passed) -> bool {
    (&old.of, &old.name) == (&new.of, &new.name) && old.step >= new.step
}
