//! Where plugins are suspended, over all sessions: suspended in three, one is suspended everywhere (product.md 4.3).

use std::collections::{BTreeMap, HashMap};

use crate::journal::{SessionKey, SessionRecord, Standing};

/// Sessions in which a plugin has to be suspended, to be so everywhere.
const EVERYWHERE: usize = 3;

/// The suspensions that are known.
#[derive(Debug, Default)]
pub(super) struct Suspended {
    /// By plugin: the sessions, with the digest that failed there, and when it was suspended.
    there: BTreeMap<String, HashMap<SessionKey, (String, i64)>>,
    /// By plugin: suspensions up to this time are lifted, Unix milliseconds.
    lifted: HashMap<String, i64>,
}

impl Suspended {
    pub(super) fn new(sessions: &[(SessionKey, SessionRecord)], lifted: Vec<(String, i64)>) -> Suspended {
        let mut suspended = Suspended { there: BTreeMap::new(), lifted: lifted.into_iter().collect() };
        sessions.iter().for_each(|(key, record)| drop(suspended.note(*key, record)));
        suspended
    }

    /// Takes in a session's newest record. Gives the plugins that are suspended everywhere because of it.
    pub(super) fn note(&mut self, key: SessionKey, record: &SessionRecord) -> Vec<String> {
        let everywhere = |of: &Suspended| -> Vec<String> {
            let suspended = record.standing.iter().filter(|standing| standing.suspended_ms.is_some());
            let there = suspended.filter(|standing| of.everywhere(&standing.plugin, &standing.digest));
            there.map(|standing| standing.plugin.clone()).collect()
        };
        let before = everywhere(self);
        self.there.values_mut().for_each(|sessions| drop(sessions.remove(&key)));
        for standing in &record.standing {
            if let Some(at_ms) = standing.suspended_ms {
                let sessions = self.there.entry(standing.plugin.clone()).or_default();
                sessions.insert(key, (standing.digest.clone(), at_ms));
            }
        }
        self.there.retain(|_, sessions| !sessions.is_empty());
        everywhere(self).into_iter().filter(|plugin| !before.contains(plugin)).collect()
    }

    /// Whether this standing is a suspension that holds for a component.
    pub(super) fn holds(&self, standing: &Standing, digest: &str) -> bool {
        standing.suspended_ms.is_some_and(|at_ms| standing.digest == digest && !self.is_lifted(&standing.plugin, at_ms))
    }

    /// In how many sessions a component is suspended.
    pub(super) fn count(&self, plugin: &str, digest: &str) -> usize {
        let holds = |(of, at_ms): &&(String, i64)| of == digest && !self.is_lifted(plugin, *at_ms);
        self.there.get(plugin).map_or(0, |sessions| sessions.values().filter(holds).count())
    }

    /// Whether a component is suspended in so many sessions that it is so everywhere.
    pub(super) fn everywhere(&self, plugin: &str, digest: &str) -> bool {
        self.count(plugin, digest) >= EVERYWHERE
    }

    /// The plugins that are suspended somewhere, or were until lately.
    pub(super) fn plugins(&self) -> Vec<String> {
        self.there.keys().cloned().collect()
    }

    /// The time of a suspension that begins now: it lies behind what was lifted, also if the clock was set back since.
    pub(super) fn now(&self, plugin: &str, now_ms: i64) -> i64 {
        self.lifted.get(plugin).map_or(now_ms, |lifted| now_ms.max(lifted.saturating_add(1)))
    }

    /// Up to when suspensions are lifted now: all that there are, also those of a clock that was set back since.
    pub(super) fn so_far(&self, plugin: &str, now_ms: i64) -> i64 {
        let there = self.there.get(plugin).into_iter().flat_map(HashMap::values).map(|(_, at_ms)| *at_ms);
        there.max().map_or(now_ms, |last| now_ms.max(last))
    }

    /// Ends the suspensions of a plugin up to this time.
    pub(super) fn lift(&mut self, plugin: &str, at_ms: i64) {
        self.lifted.insert(plugin.to_owned(), at_ms);
    }

    fn is_lifted(&self, plugin: &str, at_ms: i64) -> bool {
        self.lifted.get(plugin).is_some_and(|lifted| at_ms <= *lifted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLANK: &str = r#"{"path":"/a","session_id":"a","file":{"dev":1,"ino":1},"offset":0,"entries":0,"last_line":"","last_line_at":0}"#;

    fn suspended_at(at_ms: Option<i64>) -> SessionRecord {
        let standing = Standing { plugin: "p".into(), digest: "d".into(), suspended_ms: at_ms, ..Standing::default() };
        SessionRecord { standing: vec![standing], ..serde_json::from_str(BLANK).expect("a record") }
    }

    #[test]
    fn in_three_sessions_is_everywhere_until_it_is_lifted_or_another_version_comes() {
        let mut all = Suspended::default();
        (1..=2).for_each(|key| drop(all.note(SessionKey(key), &suspended_at(Some(10)))));
        all.note(SessionKey(2), &suspended_at(Some(11)));
        assert!(!all.everywhere("p", "d"));
        assert_eq!(all.note(SessionKey(3), &suspended_at(Some(12))), ["p"]);
        assert!(all.everywhere("p", "d") && !all.everywhere("p", "new") && !all.everywhere("q", "d"));
        all.note(SessionKey(3), &suspended_at(None));
        assert!(!all.everywhere("p", "d"));
        all.note(SessionKey(3), &suspended_at(Some(12)));
        all.lift("p", 11);
        assert_eq!(all.count("p", "d"), 1, "what came later holds");
    }

    #[test]
    fn a_clock_that_was_set_back_neither_keeps_a_suspension_nor_lifts_one() {
        let mut all = Suspended::default();
        all.note(SessionKey(1), &suspended_at(Some(1000)));
        let at = all.so_far("p", 10);
        all.lift("p", at);
        assert_eq!(all.count("p", "d"), 0, "it is lifted");
        let at = all.now("p", 20);
        all.note(SessionKey(1), &suspended_at(Some(at)));
        assert_eq!(all.count("p", "d"), 1, "and the next one holds");
    }
}
