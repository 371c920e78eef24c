//! "Did you mean": the known word that is nearest to one that is not known.

/// The nearest of `known`, if it is near enough to have been meant.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let scored = known.into_iter().map(|other| (distance(word, other), other));
    let best = scored.min_by_key(|(distance, _)| *distance);
    best.filter(|(distance, other)| *distance <= allowed(word, other)).map(|(_, other)| other)
}

/// A third of the longer word may differ.
fn allowed(a: &str, b: &str) -> usize {
    a.chars().count().max(b.chars().count()).div_ceil(3)
}

/// Letters that were added, dropped, changed or swapped with their neighbour; `-`, `_` and case count for nothing.
fn distance(a: &str, b: &str) -> usize {
    let plain = |text: &str| text.to_lowercase().replace('_', "-").chars().collect::<Vec<_>>();
    let (a, b) = (plain(a), plain(b));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found() {
        let known = ["roots", "settle", "live-hold", "include", "exclude"];
        for (typed, meant) in [
            ("setle", "settle"),
            ("settel", "settle"),
            ("live_hold", "live-hold"),
            ("liveHold", "live-hold"),
            ("root", "roots"),
            ("includes", "include"),
        ] {
            assert_eq!(nearest(typed, known), Some(meant), "{typed}");
        }
    }

    #[test]
    fn a_stranger_is_nobody_s_neighbour() {
        assert_eq!(nearest("colour", ["roots", "settle"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
