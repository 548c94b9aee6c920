//! Difference of two numbers, compared with their own variation, and the rows of changes made of it.
//!
//! A run is cut into equal parts; their variation is the noise if a side has one run. Rows of a figure (allocated or live bytes)
//! are sorted, the largest change first.

use serde::{Serialize, Serializer};

use super::DiffOptions;
use crate::sort_rows::SortRows;

/// Parts of a run, whose variation is the noise if a side has one run.
pub const PARTS: usize = 16;

/// One figure of one run: its total, and its share of each of equal parts of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DiffFigure {
    pub total: f64,
    /// Share of each part of the run; they add up to the total.
    pub parts: [f64; PARTS],
    /// Number of events of the figure: it limits the precision.
    pub count: f64,
}

/// Weight of the Poisson variance where runs are repeated, in runs.
const PRIOR_DEGREES: f64 = 6.0;

impl DiffFigure {
    /// Smallest variation of a figure, as a share of the variation of random events.
    const LEAST: f64 = 0.5;

    /// Adds another figure.
    pub fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.count += other.count;
        self.parts.iter_mut().zip(other.parts).for_each(|(a, b)| *a += b);
    }

    /// Same figure for a run of another length.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { total: self.total * factor, parts: self.parts.map(|p| p * factor), count: self.count * factor }
    }

    /// Variance of the total, from the parts: if they are independent, the variance of a sum is the sum of the
    /// variances.
    ///
    /// A figure that is active in most parts is judged by the steps from part to part (von Neumann's estimate), without the
    /// largest quarter of them: a program starts and ends, and has phases. A figure of bursts is judged as a whole.
    fn variance_by_parts(&self) -> f64 {
        let count = PARTS as f64;
        let mean = self.parts.iter().sum::<f64>() / count;
        let busy = self.parts.iter().filter(|p| p.abs() > mean.abs() / 4.0).count();
        if busy * 2 >= PARTS {
            let mut steps: Vec<f64> = self.parts.windows(2).map(|w| (w[1] - w[0]).powi(2) / 2.0).collect();
            steps.sort_rows_by(f64::total_cmp);
            steps.truncate(steps.len() - steps.len() / 4);
            return steps.iter().sum::<f64>() / steps.len() as f64 * count;
        }
        let squares: f64 = self.parts.iter().map(|p| (p - mean).powi(2)).sum();
        squares / (count - 1.0) * count
    }

    /// Smallest variance: that of half the variation of random events (Poisson). A loop of a program varies less than random
    /// events, but never by nothing.
    fn variance_min(&self) -> f64 {
        if self.count <= 0.0 {
            return 0.0;
        }
        let each = self.parts.iter().map(|p| p.abs()).sum::<f64>().max(self.total.abs()) / self.count;
        each * each * self.count * Self::LEAST * Self::LEAST
    }
}

/// Score of a change that chance brings to less than 1 of 2,000 rows: one of several hundred rows may have it.
const LIKELY: f64 = 4.0;

/// Difference of two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Mean of the first side.
    pub before: f64,
    /// Mean of the second side.
    pub after: f64,
    /// Standard error of the difference.
    pub noise: f64,
    /// The difference in standard errors.
    pub score: f64,
    /// Standard errors that a difference beyond noise needs.
    pub needed: f64,
    /// Smallest change that matters, even beyond noise.
    pub least: f64,
}

impl Difference {
    /// Second mean minus the first.
    pub fn change(&self) -> f64 {
        self.after - self.before
    }

    /// Same difference, where a change of at most `least` does not matter.
    pub fn beyond(self, least: f64) -> Self {
        Self { least, ..self }
    }

    /// Smallest change that would be beyond noise, and would matter.
    pub fn least_beyond_noise(&self) -> f64 {
        (self.needed * self.noise).max(self.least)
    }

    /// True if it matters, and is several times the noise, but not beyond what chance brings among that many rows.
    pub fn is_likely(&self) -> bool {
        !self.is_real() && self.score.abs() >= LIKELY && self.change().abs() > self.least
    }

