//! Durations and sizes, which are text with a unit: `"2s"`, `"64MiB"`.

use std::time::Duration;

/// Names and milliseconds of the units of time, greatest first.
const TIME: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Names and bytes of the units of size, greatest first.
const SIZE: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Reads a duration such as `2s`, `500ms` or `90d`.
///
/// # Errors
/// What is wrong and how to write it.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    measure(text, &TIME).map(Duration::from_millis).ok_or_else(|| {
        format!("{text:?} is no duration: write a whole number and one of ms, s, m, h, d, such as \"10s\"")
    })
}

/// Reads a size in bytes such as `64MiB`.
///
/// # Errors
/// What is wrong and how to write it.
pub fn parse_size(text: &str) -> Result<u64, String> {
    measure(text, &SIZE).ok_or_else(|| {
        format!("{text:?} is no size: write a whole number and one of B, KiB, MiB, GiB, such as \"64MiB\"")
    })
}

/// The shortest exact text of a duration; what is less than a millisecond is dropped.
#[must_use]
pub fn duration_text(duration: Duration) -> String {
    text(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX), &TIME, "0s")
}

/// The shortest exact text of a size in bytes.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    text(bytes, &SIZE, "0B")
}

fn measure(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn text(count: u64, units: &[(&str, u64)], zero: &str) -> String {
    let whole = units.iter().find(|(_, factor)| count > 0 && count.is_multiple_of(*factor));
    whole.map_or_else(|| zero.to_owned(), |(name, factor)| format!("{}{name}", count / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, ms) in [("2s", 2000), ("500ms", 500), ("10m", 600_000), ("90d", 7_776_000_000), ("0s", 0)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(duration_text(Duration::from_millis(ms)), text);
        }
        for odd in ["", "2", "s", "2 weeks", "-1s", "1.5s", "99999999999999999999s", "18446744073709551615d"] {
            assert!(parse_duration(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn sizes_have_a_unit() {
        for (text, bytes) in [("64MiB", 64 << 20), ("256KiB", 256 << 10), ("3B", 3), ("2GiB", 2 << 30), ("0B", 0)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
            assert_eq!(size_text(bytes), text);
        }
        assert_eq!(size_text(1025), "1025B");
        for odd in ["64", "64MB", "64 M", "MiB"] {
            assert!(parse_size(odd).is_err(), "{odd:?}");
        }
    }
}
