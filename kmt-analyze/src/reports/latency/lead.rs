//! The answer in one sentence: time that tasks waited, the task that waited longest, the worst wait.

use std::cmp::Reverse;
use std::collections::HashMap;

use kmt_format::kernel::ClockUnit;

use super::rows::LatencyTables;
use crate::render::words::duration;

/// Waits of all tasks for memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitSums {
    /// Time of all waits together, in the clock's unit.
    pub total: u64,
    /// Time that the task waited that waited longest.
    pub longest: u64,
    task: String,
    worst: u64,
    tasks: usize,
    number: u64,
}

impl WaitSums {
    /// Waits of a trace; `None`: no task waited, or no waits were recorded.
    pub fn of(latency: &LatencyTables) -> Option<Self> {
        let waits = || latency.kinds.iter().filter(|kind| kind.delays);
        let mut tasks: HashMap<i32, (&str, u64)> = HashMap::new();
        for task in waits().flat_map(|kind| &kind.tasks) {
            let (_, total) = tasks.entry(task.pid).or_insert((&task.task, 0));
            *total = total.saturating_add(task.total);
        }
        let most = tasks.iter().max_by_key(|(pid, (_, total))| (*total, Reverse(**pid)));
        let (_, &(task, longest)) = most?;
        Some(Self {
            total: waits().fold(0u64, |sum, kind| sum.saturating_add(kind.lengths.total)),
            longest,
            task: task.to_owned(),
            worst: waits().filter_map(|kind| kind.lengths.max).max()?,
            tasks: tasks.len(),
            number: waits().map(|kind| kind.lengths.count).sum(),
        })
    }

    /// One sentence.
    pub fn sentence(&self, unit: ClockUnit) -> String {
        let [total, worst, longest] = [self.total, self.worst, self.longest].map(|time| rounded(time, unit));
        let task = &self.task;
        match (self.tasks, self.number) {
            (_, 1) => format!("{task} waited {total} for memory, once."),
            (1, _) => format!("{task} waited {total} for memory; the worst wait was {worst}."),
            _ => format!(
                "Tasks waited {total} for memory, {task} longest ({longest}); the worst wait was {worst}."
            ),
        }
    }
}

/// A length of time with three significant digits: `457 ms`, `2.27 s`, `10 ms`.
pub fn rounded(length: u64, unit: ClockUnit) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    if unit == ClockUnit::Ticks || length < 1_000 {
        return duration(length, unit);
    }
    // From 999.5 on three digits would read 1000.
    let fits = |(size, _): &&(f64, &str)| length as f64 / size >= 0.9995;
    let (size, name) = UNITS.iter().find(fits).copied().unwrap_or((1e3, "us"));
    let value = length as f64 / size;
    let number = match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_three_digits() {
        let lengths = [(999, "999 ns"), (1_000, "1 us"), (456_620_000, "457 ms"), (999_600_000, "1 s")];
        let longer = [(10_000_000, "10 ms"), (45_120_000, "45.1 ms"), (2_271_000_000, "2.27 s")];
        for (length, text) in lengths.into_iter().chain(longer) {
            assert_eq!(rounded(length, ClockUnit::Nanoseconds), text, "{length}");
        }
        assert_eq!(rounded(10_000, ClockUnit::Ticks), "10,000 ticks");
        assert_eq!(rounded(u64::MAX, ClockUnit::Nanoseconds), "18446744074 s");
    }
}
