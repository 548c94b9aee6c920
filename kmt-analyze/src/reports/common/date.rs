//! Dates of the calendar, in UTC.
//!
//! Recordings have times as nanoseconds since 1970; `ring` and `info` print them as dates. Any 64-bit time has a date,
//! since a damaged file may have any. One conversion needs no library for dates.

const DAY_NS: i64 = 86_400_000_000_000;

/// Date and time of day of a time in nanoseconds since 1970: `2026-07-02`, `05:53:57`.
pub fn utc(time: i64) -> (String, String) {
    let (year, month, day) = civil(time.div_euclid(DAY_NS));
    let seconds = time.rem_euclid(DAY_NS) / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    (format!("{year:04}-{month:02}-{day:02}"), format!("{hours:02}:{minutes:02}:{seconds:02}"))
}

/// Year, month and day of a day since 1970, in the Gregorian calendar. Years begin in March here, so that the leap day is
/// the last one of its year; `era` counts 400 years.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + 400 * era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar() {
        let at = |seconds: i64| utc(seconds * 1_000_000_000);
        assert_eq!(at(0), ("1970-01-01".into(), "00:00:00".into()));
        assert_eq!(at(951_782_399), ("2000-02-28".into(), "23:59:59".into()));
        assert_eq!(at(951_782_400), ("2000-02-29".into(), "00:00:00".into()));
        assert_eq!(at(1_782_971_637), ("2026-07-02".into(), "05:53:57".into()));
        assert_eq!(at(-1), ("1969-12-31".into(), "23:59:59".into()));
        // Times of a file are any: the ends of 64 bits.
        assert_eq!((utc(i64::MAX).0, utc(i64::MIN).0), ("2262-04-11".into(), "1677-09-21".into()));
    }
}
