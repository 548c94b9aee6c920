//! Tasks that allocated memory that is still live: one that did most of it, threads of a process, or many with a common parent.
//!
//! `--ignore FILE` hides known findings by patterns of call sites, functions, caches and these tasks.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::judged::Judged;
use super::verdict::Verdict;
use crate::collect::growth::{Numbers, StepCounts, SurvivorSums};
use crate::collect::sums::Sums;
use crate::collect::tasks::TaskEvents;
use crate::render::words::escaped;
use crate::reports::common::labels::Labels;
use crate::trace::event_names::glob;

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

    /// The one task that made at least half of them.
    pub fn task(&self) -> Option<i32> {
        match self.maker {
            Maker::Task(pid) => Some(pid),
            _ => None,
        }
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
    let (is_of_many, (one, other)) = (many(one) && many(other), (one.survival, other.survival));
    if !is_of_many {
        return in_like_numbers(one, other);
    }
    let (mut a, mut b) = (StepCounts::default(), StepCounts::default());
    for (pid, steps) in other.tasks() {
        if let Some(own) = one.task(pid) {
            a.absorb(own.clone());
            b.absorb(steps.clone());
        }
    }
    (is_most(&a, one) && is_most(&b, other)).then(|| (a.all(), b.all()))
}

/// Share of a number, as 1/N, by which like numbers may differ.
const UNLIKE: u64 = 20;

/// Live objects by step of two call sites, of the tasks that hold about as many at both, if these hold most of both. A thing and its
/// parts are allocated so: at the call site of a common part other tasks may hold more, or one of two equal tasks is just half.
fn in_like_numbers(one: &SurvivorSums, other: &SurvivorSums) -> Option<(Numbers, Numbers)> {
    let (mut a, mut b) = (StepCounts::default(), StepCounts::default());
    for (pid, steps) in other.tasks().filter(|(pid, _)| *pid != 0) {
        let Some(own) = one.task(pid) else { continue };
        let (x, y) = (own.sum(), steps.sum());
        if x.abs_diff(y).saturating_mul(UNLIKE) <= x.max(y) {
            a.absorb(own.clone());
            b.absorb(steps.clone());
        }
    }
    (is_most(&a, one) && is_most(&b, other)).then(|| (a.all(), b.all()))
}

/// True if a part is at least half of all.
fn is_most(part: &StepCounts, all: &SurvivorSums) -> bool {
    part.sum() > 0 && part.sum().saturating_mul(2) >= all.survivors.sum()
}

/// Longest file of patterns, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Patterns of a file.
#[derive(Debug, Clone)]
pub struct Ignore {
    path: PathBuf,
    patterns: Vec<String>,
}

/// Findings that patterns hide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ignored {
    /// File of the patterns.
    pub file: String,
    /// Findings hidden: families, and other rows with a verdict other than `young` and `few`.
    pub findings: usize,
    /// Rows hidden of `callers`, `page_callers` and `pages`.
    pub rows: usize,
}

impl Ignore {
    /// Reads a file of patterns, one per line; empty lines and lines that begin with `#` are left out.
    pub fn read(path: PathBuf) -> Result<Self, String> {
        let bytes = contents(&path).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > FILE_MAX {
            return Err(format!("the file is larger than {} MiB", FILE_MAX >> 20));
        }
        let patterns = patterns(&String::from_utf8_lossy(&bytes));
        Ok(Self { path, patterns })
    }

