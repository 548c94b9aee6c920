//! Telling growth that goes on from everything that looks like it: the verdict on what was not seen freed.
//!
//! An allocation that is live at the end of a trace is no leak; most are young, or belong to a cache that fills, or
//! were freed without an event. What speaks for a leak is that objects older than their kind ever gets stay, that
//! they were born all through the window, and as many late in it as early. Each of these is a number here, and the
//! verdict follows from them by fixed rules; so it can be checked, and be wrong for a reason.

pub mod families;
pub mod tasks;

use crate::collect::growth::{Numbers, STEPS, Steps, Survival};

/// What is made of survivors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// They are older than their kind gets, come steadily and do not become fewer.
    Grows,
    /// So are they, but they come in batches, again and again.
    Batches,
    /// So do they, but the kernel takes them back when it needs memory.
    Reclaimable,
    /// They belong to objects of a reclaimable cache, one each.
    WithReclaimable,
    /// They belong to tasks that started in the window and still run.
    WithTasks,
    /// They are the slab allocator's own, one for each slab.
    WithSlabs,
    /// They came early, and hardly any later: a cache or a pool that filled.
    Warming,
    /// They came in few bursts: something started and stays.
    Burst,
    /// The kernel frees them late and all at once, by design.
    Lazy,
    /// Frees of this kind are often not seen, so survivors may be long dead.
    FreesUnseen,
    /// Their kind lives about as long as the window: it is too short for a verdict.
    TooShort,
    /// Most of them cross a loss.
    Uncertain,
    /// They are young, as live objects of their kind are: ordinary turnover.
    Young,
    /// Too few for a verdict.
    Few,
}

impl Verdict {
    /// Whether it says that memory grows.
    pub fn is_growth(self) -> bool {
        matches!(self, Self::Grows | Self::Batches)
    }

    /// For machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grows => "grows",
            Self::Batches => "grows_in_batches",
            Self::Reclaimable => "reclaimable",
            Self::WithReclaimable => "with_reclaimable",
            Self::WithTasks => "with_tasks",
            Self::WithSlabs => "with_slabs",
            Self::Warming => "warming",
            Self::Burst => "burst",
            Self::Lazy => "lazy",
            Self::FreesUnseen => "frees_unseen",
            Self::TooShort => "window_too_short",
            Self::Uncertain => "uncertain",
            Self::Young => "young",
            Self::Few => "few",
        }
    }
}

/// Numbers that a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// The verdict.
    pub verdict: Verdict,
    /// Objects, or pages, that are live at the end.
    pub survivors: u64,
    /// Bytes, or pages, of them.
    pub amount: u64,
    /// Those of them that are older than their kind gets.
    pub old: u64,
    /// Bytes, or pages, of those.
    pub old_amount: u64,
    /// Allocations in the steps that the old ones come from.
    pub old_births: u64,
    /// Steps with old survivors, and steps that could have some.
    pub steps: (usize, usize),
    /// Old survivors of the first half of those steps, and of the second.
    pub halves: (u64, u64),
    /// The age beyond which an object counts as old, in the clock's unit.
    pub old_age: u64,
    /// Freed in the window, and found gone in it.
    pub freed: (u64, u64),
    /// The step with the first old survivors, where growth began that late.
    pub began: Option<usize>,
    /// How many batches of steps with old survivors there are.
    pub batches: usize,
}

/// Fewer survivors are no evidence.
const SURVIVORS_MIN: u64 = 16;
/// Share of lives that ended unseen from which frees count as not seen, in percent.
const UNSEEN_PERCENT: u64 = 5;
/// Share of their births that old survivors have to be, in percent, where frees have no event.
const UNSEEN_OLD_PERCENT_MIN: u64 = 5;
/// The last steps of a window: whoever is born in them is young by any measure.
const YOUNG_STEPS: usize = STEPS / 8;
/// How many times as old as 99 of 100 freed ones an object has to be.
const AGE_FACTOR: u64 = 3;