    /// True if it is beyond noise, and matters.
    pub fn is_real(&self) -> bool {
        self.score.abs() >= self.needed && self.change().abs() > self.least
    }
}

/// Smallest score of a real difference for these numbers of runs and of compared figures: by chance one of them exceeds
/// it in less than one of a hundred comparisons. Computing it takes 0.2 ms.
pub fn needed(runs_before: usize, runs_after: usize, tests: usize) -> f64 {
    let degrees = degrees_between(runs_before, runs_after);
    let degrees = if degrees >= 1.0 { PRIOR_DEGREES + degrees } else { 2.0 * (PARTS as f64 - 1.0) };
    exceeded_by_chance(degrees, tests)
}

/// Degrees of freedom of the runs of two sides.
fn degrees_between(runs_before: usize, runs_after: usize) -> f64 {
    (runs_before.saturating_sub(1) + runs_after.saturating_sub(1)) as f64
}

/// Compares the runs of two sides.
///
/// The variation is that between the runs of a side, or between the parts of its one run.
pub fn compare(before: &[DiffFigure], after: &[DiffFigure], needed: f64) -> Difference {
    let mean = |runs: &[DiffFigure]| mean_of(runs, |r| r.total);
    let (a, b) = (mean(before), mean(after));
    let spread = |runs: &[DiffFigure]| runs.iter().map(|r| (r.total - mean(runs)).powi(2)).sum::<f64>();
    let degrees = degrees_between(before.len(), after.len());
    let parts = |runs: &[DiffFigure], variance: fn(&DiffFigure) -> f64| mean_of(runs, variance);
    let least = |runs: &[DiffFigure]| parts(runs, DiffFigure::variance_min);
    let variance = if degrees >= 1.0 {
        // Few runs may agree by chance, so the Poisson variance is mixed in, with the weight of some more runs (the
        // moderated t of Smyth, "Linear models and empirical Bayes methods", 2004).
        let per_run = 1.0 / before.len().max(1) as f64 + 1.0 / after.len().max(1) as f64;
        let pooled = (spread(before) + spread(after)) / degrees;
        let chance = (least(before) + least(after)) / 2.0 / (DiffFigure::LEAST * DiffFigure::LEAST);
        let mixed = (PRIOR_DEGREES * chance + degrees * pooled) / (PRIOR_DEGREES + degrees);
        mixed.max(pooled) * per_run
    } else {
        let side = |runs: &[DiffFigure]| parts(runs, DiffFigure::variance_by_parts).max(least(runs));
        side(before) + side(after)
    };
    let noise = variance.sqrt();
    let score = if noise > 0.0 { (b - a) / noise } else { 0.0 };
    Difference { before: a, after: b, noise, score, needed, least: 0.0 }
}

fn mean_of(runs: &[DiffFigure], of: impl Fn(&DiffFigure) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
}

/// Score that one of `tests` figures exceeds by chance in less than one of a hundred comparisons (Bonferroni), by
/// Student's distribution.
fn exceeded_by_chance(degrees: f64, tests: usize) -> f64 {
    let chance = 0.01 / tests.max(1) as f64 / 2.0;
    // Bisection: the tail falls with the score.
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if tail(middle, degrees) > chance { low = middle } else { high = middle }
    }
    high
}

