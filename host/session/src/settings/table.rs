//! The models that a released Pi knows by itself: `config/windows.tsv`, made from Pi's own list, with its date.
//!
//! A newer Pi may know more. What it does not hold is looked up nowhere else: a guess from a like name would be wrong as
//! often as right, since one model has different windows with different providers.

use super::models::{Prices, Tier};

/// The table.
const TABLE: &str = include_str!("../../../../config/windows.tsv");

/// What the table says of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The context window, tokens.
    pub window: u64,
    /// The most that one answer may have, tokens.
    pub max_tokens: u64,
    /// What it costs.
    pub prices: Prices,
}

/// The day on which the facts in the table were true.
#[must_use]
pub fn date() -> &'static str {
    TABLE.get(2..12).unwrap_or_default()
}

/// What the table says of a provider's model.
#[must_use]
pub fn find(provider: &str, id: &str) -> Option<Row> {
    let is_it = |line: &&str| line.split('\t').next() == Some(id);
    models_of(provider)?.find(is_it).and_then(row)
}

/// Whether the table has models of a provider.
#[must_use]
pub fn has_provider(provider: &str) -> bool {
    models_of(provider).is_some()
}

/// Every provider and model in the table.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut provider = "";
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(move |line| match heading(line) {
        Some(name) => {
            provider = name;
            None
        }
        None => Some((provider, line.split('\t').next()?)),
    })
}

fn models_of(provider: &str) -> Option<impl Iterator<Item = &'static str>> {
    let mut lines = TABLE.lines();
    lines.find(|line| heading(line) == Some(provider))?;
    Some(lines.take_while(|line| heading(line).is_none()))
}

fn heading(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.strip_suffix(']')
}

fn row(line: &str) -> Option<Row> {
    let mut fields = line.split('\t').skip(1);
    let (window, max_tokens) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let prices = prices(&mut fields)?;
    let tiers = fields.next().into_iter().flat_map(|tiers| tiers.split(';')).filter_map(tier).collect();
    Some(Row { window, max_tokens, prices: Prices { tiers, ..prices } })
}

fn prices<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Option<Prices> {
    let mut next = || fields.next()?.parse().ok();
    let (input, output, cache_read, cache_write) = (next()?, next()?, next()?, next()?);
    Some(Prices { input, output, cache_read, cache_write, tiers: Vec::new() })
}

fn tier(text: &str) -> Option<Tier> {
    let mut fields = text.split('/');
    let above = fields.next()?.parse().ok()?;
    let Prices { input, output, cache_read, cache_write, .. } = prices(&mut fields)?;
    Some(Tier { above, input, output, cache_read, cache_write })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_can_be_read() {
        let mut count = 0;
        for (provider, id) in all() {
            let row = find(provider, id).unwrap_or_else(|| panic!("{provider}/{id}"));
            assert!(row.window > 0 && row.max_tokens > 0, "{provider}/{id}");
            count += 1;
        }
        assert!(count > 1000, "{count}");
        assert!(date().len() == 10 && date().starts_with("20"), "{}", date());
    }

    #[test]
    fn a_model_is_looked_for_under_its_own_provider() {
        assert_eq!(find("openai", "gpt-4").map(|row| row.window), Some(8192));
        assert_eq!(find("anthropic", "gpt-4"), None);
        assert_eq!(find("nobody", "gpt-4"), None);
        assert!(has_provider("openai") && !has_provider("[openai]") && !has_provider(""));
    }

    #[test]
    fn long_inputs_may_cost_more() {
        let tiered = |(provider, id)| find(provider, id).is_some_and(|row| !row.prices.tiers.is_empty());
        assert!(all().any(tiered));
    }
}
