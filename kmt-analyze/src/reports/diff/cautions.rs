//! Limits of a comparison: losses, builds, lengths.

use super::DiffOptions;
use super::profile::RunRow;
use super::rows::DiffRows;

/// Sentences on losses, builds and lengths that limit the comparison.
pub fn sentences(DiffRows { diff }: &DiffRows, options: &DiffOptions) -> Vec<String> {
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
    match ratio(&diff.before.runs, &diff.after.runs) {
        None => out
            .push("The lengths of A and B cannot be compared: their clocks have different units.".to_owned()),
        Some(ratio) if differs(ratio) && options.per_second != Some(true) => {
            let has_rates = diff.before.runs.iter().chain(&diff.after.runs).all(|run| run.seconds.is_some());
            let figures = match (options.rates, options.per_second) {
                (true, _) => ": rates are compared (--totals compares totals)",
                (false, None) if has_rates => ": totals are compared (--per-second compares rates)",
                _ => "",
            };
            out.push(format!("B is {ratio:.2} times as long as A{figures}."));
        }
        _ => {}
    }
    out
}

/// True for lengths of which totals cannot be compared.
pub fn differs(ratio: f64) -> bool {
    !(0.9..=1.1).contains(&ratio)
}

/// Length of the second side over that of the first. `None`: seconds beside ticks, or ticks of two clocks.
pub fn ratio(before: &[RunRow], after: &[RunRow]) -> Option<f64> {
    let mean = |side: &[RunRow], length: fn(&RunRow) -> Option<f64>| {
        let lengths: Option<Vec<f64>> = side.iter().map(length).collect();
        lengths.map(|lengths| lengths.iter().sum::<f64>() / lengths.len().max(1) as f64)
    };
    let of = |length: fn(&RunRow) -> Option<f64>| {
        Some(mean(after, length)? / mean(before, length)?.max(f64::MIN_POSITIVE))
    };
    let mut clocks = before.iter().chain(after).map(|run| &run.clock);
    let first = clocks.next();
    let is_one_clock = clocks.all(|clock| Some(clock) == first);
    of(|run| run.seconds).or_else(|| of(|run| Some(run.length as f64)).filter(|_| is_one_clock))
}
