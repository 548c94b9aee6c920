//! Survivors of one call site or one kind of pages, from their lives alone: the rules of docs/guide/growth.md.

use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};

use super::super::model::Lived;

const STEPS: u64 = 32;

/// The time of a recording in 32 steps.
#[derive(Clone, Copy)]
pub struct Window {
    pub first: u64,
    pub length: u64,
}

impl Window {
    fn step(self) -> u64 {
        self.length / STEPS + 1
    }

    fn place(self, time: u64) -> usize {
        ((time - self.first) / self.step()).min(STEPS - 1) as usize
    }
}

/// Lives of one kind.
pub struct Kind<'l> {
    pub window: Window,
    pub lives: Vec<&'l Lived>,
}

/// Survivors that are old, where the first `steps` steps are.
#[derive(Debug, Default)]
pub struct Evidence {
    pub steps: usize,
    pub survivors: u64,
    pub bytes: u64,
    pub uncertain: u64,
    pub old: u64,
    pub old_bytes: u64,
    /// Allocations in the old steps.
    pub births: u64,
    /// Old survivors by step.
    pub by_step: Vec<u64>,
    pub freed: u64,
    pub implied_frees: u64,
    /// Survivors of each task, and bytes of its old ones.
    pub tasks: HashMap<i64, (u64, u64)>,
    /// Where the old steps end.
    until: usize,
}

/// Survivors that are judged: of these steps, and of one task.
#[derive(Clone)]
pub struct Part {
    pub steps: Range<usize>,
    pub task: Option<i64>,
}

impl Kind<'_> {
    pub fn survives(&self) -> bool {
        self.lives.iter().any(|life| life.end.is_none())
    }

    fn ages(&self, by_event: bool) -> Vec<u64> {
        let ends = self.lives.iter().filter_map(|life| Some((life.born, life.end?)));
        let mut ages: Vec<u64> =
            ends.filter(|(_, end)| end.1 == by_event).map(|(born, end)| end.0 - born).collect();
        ages.sort_unstable();
        ages
    }

    /// Numbers of steps that can have old survivors: the program's percentiles are exact to 1/62.
    pub fn steps(&self) -> RangeInclusive<usize> {
        let p99 =
            |ages: &[u64]| ages.get((ages.len() * 99).div_ceil(100).wrapping_sub(1)).copied().unwrap_or(0);
        let (freed, implied) = (self.ages(true), self.ages(false));
        // The ages of pages at implied frees are not known to the program.
        let is_doubtful = lack_events(freed.len() as u64, implied.len() as u64);
        let is_object = self.lives.iter().all(|life| life.count == 1);
        let usual = p99(&freed).max(if is_doubtful && is_object { p99(&implied) } else { 0 });
        let steps = |usual: u64| {
            STEPS.saturating_sub((usual.saturating_mul(3) / self.window.step() + 1).max(4)) as usize
        };
        steps(usual + usual / 60)..=steps(usual - usual / 60)
    }

    pub fn evidence(&self, part: &Part) -> Evidence {
        let (first, steps) = (part.steps.start, part.steps.len());
        let by_step = vec![0; steps];
        let mut all = Evidence { steps, by_step, until: part.steps.end, ..Evidence::default() };
        for life in &self.lives {
            let step = self.window.place(life.born);
            let is_then = part.steps.contains(&step);
            let is_old = is_then && part.task.is_none_or(|task| task == life.pid);
            all.births += if is_then { life.count } else { 0 };
            match life.end {
                Some((_, true)) => all.freed += 1,
                Some((_, false)) => all.implied_frees += life.count,
                None => {
                    all.survivors += life.count;
                    all.bytes += life.bytes;
                    all.uncertain += if life.uncertain { life.count } else { 0 };
                    let task = all.tasks.entry(life.pid).or_default();
                    task.0 += life.count;
                    if is_old {
                        task.1 += life.bytes;
                        all.old += life.count;
                        all.old_bytes += life.bytes;
                        all.by_step[step - first] += life.count;
                    }
                }
            }
        }
        all
    }
}

