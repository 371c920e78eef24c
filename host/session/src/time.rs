//! Times and ids as the format writes them: ISO 8601 text (S4.1) and short hexadecimal ids (S4.2).
//!
//! This crate has no clock and no randomness of its own. Both come in as parameters and are only put
//! into words here, so that a test or a replay writes the same bytes every time.

use crate::figures::hex;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// The last millisecond that a JavaScript `Date` can hold; later times are written as this one.
pub(crate) const LAST_DATE_MS: i64 = 8_640_000_000_000_000;

/// `ms` (milliseconds since 1970, UTC) as the text that JavaScript's `Date.toISOString` gives (S4.1).
pub fn iso(ms: i64) -> String {
    let ms = ms.clamp(-LAST_DATE_MS, LAST_DATE_MS);
    let (year, month, day) = civil(ms.div_euclid(DAY_MS));
    let clock = ms.rem_euclid(DAY_MS);
    let (hour, minute) = (clock / 3_600_000, clock / 60_000 % 60);
    let (second, milli) = (clock / 1000 % 60, clock % 1000);
    let year = year_text(year);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Four digits, or a sign and six where four do not suffice.
fn year_text(year: i64) -> String {
    match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{}{:06}", if year < 0 { '-' } else { '+' }, year.abs()),
    }
}

/// Year, month and day of a day counted from 1970-01-01, by the proleptic Gregorian calendar.
///
/// Counts in eras of 400 years that begin on a first of March, so the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The milliseconds of an ISO 8601 text as JavaScript's `Date` reads it; a time without a zone is taken as UTC.
///
/// As there, the day after the last of a month is the next month's first, up to a 31st. `None` for other spellings:
/// then an entry has no time.
pub fn parse_iso(text: &str) -> Option<i64> {
    parse_bytes(text.as_bytes())
}

/// The same of a text that may be none.
pub(crate) fn parse_bytes(text: &[u8]) -> Option<i64> {
    parse_usual(text).or_else(|| parse_any(std::str::from_utf8(text).ok()?))
}

/// The one spelling that Pi writes, `YYYY-MM-DDTHH:MM:SS.fffZ`, without a detour: every line has it.
fn parse_usual(text: &[u8]) -> Option<i64> {
    let &[y0, y1, y2, y3, b'-', o0, o1, b'-', d0, d1, b'T', ref clock @ ..] = text else { return None };
    let &[h0, h1, b':', m0, m1, b':', s0, s1, b'.', f0, f1, f2, b'Z'] = clock else { return None };
    let (year, month, day) = (number(&[y0, y1, y2, y3])?, number(&[o0, o1])?, number(&[d0, d1])?);
    let (hour, minute, second) = (number(&[h0, h1])?, number(&[m0, m1])?, number(&[s0, s1])?);
    let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    let ms = ((hour * 60 + minute) * 60 + second) * 1000 + number(&[f0, f1, f2])?;
    is_time.then(|| days_of(year, month, day) * DAY_MS + ms)
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

fn parse_any(text: &str) -> Option<i64> {
    let (date, clock) = match text.split_once('T') {
        Some((date, clock)) => (date, Some(clock)),
        None => (text, None),
    };
    let clock = clock.map_or(Some(0), parse_clock)?;
    let ms = parse_date(date)? * DAY_MS + clock;
    (-LAST_DATE_MS..=LAST_DATE_MS).contains(&ms).then_some(ms)
}

/// The day of `YYYY`, `YYYY-MM` or `YYYY-MM-DD`, where the year may have a sign and six digits.
fn parse_date(text: &str) -> Option<i64> {
    let (sign, text) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => (0, text),
    };
    let mut parts = text.split('-');
    let year = digits(parts.next()?, if sign == 0 { 4 } else { 6 })?;
    let month = parts.next().map_or(Some(1), |part| digits(part, 2))?;
    let day = parts.next().map_or(Some(1), |part| digits(part, 2))?;
    let year = if sign < 0 { -year } else { year };
    let is_date = parts.next().is_none() && (1..=12).contains(&month) && (1..=31).contains(&day);
    is_date.then(|| days_of(year, month, day))
}

/// Milliseconds of `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fff`, and a zone; negative where the zone lies ahead of UTC.
fn parse_clock(text: &str) -> Option<i64> {
    let zone_at = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at(zone_at);
    let mut parts = time.split(':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let seconds = parts.next().map_or(Some(0), parse_seconds)?;
    let ms = hour * 3_600_000 + minute * 60_000 + seconds;
    let is_time = parts.next().is_none() && minute < 60 && ms <= DAY_MS;
    is_time.then_some(ms)?.checked_sub(parse_zone(zone)?)
}

/// Milliseconds of `SS` or `SS.fff`; digits beyond the third are cut off.
fn parse_seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let seconds = digits(whole, 2).filter(|seconds| *seconds < 60)?;
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some(seconds * 1000 + millis.parse::<i64>().ok()?)
}

