//! Numbers and bytes as text, and what is said of a limit: the same words wherever one is met.

/// A number with its thousands apart: `12,345`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What was used of what there is: `used 1,001 of 1,000 drafts (limits.proposals)`. What would go over a limit counts as
/// used. `what` is the unit, and the key of the config if there is one.
#[must_use]
pub fn used(used: u64, of: u64, what: &str) -> String {
    format!("used {} of {} {what}", grouped(used), grouped(of))
}

/// Bytes as lower-case hexadecimal digits, two for each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(hex(&[0, 9, 0xab, 255]), "0009abff");
        assert_eq!(used(1001, 1000, "drafts (limits.proposals)"), "used 1,001 of 1,000 drafts (limits.proposals)");
    }
}
