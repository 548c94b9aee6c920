//! Sentences of `watch`: growth, and the recording of it.

use std::path::Path;

use kmt_common::shell;
use kmt_common::text::size;
use kmt_common::watch::Finding;

use super::job::Stopped;
use super::plan::{Plan, name};
use crate::record::EndReason;

/// How a recording ended.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Its length.
    pub seconds: u64,
    /// The reason that the recorder reports.
    pub reason: Option<EndReason>,
    /// Why the watch stopped it.
    pub stopped: Option<Stopped>,
    /// `--max-size`.
    pub max_size: u64,
    /// `--cpu-budget`, in percent.
    pub budget: f64,
}

/// An amount that may be negative.
pub fn amount(kib: i64) -> String {
    let minus = if kib < 0 { "-" } else { "" };
    format!("{minus}{}", size(kib.unsigned_abs().saturating_mul(1024)))
}

/// A growth as a sentence.
pub fn growth(finding: &Finding) -> String {
    let per_second = finding.growth.bytes_per_second.max(0.0);
    let doubled = if finding.is_again { " (doubled since the last report)" } else { "" };
    format!(
        "growing steadily: {} by {:.1} KiB/s ({} a day) for {} min or longer, grown by {}{doubled}; window of {} min",
        name(finding.kind, &finding.name),
        per_second / 1024.0,
        size((per_second * 86_400.0) as u64),
        finding.since / 60,
        size(finding.grown_kib.saturating_mul(1024)),
        finding.growth.window.minutes,
    )
}

/// A recording as a sentence: what it has, its length, why it is shorter than planned, and the next command.
pub fn recorded(plan: &Plan, file: &Path, end: &End) -> String {
    let why = match (end.stopped, end.reason) {
        (Some(Stopped::Budget(share)), _) => Some(format!(
            "the recorder used {share:.1} % of one CPU, more than --cpu-budget {} %",
            end.budget
        )),
        (_, Some(EndReason::MaxSize)) => {
            Some(format!("the file is full (--max-size {})", size(end.max_size)))
        }
        (_, Some(EndReason::Disk)) => Some("the file system is full".to_owned()),
        (_, Some(EndReason::Memory)) => {
            Some("the file is in memory (tmpfs), and little memory is available".to_owned())
        }
        _ => None,
    };
    let (seconds, wanted) = (end.seconds.min(plan.seconds), plan.seconds);
    let length = why.map_or_else(|| format!("{wanted} s"), |why| format!("{seconds} s of {wanted} s: {why}"));
    format!(
        "recorded: {} in {}, {length}; who allocates it: kmt-analyze {} {}",
        plan.what,
        shell::path(file),
        plan.report,
        shell::path(file)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_ended_early_has_the_reason() {
        let plan = Plan::all();
        let end =
            End { seconds: 61, reason: Some(EndReason::Time), stopped: None, max_size: 2 << 20, budget: 5.0 };
        let of = |end: End| recorded(&plan, Path::new("leak-1.kmt"), &end);
        assert_eq!(
            of(end),
            "recorded: slab memory in leak-1.kmt, 60 s; who allocates it: kmt-analyze leaks leak-1.kmt"
        );
        let full = of(End { reason: Some(EndReason::MaxSize), ..end });
        assert!(
            full.contains("leak-1.kmt, 60 s of 60 s: the file is full (--max-size 2.00 MiB); who"),
            "{full}"
        );
        let full = of(End { seconds: 12, reason: Some(EndReason::Disk), ..end });
        assert!(full.contains(", 12 s of 60 s: the file system is full; who"), "{full}");
        let budget = of(End {
            seconds: 30,
            reason: Some(EndReason::Other),
            stopped: Some(Stopped::Budget(7.25)),
            ..end
        });
        assert!(
            budget.contains(
                ", 30 s of 60 s: the recorder used 7.2 % of one CPU, more than --cpu-budget 5 %; who"
            ),
            "{budget}"
        );
        assert_eq!((amount(-2048), amount(0)), ("-2.00 MiB".to_owned(), "0 B".to_owned()));
    }
}
