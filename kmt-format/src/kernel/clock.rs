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
    fn finds_the_active_clock() {
        let clock = TraceClock::parse("local global counter [x86-tsc] mono\n").unwrap();
        assert_eq!((clock.name.as_str(), clock.unit), ("x86-tsc", ClockUnit::Ticks));
        assert!(clock.comparable && !TraceClock::named("local").comparable);
        assert_eq!(TraceClock::parse("[local] global\n").unwrap().unit, ClockUnit::Nanoseconds);
        assert_eq!(TraceClock::parse("local global\n"), None);
    }
}