/// Probability of a score above `t` under Student's distribution with `n` degrees of freedom, by numeric integration:
/// substituting t = sqrt(n) tan(u) leaves an integral of cos^(n-1) over a finite range.
fn tail(t: f64, n: f64) -> f64 {
    const STEPS: usize = 400;
    let density = |u: f64| u.cos().max(0.0).powf(n - 1.0);
    let end = std::f64::consts::FRAC_PI_2;
    let area = |from: f64| {
        let width = (end - from) / STEPS as f64;
        // Simpson's rule.
        let sum: f64 = (0..=STEPS)
            .map(|i| {
                let weight = match i {
                    0 | STEPS => 1.0,
                    i if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                weight * density(from + width * i as f64)
            })
            .sum();
        sum * width / 3.0
    };
    area((t / n.sqrt()).atan()) / (2.0 * area(0.0))
}

/// Rows of one figure.
#[derive(Debug)]
pub struct Changes {
    /// Those beyond noise and those that are likely, or all; the largest change first.
    pub rows: Vec<NameRow>,
    /// Number of them, including those beyond the limit.
    pub total: usize,
}

impl Changes {
    /// Of all rows.
    pub fn of(rows: &[NameRow], figure: fn(&NameRow) -> &Difference, options: &DiffOptions) -> Self {
        let mut found: Vec<&NameRow> = rows
            .iter()
            .filter(|row| options.all || figure(row).is_real() || figure(row).is_likely())
            .collect();
        let change = |row: &NameRow| figure(row).change().abs();
        let rank = |row: &NameRow| (figure(row).is_real(), figure(row).is_likely());
        found.sort_rows_by(|a, b| rank(b).cmp(&rank(a)).then(change(b).total_cmp(&change(a))));
        let rows = found.iter().take(options.output.rows()).map(|row| (*row).clone());
        Self { rows: rows.collect(), total: found.len() }
    }
}

/// Difference of one name.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NameRow {
    /// `kmalloc`, `cache`, `slab` or `pages`.
    pub kind: &'static str,
    /// Name.
    pub name: String,
    /// True if the objects are of a cache that the kernel shrinks when memory is short; false with `--by task` and `module`.
    pub is_reclaimable: bool,
    /// Bytes allocated.
    #[serde(serialize_with = "rounded")]
    #[cfg_attr(test, schemars(with = "FigureRow"))]
    pub bytes_alloc: Difference,
    /// Bytes live at the end, of those allocated in the trace.
    #[serde(serialize_with = "rounded")]
    #[cfg_attr(test, schemars(with = "FigureRow"))]
    pub bytes_live: Difference,
    /// Share of the allocated bytes of its kind before: of slab objects, or of pages.
    pub share_before_percent: f64,
    /// Share of the allocated bytes of its kind after: of slab objects, or of pages.
    pub share_after_percent: f64,
}

/// Difference of one figure in JSON; bytes are rounded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureRow {
    /// Mean of the runs of the first side.
    pub before: f64,
    /// Mean of the runs of the second side.
    pub after: f64,
    /// The second less the first.
    pub change: f64,
    /// Standard error of the change.
    pub noise: f64,
    /// The change in standard errors.
    pub score: f64,
    /// Smallest score of a change beyond noise.
    pub score_needed: f64,
    /// Changes of at most this do not matter.
    pub least_that_matters: f64,
    /// Smallest change that would be beyond noise, and would matter.
    pub least_beyond_noise: f64,
    /// True if the change is beyond noise, and matters.
    pub is_real: bool,
}

fn rounded<S: Serializer>(exact: &Difference, serializer: S) -> Result<S::Ok, S::Error> {
    let row = FigureRow {
        before: exact.before.round(),
        after: exact.after.round(),
        change: exact.change().round(),
        noise: exact.noise.round(),
        score: exact.score,
        score_needed: exact.needed,
        least_that_matters: exact.least.round(),
        least_beyond_noise: exact.least_beyond_noise().round(),
        is_real: exact.is_real(),
    };
    row.serialize(serializer)
}

impl NameRow {
    /// True if it differs beyond noise.
    pub fn is_real(&self) -> bool {
        self.bytes_alloc.is_real() || self.bytes_live.is_real()
    }

