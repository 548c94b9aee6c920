//! Conditions of `--stop-when`: their text on the command line.

use std::fmt;
use std::time::Duration;

use kmt_common::quantity;

use crate::tracefs::EventSpec;

/// Forms of a condition, for messages.
const FORMS: &str = "oom, alloc-failure, 'SYSTEM:EVENT if FILTER', 'MemAvailable<SIZE', 'slab>SIZE', or psi:some:STALL/WINDOW";

/// A condition that ends the wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The kernel kills a process because memory runs out.
    Oom,
    /// A page allocation fails that the kernel would report.
    AllocFailure,
    /// An event occurs, with a filter of the kernel.
    Event(EventSpec),
    /// A number of /proc/meminfo is below or above a size.
    Memory {
        /// Key of /proc/meminfo.
        key: String,
        /// True if it has to be below, false if above.
        is_below: bool,
        /// The size in bytes.
        bytes: u64,
    },
    /// Tasks wait for memory.
    Pressure(Pressure),
}

/// Tasks that wait for memory for a part of the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pressure {
    /// True if all tasks have to wait (`full`), false if one has to (`some`).
    pub is_full: bool,
    /// Time in which tasks wait.
    pub stall: Duration,
    /// Window of that time.
    pub window: Duration,
    /// Path of the cgroup; `None`: the machine.
    pub cgroup: Option<String>,
}

impl Condition {
    /// Parses the text of the command line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text {
            "oom" => return Ok(Self::Oom),
            "alloc-failure" => return Ok(Self::AllocFailure),
            _ => {}
        }
        if let Some(rest) = text.strip_prefix("psi:") {
            return Pressure::parse(rest).map(Self::Pressure);
        }
        if !text.contains(':') && text.contains(['<', '>']) {
            return memory(text);
        }
        if !text.contains(':') {
            return Err(format!("{text:?} is not a condition: expected {FORMS}"));
        }
        let spec = EventSpec::parse(text)?;
        match spec.is_exact() {
            true => Ok(Self::Event(spec)),
            false => Err(format!("{spec} is not one event: --stop-when needs an event without * and ?")),
        }
    }

    /// True if the kernel checks it at an event, and stops by itself.
    pub fn is_trigger(&self) -> bool {
        matches!(self, Self::Oom | Self::AllocFailure | Self::Event(_))
    }
}

/// `MemAvailable<500M`.
fn memory(text: &str) -> Result<Condition, String> {
    let at = text.find(['<', '>']).unwrap_or(text.len());
    let (key, rest) = text.split_at(at);
    let is_below = rest.starts_with('<');
    let size = rest.get(1..).unwrap_or_default().trim();
    let key = match key.trim() {
        "slab" => "Slab",
        key => key,
    };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_()".contains(&b);
    if key.is_empty() || !key.bytes().all(is_plain) {
        return Err(format!("{text:?} is not a condition: expected a key of /proc/meminfo before < or >"));
    }
    let bytes = quantity::size_above_zero(size)?;
    Ok(Condition::Memory { key: key.to_owned(), is_below, bytes })
}

impl Pressure {
    /// Parses `some:100ms/2s` or `full:100ms/2s:CGROUP`.
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{:?} is not a condition: expected psi:some:STALL/WINDOW or psi:full:STALL/WINDOW, such as psi:some:100ms/2s, and :CGROUP after it for a cgroup",
                format!("psi:{text}")
            )
        };
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let is_full = match kind {
            "some" => false,
            "full" => true,
            _ => return Err(wrong()),
        };
        let (times, cgroup) = match rest.split_once(':') {
            Some((times, cgroup)) if !cgroup.is_empty() => (times, Some(cgroup.to_owned())),
            Some(_) => return Err(wrong()),
            None => (rest, None),
        };
        let (stall, window) = times.split_once('/').ok_or_else(wrong)?;
        let (stall, window) = (quantity::seconds(stall)?, quantity::seconds(window)?);
        // psi_trigger_create, kernel/sched/psi.c, 5.2 to 7.2.
        if !(Duration::from_millis(500)..=Duration::from_secs(10)).contains(&window) {
            return Err("the window of psi: has to be from 500ms to 10s".to_owned());
        }
        if stall.is_zero() || stall > window {
            return Err("the stall of psi: has to be above 0, and at most the window".to_owned());
        }
        Ok(Self { is_full, stall, window, cgroup })
    }

    /// The text that the kernel accepts: kind, stall and window in microseconds.
    pub fn to_kernel(&self) -> String {
        let kind = if self.is_full { "full" } else { "some" };
        format!("{kind} {} {}", self.stall.as_micros(), self.window.as_micros())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oom => f.write_str("oom"),
            Self::AllocFailure => f.write_str("alloc-failure"),
            Self::Event(spec) => match &spec.filter {
                Some(filter) => write!(f, "{spec} if {filter}"),
                None => write!(f, "{spec}"),
            },
            Self::Memory { key, is_below, bytes } => {
                write!(f, "{key}{}{}", if *is_below { '<' } else { '>' }, size(*bytes))
            }
            Self::Pressure(pressure) => write!(f, "{pressure}"),
        }
    }
}

