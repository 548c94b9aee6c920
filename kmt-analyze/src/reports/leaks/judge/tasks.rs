//! Objects of tasks that started in the window and still run.
//!
//! A starting task allocates memory maps, files and credentials. They are not leaks, for any number of tasks. Objects are compared
//! with the tasks: who allocated them (`makers`), and at which times (`survivors`). Starts of tasks come from the collector
//! `TaskLifetimes`; `slab` and `pages` use the result.

use super::evidence::without;
use super::makers::{Maker, holder};
use super::rules::judge;
use super::survivors::curve_distance;
use super::verdict::JudgedPart;
use crate::collect::growth::{Numbers, STEPS, StepCounts, SurvivorSums};
use crate::collect::tasks::TaskEvents;

/// Largest distance between births of survivors and of tasks: some objects are allocated when a task has run for a
/// while.
const APART_MAX: f64 = 0.4;
/// Length of the start of a task, in steps.
const START_STEPS: usize = 3;
/// Smallest share of a task's survivors that are from its start, in percent.
const START_PERCENT_MIN: u64 = 75;

/// True if the survivors of a part belong to tasks that started and still run; `tasks` are those. What one task allocates at
/// the pace at which others start is not theirs, unless it starts them.
pub fn belong_to_tasks(
    survival: &SurvivorSums,
    part: JudgedPart,
    tasks: &SurvivorSums,
    task_events: &TaskEvents,
    step: u64,
) -> bool {
    let parent = holder(tasks).map(|(pid, _)| pid);
    let is_of_another = match Maker::of(survival, task_events) {
        Maker::Task(pid) | Maker::ThreadsOf(pid) => Some(pid) != parent,
        Maker::ChildrenOf(_) | Maker::Many | Maker::Unknown => false,
    };
    !is_of_another && is_born_with(survival, part, tasks) || is_of_starts(survival, part, tasks, step)
}

/// True if the survivors come with tasks whose number grows: at the same times, by those tasks or by the one that starts
/// them. A task that does other work at a steady pace does not count, unless it starts them.
pub fn grow_with_tasks(
    survival: &SurvivorSums,
    part: JudgedPart,
    tasks: &SurvivorSums,
    task_events: &TaskEvents,
) -> bool {
    let parent = holder(tasks).map(|(pid, _)| pid);
    let is_their_maker = match Maker::of(survival, task_events) {
        Maker::Task(pid) | Maker::ThreadsOf(pid) | Maker::ChildrenOf(pid) => Some(pid) == parent,
        Maker::Many => true,
        Maker::Unknown => false,
    };
    is_their_maker && is_born_with(survival, part, tasks)
}

/// What is too young to be judged does not count: of tasks that started late, older objects are not.
fn is_born_with(survival: &SurvivorSums, part: JudgedPart, tasks: &SurvivorSums) -> bool {
    curve_distance(&survival.survivors.all(), &tasks.survivors.all(), part.from..part.to)
        .is_some_and(|apart| apart <= APART_MAX)
}

/// True if the survivors are from the starts of tasks, or kept by the parent for each child. More than twice as many holders
/// as running tasks are no starts: ended tasks left those objects, which is a leak. Older tasks that did something once
/// count as holders, too.
fn is_of_starts(survival: &SurvivorSums, part: JudgedPart, tasks: &SurvivorSums, step: u64) -> bool {
    let running = tasks.survivors.sum();
    let started = |pid| tasks.task(pid).map(StepCounts::all);
    let all = survival.tasks().map(|(pid, steps)| (pid, steps.all()));
    let is_theirs = |(pid, steps): &(i32, Numbers)| is_of_start(steps, started(*pid).as_ref());
    let theirs: Vec<(i32, Numbers)> = all.filter(is_theirs).collect();
    if running == 0 || theirs.len() as u64 > running.saturating_mul(2) {
        return false;
    }
    if let Some(task) = part.task {
        return theirs.iter().any(|(pid, _)| *pid == task);
    }
    let of_starts: Numbers = std::array::from_fn(|n| theirs.iter().map(|(_, steps)| steps[n]).sum());
    !judge(&without(survival, &of_starts), step).verdict.is_growth()
}

