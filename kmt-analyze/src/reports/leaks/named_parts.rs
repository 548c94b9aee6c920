//! Parts of a growth by their makers: tasks, and short-lived tasks of one name, which are one maker.
//!
//! A program that runs 900 times leaves little each time: no task of it would be named beside one that leaks all the time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::collect::tasks::TaskEvents;
use crate::render::words::count;
use crate::reports::common::labels::Labels;
use crate::reports::leaks::judge::judged::PAGE_CACHE_USE;
use crate::sort_rows::SortRows;

/// Smallest share of a growth, as 1/N, from which a maker is named.
pub const MANY: u64 = 10;

/// Share of the growth from which two makers together are named, in percent.
const TWO_PERCENT_MIN: u64 = 80;

/// Smallest share of the larger of two makers, as N/10, that counts as an equal one.
const EQUAL: u64 = 9;

/// Smallest share of a growth, as N/10, from which one of two equal makers is named.
const EQUAL_MIN: u64 = 3;

/// True if two makers have nearly all, and the second one enough to be named: two leaks at one call site. So are two large equal
/// ones: the first would be one by chance.
pub fn are_both(one: u64, two: u64, whole: u64) -> bool {
    let together = one.saturating_add(two).saturating_mul(100);
    let have_all = two.saturating_mul(MANY) >= whole && together >= whole.saturating_mul(TWO_PERCENT_MIN);
    let are_equal = two.saturating_mul(10) >= one.saturating_mul(EQUAL)
        && one.saturating_mul(10) >= whole.saturating_mul(EQUAL_MIN);
    have_all || are_equal
}

/// Name of a task, of which there may be several.
pub struct Named {
    /// Name and id.
    pub task: String,
    /// Name.
    pub name: String,
    /// True if it has exited.
    pub has_exited: bool,
}

impl Named {
    /// Names of a task.
    pub fn of(pid: i32, labels: &Labels<'_, '_>, task_events: &TaskEvents) -> Self {
        Self { task: labels.task(pid), name: labels.name(pid), has_exited: task_events.has_exited(pid) }
    }
}

/// The two largest parts of a growth. Two tasks, unless a task and the short-lived tasks of one name have nearly all of it.
pub fn named_parts(
    growth_of: BTreeMap<i32, u64>,
    whole: u64,
    named: impl Fn(i32) -> Named,
) -> Vec<(String, u64)> {
    let mut tasks: Vec<(i32, u64)> = growth_of.into_iter().collect();
    tasks.sort_rows_by_key(|&(pid, growth)| (Reverse(growth), pid));
    let with_short_lived = (tasks.len() > 2).then(|| beside_short_lived(&tasks, whole, &named)).flatten();
    let two = || tasks.iter().take(2).map(|&(pid, growth)| (named(pid).task, growth)).collect();
    with_short_lived.unwrap_or_else(two)
}

/// A task and the short-lived ones of one name, the larger part first, if they have nearly all.
fn beside_short_lived(
    tasks: &[(i32, u64)],
    whole: u64,
    named: &impl Fn(i32) -> Named,
) -> Option<Vec<(String, u64)>> {
    let (&(first, of_first), others) = tasks.split_first()?;
    let mut by_name: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for &(pid, growth) in others {
        let Named { name, has_exited, .. } = named(pid);
        if has_exited {
            let (number, sum) = by_name.entry(name).or_default();
            (*number, *sum) = (*number + 1, sum.saturating_add(growth));
        }
    }
    let (name, (number, sum)) = by_name.into_iter().max_by_key(|(_, (_, sum))| *sum)?;
    let is_first_one = of_first.saturating_mul(MANY) >= whole;
    let one = (named(first).task, of_first);
    let several = (format!("{} short-lived tasks named {name}", count(number)), sum);
    let (more, less) = if sum > of_first { (several, one) } else { (one, several) };
    (number > 1 && is_first_one && are_both(more.1, less.1, whole)).then(|| vec![more, less])
}

/// Programs that record events into files. The recorder of this file is not judged.
const RECORDERS: [&str; 5] = ["trace-cmd", "perf", "kmt-capture", "bpftrace", "lttng-consumerd"];

/// ` (trace-cmd is a recorder: perhaps the file that it writes)`, where most of a growth are pages of a recorder that may be of a file.
pub fn of_recorder(page_use: Option<&str>, held: &[(&str, u64)]) -> String {
    let may_be_file = page_use.is_none_or(|name| name == PAGE_CACHE_USE || name.contains("tmpfs"));
    let task = held.first().and_then(|(task, _)| task.rsplit_once('-')).filter(|_| may_be_file);
    let found = task.and_then(|(name, _)| RECORDERS.into_iter().find(|recorder| *recorder == name));
    found.map_or(String::new(), |name| format!(" ({name} is a recorder: perhaps the file that it writes)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(growth_of: &[(i32, u64)]) -> Vec<(String, u64)> {
        let whole = growth_of.iter().map(|(_, growth)| growth).sum();
        // Tasks from 100 on are of `head`, and have exited; from 200 on they still run.
        let named = |pid: i32| {
            let name = if pid < 100 { "python3" } else { "head" };
            Named {
                task: format!("{name}-{pid}"),
                name: name.to_owned(),
                has_exited: (100..200).contains(&pid),
            }
        };
        named_parts(growth_of.iter().copied().collect(), whole, named)
    }

    fn of_head(first: i32, growth: u64) -> Vec<(i32, u64)> {
        (first..first + 50).map(|pid| (pid, growth)).collect()
    }

    #[test]
    fn two_equal_makers_are_both_named() {
        assert!(are_both(35, 34, 100) && are_both(50, 50, 100) && are_both(70, 12, 100));
        assert!(!are_both(35, 20, 100), "the first one has more");
        assert!(!are_both(20, 20, 100), "two of many");
        assert!(!are_both(95, 5, 100));
    }

    #[test]
    fn short_lived_tasks_of_one_name_are_one_maker() {
        let part = |name: &str, growth| (name.to_owned(), growth);
        let many = |growth| part("50 short-lived tasks named head", growth);
        let python = |growth| part("python3-7", growth);
        assert_eq!(parts(&[vec![(7, 300)], of_head(100, 2)].concat()), [python(300), many(100)]);
        assert_eq!(parts(&[vec![(7, 60)], of_head(100, 2)].concat()), [many(100), python(60)]);
        let two = |parts: Vec<(String, u64)>| parts.iter().any(|(name, _)| name.contains("short-lived"));
        assert!(!two(parts(&[vec![(7, 300)], of_head(200, 2)].concat())), "they run");
        assert!(!two(parts(&[vec![(7, 3_000)], of_head(100, 2)].concat())), "3 %");
        assert!(!two(parts(&of_head(100, 2))), "no task beside them");
        assert_eq!(parts(&[(7, 60), (8, 50)]), [python(60), part("python3-8", 50)]);
        assert!(parts(&[]).is_empty());
    }
}
