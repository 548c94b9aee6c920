//! Whether two numbers differ by more than they vary by themselves.

/// Parts that a run is cut into, when there is no other run to compare it with.
pub const PARTS: usize = 16;

/// One figure of one run: its total, and what each of equal parts of the run brought.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figure {
    /// The total.
    pub total: f64,
    /// What each part brought; they add up to the total.
    pub parts: [f64; PARTS],
    /// Events that it comes from: no number is surer than its count.
    pub count: f64,
}

/// How many runs' worth chance is mixed in with where runs are repeated.
const PRIOR_DEGREES: f64 = 6.0;

impl Figure {
    /// Share of what events that come by chance vary, below which no figure is taken to vary.
    const LEAST: f64 = 0.5;

    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.count += other.count;
        self.parts.iter_mut().zip(other.parts).for_each(|(a, b)| *a += b);
    }

    /// The same for a run of another length.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { total: self.total * factor, parts: self.parts.map(|p| p * factor), count: self.count * factor }
    }

    /// How much the total varies, by its parts: if they are independent of each other, the variance of a sum is the
    /// sum of the variances.
    ///
    /// What goes on for most of the run is judged by the steps from part to part (von Neumann's estimate), without the
    /// largest quarter of them: a program starts and ends, and has phases. What comes in bursts is judged as a whole.
    fn variance_by_parts(&self) -> f64 {
        let count = PARTS as f64;
        let mean = self.parts.iter().sum::<f64>() / count;
        let busy = self.parts.iter().filter(|p| p.abs() > mean.abs() / 4.0).count();
        if busy * 2 >= PARTS {
            let mut steps: Vec<f64> = self.parts.windows(2).map(|w| (w[1] - w[0]).powi(2) / 2.0).collect();
            steps.sort_by(f64::total_cmp);
            steps.truncate(steps.len() - steps.len() / 4);
            return steps.iter().sum::<f64>() / steps.len() as f64 * count;
        }
        let squares: f64 = self.parts.iter().map(|p| (p - mean).powi(2)).sum();
        squares / (count - 1.0) * count
    }

    /// The least that it varies by, as a variance: half of what events that come by chance do (Poisson), squared. What a program does in a
    /// loop varies less than by chance, but something always varies.
    fn variance_min(&self) -> f64 {
        if self.count <= 0.0 {
            return 0.0;
        }
        let each = self.parts.iter().map(|p| p.abs()).sum::<f64>().max(self.total.abs()) / self.count;
        each * each * self.count * Self::LEAST * Self::LEAST
    }
}

/// What a difference comes to.
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
    /// How many standard errors it takes.
    pub needed: f64,
    /// How large the change has to be to matter, whatever the noise.
    pub least: f64,
}

impl Difference {
    /// The second less the first.
    pub fn change(&self) -> f64 {
        self.after - self.before
    }

    /// The same where a change of that much or less does not matter.
    pub fn beyond(self, least: f64) -> Self {
        Self { least, ..self }
    }

    /// Whether it is more than noise, and matters.
    pub fn is_real(&self) -> bool {
        self.score.abs() >= self.needed && self.change().abs() > self.least
    }
}

/// Score beyond which a difference is real, the same for all figures of a comparison: it takes 0.2 ms to find.
#[derive(Debug, Clone, Copy)]
pub struct Threshold(f64);

impl Threshold {
    /// For that number of runs of each side, and of figures that are compared together: chance would bring one of them
    /// beyond it less than once in a hundred such comparisons.
    pub fn of(runs_before: usize, runs_after: usize, tests: usize) -> Self {
        let degrees = degrees_between(runs_before, runs_after);
        let degrees = if degrees >= 1.0 { PRIOR_DEGREES + degrees } else { 2.0 * (PARTS as f64 - 1.0) };
        Self(needed(degrees, tests))
    }
}

/// Degrees of freedom that the runs of two sides leave.
fn degrees_between(runs_before: usize, runs_after: usize) -> f64 {
    (runs_before.saturating_sub(1) + runs_after.saturating_sub(1)) as f64
}

