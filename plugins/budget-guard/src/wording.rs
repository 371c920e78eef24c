//! What is said.
use crate::config::Config;
use crate::passed::Passed;

/// What may stand in the config's `text`.
pub(crate) const WORDS: [&str; 3] = ["{what}", "{cost}", "{step}"];

/// The line about one step.
pub(crate) fn line(config: &Config, passed: &Passed) -> String {
    let cost = [&config.currency, money(passed.cost).as_str()].concat();
    let step = [&config.currency, money(passed.step).as_str()].concat();
    config.text.replace("{what}", &what(passed)).replace("{cost}", &cost).replace("{step}", &step)
}

fn what(passed: &Passed) -> String {
    match (passed.of.as_str(), &passed.name) {
        ("day", Some(day)) => ["this session on ", day].concat(),
        ("model", Some(model)) => ["this session with ", model].concat(),
        _ => "this session".into(),
    }
}

/// Two decimals, or as many more as a small amount needs.
fn money(amount: f64) -> String {
    if amount < 0.1 { format!("{amount:.4}") } else { format!("{amount:.2}") }
}
