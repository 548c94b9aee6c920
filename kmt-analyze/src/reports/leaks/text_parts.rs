//! Rows as the screen groups them: families, other call sites by verdict, pages; and the sums of its sentences.
//!
//! A table that several groups share gives each a part of its rows.

use std::collections::BTreeMap;

use super::cache_growth::CacheGrowth;
use super::makers::{FamilyRow, MakersRow, TasksRow};
use super::named_parts::{Named, named_parts};
use super::reclaimable::ReclaimableGrowth;
use super::row::{Growth, LeakRow, LeakSum, PageGrowth, RowMaker, page_growth, page_growths};
use crate::collect::tasks::TaskEvents;
use crate::reports::leaks::judge::families::Family;
use crate::reports::leaks::judge::judged::Judged;
use crate::reports::leaks::judge::pinned::pinned_elsewhere;
use crate::reports::leaks::judge::verdict::Verdict;
use crate::sort_rows::SortRows;

/// Rows as the screen groups them.
#[derive(Debug, Clone, Default)]
pub struct TextParts {
    /// Slab allocations were recorded.
    pub has_slab: bool,
    /// Page allocations were recorded.
    pub has_pages: bool,
    /// The recorder's memory is left out, without being asked for by the selection.
    pub omits_recorder: bool,
    /// Families, the largest first.
    pub families: Vec<FamilyPart>,
    /// Growth of all families but the first.
    pub other_families: LeakSum,
    /// Call sites of all families.
    pub family_rows_total: usize,
    /// Pages that grow, in no family; the largest first.
    pub page_growths: Vec<PageGrowth>,
    /// Call sites in no family, by verdict.
    pub others: LeakTable,
    /// Growth of what the kernel can reclaim.
    pub reclaimable: ReclaimableGrowth,
    /// The largest call site of which one task's objects may grow: no free of them has an event.
    pub may_grow: Option<LeakRow>,
    /// Slab objects that are still allocated.
    pub slab: LeakSum,
    /// Pages that are still allocated.
    pub pages_live: LeakSum,
    /// Slab objects and pages that cannot be judged.
    pub unjudged: LeakSum,
    /// The row with most of these.
    pub unjudged_most: Option<LeakRow>,
    /// Share of the events that were lost in the window, in words, where objects have no verdict for that; `None`: all have.
    pub lost: Option<String>,
    /// Where events were lost: the cache that grew most by the kernel's counts.
    pub grown: Option<CacheGrowth>,
    /// Where events were lost: the largest call site without a free, whose objects were allocated at an even pace.
    pub suspect: Option<LeakRow>,
    /// The file is damaged, or lacks its end.
    pub is_damaged: bool,
    /// The recording ended unexpectedly, or the file is damaged.
    pub is_cut: bool,
    /// Length of a window that can judge all of them, in the clock's unit; 0: unknown.
    pub window_needed: u64,
    /// Call sites with recent objects alone.
    pub young: u64,
    /// Call sites with few live objects.
    pub few: u64,
    /// Pages by call site.
    pub page_callers: LeakTable,
    /// Pages by kind.
    pub pages: LeakTable,
}

/// Some rows of a table.
#[derive(Debug, Clone, Default)]
pub struct LeakTable {
    /// The first rows.
    pub rows: Vec<LeakRow>,
    /// Number of all.
    pub total: usize,
}

/// A family: call sites that grow together.
#[derive(Debug, Clone, Default)]
pub struct FamilyPart {
    /// Call sites of the family, the leader first.
    pub table: LeakTable,
    /// The call site that grows most, where that is another one.
    pub largest: Option<LeakRow>,
    /// Old bytes of all of them.
    pub bytes: u64,
    /// Old bytes of all of them per second, or per 10^9 ticks.
    pub bytes_per_second: u64,
    /// Growth of all of them, as shares are counted.
    pub growth: Growth,
    /// The makers of most of the leader's objects, two at most, and their parts of `growth`.
    pub holders: Vec<(String, u64)>,
    /// Tasks that allocated objects of the leader.
    pub makers: MakersRow,
    /// Pages that grow with it.
    pub pages: Option<PageGrowth>,
    /// Tasks that are still allocated, where their number grows.
    pub tasks: Option<TasksRow>,
    /// Growth in a window of call sites of other families by the task that has most of this one: several leaks may share them.
    pub elsewhere: u64,
    /// Some of it would be reclaimable if nothing held it.
    pub has_pinned: bool,
}

