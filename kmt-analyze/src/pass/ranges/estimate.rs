//! Extrapolates a total from thinned traces to the trace without losses.
//!
//! Input are the totals of the trace and those of thinned traces (`thin`, `places`). The effect of the losses on a
//! total is extrapolated from the effect of the thinnings, by the class of the total (`figures::Effect`); constants
//! come from recordings that were compared with complete ones. The result is a range for each figure of `summary`.

use crate::pass::figures::{Effect, Figure, Most};

/// Range of a total that losses made uncertain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Lowest.
    pub low: f64,
    /// Highest; `None`: nothing bounds it.
    pub high: Option<f64>,
}

/// Losses of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Lost {
    /// Lost share of all events.
    pub share: f64,
    /// Number of lost events.
    pub events: f64,
    /// True if the lost events are like the others: many gaps, at known places, and no CPU lost most of its events.
    pub is_even: bool,
}

/// Values of a total in the trace and in each thinning of it.
#[derive(Debug)]
pub struct ThinnedTotals {
    /// Value without thinning.
    pub whole: f64,
    /// Share of operations kept by a thinning, and the value.
    pub thinned: Vec<(f64, f64)>,
}

// The constants were chosen on s390x-6.1 and three captures of x86_64-6.1, with three patterns of loss: random
// sub-buffers, bursts of 20, a slow reader (tests/program/ranges.rs); those for uneven sums also on docs/sample.

/// Standard deviations on either side: 95 % for a deviation that is itself estimated from few cases, and a margin for
/// errors that are not normal.
const DEVIATIONS: f64 = 3.2;
/// Standard deviations of totals that losses raise or lower: a few objects more or less are not normally distributed.
const DEVIATIONS_EITHER: f64 = 3.5;
/// Error of the exponent of a falling total: thinning the remaining events does not show the full effect of the losses,
/// which occurred under load.
const EXPONENT_ERROR: f64 = 0.35;
/// Error of the exponent of a sum dominated by few events.
const EXPONENT_ERROR_UNEVEN: f64 = 2.0;
/// Error of the curve of a total that losses raise or lower, in parts of the total and of the lost share.
const EITHER_ERROR: f64 = 2.5;
/// Error of the curve of a sum dominated by few events that losses raise or lower.
const EITHER_ERROR_UNEVEN: f64 = 4.0;
/// Smallest probability with which all of something is lost.
const ALL_LOST: f64 = 1e-4;
/// An extrapolated total below this part may be nothing.
const NEARLY_NOTHING: f64 = 0.6;
/// Lost share above which the curve is no bound: only the certain part is.
const HEAVY: f64 = 0.25;
/// Lost share above which no curve can be extrapolated: only the numbers of events bound a total.
pub const HOPELESS: f64 = 0.5;

impl Lost {
    /// True if thinnings show the effect of the losses.
    pub fn can_be_extrapolated(&self) -> bool {
        self.is_even && self.share <= HOPELESS
    }
}

/// Range of a figure; `None`: no range. `by_distance` are values in thinnings near to the losses and far from them: either
/// may be like the losses.
pub fn range(figure: &Figure, by_distance: &[ThinnedTotals], lost: Lost) -> Option<Range> {
    if lost.share <= 0.0 {
        return Some(Range { low: figure.value, high: Some(figure.value) });
    }
    if figure.effect == Effect::Clumped {
        return None;
    }
    let sure = sure(figure, lost);
    if !lost.can_be_extrapolated() {
        return Some(sure);
    }
    if figure.value <= 0.0 {
        let most = none_seen(lost.share);
        let is_count = matches!(figure.most, Most::PlusLost(_));
        return Some(if is_count {
            Range { high: sure.high.map(|sure| sure.min(most)), ..sure }
        } else {
            sure
        });
    }
    let bounds = by_distance.iter().filter(|totals| !totals.thinned.is_empty());
    let bounds = bounds.map(|totals| by_one(figure, totals, lost.share));
    let (low, high) = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let high = sure.high.map_or(high, |most| high.min(most)).max(sure.low);
    Some(Range { low: low.max(sure.low).min(high), high: Some(high) })
}