/// The verdict on one course; `step` is the length of a step. Whether it can be reclaimed is for others to say.
pub fn judge(course: &Survival, step: u64) -> Evidence {
    let step = step.max(1);
    let (survivors, amount) = (course.survivors.sum(), course.survivor_amount.sum());
    let (of_survivors, of_amount, of_births) =
        (course.survivors.all(), course.survivor_amount.all(), course.births.all());
    let freed = course.lifetimes.count();
    let usual = course.lifetimes.quantile(990).filter(|_| freed > 0).unwrap_or(0);
    // What was freed without an event is found out when its place is used again: who is younger may be free already.
    let found_out = course.unseen_ages.quantile(990).filter(|_| frees_are_unseen(freed, course.unseen));
    let usual = usual.max(found_out.unwrap_or(0));
    // As many steps at the end are left out as such an age covers.
    let young = (usual.saturating_mul(AGE_FACTOR) / step).saturating_add(1).max(YOUNG_STEPS as u64);
    let old_steps = STEPS.saturating_sub(usize::try_from(young).unwrap_or(STEPS));
    let old_part = of_survivors.get(..old_steps).unwrap_or_default();
    let half = |range: &[u64]| range.iter().sum::<u64>();
    let halves = old_part.split_at(old_steps / 2);
    let mut evidence = Evidence {
        verdict: Verdict::Few,
        survivors,
        amount,
        old: half(old_part),
        old_amount: half(of_amount.get(..old_steps).unwrap_or_default()),
        old_births: half(of_births.get(..old_steps).unwrap_or_default()),
        steps: (old_part.iter().filter(|&&n| n > 0).count(), old_steps),
        halves: (half(halves.0), half(halves.1)),
        old_age: young.saturating_mul(step),
        freed: (freed, course.unseen),
        began: None,
        batches: batches(old_part).len(),
    };
    evidence.verdict = verdict(&evidence, course.uncertain);
    if evidence.verdict == Verdict::Burst {
        if let Some(began) = began(old_part) {
            (evidence.verdict, evidence.began) = (Verdict::Grows, Some(began));
        } else if comes_in_batches(old_part) {
            evidence.verdict = Verdict::Batches;
        }
    }
    evidence
}

fn verdict(e: &Evidence, uncertain: u64) -> Verdict {
    let (freed, unseen) = e.freed;
    if e.survivors < SURVIVORS_MIN {
        return Verdict::Few;
    }
    if uncertain * 2 > e.survivors {
        return Verdict::Uncertain;
    }
    // Less than a quarter of the window is left to look for old ones in.
    if e.steps.1 < STEPS / 4 {
        return if frees_are_unseen(freed, unseen) { Verdict::FreesUnseen } else { Verdict::TooShort };
    }
    if e.old < SURVIVORS_MIN {
        return Verdict::Young;
    }
    // One in a hundred of those that are gone is found out later than that age.
    if frees_are_unseen(freed, unseen) && may_be_unseen(e) {
        return Verdict::FreesUnseen;
    }
    // The second half brings less than half of what the first did: it saturates.
    if e.halves.1 * 2 < e.halves.0 {
        return if e.steps.0 < 3 { Verdict::Burst } else { Verdict::Warming };
    }
    if e.steps.0 * 2 < e.steps.1 {
        return Verdict::Burst;
    }
    Verdict::Grows
}

/// Whether frees without an event, which may be detected late or never, can explain these survivors.
pub fn may_be_unseen(e: &Evidence) -> bool {
    e.old * 100 < e.old_births * UNSEEN_OLD_PERCENT_MIN
}

/// Whether so many lives ended without an event that survivors may have.
fn frees_are_unseen(freed: u64, unseen: u64) -> bool {
    unseen >= SURVIVORS_MIN && unseen * 100 > (freed + unseen) * UNSEEN_PERCENT
}

/// Runs of steps with old survivors, and how many each has; one empty step does not end a run.
fn batches(old: &[u64]) -> Vec<(usize, u64)> {
    let mut out: Vec<(usize, usize, u64)> = Vec::new();
    for (step, &count) in old.iter().enumerate().filter(|(_, count)| **count > 0) {
        match out.last_mut() {
            Some((_, last, sum)) if step - *last <= 2 => (*last, *sum) = (step, *sum + count),
            _ => out.push((step, step, count)),
        }
    }
    out.into_iter().map(|(first, _, sum)| (first, sum)).collect()
}

/// The step in which steady growth began, and went on to the last old one.
fn began(old: &[u64]) -> Option<usize> {
    let first = old.iter().position(|&count| count > 0)?;
    let tail = old.get(first..)?;
    let busy = tail.iter().filter(|&&count| count > 0).count();
    let (early, late) = tail.split_at(tail.len() / 2);
    let (early, late) = (early.iter().sum::<u64>(), late.iter().sum::<u64>());
    let is_steady = busy * 4 >= tail.len() * 3 && late * 2 >= early && early * 3 >= late;
    (first > 0 && tail.len() >= STEPS / 6 && is_steady).then_some(first)
}

/// Three batches or more of like size, the last one not long ago.
fn comes_in_batches(old: &[u64]) -> bool {
    let batches = batches(old);
    let most = batches.iter().map(|b| b.1).max().unwrap_or(0);
    let like = batches.iter().filter(|b| b.1 * 3 >= most).count();
    let is_recent = batches.last().is_some_and(|(step, _)| *step * 3 >= old.len() * 2);
    batches.len() >= 3 && like == batches.len() && is_recent
}