    /// Hides rows of slab objects and of pages.
    pub fn hide_all(&self, all: [&mut Vec<Judged<'_>>; 3], labels: &Labels<'_, '_>) -> Ignored {
        let mut ignored =
            Ignored { file: escaped(self.path.as_os_str().as_encoded_bytes()), findings: 0, rows: 0 };
        for rows in all {
            self.hide(rows, labels, &mut ignored);
        }
        ignored
    }

    /// True if a pattern matches the symbol, the function, the cache, or the task that holds at least half of a row.
    fn matches(&self, row: &Judged<'_>, labels: &Labels<'_, '_>) -> bool {
        let function = row.name.split_once("+0x").map(|(function, _)| function);
        let holder =
            holder(&row.growing).filter(|(_, held)| held.saturating_mul(2) >= row.growing.survivors.sum());
        let task = holder.map(|(pid, _)| labels.task(pid));
        let texts = [Some(row.name.as_str()), function, Some(row.cache.as_str()), task.as_deref()];
        let is_match =
            |pattern: &String| texts.iter().flatten().any(|text| glob(pattern.as_bytes(), text.as_bytes()));
        self.patterns.iter().any(is_match)
    }

    /// Removes the rows that match, and the families whose leader matches; counts them.
    fn hide(&self, rows: &mut Vec<Judged<'_>>, labels: &Labels<'_, '_>, counts: &mut Ignored) {
        let matching: Vec<bool> = rows.iter().map(|row| self.matches(row, labels)).collect();
        let is_hidden = |at: usize, row: &Judged<'_>| {
            [Some(at), row.leader].into_iter().flatten().any(|at| matching.get(at) == Some(&true))
        };
        let hidden: Vec<bool> = rows.iter().enumerate().map(|(at, row)| is_hidden(at, row)).collect();
        // Numbers of the rows that are left: with any row of a family its leader is left.
        let mut left = 0;
        let mut numbers = Vec::with_capacity(rows.len());
        for (at, (row, &is_hidden)) in rows.iter().zip(&hidden).enumerate() {
            let goes_with_leader = row.leader.is_some_and(|to| to != at && matching.get(to) == Some(&true));
            numbers.push(left);
            left += usize::from(!is_hidden);
            counts.rows += usize::from(is_hidden);
            counts.findings += usize::from(is_hidden && !goes_with_leader && has_verdict(row));
        }
        let mut is_left = hidden.into_iter().map(|is_hidden| !is_hidden);
        rows.retain(|_| is_left.next().unwrap_or(true));
        for row in rows {
            row.leader = row.leader.and_then(|leader| numbers.get(leader).copied());
        }
    }
}

fn has_verdict(row: &Judged<'_>) -> bool {
    !matches!(row.evidence.verdict, Verdict::Young | Verdict::Few)
}

/// Contents of a file, as far as its length is allowed.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn patterns(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::collect::tasks::Start;

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

    #[test]
    fn parts_of_a_thing_are_of_the_tasks_that_hold_as_many_of_both() {
        let common = |one: &SurvivorSums, other: &SurvivorSums| {
            let unknown = TaskEvents::default();
            in_common(&LiveWithMaker::of(one, &unknown), &LiveWithMaker::of(other, &unknown)).is_some()
        };
        // Of two equal tasks one is just half; with files of others none is.
        let timers = survival(&[(7, 0, 100), (8, 1, 100)]);
        let files = survival(&[(7, 0, 102), (8, 1, 99), (9, 2, 10)]);
        assert!(common(&timers, &files) && common(&files, &timers));
        let other_numbers = survival(&[(7, 0, 150), (8, 1, 30), (9, 2, 60), (10, 3, 70)]);
        assert!(!common(&timers, &other_numbers));
        let of_others = survival(&[(7, 0, 100), (8, 1, 100), (9, 2, 120), (10, 3, 120)]);
        assert!(!common(&timers, &of_others), "most are of other tasks");
        let interrupts = survival(&[(0, 0, 100), (9, 1, 99)]);
        let more = survival(&[(0, 0, 100), (9, 1, 150)]);
        assert!(!common(&interrupts, &more), "interrupts are no task");
    }

    #[test]
    fn comments_and_empty_lines_are_no_patterns() {
        assert_eq!(
            patterns("# known\n\n alloc_pipe_info*\r\n\t#x\npython3-*\n"),
            ["alloc_pipe_info*", "python3-*"]
        );
    }

    #[test]
    fn a_file_that_is_missing_or_too_long_is_refused() {
        assert!(Ignore::read(PathBuf::from("/nonexistent/patterns")).is_err());
        // A file without an end.
        let long = Ignore::read(PathBuf::from("/dev/zero"));
        assert!(long.is_err_and(|error| error.contains("larger than 1 MiB")));
    }
}
