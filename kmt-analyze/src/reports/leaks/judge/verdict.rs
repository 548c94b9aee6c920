//! The verdicts, with their names, and the part of the live objects that a verdict is about.
//!
//! Only objects that are old enough are judged: younger ones may still be freed.

use std::ops::Range;

use serde::Serialize;

use crate::collect::growth::{Numbers, StepCounts, SurvivorSums};

/// Verdict on the objects of a call site, or the pages of a kind, that are live at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Steady growth: old objects are left all through the window, and do not become fewer.
    Grows,
    /// Growth in batches of like size, again and again.
    #[serde(rename = "grows_in_batches")]
    Batches,
    /// Growth of a cache that the kernel shrinks when memory is short.
    Reclaimable,
    /// One object for each object of a reclaimable cache.
    WithReclaimable,
    /// Pages of processes, tmpfs or files: swap can take them, or as many were freed.
    UserMemory,
    /// Objects of tasks that started in the window and still run.
    WithTasks,
    /// Metadata of the allocator or of kmemleak: for each slab, or for each object.
    WithSlabs,
    /// Many objects early, hardly any later: a cache or a pool that filled.
    Warming,
    /// Few bursts: something started and still runs.
    Burst,
    /// Objects that the kernel frees late and all at once, by design.
    Lazy,
    /// Many frees of this kind have no event: the objects may be freed already.
    #[serde(rename = "frees_unseen")]
    ImpliedFrees,
    /// Objects of this kind live about as long as the window, which is too short for a verdict.
    #[serde(rename = "window_too_short")]
    TooShort,
    /// Most objects cross a loss.
    Uncertain,
    /// Recent objects alone: ordinary turnover.
    Young,
    /// Too few objects for a verdict.
    #[default]
    Few,
}

impl Verdict {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 15] = [
        Self::Grows,
        Self::Batches,
        Self::Reclaimable,
        Self::WithReclaimable,
        Self::UserMemory,
        Self::WithTasks,
        Self::WithSlabs,
        Self::Warming,
        Self::Burst,
        Self::Lazy,
        Self::ImpliedFrees,
        Self::TooShort,
        Self::Uncertain,
        Self::Young,
        Self::Few,
    ];

    /// True for steady growth.
    pub fn is_growth(self) -> bool {
        matches!(self, Self::Grows | Self::Batches)
    }

    /// Words on a screen.
    pub fn words(self) -> &'static str {
        match self {
            Self::Grows => "growing",
            Self::Batches => "growing in batches",
            Self::Reclaimable => "fills a cache (reclaimable)",
            Self::WithReclaimable => "with reclaimable objects",
            Self::UserMemory => "user memory",
            Self::WithTasks => "of running tasks",
            Self::WithSlabs => "slab metadata",
            Self::Warming => "warming up",
            Self::Burst => "burst",
            Self::Lazy => "delayed free by design",
            Self::ImpliedFrees => "frees have no event",
            Self::TooShort => "window too short",
            Self::Uncertain => "crosses a loss",
            Self::Young => "recent",
            Self::Few => "few objects",
        }
    }

    /// Meaning of the verdict, in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Grows => "old objects from half of the window or more, no fewer late than early",
            Self::Batches => "the same, in batches of like size",
            Self::Reclaimable => "a cache that the kernel shrinks when memory is short",
            Self::WithReclaimable => "one object for each object of a reclaimable cache",
            Self::UserMemory => "of processes, tmpfs or files: swap can take it, or as much was freed",
            Self::WithTasks => "objects of tasks that started in the window and still run",
            Self::WithSlabs => "memory that the allocator needs for each slab or object",
            Self::Warming => "many early, hardly any later: a cache or a pool that filled",
            Self::Burst => "allocated in a few bursts by something that started and still runs",
            Self::Lazy => "the kernel frees these late and all at once",
            Self::ImpliedFrees => "freed in bulk or by RCU, maybe already: not judged",
            Self::TooShort => "these live about as long as the recording: record longer",
            Self::Uncertain => "events were lost while most of these lived",
            Self::Young => "recent objects alone: ordinary turnover",
            Self::Few => "fewer than 16 live objects",
        }
    }

    /// All of them with their meanings, for the help.
    pub fn list() -> String {
        let line = |verdict: Self| format!("\n  {:<27}  {}", verdict.words(), verdict.meaning());
        format!("Verdicts:{}", Self::ALL.map(line).concat())
    }
}

/// Steps of birth, and the task, of objects that are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JudgedPart {
    /// First step.
    pub from: usize,
    /// Step after the last one; later objects are too young.
    pub to: usize,
    /// The only task; `None`: all.
    pub task: Option<i32>,
}

impl JudgedPart {
    /// Numbers by step, without those outside.
    fn of_steps(self, numbers: &Numbers) -> Numbers {
        std::array::from_fn(|step| if (self.from..self.to).contains(&step) { numbers[step] } else { 0 })
    }

    /// Steps that two parts have in common.
    pub fn common(self, other: Self) -> Range<usize> {
        self.from.max(other.from)..self.to.min(other.to)
    }

    /// Survivors in this part, with the births and lifetimes of all.
    pub fn of(self, survival: &SurvivorSums) -> SurvivorSums {
        let within = |steps: &StepCounts| StepCounts::from(&self.of_steps(&steps.all()));
        let mut out = SurvivorSums { holders: Default::default(), ..survival.clone() };
        for (pid, steps) in survival.tasks().filter(|(pid, _)| self.task.is_none_or(|task| task == *pid)) {
            let steps = within(steps);
            if steps.sum() > 0 {
                *out.of_task(pid) = steps;
            }
        }
        out.survivors = self
            .task
            .map_or_else(|| within(&survival.survivors), |pid| out.task(pid).cloned().unwrap_or_default());
        out
    }
}