/// A course less other survivors, step by step.
pub fn without(course: &Survival, other: &Numbers) -> Survival {
    let mut left = course.survivors.all();
    left.iter_mut().zip(other).for_each(|(left, &gone)| *left = left.saturating_sub(gone));
    Survival { survivors: Steps::from(&left), ..course.clone() }
}

/// Whether two courses are of objects that come in pairs: their survivors were born in the same steps.
pub fn goes_with(one: &Survival, other: &Survival) -> bool {
    goes_with_until(&one.survivors.all(), &other.survivors.all(), STEPS)
}

/// The same of the first `steps` steps: later survivors may be free already.
pub fn goes_with_until(one: &Numbers, other: &Numbers, steps: usize) -> bool {
    apart(one, other, steps).is_some_and(|apart| apart <= 0.2)
}

/// How far apart the distributions are of when survivors were born, from 0 to 2; `None` where there are none.
fn apart(one: &Numbers, other: &Numbers, steps: usize) -> Option<f64> {
    let old = |survivors: &Numbers| survivors.iter().take(steps).sum::<u64>();
    let (a, b) = (old(one), old(other));
    if a == 0 || b == 0 {
        return None;
    }
    let both = one.iter().zip(other).take(steps);
    Some(both.map(|(&x, &y)| (x as f64 / a as f64 - y as f64 / b as f64).abs()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(survivors: impl Fn(usize) -> u64, lifetime: u64, freed: u64) -> Survival {
        let mut course = Survival::default();
        for step in 0..STEPS {
            course.survivors.add(step, survivors(step));
            course.survivor_amount.add(step, survivors(step) * 64);
            course.births.add(step, survivors(step) + freed / STEPS as u64);
        }
        (0..freed).for_each(|_| course.lifetimes.add(lifetime));
        course
    }

    #[test]
    fn lives_as_long_as_the_clock_make_all_of_it_young() {
        let found = judge(&course(|_| 5, u64::MAX, 3200), 1);
        assert_eq!((found.verdict, found.old), (Verdict::TooShort, 0));
    }

    #[test]
    fn steady_growth_is_told_from_filling_and_turnover() {
        let verdict = |c: &Survival| judge(c, 1000).verdict;
        assert_eq!(verdict(&course(|_| 5, 100, 3200)), Verdict::Grows);
        assert_eq!(verdict(&course(|_| 5, 100, 0)), Verdict::Grows);
        assert_eq!(verdict(&course(|s| 64 >> (s / 2).min(10), 100, 3200)), Verdict::Warming);
        assert_eq!(verdict(&course(|s| if s == 20 { 500 } else { 0 }, 100, 3200)), Verdict::Burst);
        assert_eq!(verdict(&course(|s| if s == 0 { 500 } else { 0 }, 100, 3200)), Verdict::Burst);
        assert_eq!(verdict(&course(|s| if s > 29 { 500 } else { 0 }, 100, 3200)), Verdict::Young);
        assert_eq!(verdict(&course(|_| 5, 20_000, 3200)), Verdict::TooShort);
        assert_eq!(verdict(&course(|s| u64::from(s < 10), 100, 3200)), Verdict::Few);
        assert_eq!(verdict(&course(|s| if s > 19 { 9 } else { 0 }, 100, 3200)), Verdict::Grows);
        assert_eq!(judge(&course(|s| if s > 19 { 9 } else { 0 }, 100, 3200), 1000).began, Some(20));
        let four = course(|s| if s % 7 == 2 { 60 } else { 0 }, 100, 3200);
        assert_eq!((verdict(&four), judge(&four, 1000).batches), (Verdict::Batches, 4));
        // Some ends have no event: those are found out by an age of 200, or of half the window.
        let mut unseen = course(|_| 6, 100, 3200);
        unseen.unseen = 400;
        (0..400).for_each(|_| unseen.unseen_ages.add(200));
        assert_eq!(verdict(&unseen), Verdict::Grows);
        let few = Survival { births: Steps::from(&[1_000; STEPS]), ..unseen.clone() };
        assert_eq!(verdict(&few), Verdict::FreesUnseen, "less than one in a hundred, as may be chance");
        (0..400).for_each(|_| unseen.unseen_ages.add(16_000));
        assert_eq!(verdict(&unseen), Verdict::FreesUnseen);
        let mut lost = course(|_| 5, 100, 3200);
        lost.uncertain = 100;
        assert_eq!(verdict(&lost), Verdict::Uncertain);
    }

    #[test]
    fn pairs_are_born_together() {
        let (a, b) = (course(|s| (s as u64 * 7) % 13, 1, 0), course(|s| ((s as u64 * 7) % 13) * 3, 1, 0));
        assert!(goes_with(&a, &b));
        assert!(!goes_with(&a, &course(|s| 32 - s as u64, 1, 0)));
    }
}
