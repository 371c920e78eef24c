//! `compaction` in Pi's settings: whether it compacts by itself, and its two numbers.

use super::merged::Merged;
use super::{Fault, Known, ModelId, Origin};
use crate::json::{Json, Kind};

/// Tokens that Pi keeps free where nobody says otherwise (S10.1).
pub const RESERVE: u64 = 16_384;
/// Tokens of the newest part that Pi keeps as they are where nobody says otherwise (S10.2).
pub const KEEP_RECENT: u64 = 20_000;

/// The largest whole number that JavaScript has without gaps.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// `compaction.enabled`. Pi asks whether it is true as JavaScript does; `null` counts as not said.
pub(super) fn enabled(settings: &Merged<'_>) -> Known<bool> {
    match settings.find(&["compaction", "enabled"]).filter(|(value, _)| !value.is_null()) {
        Some((value, origin)) => Known { value: value.is_truthy(), origin },
        None => Known { value: true, origin: Origin::Default },
    }
}

/// One of the two numbers: given, of the model, of all models, Pi's default.
pub(super) fn tokens(
    settings: &Merged<'_>,
    (name, default): (&str, u64),
    model: Option<&ModelId>,
    given: Option<&(u64, String)>,
    faults: &mut Vec<Fault>,
) -> Known<u64> {
    let of_all = number(settings, &["compaction", name], faults);
    let of_model = model.and_then(|model| of_model(settings, model, name, faults));
    let default = || Known { value: default, origin: Origin::Default };
    given.cloned().map(Known::given).or(of_model).or(of_all).unwrap_or_else(default)
}

/// What `compaction.modelOverrides` has under exactly `provider/id`: no pattern, no bare id.
fn of_model(settings: &Merged<'_>, model: &ModelId, name: &str, faults: &mut Vec<Fault>) -> Option<Known<u64>> {
    let exact = format!("{}/{}", model.provider, model.id);
    let path = ["compaction", "modelOverrides", &exact];
    let (entry, origin) = settings.find(&path)?;
    if entry.kind() != Kind::Object {
        add(faults, settings.fault(entry, &origin, "not an object"));
        return None;
    }
    number(settings, &[path[0], path[1], path[2], name], faults)
}

fn number(settings: &Merged<'_>, path: &[&str], faults: &mut Vec<Fault>) -> Option<Known<u64>> {
    let (value, origin) = settings.find(path)?;
    match whole(value) {
        Some(value) => Some(Known { value, origin }),
        None => {
            add(faults, settings.fault(value, &origin, "not a whole number of tokens, 0 or more"));
            None
        }
    }
}

fn whole(value: Json<'_>) -> Option<u64> {
    let number = value.as_f64()?;
    let is_whole = number.fract() == 0.0 && (0.0..=MAX_SAFE).contains(&number);
    is_whole.then_some(number as u64)
}

/// Both numbers look at the model's entry, and tell of it once.
fn add(faults: &mut Vec<Fault>, fault: Fault) {
    if !faults.contains(&fault) {
        faults.push(fault);
    }
}