/// Verdicts in the table of the other call sites, in their order.
const VERDICTS: [Verdict; 10] = [
    Verdict::Reclaimable,
    Verdict::WithReclaimable,
    Verdict::WithTasks,
    Verdict::WithSlabs,
    Verdict::Warming,
    Verdict::Burst,
    Verdict::Lazy,
    Verdict::ImpliedFrees,
    Verdict::TooShort,
    Verdict::Uncertain,
];

/// Verdicts of memory that cannot be judged.
const NO_VERDICT: [Verdict; 3] = [Verdict::ImpliedFrees, Verdict::TooShort, Verdict::Uncertain];

/// Groups rows of slab objects, of pages by call site, and of pages by kind.
pub(super) fn text_parts(
    maker: &RowMaker<'_, '_, '_>,
    [slab, page_callers, pages]: [&[Judged<'_>]; 3],
    families: &[Family<'_>],
    found: &[FamilyRow],
    task_events: &TaskEvents,
    limit: usize,
) -> TextParts {
    let count_of = |verdict| slab.iter().filter(|r| r.evidence.verdict == verdict).count() as u64;
    let of = |verdicts: &[Verdict]| -> Vec<&Judged<'_>> {
        let alone = slab.iter().filter(|row| row.leader.is_none());
        let mut rows: Vec<_> = alone.filter(|row| verdicts.contains(&row.evidence.verdict)).collect();
        rows.sort_rows_by_key(|row| std::cmp::Reverse(row.evidence.amount));
        rows
    };
    let suspects: Vec<_> = of(&[Verdict::Uncertain]).into_iter().filter(|row| row.is_suspect()).collect();
    let mut of_verdicts = VERDICTS.map(|verdict| of(&[verdict]));
    if !suspects.is_empty() {
        // Where events were lost these are the nearest to an answer.
        of_verdicts.rotate_right(1);
        of_verdicts[0].sort_rows_by_key(|row| !row.is_suspect());
    }
    let reclaimable = of(&[Verdict::Reclaimable, Verdict::WithReclaimable]);
    let alone = slab.iter().filter(|row| row.leader.is_none()).chain(pages);
    let unjudged: Vec<_> = alone.filter(|row| NO_VERDICT.contains(&row.evidence.verdict)).collect();
    let mut page_growth: Vec<&Judged<'_>> = if page_callers.is_empty() { pages } else { page_callers }
        .iter()
        .filter(|row| row.evidence.verdict.is_growth())
        .collect();
    let of_families: Vec<&Judged<'_>> =
        page_growth.iter().copied().filter(|row| row.grows_with.is_some()).collect();
    page_growth.retain(|row| row.grows_with.is_none());
    TextParts {
        families: family_parts(maker, (slab, &of_families), families, found, task_events, limit),
        other_families: families
            .iter()
            .skip(1)
            .fold(LeakSum::default(), |sum, f| sum.add(f.bytes, f.per_second)),
        family_rows_total: families.iter().map(|family| family.rows.len()).sum(),
        page_growths: page_growths(maker, &page_growth, task_events),
        others: others(maker, &of_verdicts, limit),
        reclaimable: ReclaimableGrowth {
            slab: maker.old(reclaimable.iter().copied()),
            most: reclaimable.iter().map(|row| maker.row(row)).max_by_key(|row| row.old_bytes_per_second),
            page_cache: maker.old(pages.iter().filter(|row| row.is_growth_of_page_cache())),
            shrank: 0,
        },
        may_grow: slab
            .iter()
            .filter(|row| row.may_grow())
            .max_by_key(|row| row.evidence.old_amount)
            .map(|row| maker.row(row)),
        slab: maker.live(slab),
        pages_live: maker.live(pages),
        suspect: suspects.first().map(|row| maker.row(row)),
        unjudged: maker.live(unjudged.iter().copied()),
        unjudged_most: unjudged.iter().map(|row| maker.row(row)).max_by_key(|row| row.bytes),
        window_needed: window_needed(&unjudged),
        young: count_of(Verdict::Young),
        few: count_of(Verdict::Few),
        page_callers: of_pages(maker, page_callers, limit),
        pages: of_pages(maker, pages, limit),
        ..TextParts::default()
    }
}

/// Families with the first call sites of each: all get alike many rows.
fn family_parts(
    maker: &RowMaker<'_, '_, '_>,
    (slab, pages): (&[Judged<'_>], &[&Judged<'_>]),
    families: &[Family<'_>],
    found: &[FamilyRow],
    task_events: &TaskEvents,
    limit: usize,
) -> Vec<FamilyPart> {
    let sizes: Vec<usize> = families.iter().take(limit).map(|family| family.rows.len()).collect();
    let own_pages = |number: usize| {
        let rows = pages.iter().copied().filter(|row| row.grows_with == Some(number));
        page_growth(maker, &rows.collect::<Vec<_>>(), task_events)
    };
    let family =
        |(number, ((family, found), shown)): (usize, ((&Family<'_>, &FamilyRow), usize))| FamilyPart {
            pages: own_pages(number),
            makers: found.makers.clone(),
            tasks: found.tasks.clone(),
            table: table(maker, &family.rows, shown),
            largest: largest(maker, family).map(|row| maker.row(row)),
            bytes: family.bytes,
            bytes_per_second: family.per_second,
            growth: maker.growth(&family.rows),
            holders: makers_of(maker, family, found, task_events),
            elsewhere: elsewhere(maker, slab, families, number),
            has_pinned: family.rows.iter().any(|row| !row.evidence.verdict.is_growth()),
        };
    families.iter().zip(found).zip(shares(&sizes, limit)).enumerate().map(family).collect()
}

/// The call site that grows most, unless it leads.
fn largest<'r, 'g>(maker: &RowMaker<'_, '_, '_>, family: &Family<'r>) -> Option<&'r Judged<'g>>
where
    'r: 'g,
{
    let rows = family.rows.iter().enumerate();
    let growth = |row: &Judged<'_>| maker.per_window(row, row.evidence.old);
    let most = rows.max_by_key(|(at, row)| (growth(row), std::cmp::Reverse(*at)))?;
    (most.0 > 0).then_some(*most.1)
}

/// Tasks that allocated objects of the leader, and their parts of the growth of all call sites.
pub(super) fn growth_by_task(maker: &RowMaker<'_, '_, '_>, family: &Family<'_>) -> BTreeMap<i32, u64> {
    let Some(leader) = family.rows.first() else { return BTreeMap::new() };
    let mut growth_of: BTreeMap<i32, u64> = leader.growing.tasks().map(|(pid, _)| (pid, 0)).collect();
    for row in &family.rows {
        for (pid, steps) in row.growing.tasks() {
            if let Some(growth) = growth_of.get_mut(&pid) {
                *growth = growth.saturating_add(maker.per_window(row, steps.sum()));
            }
        }
    }
    growth_of
}

/// Growth of call sites of other families, and of inodes and dentries that no other may count, by the task that has half of a
/// family or more.
fn elsewhere(
    maker: &RowMaker<'_, '_, '_>,
    slab: &[Judged<'_>],
    families: &[Family<'_>],
    number: usize,
) -> u64 {
    let Some(family) = families.get(number) else { return 0 };
    let most = growth_by_task(maker, family).into_iter().max_by_key(|(_, growth)| *growth);
    let whole = maker.growth(&family.rows).per_window;
    let Some((task, _)) = most.filter(|(_, growth)| growth.saturating_mul(2) >= whole) else { return 0 };
    let others = families.iter().enumerate().filter(|(other, _)| *other != number);
    let rows = others.flat_map(|(_, family)| &family.rows);
    let of_task = rows.filter_map(|row| {
        let (_, steps) = row.growing.tasks().find(|(pid, _)| *pid == task)?;
        Some(maker.per_window(row, steps.sum()))
    });
    let pinned = pinned_elsewhere(slab, family, task, maker.length);
    of_task.chain(pinned).fold(0, u64::saturating_add)
}

/// The makers of most of a family, two at most, and their parts of the growth. Threads of a process are one maker.
fn makers_of(
    maker: &RowMaker<'_, '_, '_>,
    family: &Family<'_>,
    found: &FamilyRow,
    task_events: &TaskEvents,
) -> Vec<(String, u64)> {
    let whole = maker.growth(&family.rows).per_window;
    let are_one = found.makers.threads.is_some() || found.tasks.is_some();
    named_parts(growth_by_task(maker, family), whole, |pid| {
        let named = Named::of(pid, maker.labels, task_events);
        Named { has_exited: named.has_exited && !are_one, ..named }
    })
}

/// Call sites in no family: all verdicts get alike many rows.
fn others(maker: &RowMaker<'_, '_, '_>, groups: &[Vec<&Judged<'_>>], limit: usize) -> LeakTable {
    let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
    let shown = groups.iter().zip(shares(&sizes, limit)).flat_map(|(rows, shown)| rows.iter().take(shown));
    LeakTable { rows: shown.map(|row| maker.row(row)).collect(), total: sizes.iter().sum() }
}

/// Pages with a verdict; they get half as many rows as call sites.
fn of_pages(maker: &RowMaker<'_, '_, '_>, rows: &[Judged<'_>], limit: usize) -> LeakTable {
    let has_verdict = |row: &&Judged<'_>| !matches!(row.evidence.verdict, Verdict::Few | Verdict::Young);
    let rows: Vec<&Judged<'_>> = rows.iter().filter(has_verdict).collect();
    table(maker, &rows, limit.div_ceil(2))
}

fn table(maker: &RowMaker<'_, '_, '_>, rows: &[&Judged<'_>], limit: usize) -> LeakTable {
    LeakTable { rows: rows.iter().take(limit).map(|row| maker.row(row)).collect(), total: rows.len() }
}

/// Length of a window that can judge those of these rows for which it is too short. Missing frees are not found in a longer one.
fn window_needed(rows: &[&Judged<'_>]) -> u64 {
    let short = rows.iter().filter(|row| row.evidence.verdict == Verdict::TooShort);
    short.map(|row| row.evidence.window_needed).max().unwrap_or(0)
}

/// Number of rows that each group gets of `limit`, by the sizes of the groups: all the same, and none more than it has.
fn shares(sizes: &[usize], limit: usize) -> Vec<usize> {
    let mut shares = vec![0; sizes.len()];
    let mut left = limit;
    loop {
        let open = shares.iter().zip(sizes).filter(|(share, size)| share < size).count();
        if open == 0 || left == 0 {
            return shares;
        }
        let each = (left / open).max(1);
        for (share, &size) in shares.iter_mut().zip(sizes) {
            let more = each.min(size - *share).min(left);
            *share += more;
            left -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn rows_are_shared_alike() {
        for (sizes, limit, expected) in [
            (&[3, 1, 9][..], 20, &[3, 1, 9][..]),
            (&[3, 1, 9], 6, &[3, 1, 2]),
            (&[30, 1, 9], 10, &[5, 1, 4]),
            (&[5, 5, 5], 2, &[1, 1, 0]),
            (&[5], 0, &[0]),
            (&[], 7, &[]),
            (&[0, 2], 1, &[0, 1]),
        ] {
            assert_eq!(shares(sizes, limit), expected, "{sizes:?} {limit}");
        }
    }
}
