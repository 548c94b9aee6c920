//! Tasks that allocated what is still live: one that did most of it, threads of a process, or many with a common parent.

use std::collections::BTreeMap;

use crate::collect::growth::{Numbers, StepCounts, SurvivorSums};
use crate::collect::sums::Sums;
use crate::collect::tasks::TaskEvents;

/// The maker of a call site's live objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// One task allocated at least half of them.
    Task(i32),
    /// Threads of one process allocated at least half of them.
    ThreadsOf(i32),
    /// Children of one task allocated at least half of them.
    ChildrenOf(i32),
    /// Many tasks without a common parent, as far as it is known.
    Many,
    /// No task allocated any: pages, whose makers are counted apart.
    Unknown,
}

impl Maker {
    /// Maker of these objects.
    pub fn of(survival: &SurvivorSums, task_events: &TaskEvents) -> Self {
        let all = survival.survivors.sum();
        let Some((pid, most)) = holder(survival) else { return Self::Unknown };
        if most.saturating_mul(2) >= all {
            return Self::Task(pid);
        }
        let largest = |of: &dyn Fn(i32) -> Option<i32>| {
            let mut sums: BTreeMap<i32, u64> = BTreeMap::new();
            for (pid, steps) in survival.tasks() {
                if let Some(of) = of(pid) {
                    *sums.entry(of).or_default() += steps.sum();
                }
            }
            let most = sums.into_iter().max_by_key(|&(pid, count)| (count, std::cmp::Reverse(pid)));
            most.filter(|(_, count)| count.saturating_mul(2) >= all).map(|(pid, _)| pid)
        };
        if let Some(process) = largest(&|pid| Some(task_events.process(pid))) {
            return Self::ThreadsOf(process);
        }
        largest(&|pid| task_events.parent(pid)).map_or(Self::Many, Self::ChildrenOf)
    }

    /// The one task that made it: itself, or the parent.
    fn root(self) -> Option<i32> {
        match self {
            Self::Task(pid) | Self::ThreadsOf(pid) | Self::ChildrenOf(pid) => Some(pid),
            Self::Many | Self::Unknown => None,
        }
    }

    /// Live objects by step: those of the one task, or of the children of the parent.
    fn steps(self, survival: &SurvivorSums, task_events: &TaskEvents) -> Numbers {
        let is_its = |pid: i32| match self {
            Self::Task(own) => pid == own,
            Self::ThreadsOf(process) => task_events.process(pid) == process,
            Self::ChildrenOf(parent) => task_events.parent(pid) == Some(parent),
            Self::Many | Self::Unknown => true,
        };
        let mut sum = StepCounts::default();
        let theirs = survival.tasks().filter(|(pid, _)| is_its(*pid));
        theirs.for_each(|(_, steps)| sum.absorb(steps.clone()));
        sum.all()
    }
}

/// The task that allocated most survivors, and their number.
pub fn holder(survival: &SurvivorSums) -> Option<(i32, u64)> {
    let holders = survival.tasks().map(|(pid, steps)| (pid, steps.sum()));
    holders.max_by_key(|&(pid, count)| (count, std::cmp::Reverse(pid)))
}

/// Live objects with their maker.
#[derive(Debug, Clone)]
pub struct LiveWithMaker<'s> {
    survival: &'s SurvivorSums,
    maker: Maker,
    /// Objects of the maker by step.
    steps: Numbers,
}

impl<'s> LiveWithMaker<'s> {
    /// Objects of the maker by step.
    pub fn steps(&self) -> Numbers {
        self.steps
    }

    /// True if one task made both, or started the tasks that did. Task 0 stands for interrupts of any kind.
    pub fn is_by_task_of(&self, other: &Self) -> bool {
        self.maker.root().is_some_and(|pid| pid != 0) && self.maker.root() == other.maker.root()
    }

    /// Finds the maker of these objects.
    pub fn of(survival: &'s SurvivorSums, task_events: &TaskEvents) -> Self {
        let maker = Maker::of(survival, task_events);
        Self { survival, maker, steps: maker.steps(survival, task_events) }
    }
}