/// Milliseconds by which a zone, `Z`, none or `+HH:MM`, lies ahead of UTC.
fn parse_zone(text: &str) -> Option<i64> {
    if matches!(text, "" | "Z") {
        return Some(0);
    }
    let (hour, minute) = text[1..].split_once(':')?;
    let (hour, minute) = (digits(hour, 2)?, digits(minute, 2)?);
    let ms = (hour * 60 + minute) * 60_000;
    (hour < 24 && minute < 60).then_some(if text.starts_with('-') { -ms } else { ms })
}

/// A number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let all_digits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().ok()).flatten()
}

/// The day counted from 1970-01-01: the way back from [`civil`].
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A short entry id: the first eight hexadecimal digits of the random bytes (S4.2).
pub fn short_id(random: [u8; 16]) -> String {
    hex(&random[..4])
}

/// An id that nobody has: a short one, or after 100 collisions a long one (S4.2).
///
/// Where the randomness that a program hands in is none, it counts on from it: an entry of a taken id could be its own
/// parent, and the session would never open again (S8.5).
pub(crate) fn fresh_id(is_taken: impl Fn(&str) -> bool, random: &mut dyn FnMut() -> [u8; 16]) -> String {
    let short = (0..100).map(|_| short_id(random())).find(|id| !is_taken(id));
    short.unwrap_or_else(|| {
        let first = u128::from_be_bytes(random());
        let mut long = (0..=u128::MAX).map(|more| uuid(first.wrapping_add(more).to_be_bytes()));
        long.find(|id| !is_taken(id)).expect("there are more ids than entries in a file")
    })
}

/// The random bytes as a UUID of version 4, for when short ids keep colliding (S4.2).
pub fn uuid(random: [u8; 16]) -> String {
    uuid_of_version(0x40, random)
}

fn uuid_of_version(version: u8, mut random: [u8; 16]) -> String {
    random[6] = random[6] & 0x0f | version;
    random[8] = random[8] & 0x3f | 0x80;
    let part = |range: std::ops::Range<usize>| hex(&random[range]);
    [part(0..4), part(4..6), part(6..8), part(8..10), part(10..16)].join("-")
}

/// The time and the random bytes as a UUID of version 7, which Pi gives to sessions (S1.3).
pub fn uuid_of_time(ms: i64, mut random: [u8; 16]) -> String {
    random[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    uuid_of_version(0x70, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_javascript_writes_them() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(1_764_633_600_123), "2025-12-02T00:00:00.123Z");
        assert_eq!(iso(1_709_164_799_999), "2024-02-28T23:59:59.999Z");
        assert_eq!(iso(1_709_164_800_000), "2024-02-29T00:00:00.000Z");
        assert_eq!(iso(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn years_beyond_four_digits_have_a_sign() {
        assert_eq!(iso(253_402_300_800_000), "+010000-01-01T00:00:00.000Z");
        assert_eq!(iso(i64::MAX), "+275760-09-13T00:00:00.000Z");
        assert_eq!(iso(-62_198_755_200_000), "-000001-01-01T00:00:00.000Z");
    }

    #[test]
    fn times_are_read_as_javascript_reads_them() {
        for ms in [0, -1, 1_764_633_600_123, 1_709_164_800_000, 253_402_300_800_000, -62_198_755_200_000] {
            assert_eq!(parse_iso(&iso(ms)), Some(ms));
        }
        assert_eq!(parse_iso("2025-12-02"), Some(1_764_633_600_000));
        assert_eq!(parse_iso("2025-02-30"), Some(1_740_873_600_000));
        assert_eq!(parse_iso("2025-12"), Some(1_764_547_200_000));
        assert_eq!(parse_iso("2025-12-02T01:30+01:30"), Some(1_764_633_600_000));
        assert_eq!(parse_iso("2025-12-01T24:00:00.0009Z"), Some(1_764_633_600_000));
        for odd in [
            "",
            "-",
            "T",
            "2025-02-32",
            "2025-13-01",
            "2025-12-02T",
            "2025-12-02T1:00Z",
            "2025-12-02T00:60Z",
            "yesterday",
        ] {
            assert_eq!(parse_iso(odd), None, "{odd:?}");
        }
        for odd in ["2025-12-02T24:01Z", "2025-12-02T00:00:00.Z", "2025-12-02T00:00é", "é", "2025-12-02T00:00+é:00"]
        {
            assert_eq!(parse_iso(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn the_usual_spelling_says_the_same_by_either_way() {
        for ms in (-100_000_000_000..4_000_000_000_000).step_by(7_654_321_987) {
            let usual = iso(ms);
            assert_eq!((parse_usual(usual.as_bytes()), parse_any(&usual)), (Some(ms), Some(ms)), "{usual}");
            for (place, other) in (0..usual.len()).flat_map(|place| b"0369-:TZ. ".map(|other| (place, other))) {
                let mut odd = usual.clone().into_bytes();
                odd[place] = other;
                let odd = String::from_utf8(odd).expect("ASCII");
                assert_eq!(parse_iso(&odd), parse_any(&odd), "{odd}");
            }
        }
    }

    #[test]
    fn ids_come_from_the_random_bytes_alone() {
        let random = [0xab, 0xcd, 0x01, 0x23, 4, 5, 0xff, 7, 0xff, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(short_id(random), "abcd0123");
        assert_eq!(uuid(random), "abcd0123-0405-4f07-bf09-0a0b0c0d0e0f");
    }
}
