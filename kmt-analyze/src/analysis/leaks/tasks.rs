//! What belongs to tasks that started meanwhile and still run: their first seconds leave memory maps, files and
//! credentials, and that is no leak however many such tasks there are.

use super::{apart, judge, without};
use crate::collect::growth::{Numbers, STEPS, Steps, Survival};

/// Survivors may be born this far from the tasks, as shares of both over time: some come when a task has run for a while.
const APART_MAX: f64 = 0.4;
/// Steps in which a task starts.
const START_STEPS: usize = 3;
/// Share of a task's survivors that are of its start, in percent.
const START_PERCENT_MIN: u64 = 75;

/// Whether what stays is of tasks that started and still run; `tasks` are those, `step` is the length of a step.
pub fn belong_to_tasks(course: &Survival, tasks: &Survival, step: u64) -> bool {
    is_born_with(course, tasks) || is_of_starts(course, tasks, step)
}

fn is_born_with(course: &Survival, tasks: &Survival) -> bool {
    apart(&course.survivors.all(), &tasks.survivors.all(), STEPS).is_some_and(|apart| apart <= APART_MAX)
}

/// Whether the survivors are from the starts of tasks, or kept by the parent for each child. More than twice as many holders
/// as running tasks are no starts: ended tasks left those objects behind, which is a leak. Older tasks that did something once
/// count as holders, too.
fn is_of_starts(course: &Survival, tasks: &Survival, step: u64) -> bool {
    let running = tasks.survivors.sum();
    let started = |pid: &i32| tasks.holders.get(pid).map(Steps::all);
    let all = course.holders.iter().map(|(pid, steps)| (pid, steps.all()));
    let is_theirs = |(pid, steps): &(&i32, Numbers)| is_of_start(steps, started(pid).as_ref());
    let theirs: Vec<Numbers> = all.filter(is_theirs).map(|(_, steps)| steps).collect();
    if running == 0 || theirs.len() as u64 > running.saturating_mul(2) {
        return false;
    }
    let of_starts: Numbers = std::array::from_fn(|n| theirs.iter().map(|steps| steps[n]).sum());
    !judge(&without(course, &of_starts), step).verdict.is_growth()
}

/// Whether what a task left is from its start, and what came later is born when tasks are that it starts.
fn is_of_start(steps: &Numbers, started: Option<&Numbers>) -> bool {
    let all: u64 = steps.iter().sum();
    let later_from = steps.iter().position(|&count| count > 0).unwrap_or(0) + START_STEPS;
    let later =
        |steps: &Numbers| -> Numbers { std::array::from_fn(|n| if n < later_from { 0 } else { steps[n] }) };
    let late = later(steps);
    let is_early = late.iter().sum::<u64>() * 100 <= all * (100 - START_PERCENT_MIN);
    is_early
        || started
            .and_then(|started| apart(&late, &later(started), STEPS))
            .is_some_and(|apart| apart <= APART_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::leaks::Verdict;

    /// Survivors of tasks; of each its number, and the steps and counts.
    fn course(holders: &[(i32, &[(usize, u64)])]) -> Survival {
        let mut course = Survival::default();
        for (pid, counts) in holders {
            for &(step, count) in *counts {
                course.survivors.add(step, count);
                course.births.add(step, count);
                course.holders.entry(*pid).or_default().add(step, count);
            }
        }
        course
    }

    #[test]
    fn what_tasks_leave_at_their_start_is_theirs() {
        // Fourteen tasks, each busy in the step after its own birth as well.
        let each: Vec<(i32, [(usize, u64); 2])> =
            (0i32..14).map(|n| (100 + n, [(n as usize * 2, 15), (n as usize * 2 + 1, 90)])).collect();
        let each: Vec<(i32, &[(usize, u64)])> = each.iter().map(|(pid, steps)| (*pid, &steps[..])).collect();
        let maps = course(&each);
        let tasks = course(&(0..14usize).map(|_| (1, &[(0usize, 1u64)][..])).collect::<Vec<_>>());
        assert_eq!(judge(&maps, 1000).verdict, Verdict::Grows);
        assert!(belong_to_tasks(&maps, &tasks, 1000));
        // The parent keeps two files for each.
        let starts: Vec<(usize, u64)> = (0..14).map(|n| (n * 2, 1)).collect();
        let tasks = course(&[(9, &starts)]);
        let files: Vec<(usize, u64)> = (0..14).map(|n| (n * 2, 2)).collect();
        let mut with_parent = each.clone();
        with_parent.push((9, &files));
        assert!(belong_to_tasks(&course(&with_parent), &tasks, 1000));
        // More than there are tasks left: those that left them are gone.
        let fewer = course(&[(1, &[(0, 6)])]);
        assert!(!belong_to_tasks(&maps, &fewer, 1000));
        // One of them grows steadily.
        let steady: Vec<(usize, u64)> = (0..STEPS).map(|step| (step, 20)).collect();
        let mut with_leak = each.clone();
        with_leak.push((77, &steady));
        assert!(!belong_to_tasks(&course(&with_leak), &tasks, 1000));
    }
}