    /// The larger change of allocated and of live bytes.
    pub fn weight(&self) -> f64 {
        self.bytes_live.change().abs().max(self.bytes_alloc.change().abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(before: &[DiffFigure], after: &[DiffFigure], tests: usize) -> Difference {
        super::compare(before, after, needed(before.len(), after.len(), tests))
    }

    fn steady(total: f64, wobble: f64) -> DiffFigure {
        let mut parts = [total / PARTS as f64; PARTS];
        parts.iter_mut().enumerate().for_each(|(i, p)| *p += if i % 2 == 0 { wobble } else { -wobble });
        DiffFigure { total, parts, count: total / 100.0 }
    }

    #[test]
    fn the_tail_is_students() {
        // Tables: 97.5 % of Student's distribution.
        for (degrees, score) in [(1.0, 12.706), (4.0, 2.776), (30.0, 2.042), (1000.0, 1.962)] {
            assert!((tail(score, degrees) - 0.025).abs() < 2e-4, "{degrees}: {}", tail(score, degrees));
        }
        assert!((exceeded_by_chance(30.0, 1) - 2.75).abs() < 0.01);
    }

    #[test]
    fn five_percent_of_a_steady_loop_are_seen_and_two_are_not() {
        let of = |total| steady(total, 0.0);
        assert!(compare(&[of(800_000.0)], &[of(840_000.0)], 300).is_real());
        assert!(!compare(&[of(800_000.0)], &[of(810_000.0)], 300).is_real());
        assert!(!compare(&[of(8_000.0)], &[of(8_400.0)], 300).is_real(), "few objects say less");
    }

    #[test]
    fn the_least_change_beyond_noise_is_where_changes_become_real() {
        let a = steady(800_000.0, 9_000.0);
        let least = compare(&[a], &[a], 300).least_beyond_noise();
        let more = |factor: f64| {
            let by = least * factor;
            DiffFigure { total: a.total + by, parts: a.parts.map(|part| part + by / PARTS as f64), ..a }
        };
        assert!(compare(&[a], &[more(1.02)], 300).is_real() && !compare(&[a], &[more(0.95)], 300).is_real());
        assert_eq!(compare(&[a], &[a], 300).beyond(2.0 * least).least_beyond_noise(), 2.0 * least);
    }

    #[test]
    fn a_change_of_four_times_the_noise_is_likely() {
        let of = |score: f64, least: f64| {
            let (before, noise) = (100.0, 10.0);
            Difference { before, after: before + score * noise, noise, score, needed: 4.6, least }
        };
        assert!(of(4.3, 0.0).is_likely() && of(-4.3, 0.0).is_likely());
        assert!(!of(3.9, 0.0).is_likely() && !of(4.3, 50.0).is_likely());
        assert!(!of(4.7, 0.0).is_likely() && of(4.7, 0.0).is_real());
    }

    #[test]
    fn what_is_real_may_not_matter() {
        let found = compare(&[steady(800_000.0, 0.0)], &[steady(840_000.0, 0.0)], 300);
        assert!(found.is_real() && !found.beyond(50_000.0).is_real());
    }

    #[test]
    fn what_varies_within_a_run_may_differ_between_runs() {
        let wild = |total| steady(total, 20_000.0);
        assert!(!compare(&[wild(800_000.0)], &[wild(840_000.0)], 300).is_real());
        let mut burst = DiffFigure { total: 500_000.0, count: 5_000.0, ..DiffFigure::default() };
        burst.parts[3] = 500_000.0;
        assert!(!compare(&[burst], &[DiffFigure::default()], 300).is_real(), "one burst may come or not");
    }

    #[test]
    fn repeated_runs_tell_what_is_noise() {
        let runs = |totals: &[f64]| totals.iter().map(|&t| steady(t, 0.0)).collect::<Vec<_>>();
        let (a, b) = (runs(&[800_000.0, 830_000.0, 770_000.0]), runs(&[840_000.0, 800_000.0, 860_000.0]));
        assert!(!compare(&a, &b, 100).is_real());
        let (a, b) = (
            runs(&[800_000.0, 800_500.0, 799_500.0, 800_100.0]),
            runs(&[840_000.0, 840_400.0, 839_500.0, 840_200.0]),
        );
        assert!(compare(&a, &b, 100).is_real());
    }
}
