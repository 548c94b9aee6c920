//! Options of `--survivors`: which lives are sums, how long an interval of sums is, how much memory folding may take.
//! `record` and `convert` have the same; the code that folds is in kmt-common, `survivors`.

use std::time::Duration;

use kmt_common::quantity;

/// Default length of an interval of sums.
const INTERVAL: &str = "10s";
/// Default memory.
const MEMORY: &str = "8M";

/// Options on the command line.
#[derive(Debug, Clone, clap::Args)]
pub struct SurvivorOptionArgs {
    /// Write objects that live longer than TIME (1s) as events, and the others as exact sums: a file for days
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1s", value_parser = quantity::seconds)]
    survivors: Option<Duration>,
    /// Length of an interval of sums
    #[arg(long, value_name = "TIME", default_value = INTERVAL, value_parser = quantity::seconds, requires = "survivors")]
    survivors_interval: Duration,
    /// Memory for objects whose end is not known yet
    #[arg(long, value_name = "SIZE", default_value = MEMORY, value_parser = quantity::size_above_zero, requires = "survivors")]
    survivors_memory: u64,
}

impl SurvivorOptionArgs {
    /// What was asked for; `None`: all events.
    pub fn asked(&self) -> Option<SurvivorArgs> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Some(SurvivorArgs {
            threshold: ns(self.survivors?),
            interval: ns(self.survivors_interval),
            memory: usize::try_from(self.survivors_memory).unwrap_or(usize::MAX),
        })
    }
}

/// How lives are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurvivorArgs {
    /// Longest life that is folded, in nanoseconds.
    pub threshold: u64,
    /// Length of an interval, in nanoseconds.
    pub interval: u64,
    /// Memory, in bytes.
    pub memory: usize,
}

impl SurvivorArgs {
    /// Key of the description in a file.
    pub const KEY: &'static str = "record.survivors";

    /// What a file says of it: lengths in nanoseconds, memory in bytes.
    pub fn describe(&self) -> String {
        format!("threshold_ns={} interval_ns={} memory={}", self.threshold, self.interval, self.memory)
    }

    /// A time in the unit of a clock of which `millisecond` is one.
    pub fn in_clock(&self, ns: u64, millisecond: u64) -> u64 {
        let ticks = u128::from(ns) * u128::from(millisecond) / 1_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}
