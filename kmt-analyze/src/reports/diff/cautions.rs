//! Limits of a comparison: losses, builds, lengths.

use super::DiffOptions;
use super::rows::{DiffRows, SideRow};

/// Sentences on losses, builds and lengths that limit the comparison.
pub fn of(DiffRows { diff }: &DiffRows, options: &DiffOptions) -> Vec<String> {
    let mut out = Vec::new();
    if diff.is_lossy() {
        out.push("Events were lost: event counts are minimums; live figures are uncertain.".to_owned());
    }
    if diff.matched_by_function {
        out.push(
            "The kernels are different builds: call sites are matched by function, without offset."
                .to_owned(),
        );
    }
    let ratio = ratio(&diff.before, &diff.after);
    if !options.per_second && !(0.9..=1.1).contains(&ratio) {
        out.push(format!("B is {ratio:.2} times as long as A: --per-second compares rates."));
    }
    out
}

/// Length of the second side over that of the first.
fn ratio(before: &SideRow, after: &SideRow) -> f64 {
    let mean = |side: &SideRow| {
        side.runs.iter().map(|run| run.length as f64).sum::<f64>() / side.runs.len().max(1) as f64
    };
    mean(after) / mean(before).max(1.0)
}