/// Compares the runs of two sides.
///
/// With two or more runs of a side, they tell how much it varies; with one, its parts do.
pub fn compare(before: &[Figure], after: &[Figure], threshold: Threshold) -> Difference {
    let mean = |runs: &[Figure]| mean_of(runs, |r| r.total);
    let (a, b) = (mean(before), mean(after));
    let spread = |runs: &[Figure]| runs.iter().map(|r| (r.total - mean(runs)).powi(2)).sum::<f64>();
    let degrees = degrees_between(before.len(), after.len());
    let parts = |runs: &[Figure], variance: fn(&Figure) -> f64| mean_of(runs, variance);
    let least = |runs: &[Figure]| parts(runs, Figure::variance_min);
    let variance = if degrees >= 1.0 {
        // Few runs may agree by chance, so chance alone is mixed in, as if it were some more of them (the moderated t of
        // Smyth, "Linear models and empirical Bayes methods", 2004).
        let per_run = 1.0 / before.len().max(1) as f64 + 1.0 / after.len().max(1) as f64;
        let pooled = (spread(before) + spread(after)) / degrees;
        let chance = (least(before) + least(after)) / 2.0 / (Figure::LEAST * Figure::LEAST);
        let mixed = (PRIOR_DEGREES * chance + degrees * pooled) / (PRIOR_DEGREES + degrees);
        mixed.max(pooled) * per_run
    } else {
        let side = |runs: &[Figure]| parts(runs, Figure::variance_by_parts).max(least(runs));
        side(before) + side(after)
    };
    let noise = variance.sqrt();
    let score = if noise > 0.0 { (b - a) / noise } else { 0.0 };
    Difference { before: a, after: b, noise, score, needed: threshold.0, least: 0.0 }
}

fn mean_of(runs: &[Figure], of: impl Fn(&Figure) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
}

/// Standard errors beyond which chance brings one of `tests` figures less than once in a hundred times (Bonferroni), by
/// Student's distribution.
fn needed(degrees: f64, tests: usize) -> f64 {
    let chance = 0.01 / tests.max(1) as f64 / 2.0;
    // Bisection: the tail falls with the score.
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if tail(middle, degrees) > chance { low = middle } else { high = middle }
    }
    high
}

/// The chance of a score above `t` under Student's distribution with `n` degrees of freedom, by adding up its density:
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

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(before: &[Figure], after: &[Figure], tests: usize) -> Difference {
        super::compare(before, after, Threshold::of(before.len(), after.len(), tests))
    }

    fn steady(total: f64, wobble: f64) -> Figure {
        let mut parts = [total / PARTS as f64; PARTS];
        parts.iter_mut().enumerate().for_each(|(i, p)| *p += if i % 2 == 0 { wobble } else { -wobble });
        Figure { total, parts, count: total / 100.0 }
    }

    #[test]
    fn the_tail_is_students() {
        // Tables: 97.5 % of Student's distribution.
        for (degrees, score) in [(1.0, 12.706), (4.0, 2.776), (30.0, 2.042), (1000.0, 1.962)] {
            assert!((tail(score, degrees) - 0.025).abs() < 2e-4, "{degrees}: {}", tail(score, degrees));
        }
        assert!((needed(30.0, 1) - 2.75).abs() < 0.01);
    }

    #[test]
    fn five_percent_of_a_steady_loop_are_seen_and_two_are_not() {
        let of = |total| steady(total, 0.0);
        assert!(compare(&[of(800_000.0)], &[of(840_000.0)], 300).is_real());
        assert!(!compare(&[of(800_000.0)], &[of(810_000.0)], 300).is_real());
        assert!(!compare(&[of(8_000.0)], &[of(8_400.0)], 300).is_real(), "few objects say less");
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
        let mut burst = Figure { total: 500_000.0, count: 5_000.0, ..Figure::default() };
        burst.parts[3] = 500_000.0;
        assert!(!compare(&[burst], &[Figure::default()], 300).is_real(), "one burst may come or not");
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
