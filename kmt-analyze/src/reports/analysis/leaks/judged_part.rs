//! The part of the live objects that a verdict is about: those that are old enough to be judged.

use std::ops::Range;

use crate::collect::growth::{Numbers, StepCounts, SurvivorSums};

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