/// True if frees without an event are frequent enough to explain survivors.
pub fn lack_events(freed: u64, implied: u64) -> bool {
    implied >= 16 && implied * 20 > freed + implied
}

impl Evidence {
    pub fn busy(&self) -> usize {
        self.by_step.iter().filter(|&&count| count > 0).count()
    }

    pub fn halves(&self) -> (u64, u64) {
        let (first, second) = self.by_step.split_at(self.steps / 2);
        (first.iter().sum(), second.iter().sum())
    }

    /// Old bytes by second since growth began.
    pub fn per_second(&self, amount: u64, window: Window, began: Option<u64>) -> u64 {
        if self.grows_in_batches() && self.busy() * 2 < self.steps {
            return self.per_second_of_batches(amount, window);
        }
        let old_age = (STEPS - self.until as u64) * window.step();
        let before = began.map_or(0, |step| step * (window.length / STEPS));
        let length = window.length.saturating_sub(old_age).saturating_sub(before).max(1);
        (u128::from(amount) * 1_000_000_000 / u128::from(length)) as u64
    }

    /// Whole periods, from the first batch to the last.
    fn per_second_of_batches(&self, amount: u64, window: Window) -> u64 {
        let batches = self.batches();
        let (first, last) = (batches[0][0], batches.last().unwrap());
        let before: u64 = self.by_step[..last[0]].iter().sum();
        let bytes = u128::from(amount) * u128::from(before) / u128::from(self.old);
        let length = (window.length / STEPS) * (last[0] - first) as u64;
        (bytes * 1_000_000_000 / u128::from(length.max(1))) as u64
    }

    /// The task with most old survivors.
    pub fn holder(&self) -> i64 {
        let most = self.tasks.iter().max_by_key(|(pid, (_, bytes))| (*bytes, -**pid));
        *most.unwrap().0
    }

    /// Tasks with old survivors.
    pub fn holders(&self) -> usize {
        self.tasks.values().filter(|(_, bytes)| *bytes > 0).count()
    }

    /// True if the rule of growth is met, whatever else explains it.
    pub fn grows(&self) -> bool {
        let (first, second) = self.halves();
        let is_enough = self.survivors >= 16 && self.old >= 16 && self.steps >= 8;
        let is_steady = self.busy() * 2 >= self.steps || self.grows_since() || self.grows_in_batches();
        is_enough && self.uncertain * 2 <= self.survivors && second * 2 >= first && is_steady
    }

    /// Growth that began later, and then was in three of four steps, early and late.
    fn grows_since(&self) -> bool {
        let began = self.by_step.iter().position(|&count| count > 0).unwrap_or(0);
        let tail = &self.by_step[began..];
        let (early, late) = tail.split_at(tail.len() / 2);
        let (early, late) = (early.iter().sum::<u64>(), late.iter().sum::<u64>());
        began > 0
            && tail.len() >= 5
            && self.busy() * 4 >= tail.len() * 3
            && late * 2 >= early
            && early * 3 >= late
    }

    /// Runs of steps with old survivors, with pauses of two steps.
    fn batches(&self) -> Vec<Vec<usize>> {
        let busy: Vec<usize> = (0..self.steps).filter(|&step| self.by_step[step] > 0).collect();
        busy.chunk_by(|a, b| b - a <= 2).map(<[usize]>::to_vec).collect()
    }

    /// Three or more batches of similar size with pauses of two steps, the last one recent.
    fn grows_in_batches(&self) -> bool {
        let batches = self.batches();
        let sizes: Vec<u64> =
            batches.iter().map(|batch| batch.iter().map(|&step| self.by_step[step]).sum()).collect();
        let most = sizes.iter().max().copied().unwrap_or(0);
        let is_recent = batches.last().is_some_and(|batch| batch[0] * 3 >= self.steps * 2);
        batches.len() >= 3 && sizes.iter().all(|size| size * 3 >= most) && is_recent
    }
}