/// Range that holds for any lost events.
fn sure(figure: &Figure, lost: Lost) -> Range {
    let low = match figure.effect {
        Effect::Falls | Effect::FallsUnevenly | Effect::Pairs => figure.value,
        _ => figure.certain.min(figure.value),
    };
    let high = match figure.most {
        Most::PlusLost(most) => Some((most + lost.events).ceil()),
        Most::Fixed(most) => Some(most),
        Most::Unbounded => None,
    };
    Range { low, high }
}

/// Lowest and highest value by one distance.
fn by_one(figure: &Figure, totals: &ThinnedTotals, lost_share: f64) -> (f64, f64) {
    let kept = (1.0 - lost_share).max(1e-6);
    let range = match figure.effect {
        Effect::Falls | Effect::FallsUnevenly | Effect::Pairs | Effect::Clumped => {
            falls(figure, totals, kept)
        }
        Effect::Either | Effect::EitherUnevenly | Effect::Contradicted | Effect::Unpaired => {
            either(figure, totals, kept)
        }
    };
    let low = if figure.effect == Effect::Contradicted { range.0.min(figure.certain) } else { range.0 };
    (low.max(0.0), range.1.max(low))
}

/// Nothing was counted: the largest number of which all are lost with a probability of at least [`ALL_LOST`].
fn none_seen(lost_share: f64) -> f64 {
    (ALL_LOST.ln() / lost_share.ln()).ceil()
}

/// The logarithm of the total falls with that of the share kept.
fn falls(figure: &Figure, totals: &ThinnedTotals, kept: f64) -> (f64, f64) {
    let value = figure.value;
    let log_lost = -kept.ln();
    let points: Vec<(f64, f64)> = totals
        .thinned
        .iter()
        .map(|&(kept, total)| (-kept.max(1e-6).ln(), (totals.whole / total.max(0.5)).ln()))
        .collect();
    let (line, parabola) = fits(&points);
    let deviation = spread(&points, |x| line * x, totals, kept);
    let slope_error = deviation_of_slope(&points, line);
    // Missing part, by a line and by a parabola; pairs are lost once to twice as often as events.
    let straight = line * log_lost;
    let mut missing = (straight, straight);
    if figure.effect == Effect::Pairs {
        let bent = parabola.0 * log_lost - parabola.1 * log_lost * log_lost;
        let bent = bent.clamp(0.8 * log_lost, 2.2 * log_lost);
        missing = (straight.min(bent), straight.max(bent));
        if kept < 1.0 - HEAVY {
            missing.0 = missing.0.min(log_lost);
        }
    }
    let own = own_variance(figure, kept);
    let variance = deviation.powi(2) + (slope_error * log_lost).powi(2) + own;
    let is_uneven = figure.effect == Effect::FallsUnevenly;
    let exponent_error = if is_uneven { EXPONENT_ERROR_UNEVEN } else { EXPONENT_ERROR };
    let half = DEVIATIONS * variance.sqrt() + exponent_error * log_lost;
    let at = |missing: f64| (value.ln() + missing).exp();
    (at(missing.0 - half).floor(), at(missing.1 + half).ceil())
}

/// Variance of the total by chance, in parts of its square: a count has a deviation of its square root, and a sum of
/// sizes that differ as much as their mean has twice its variance.
fn own_variance(figure: &Figure, kept: f64) -> f64 {
    let sizes_differ = if figure.most == Most::Unbounded { 2.0 } else { 1.0 };
    sizes_differ * (1.0 - kept) / kept / figure.events.max(1.0)
}

