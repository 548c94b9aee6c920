//! Events by name: SYSTEM, EVENT or SYSTEM:EVENT, with `*` and `?`.
//!
//! `dump`, `slice` and other commands that show or copy events take these on the command line.

use kmt_format::read::Schema;
use kmt_format::schema::{EventClass, Meaning};

use crate::failure::{Failure, Result};
use crate::trace::session::Session;
use crate::trace::time_range::TimeRange;

/// Largest number of names in an error.
const NAMED_MAX: usize = 12;

/// Event classes selected by patterns; all of them without patterns.
#[derive(Debug)]
pub struct SelectedEvents<'o> {
    patterns: &'o [String],
    /// Cached result by class index.
    cached: Vec<Option<bool>>,
}

impl<'o> SelectedEvents<'o> {
    /// A selection for a schema that may still grow.
    pub fn new(patterns: &'o [String]) -> Self {
        Self { patterns, cached: Vec::new() }
    }

    /// A selection for a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the patterns match no class of the file.
    pub fn of(session: &Session<'_>, patterns: &'o [String]) -> Result<Self> {
        let (selected, schema) = (Self::new(patterns), session.trace.schema());
        if patterns.is_empty() || schema.classes().any(|(_, class)| selected.matches(class)) {
            return Ok(selected);
        }
        let mut names: Vec<String> = schema.classes().map(|(_, class)| name(class)).collect();
        names.sort();
        names.truncate(NAMED_MAX);
        let what = format!("{} has no event {}", session.path.display(), patterns.join(", "));
        let hint = "--event takes SYSTEM, EVENT or SYSTEM:EVENT with * and ?; this file has";
        Err(Failure::new(what).hint(format!("{hint} {}", names.join(", "))))
    }

    /// True if a class is selected.
    pub fn has(&mut self, schema: &Schema, class: usize) -> bool {
        if self.patterns.is_empty() {
            return true;
        }
        if let Some(&Some(cached)) = self.cached.get(class) {
            return cached;
        }
        let found = schema.class(class).is_some_and(|class| self.matches(class));
        if self.cached.len() <= class {
            self.cached.resize(class.saturating_add(1), None);
        }
        if let Some(cached) = self.cached.get_mut(class) {
            *cached = Some(found);
        }
        found
    }

    /// Bit mask of the classes to read for the selected ones.
    ///
    /// All classes if the file has stacks: the event of a stack is known only with all events between them.
    pub fn bits(&self, schema: &Schema) -> u64 {
        let has_stacks = schema.classes().any(|(_, class)| class.meaning == Meaning::KERNEL_STACK);
        if self.patterns.is_empty() || has_stacks {
            return u64::MAX;
        }
        schema.class_bits(|class| self.matches(class))
    }

    fn matches(&self, class: &EventClass) -> bool {
        let full = name(class);
        self.patterns.iter().any(|pattern| {
            [&full, &class.system, &class.name].iter().any(|name| glob(pattern.as_bytes(), name.as_bytes()))
        })
    }
}

fn name(class: &EventClass) -> String {
    format!("{}:{}", class.system, class.name)
}

/// True if a pattern with `*` and `?` matches a name.
pub fn glob(pattern: &[u8], name: &[u8]) -> bool {
    // The place after the last star, and how much of the name it has taken.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((behind, taken)) => {
                    star = Some((behind, taken + 1));
                    (p, n) = (behind, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// Events by time, CPU, task and class.
#[derive(Debug, clap::Args)]
pub struct EventArgs {
    /// Events from A to B: seconds as `dump` prints them, or +seconds from the start
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse)]
    pub time: Option<TimeRange>,
    /// Events on this CPU; may be given several times
    #[arg(long, value_name = "CPU")]
    pub cpu: Vec<u32>,
    /// Events of this task (thread id); may be given several times
    #[arg(long, value_name = "PID")]
    pub pid: Vec<i32>,
    /// Events: SYSTEM, EVENT or SYSTEM:EVENT, with * and ?; may be given several times. Includes their stacks
    #[arg(short, long = "event", value_name = "EVENT")]
    pub event: Vec<String>,
}

impl EventArgs {
    /// First and last selected time, in the clock's unit; `None`: all.
    pub fn window(&self, session: &Session<'_>) -> Result<Option<(u64, u64)>> {
        let start = session.first_time().unwrap_or(0);
        self.time.as_ref().map(|time| time.resolve(&session.clock(), start)).transpose()
    }

    /// True if events of a CPU are selected.
    pub fn has_cpu(&self, cpu: u32) -> bool {
        self.cpu.is_empty() || self.cpu.contains(&cpu)
    }

    /// True if events of a task are selected.
    pub fn has_pid(&self, pid: i32) -> bool {
        self.pid.is_empty() || self.pid.contains(&pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, matches) in [
            ("kmem:*", "kmem:kmalloc", true),
            ("*alloc", "kmem:kmalloc", true),
            ("k?em", "kmem", true),
            ("kmem", "kmem:kfree", false),
            ("*a*b", "xaybz", false),
            ("**", "", true),
            ("", "x", false),
        ] {
            assert_eq!(glob(pattern.as_bytes(), name.as_bytes()), matches, "{pattern} {name}");
        }
    }
}
