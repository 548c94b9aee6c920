//! Options of `watch` on the command line.

use std::path::PathBuf;
use std::time::Duration;

use kmt_common::quantity;

/// Shortest and longest time between samples: windows of growth have points of 10 s, and the shortest has blocks of 30 s.
const EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Options of `watch`.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// Files to write: FILE-1.kmt, FILE-2.kmt and so on, one for each growth
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Time between samples, from 1s to 30s
    #[arg(long, value_name = "TIME", value_parser = every, default_value = "10s")]
    pub every: Duration,
    /// Print what would be recorded, and why; SIGUSR1 prints the verdict on each series. Records nothing
    #[arg(long)]
    pub dry_run: bool,
    /// End after the first growth was recorded
    #[arg(long)]
    pub once: bool,
    /// Stop a recording before its file exceeds this size
    #[arg(long, value_name = "SIZE", value_parser = quantity::size_above_zero, default_value = "64M")]
    pub max_size: u64,
    /// Stop a recording whose recorder has used more than this share of one CPU for 30 s
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "5%")]
    pub cpu_budget: f64,
    /// Keep at most this many files: the oldest are removed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_files: Option<u32>,
    /// Run this program after each recording, with the name of the file as its argument. It is killed after 60 s
    #[arg(long, value_name = "COMMAND")]
    pub exec: Option<PathBuf>,
    /// File that keeps reported growth and earlier levels over restarts
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Where tracefs is mounted, if not at /sys/kernel/tracing
    #[arg(long, value_name = "DIR")]
    pub tracefs: Option<PathBuf>,
    /// Print only growth, warnings and errors
    #[arg(short, long)]
    pub quiet: bool,
}

fn every(text: &str) -> Result<Duration, String> {
    let time = quantity::seconds(text)?;
    if time < EVERY.0 || time > EVERY.1 {
        return Err(format!("{text:?}: the time between samples is from 1s to 30s"));
    }
    Ok(time)
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>().ok();
    let number = number.filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| format!("{text:?}: expected a share of one CPU above 0, such as 5%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_share_of_one_cpu() {
        assert_eq!(["5%", "0.5", "150 %"].map(percent), [Ok(5.0), Ok(0.5), Ok(150.0)]);
        for wrong in ["", "%", "0%", "-1%", "5%%", "nan", "inf%", "x"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