/// The total depends on the share kept by a line or a parabola, either of which may be right.
fn either(figure: &Figure, totals: &ThinnedTotals, kept: f64) -> (f64, f64) {
    let scale_up = if totals.whole > 0.0 { figure.value / totals.whole } else { 1.0 };
    let points: Vec<(f64, f64)> =
        totals.thinned.iter().map(|&(kept, total)| (1.0 - kept, (total - totals.whole) * scale_up)).collect();
    let (line, parabola) = fits(&points);
    let curve = |x: f64| parabola.0 * x + parabola.1 * x * x;
    let deviation = spread(&points, curve, totals, kept);
    // Without losses, the share is 1 / kept of the remaining events.
    let back = 1.0 - 1.0 / kept;
    let (straight, bent) = (figure.value + line * back, figure.value + curve(back));
    let slope_error = deviation_of_slope(&points, line) * back.abs();
    let is_uneven = figure.effect == Effect::EitherUnevenly;
    let either_error = if is_uneven { EITHER_ERROR_UNEVEN } else { EITHER_ERROR };
    let own = own_variance(figure, kept) * figure.value.powi(2);
    let half = DEVIATIONS_EITHER * (deviation.powi(2) + slope_error.powi(2) + own).sqrt()
        + either_error * (1.0 - kept) * figure.value;
    // The true curve may bend once more than the parabola.
    let beyond = bent + (bent - straight);
    let (low, high) = (straight.min(beyond) - half, straight.max(beyond) + half);
    // Nearly all of it vanishes in the extrapolation: the rest may be nothing.
    let low = if low < figure.value * NEARLY_NOTHING { low.min(figure.certain) } else { low };
    if kept > 1.0 - HEAVY {
        return (low.floor(), high.ceil());
    }
    let most = match figure.effect {
        Effect::Unpaired => figure.value / kept,
        _ => figure.value * (1.0 - kept.ln()),
    };
    (figure.certain.min(low).floor(), high.max(most).ceil())
}

/// Least squares through the origin: the slope of a line, and both coefficients of a parabola.
fn fits(points: &[(f64, f64)]) -> (f64, (f64, f64)) {
    let sum = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let (xx, xxx, xxxx) = (sum(|p| p.0.powi(2)), sum(|p| p.0.powi(3)), sum(|p| p.0.powi(4)));
    let (xy, xxy) = (sum(|p| p.0 * p.1), sum(|p| p.0 * p.0 * p.1));
    let line = if xx > 0.0 { xy / xx } else { 0.0 };
    let determinant = xx * xxxx - xxx * xxx;
    // All at one share: a parabola cannot be distinguished from a line.
    if determinant <= 1e-6 * xx * xxxx {
        return (line, (line, 0.0));
    }
    (line, ((xy * xxxx - xxy * xxx) / determinant, (xxy * xx - xy * xxx) / determinant))
}

/// Deviation of the losses' own effect, from that of the thinnings around their curve. After a share was removed at
/// random, the rest deviates by the root of that share, in parts of the deviation of a sample of its size.
fn spread(points: &[(f64, f64)], curve: impl Fn(f64) -> f64, totals: &ThinnedTotals, kept: f64) -> f64 {
    let squares: f64 = points
        .iter()
        .zip(&totals.thinned)
        .map(|((x, y), (left, _))| {
            let odds = (1.0 - left).max(1e-9) / left.max(1e-9);
            (y - curve(*x)).powi(2) * (1.0 - kept) / odds
        })
        .sum();
    (squares / (points.len() as f64 - 2.0).max(1.0)).sqrt()
}