/// True if the survivors of a task are from its start, and later ones from the starts of its children.
fn is_of_start(steps: &Numbers, started: Option<&Numbers>) -> bool {
    let all: u64 = steps.iter().sum();
    let later_from = steps.iter().position(|&count| count > 0).unwrap_or(0) + START_STEPS;
    let later =
        |steps: &Numbers| -> Numbers { std::array::from_fn(|n| if n < later_from { 0 } else { steps[n] }) };
    let late = later(steps);
    let is_early = late.iter().sum::<u64>() * 100 <= all * (100 - START_PERCENT_MIN);
    is_early
        || started
            .and_then(|started| curve_distance(&late, &later(started), 0..STEPS))
            .is_some_and(|apart| apart <= APART_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::leaks::judge::verdict::Verdict;

    const ALL: JudgedPart = JudgedPart { from: 0, to: STEPS, task: None };

    /// Survivors by task: its id, and steps with counts.
    fn survival(holders: &[(i32, &[(usize, u64)])]) -> SurvivorSums {
        let mut survival = SurvivorSums::default();
        for (pid, counts) in holders {
            for &(step, count) in *counts {
                survival.survivors.add(step, count);
                survival.births.add(step, count);
                survival.of_task(*pid).add(step, count);
            }
        }
        survival
    }

    #[test]
    fn what_tasks_leave_at_their_start_is_theirs() {
        // Fourteen tasks, each also active in the step after its birth.
        let each: Vec<(i32, [(usize, u64); 2])> =
            (0i32..14).map(|n| (100 + n, [(n as usize * 2, 15), (n as usize * 2 + 1, 90)])).collect();
        let each: Vec<(i32, &[(usize, u64)])> = each.iter().map(|(pid, steps)| (*pid, &steps[..])).collect();
        let maps = survival(&each);
        let tasks = survival(&(0..14usize).map(|_| (1, &[(0usize, 1u64)][..])).collect::<Vec<_>>());
        assert_eq!(judge(&maps, 1000).verdict, Verdict::Grows);
        assert!(belong_to_tasks(&maps, ALL, &tasks, &TaskEvents::default(), 1000));
        // The parent keeps two files for each child.
        let starts: Vec<(usize, u64)> = (0..14).map(|n| (n * 2, 1)).collect();
        let tasks = survival(&[(9, &starts)]);
        let files: Vec<(usize, u64)> = (0..14).map(|n| (n * 2, 2)).collect();
        let mut with_parent = each.clone();
        with_parent.push((9, &files));
        assert!(belong_to_tasks(&survival(&with_parent), ALL, &tasks, &TaskEvents::default(), 1000));
        // More holders than running tasks: the others ended.
        let fewer = survival(&[(1, &[(0, 6)])]);
        assert!(!belong_to_tasks(&maps, ALL, &fewer, &TaskEvents::default(), 1000));
        // One task grows steadily.
        let steady: Vec<(usize, u64)> = (0..STEPS).map(|step| (step, 20)).collect();
        let mut with_leak = each.clone();
        with_leak.push((77, &steady));
        assert!(!belong_to_tasks(&survival(&with_leak), ALL, &tasks, &TaskEvents::default(), 1000));
    }
    /// Tasks that start at a steady pace, and one that allocates at a steady pace.
    #[test]
    fn a_task_that_others_start_beside_keeps_what_it_allocates() {
        let each = |count: u64| -> Vec<(usize, u64)> { (0..STEPS).map(|step| (step, count)).collect() };
        let (starts, pages) = (each(1), each(20));
        let tasks = survival(&[(9, &starts)]);
        let task_events = TaskEvents::default();
        assert!(!belong_to_tasks(&survival(&[(77, &pages)]), ALL, &tasks, &task_events, 1000));
        assert!(
            belong_to_tasks(&survival(&[(9, &pages)]), ALL, &tasks, &task_events, 1000),
            "it starts them"
        );
        // Judged alone, beside tasks whose pages live for long: some of these, from their starts, are left.
        let one = survival(&[(9, &[(20, 1), (24, 1)])]);
        let alone = JudgedPart { from: 1, to: 20, task: Some(77) };
        let mut beside = survival(&[(77, &pages), (78, &[(18, 400)])]);
        (0..3200).for_each(|_| beside.lifetimes.add(10_000));
        assert_eq!(judge(&beside, 1000).part.task, Some(77));
        assert!(!belong_to_tasks(&alone.of(&beside), alone, &one, &task_events, 1000));
    }
}
