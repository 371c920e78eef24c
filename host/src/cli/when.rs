//! Times as people have them: in the zone of this machine, or of `TZ`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The time zone, found once; UTC where the system does not say.
pub struct Zone(TimeZone);

impl Zone {
    /// That of this process.
    #[must_use]
    pub fn of_process() -> Zone {
        Zone(TimeZone::system())
    }

    /// The date and time of Unix milliseconds here; none for what no calendar has.
    fn at(&self, ms: i64) -> Option<DateTime> {
        Some(self.0.to_datetime(Timestamp::from_millisecond(ms).ok()?))
    }

    /// `2026-12-01T16:19:01`: without a zone, as the trash has it.
    #[must_use]
    pub fn date_time(&self, ms: i64) -> String {
        self.at(ms).map_or_else(String::new, |time| time.strftime("%Y-%m-%dT%H:%M:%S").to_string())
    }

    /// `2026-12-01 16:19:01`
    #[must_use]
    pub fn seconds(&self, ms: i64) -> String {
        self.date_time(ms).replace('T', " ")
    }

    /// `2026-12-01 16:19`
    #[must_use]
    pub fn minutes(&self, ms: i64) -> String {
        self.at(ms).map_or_else(String::new, |time| time.strftime("%Y-%m-%d %H:%M").to_string())
    }

    /// Twelve columns at most: the day of this year with the time, of another with the year.
    #[must_use]
    pub fn brief(&self, ms: i64, now_ms: i64) -> String {
        let (Some(time), Some(now)) = (self.at(ms), self.at(now_ms)) else { return String::new() };
        let shape = if time.year() == now.year() { "%b %d %H:%M" } else { "%b %d  %Y" };
        time.strftime(shape).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_zone() {
        let berlin = Zone(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone"));
        let (winter, summer) = (1_764_633_600_123, 1_780_315_200_000);
        assert_eq!(berlin.date_time(winter), "2025-12-02T01:00:00");
        assert_eq!(berlin.seconds(summer), "2026-06-01 14:00:00");
        assert_eq!(berlin.minutes(summer), "2026-06-01 14:00");
        assert_eq!(berlin.brief(summer, summer + 1000), "Jun 01 14:00");
        assert_eq!(berlin.brief(winter, summer), "Dec 02  2025");
        assert_eq!(berlin.brief(i64::MAX, summer), "");
    }
}
