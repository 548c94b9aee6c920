//! Rows as the text groups them: families, then call sites by verdict, then pages.

use super::families::Family;
use super::judged::Judged;
use super::row::{LeakRow, RowMaker};
use super::slab::tasks_started;
use crate::analysis::leaks::Verdict;

/// Rows as the text groups them.
#[derive(Debug, Clone, Default)]
pub struct TextParts {
    /// Families, the largest first.
    pub families: Vec<FamilyPart>,
    /// Call sites in no family, by verdict.
    pub groups: Vec<Group>,
    /// Call sites with young survivors alone.
    pub young: u64,
    /// Call sites with few survivors.
    pub few: u64,
    /// Tasks that started in the window and still run.
    pub tasks_started: u64,
    /// Pages by call site.
    pub page_callers: Table,
    /// Pages by kind.
    pub pages: Table,
}

/// Some rows of a table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The first of them.
    pub rows: Vec<LeakRow>,
    /// How many there are.
    pub total: usize,
}

/// A family.
#[derive(Debug, Clone)]
pub struct FamilyPart {
    /// Its call sites, the leader in front.
    pub table: Table,
    /// Old bytes of all of them.
    pub bytes: u64,
    /// The same a second.
    pub bytes_per_second: u64,
    /// Some of it would be reclaimable if nothing held it.
    pub has_pinned: bool,
}

/// Call sites of one verdict.
#[derive(Debug, Clone)]
pub struct Group {
    /// The verdict.
    pub verdict: Verdict,
    /// Its call sites.
    pub table: Table,
    /// How old 99 of 100 of those freed unseen were at most when they were found to be over: the highest of the call
    /// sites.
    pub unseen_age_p99_max: u64,
}

/// Verdicts that have a table, in their order.
const VERDICTS: [Verdict; 10] = [
    Verdict::Reclaimable,
    Verdict::WithReclaimable,
    Verdict::WithTasks,
    Verdict::WithSlabs,
    Verdict::Warming,
    Verdict::Burst,
    Verdict::Lazy,
    Verdict::FreesUnseen,
    Verdict::TooShort,
    Verdict::Uncertain,
];

/// Rows of one verdict that are shown at most.
const GROUP_MAX: usize = 8;
/// Rows of pages that are shown at most.
const PAGES_MAX: usize = 10;

/// Groups rows of slab objects, of pages by call site, and of pages by kind.
pub(super) fn text_parts(
    maker: &RowMaker<'_, '_, '_>,
    [slab, page_callers, pages]: [&[Judged<'_>]; 3],
    families: &[Family<'_>],
    limit: usize,
) -> TextParts {
    let count_of = |verdict| slab.iter().filter(|r| r.evidence.verdict == verdict).count() as u64;
    let family = |family: &Family<'_>| FamilyPart {
        table: table(maker, &family.rows, limit),
        bytes: family.bytes,
        bytes_per_second: family.per_second,
        has_pinned: family.rows.iter().any(|r| !r.evidence.verdict.is_growth()),
    };
    let is_telling = |r: &&Judged<'_>| !matches!(r.evidence.verdict, Verdict::Few | Verdict::Young);
    let of_pages = |rows: &[Judged<'_>]| {
        let rows: Vec<&Judged<'_>> = rows.iter().filter(is_telling).collect();
        table(maker, &rows, limit.min(PAGES_MAX))
    };
    TextParts {
        families: families.iter().take(limit).map(family).collect(),
        groups: VERDICTS.iter().filter_map(|verdict| group(maker, slab, *verdict, limit)).collect(),
        young: count_of(Verdict::Young),
        few: count_of(Verdict::Few),
        tasks_started: tasks_started(slab).survivors.sum(),
        page_callers: of_pages(page_callers),
        pages: of_pages(pages),
    }
}

/// Call sites of a verdict that are in no family, if there are any.
fn group(maker: &RowMaker<'_, '_, '_>, slab: &[Judged<'_>], verdict: Verdict, limit: usize) -> Option<Group> {
    let alone = slab.iter().filter(|r| r.leader.is_none());
    let rows: Vec<&Judged<'_>> = alone.filter(|r| r.evidence.verdict == verdict).collect();
    let ages = rows.iter().filter_map(|r| r.course.unseen_ages.quantile(990));
    let unseen_age_p99_max = ages.max().unwrap_or(0);
    let table = table(maker, &rows, limit.min(GROUP_MAX));
    (table.total > 0).then_some(Group { verdict, table, unseen_age_p99_max })
}

fn table(maker: &RowMaker<'_, '_, '_>, rows: &[&Judged<'_>], limit: usize) -> Table {
    Table { rows: rows.iter().take(limit).map(|r| maker.row(r)).collect(), total: rows.len() }
}