impl fmt::Display for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_full { "full" } else { "some" };
        let time = |time: Duration| quantity::Span::Nanoseconds(time.as_nanos() as u64);
        write!(f, "psi:{kind}:{}/{}", time(self.stall), time(self.window))?;
        self.cgroup.iter().try_for_each(|cgroup| write!(f, ":{cgroup}"))
    }
}

/// A size as the command line takes it.
fn size(bytes: u64) -> String {
    let units = [("G", 30), ("M", 20), ("K", 10)];
    let unit = units.iter().find(|(_, bits)| bytes > 0 && bytes % (1 << bits) == 0);
    unit.map_or_else(|| bytes.to_string(), |(unit, bits)| format!("{}{unit}", bytes >> bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_print_as_they_are_given() {
        for text in [
            "oom",
            "alloc-failure",
            "kmem:mm_page_alloc if order >= 4",
            "kmem:mm_page_alloc if order > 2 && migratetype < 1",
            "oom:mark_victim",
            "MemAvailable<500M",
            "Slab>2G",
            "SUnreclaim>1000K",
            "Active(file)<77",
            "psi:some:100ms/2s",
            "psi:full:50ms/1s:/system.slice/db.service",
        ] {
            assert_eq!(Condition::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn slab_is_the_slab_of_meminfo_and_events_have_filters() {
        let slab = Condition::parse("slab>64M").unwrap();
        let expected = Condition::Memory { key: "Slab".to_owned(), is_below: false, bytes: 64 << 20 };
        assert_eq!(slab, expected);
        assert!(!slab.is_trigger());
        let event = Condition::parse("kmem:kmalloc if bytes_req > 4096").unwrap();
        let Condition::Event(spec) = &event else { panic!("{event:?}") };
        assert_eq!(spec.filter.as_deref(), Some("bytes_req > 4096"));
        assert!(event.is_trigger() && Condition::Oom.is_trigger());
    }

    #[test]
    fn pressure_is_written_in_microseconds() {
        let Condition::Pressure(pressure) = Condition::parse("psi:some:100ms/2s").unwrap() else { panic!() };
        assert_eq!(pressure.to_kernel(), "some 100000 2000000");
    }

    #[test]
    fn what_is_not_a_condition_is_refused_with_the_forms() {
        for (text, words) in [
            ("", "expected oom, alloc-failure"),
            ("OOM", "expected oom, alloc-failure"),
            ("MemAvailable", "expected oom, alloc-failure"),
            ("<5M", "a key of /proc/meminfo"),
            ("Mem Available<5M", "a key of /proc/meminfo"),
            ("slab>", "is not a size"),
            ("slab>5T", "is not a size"),
            ("slab>0", "cannot be 0"),
            ("kmem:*", "not one event"),
            ("kmem:x if ", "is not SYSTEM:EVENT"),
            ("psi:some", "psi:some:STALL/WINDOW"),
            ("psi:any:1ms/1s", "psi:some:STALL/WINDOW"),
            ("psi:some:1ms", "psi:some:STALL/WINDOW"),
            ("psi:some:1ms/1s:", "psi:some:STALL/WINDOW"),
            ("psi:some:1ms/1d", "is not a time"),
            ("psi:some:1ms/100ms", "from 500ms to 10s"),
            ("psi:some:1ms/11s", "from 500ms to 10s"),
            ("psi:some:0ms/1s", "above 0"),
            ("psi:some:2s/1s", "at most the window"),
        ] {
            let refusal = Condition::parse(text).unwrap_err();
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
    }
}
