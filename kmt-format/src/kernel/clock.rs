//! `trace_clock`: which clock stamped the events.

/// Unit of time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Ticks of a clock of unknown rate (cycles, jiffies, or one per event).
    Ticks,
}

/// The trace clock of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceClock {
    /// Name as the kernel prints it; empty where it is not known.
    pub name: String,
    /// Unit of time stamps.
    pub unit: ClockUnit,
    /// True if times of different CPUs can be compared, as recorded by the writer.
    pub comparable: bool,
}

impl TraceClock {
    /// A clock of any name, empty where it is not known.
    pub fn new(name: impl Into<String>, unit: ClockUnit) -> Self {
        let name = name.into();
        Self { unit, ..Self::named(&name) }
    }

    /// Sets whether times of different CPUs can be compared.
    #[must_use]
    pub fn comparable(mut self, is_comparable: bool) -> Self {
        self.comparable = is_comparable;
        self
    }

    /// The clock of that name (`trace_clocks[]`, kernel/trace/trace.c 4.4 to 7.2: all but these are in nanoseconds).
    pub fn named(name: &str) -> Self {
        let ticks = matches!(name, "counter" | "uptime" | "x86-tsc" | "ppc-tb" | "s390-tod");
        let unit = if ticks { ClockUnit::Ticks } else { ClockUnit::Nanoseconds };
        Self { name: name.to_owned(), unit, comparable: name != "local" && !name.is_empty() }
    }

    /// One millisecond in the clock's unit, and true if that is assumed: most clocks that count ticks have no fixed rate.
    ///
    /// For bounds on how far apart two events can be that belong together, not for conversion to nanoseconds.
    pub fn millisecond(&self) -> (u64, bool) {
        if self.unit == ClockUnit::Nanoseconds {
            return (1_000_000, false);
        }
        let ticks = match self.name.as_str() {
            "x86-tsc" => 3_000_000,
            "ppc-tb" => 512_000,
            // 2^-12 microseconds a tick (z/Architecture Principles of Operation, TOD clock).
            "s390-tod" => 4_096_000,
            "uptime" => 1,
            _ => 1_000,
        };
        (ticks, self.name != "s390-tod")
    }

    /// Parses `trace_clock`, where the active clock is in brackets; `None` if there is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once('[')?;
        let (name, _) = rest.split_once(']')?;
        Some(Self::named(name.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_millisecond_is_known_of_nanoseconds_and_of_the_tod_clock() {
        assert_eq!(TraceClock::named("mono").millisecond(), (1_000_000, false));
        assert_eq!(TraceClock::named("s390-tod").millisecond(), (4_096_000, false));
        assert_eq!(TraceClock::named("x86-tsc").millisecond(), (3_000_000, true));
        assert_eq!(TraceClock::new("", ClockUnit::Ticks).millisecond(), (1_000, true));
    }

    #[test]
    fn finds_the_active_clock() {
        let clock = TraceClock::parse("local global counter [x86-tsc] mono\n").unwrap();
        assert_eq!((clock.name.as_str(), clock.unit), ("x86-tsc", ClockUnit::Ticks));
        assert!(clock.comparable && !TraceClock::named("local").comparable);
        assert_eq!(TraceClock::parse("[local] global\n").unwrap().unit, ClockUnit::Nanoseconds);
        assert_eq!(TraceClock::parse("local global\n"), None);
    }
}
