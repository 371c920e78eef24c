//! Which steps the entry of this run has passed.
use pi_graft_plugin::serde::{self, Deserialize, Serialize};

use crate::config::Config;
use crate::steps::Steps;
use crate::totals::Totals;

/// A step that was passed. As it stands in a message's `details`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(crate = "self::serde")]
pub struct Passed {
    /// Of what: `session`, `day` or `model`.
    pub of: String,
    /// The day or the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The step.
    pub step: f64,
    /// The cost now.
    pub cost: f64,
}

/// The steps that were passed by the entry of this run; where it is not known what that entry has added, those that are
/// reached.
#[must_use]
pub fn passed(config: &Config, totals: &Totals) -> Vec<Passed> {
    let added = totals.trigger.as_ref();
    let step = |of: &str, name: Option<&str>, steps: Option<&Steps>, cost: f64| {
        let before = added.map_or(0.0, |added| cost - added.cost);
        let step = steps?.between(before, cost)?;
        Some(Passed { of: of.into(), name: name.map(Into::into), step, cost })
    };
    let session = step("session", None, config.session.as_ref(), totals.total.cost);
    let days = totals.by_day.iter().filter(|(day, _)| added.is_none_or(|added| added.day.as_ref() == Some(day)));
    let day = |(day, sum): (&String, &crate::totals::Sum)| step("day", Some(day), config.day.as_ref(), sum.cost);
    let models = totals.by_model.iter().filter(|(name, _)| !name.is_empty());
    let models = models.filter(|(name, _)| added.is_none_or(|added| added.model == **name));
    let model =
        |(name, sum): (&String, &crate::totals::Sum)| step("model", Some(name), config.steps_of(name), sum.cost);
    // Where all days are looked at, only the newest can be meant.
    session.into_iter().chain(days.filter_map(day).next_back()).chain(models.filter_map(model)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pi_graft_plugin::Json;

    fn config(json: &str) -> Config {
        Json::from_text(json.into()).to().expect("a config")
    }

    fn totals(json: &str) -> Totals {
        Json::from_text(json.into()).to().expect("totals")
    }

    const NOW: &str = r#"{"total":{"cost":10.5},"byModel":{"p/m":{"cost":6},"":{"cost":4.5}},
        "byDay":{"2026-12-01":{"cost":9},"2026-12-02":{"cost":1.5}},
        "trigger":{"cost":1,"model":"p/m","day":"2026-12-02"}}"#;

    fn names(passed: &[Passed]) -> Vec<String> {
        passed.iter().map(|p| format!("{} {} {}", p.of, p.name.as_deref().unwrap_or("-"), p.step)).collect()
    }

    #[test]
    fn only_what_this_entry_passed_is_told() {
        let all = config(r#"{"session":10,"day":1,"model":6}"#);
        assert_eq!(names(&passed(&all, &totals(NOW))), ["session - 10", "day 2026-12-02 1", "model p/m 6"]);
        assert!(passed(&all, &totals(&NOW.replace(r#""trigger":{"cost":1,"#, r#""trigger":{"cost":0,"#))).is_empty());
        assert!(passed(&config("{}"), &Totals::default()).is_empty());
    }

    #[test]
    fn a_model_may_have_steps_of_its_own() {
        let own = config(r#"{"model":100,"models":{"p/m":[2,5.5]}}"#);
        assert_eq!(names(&passed(&own, &totals(NOW))), ["session - 10", "model p/m 5.5"]);
    }

    #[test]
    fn where_more_is_counted_already_what_is_reached_is_told() {
        let cut = NOW.find(r#""trigger""#).expect("there");
        let json = [NOW[..cut].trim_end().trim_end_matches(','), "}"].concat();
        let all = config(r#"{"session":3,"day":1}"#);
        assert_eq!(names(&passed(&all, &totals(&json))), ["session - 9", "day 2026-12-02 1"]);
    }
}