/// Live objects by step of two call sites, if the same tasks made them: those of the tasks that they have in common.
/// Survivors of other tasks at either call site do not matter.
pub fn in_common(one: &LiveWithMaker<'_>, other: &LiveWithMaker<'_>) -> Option<(Numbers, Numbers)> {
    if one.maker.root().is_some() && one.maker.root() == other.maker.root() {
        return Some((one.steps, other.steps));
    }
    let many = |made: &LiveWithMaker<'_>| {
        matches!(made.maker, Maker::Many | Maker::ThreadsOf(_) | Maker::ChildrenOf(_))
    };
    if !many(one) || !many(other) {
        return None;
    }
    let (one, other) = (one.survival, other.survival);
    let (mut a, mut b) = (StepCounts::default(), StepCounts::default());
    for (pid, steps) in other.tasks() {
        if let Some(own) = one.task(pid) {
            a.absorb(own.clone());
            b.absorb(steps.clone());
        }
    }
    let is_most = |part: &StepCounts, all: &SurvivorSums| part.sum().saturating_mul(2) >= all.survivors.sum();
    (is_most(&a, one) && is_most(&b, other)).then(|| (a.all(), b.all()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::tasks::Start;
    use std::sync::Arc;

    fn survival(holders: &[(i32, usize, u64)]) -> SurvivorSums {
        let mut survival = SurvivorSums::default();
        for &(pid, step, count) in holders {
            survival.survivors.add(step, count);
            survival.of_task(pid).add(step, count);
        }
        survival
    }

    fn started_by(children: &[(i32, i32)]) -> TaskEvents {
        let start = |parent| Start { time: 1, parent, is_thread: false };
        let starts = children.iter().map(|&(child, parent)| (child, start(parent))).collect();
        TaskEvents { starts, ..TaskEvents::default() }
    }

    #[test]
    fn one_task_or_the_parent_of_many() {
        let task_events = started_by(&[(10, 4), (11, 4), (12, 4), (13, 5)]);
        assert_eq!(Maker::of(&survival(&[(7, 0, 5), (8, 1, 5)]), &task_events), Maker::Task(7));
        let children = survival(&[(10, 0, 5), (11, 1, 5), (12, 2, 5), (13, 3, 5)]);
        assert_eq!(Maker::of(&children, &task_events), Maker::ChildrenOf(4));
        assert_eq!(Maker::of(&children, &TaskEvents::default()), Maker::Many);
        assert_eq!(Maker::of(&SurvivorSums::default(), &task_events), Maker::Unknown);
        let threads = TaskEvents { processes: Arc::new([(10, 9), (11, 9), (12, 9)].into()), ..task_events };
        assert_eq!(Maker::of(&children, &threads), Maker::ThreadsOf(9));
    }

    #[test]
    fn children_belong_to_what_their_parent_does_and_to_each_other() {
        let task_events = started_by(&[(10, 4), (11, 4), (12, 4)]);
        let of_children = survival(&[(10, 0, 5), (11, 1, 5), (12, 2, 5)]);
        let of_parent = survival(&[(4, 0, 1), (4, 1, 1), (4, 2, 1)]);
        let common = |one: &SurvivorSums, other: &SurvivorSums, task_events: &TaskEvents| {
            in_common(&LiveWithMaker::of(one, task_events), &LiveWithMaker::of(other, task_events)).is_some()
        };
        assert!(
            common(&of_children, &of_parent, &task_events) && common(&of_parent, &of_children, &task_events)
        );
        let unknown = TaskEvents::default();
        assert!(!common(&of_children, &of_parent, &unknown));
        assert!(common(&of_children, &of_children, &unknown), "the same tasks");
        let of_others = survival(&[(20, 0, 5), (21, 1, 5), (22, 2, 5)]);
        assert!(!common(&of_children, &of_others, &unknown));
    }
}