/// Standard error of a slope.
fn deviation_of_slope(points: &[(f64, f64)], slope: f64) -> f64 {
    let squares: f64 = points.iter().map(|p| (p.1 - slope * p.0).powi(2)).sum();
    let xx: f64 = points.iter().map(|p| p.0 * p.0).sum();
    (squares / (points.len() as f64 - 1.0).max(1.0) / xx.max(1e-12)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, effect: Effect) -> Figure {
        Figure {
            section: "slab",
            name: "x",
            value,
            certain: 0.0,
            effect,
            most: Most::Unbounded,
            events: value,
        }
    }

    /// The losses of a trace with a million events.
    fn lost(share: f64) -> Lost {
        Lost { share, events: 1e6 * share / (1.0 - share), is_even: true }
    }

    /// A total that is `of` the share kept, with `kept` of all events, thinned once and twice as much.
    fn check(kept: f64, effect: Effect, of: impl Fn(f64) -> f64) {
        let shares = [kept, kept * kept, kept * 1.001, kept * kept * 0.999];
        let thinned = shares.map(|share| (share, of(kept * share)));
        let totals = ThinnedTotals { whole: of(kept), thinned: thinned.to_vec() };
        let found = range(&figure(of(kept), effect), &[totals], lost(1.0 - kept)).unwrap();
        let high = found.high.unwrap();
        assert!(found.low <= of(1.0) && of(1.0) <= high, "{effect:?} {kept}: {} in {found:?}", of(1.0));
        let width = (high - found.low) / of(1.0);
        assert!(of(1.0) == 0.0 || width < 8.0 * (1.0 - kept), "{effect:?} {kept}: {found:?}");
    }

    #[test]
    fn without_noise_the_truth_is_found() {
        for kept in [0.99, 0.9, 0.8] {
            check(kept, Effect::Falls, |share| 1e6 * share);
            check(kept, Effect::Pairs, |share| 1e6 * share.powf(1.7));
            // Live objects: some are lost, some seem live.
            check(kept, Effect::Either, |share| 1e6 * (share + 0.5 * share * (1.0 - share)));
            // Only due to losses.
            check(kept, Effect::Either, |share| 1e6 * share * (1.0 - share));
        }
    }

    #[test]
    fn nothing_seen_is_not_nothing() {
        let totals = [ThinnedTotals { whole: 0.0, thinned: vec![(0.8, 0.0)] }];
        for effect in [Effect::Falls, Effect::Pairs, Effect::Either, Effect::Contradicted, Effect::Unpaired] {
            let bytes = figure(0.0, effect);
            assert_eq!(
                range(&bytes, &totals, lost(0.5)),
                Some(Range { low: 0.0, high: None }),
                "of any size"
            );
            let count = Figure { most: Most::PlusLost(0.0), ..bytes };
            // 2 ^ -14 is less than 1 of 10,000.
            assert_eq!(range(&count, &totals, lost(0.5)), Some(Range { low: 0.0, high: Some(14.0) }));
        }
        let whole = range(&figure(7.0, Effect::Clumped), &totals, lost(0.0)).unwrap();
        assert_eq!((whole.low, whole.high), (7.0, Some(7.0)), "nothing was lost");
        assert_eq!(range(&figure(7.0, Effect::Clumped), &totals, lost(0.1)), None, "nothing bounds it");
    }

    #[test]
    fn most_or_one_gap_missing_is_bounded_by_the_events_alone() {
        let totals = [ThinnedTotals { whole: 7.0, thinned: vec![(0.8, 6.0), (0.6, 5.0)] }];
        let few = Lost { share: 0.1, events: 20.0, is_even: false };
        for lost in [few, Lost { share: 0.6, is_even: true, ..few }] {
            for effect in [Effect::Falls, Effect::Pairs, Effect::Either, Effect::Contradicted] {
                let low = if matches!(effect, Effect::Falls | Effect::Pairs) { 7.0 } else { 0.0 };
                let bytes = figure(7.0, effect);
                assert_eq!(range(&bytes, &totals, lost), Some(Range { low, high: None }), "{effect:?}");
                let count = Figure { most: Most::PlusLost(7.0), ..bytes };
                assert_eq!(range(&count, &totals, lost), Some(Range { low, high: Some(27.0) }), "{effect:?}");
            }
        }
    }

    #[test]
    fn what_either_look_finds_is_inside() {
        let totals = |of: fn(f64) -> f64| {
            let thinned = [0.9, 0.81, 0.9, 0.81].map(|share| (share, 1e5 * of(share)));
            ThinnedTotals { whole: 1e5, thinned: thinned.to_vec() }
        };
        let all = figure(1e5, Effect::Falls);
        let (near, far) = (|share: f64| share.powf(0.5), |share: f64| share.powf(1.5));
        let one = |of| range(&all, &[totals(of)], lost(0.1)).unwrap();
        let both = range(&all, &[totals(near), totals(far)], lost(0.1)).unwrap();
        assert_eq!((both.low, both.high), (one(near).low, one(far).high));
    }
}
