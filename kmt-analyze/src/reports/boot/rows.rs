//! Rows of `boot`: marks with live memory, memory from before user space, and what is still allocated at the end.
//!
//! Growth of a phase (a level of initcalls, user space) is that until the next phase, growth at another mark that until the next
//! mark of any kind. Of more marks than fit, the begin of user space and those of most growth are kept.

use serde::Serialize;

use crate::collect::boot::{BootMemorySums, Fates};
use crate::collect::groups::Group;
use crate::collect::peak::LiveBytes;
use crate::ledger::totals::Totals;
use crate::pass::weights::in_order;
use crate::render::words::escaped;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::too_lossy;
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::rows::{RecordedSums, SlabSums};
use crate::reports::common::sorting::SortKey;
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Grouping, Values};
use crate::reports::peak::LOST_PERCENT_MAX;
use crate::sort_rows::SortRows;
use crate::trace::ages::events_at_zero;
use crate::trace::boot_marks::{Begin, BootMarks, Mark, MarkKind, Source, first_time};

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BootRows {
    /// Memory over the boot.
    pub boot: BootRow,
}

/// Memory over a boot.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BootRow {
    /// True if the recording begins within a second of the zero of a clock that begins at boot.
    pub starts_at_boot: bool,
    /// Begin of the selected time, in the clock's unit.
    pub start: u64,
    /// End of the selected time.
    pub end: u64,
    /// Events of time 0 in the recording: the clock did not run yet. 0 where there are not several.
    pub events_at_zero: u64,
    /// Time of the first program of the task 1, else of any task; `null`: it was not recorded, or the recording begins later.
    pub user_space: Option<u64>,
    /// Bytes of slab objects that are live at the end; `null`: their frees were not recorded.
    pub bytes_live: Option<u64>,
    /// Live bytes of slab objects at the end: at least, at most; `null`: unknown, as where events were lost.
    pub bytes_live_range: Option<[u64; 2]>,
    /// Bytes of these whose end may be lost.
    pub bytes_live_uncertain: Option<u64>,
    /// Bytes of pages that are live at the end, those of slabs included; `null`: their frees were not recorded.
    pub page_bytes_live: Option<u64>,
    /// Bytes of these whose end may be lost.
    pub page_bytes_live_uncertain: Option<u64>,
    /// Highest live bytes of slab objects; `null`: no object was allocated, or more than 1 % of the events were lost.
    pub peak: Option<BootPeakRow>,
    /// Slab objects allocated before user space began; `null`: that time or their frees are unknown.
    pub before_user_space: Option<BeforeRow>,
    /// Pages allocated before user space began; `null`: that time or their frees are unknown.
    pub pages_before_user_space: Option<BeforeRow>,
    /// Number of marks, including those beyond the limit of rows.
    pub marks_total: usize,
    /// Marks that are not computed, because there are too many.
    pub marks_left_out: u64,
    /// Marks by time. Of more than the limit of rows, the begin of user space and those of most growth.
    pub marks: Vec<MarkRow>,
    /// Slab objects by module, those of most live bytes first; `null`: allocations were not recorded.
    pub by_module: Option<GroupTable<SlabSums>>,
    /// Slab objects by directory of the source; `null`: unknown.
    pub by_dir: Option<GroupTable<SlabSums>>,
    /// Slab objects by call site; `null`: allocations were not recorded.
    pub by_call_site: Option<GroupTable<SlabSums>>,
    /// Facts that only the screen has.
    #[serde(skip)]
    pub shown: BootShown,
}

/// Facts that only the screen has.
#[derive(Debug)]
pub struct BootShown {
    /// Begin of the recording.
    pub begin: Begin,
    /// First time of which all CPUs have their events.
    pub first: u64,
    /// Kinds of marks whose events were not recorded, and these events.
    pub lacks: Vec<(&'static str, &'static str)>,
}

/// The highest live bytes.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BootPeakRow {
    /// Time, in the clock's unit.
    pub time: u64,
    /// Live bytes.
    pub bytes_live: u64,
}

/// Memory that was allocated before user space began.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BeforeRow {
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Bytes of these freed before user space began, also without an event.
    pub bytes_freed_before: u64,
    /// Bytes of these freed later, also without an event.
    pub bytes_freed_after: u64,
    /// Bytes of these still allocated at the end.
    pub bytes_live: u64,
    /// Bytes of these whose end may be lost, or whose free is ambiguous.
    pub bytes_uncertain: u64,
}

/// A mark, and the memory at its time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MarkRow {
    /// Time, in the clock's unit.
    pub time: u64,
    /// `start`, `initcall_level`, `initcall`, `module` (loaded), `module_use` (first event of its functions),
    /// `first_process`, `init`, `process`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub kind: MarkName,
    /// Level, function, module or program; `null`: none.
    pub name: Option<String>,
    /// Bytes of slab objects that are live then; `null`: their frees were not recorded.
    pub bytes_live: Option<u64>,
    /// Bytes of these whose free may be lost.
    pub bytes_live_uncertain: Option<u64>,
    /// Change of the live bytes until the next mark, of `start`, `initcall_level`, `first_process` and `init` until the next of these.
    pub bytes_change: Option<i64>,
    /// Bytes of pages that are live then, those of slabs included; `null`: their frees were not recorded.
    pub page_bytes_live: Option<u64>,
    /// Change of the live bytes of pages likewise.
    pub page_bytes_change: Option<i64>,
}

/// Name of a kind in JSON.
#[derive(Debug, Clone, Copy)]
pub struct MarkName(pub MarkKind);

impl Serialize for MarkName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self.0 {
            MarkKind::Start => "start",
            MarkKind::InitcallLevel => "initcall_level",
            MarkKind::Initcall => "initcall",
            MarkKind::Module => "module",
            MarkKind::ModuleUse => "module_use",
            MarkKind::FirstProcess => "first_process",
            MarkKind::Init => "init",
            MarkKind::Process => "process",
        })
    }
}

/// Computes the rows.
pub fn compute(
    context: &ReportContext<'_, '_>,
    marks: &BootMarks,
    memory: &BootMemorySums,
    peak: &LiveBytes,
) -> BootRows {
    let session = context.session;
    let recorded_pages = RecordedSums::pages(context.basis());
    let (slab, pages) = (RecordedSums::slab(context.basis(), None).lives, recorded_pages.lives);
    let page_size = context.analysis.page_size.0;
    let levels = Levels {
        slab: slab.then(|| memory.slab()),
        uncertain: slab.then(|| memory.uncertain()),
        pages: pages.then(|| memory.pages().iter().map(|n| n.saturating_mul(page_size)).collect()),
    };
    let at_end = |levels: &Option<Vec<u64>>| levels.as_ref().and_then(|live| live.last().copied());
    let page_sums = PageSums::of(context.analysis, recorded_pages).sums;
    let before = |fates: Fates, unit: u64, is_known: bool| {
        marks.user_space().filter(|_| is_known).map(|_| BeforeRow::of(fates, unit))
    };
    let is_peak_known = slab && too_lossy(context, LOST_PERCENT_MAX, "").is_none();
    let highest = peak.highest.filter(|_| is_peak_known);
    let range = context.live_bounds().bounds.of_api(None).filter(|_| slab);
    let (start, end) = context.selection.span(session);
    let stays = Stays::new(context);
    let has_allocs = context.basis().allocs(None);
    BootRows {
        boot: BootRow {
            starts_at_boot: marks.begin != Begin::Later,
            start,
            end,
            events_at_zero: events_at_zero(session.trace.metadata()),
            user_space: marks.user_space(),
            bytes_live: at_end(&levels.slab),
            bytes_live_range: range.map(|live| live.bytes),
            bytes_live_uncertain: at_end(&levels.uncertain),
            page_bytes_live: at_end(&levels.pages),
            page_bytes_live_uncertain: page_sums.bytes_live_uncertain,
            peak: highest
                .map(|(bytes, time)| BootPeakRow { time, bytes_live: u64::try_from(bytes).unwrap_or(0) }),
            before_user_space: before(memory.before, 1, slab),
            pages_before_user_space: before(memory.pages_before, page_size, pages),
            marks_total: marks.marks.len(),
            marks_left_out: marks.left_out,
            marks: mark_rows(&marks.marks, &levels, context.limit),
            by_module: has_allocs.then(|| stays.by("module")),
            by_dir: (has_allocs && session.source().has_directories()).then(|| stays.by("dir")),
            by_call_site: has_allocs.then(|| stays.by("call_site")),
            shown: BootShown {
                begin: marks.begin,
                first: first_time(session).unwrap_or(start),
                lacks: lacks(context),
            },
        },
    }
}

impl BeforeRow {
    fn of(fates: Fates, unit: u64) -> Self {
        let Fates { allocated, freed_before, freed_after, uncertain } = fates;
        let live = allocated.saturating_sub(freed_before).saturating_sub(freed_after);
        let bytes = |amount: u64| amount.saturating_mul(unit);
        Self {
            bytes_alloc: bytes(allocated),
            bytes_freed_before: bytes(freed_before),
            bytes_freed_after: bytes(freed_after),
            bytes_live: bytes(live),
            bytes_uncertain: bytes(uncertain),
        }
    }
}

/// Marks whose events were not recorded.
fn lacks(context: &ReportContext<'_, '_>) -> Vec<(&'static str, &'static str)> {
    let all = [
        (Source::Initcall, "initcalls", "initcall:*"),
        (Source::Module, "loaded modules", "module:module_load"),
        (Source::Exec, "programs", "sched:sched_process_exec"),
    ];
    let is_recorded =
        |source| context.recorded_class(|class| Source::of(class) == Some(source)) == Some(true);
    all.iter()
        .filter(|(source, ..)| !is_recorded(*source))
        .map(|(_, marks, event)| (*marks, *event))
        .collect()
}

/// Live bytes at each mark and at the end; `None`: unknown.
struct Levels {
    slab: Option<Vec<u64>>,
    uncertain: Option<Vec<u64>>,
    pages: Option<Vec<u64>>,
}

/// Level at a mark, and its change until another one.
fn level(levels: Option<&[u64]>, at: usize, until: usize) -> (Option<u64>, Option<i64>) {
    let live = levels.and_then(|live| live.get(at).copied());
    let then = levels.and_then(|live| live.get(until).copied());
    let change = live.zip(then).map(|(live, then)| {
        let change = i128::from(then) - i128::from(live);
        i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
    });
    (live, change)
}

fn mark_rows(marks: &[Mark], levels: &Levels, limit: usize) -> Vec<MarkRow> {
    let mut rows: Vec<(usize, MarkRow)> = Vec::with_capacity(marks.len());
    let mut next_phase = marks.len();
    for (at, mark) in marks.iter().enumerate().rev() {
        let until = if mark.kind.is_phase() { next_phase } else { at + 1 };
        let (bytes_live, bytes_change) = level(levels.slab.as_deref(), at, until);
        let (page_bytes_live, page_bytes_change) = level(levels.pages.as_deref(), at, until);
        let name = (!mark.name.is_empty()).then(|| escaped(&mark.name));
        let (time, kind) = (mark.time, MarkName(mark.kind));
        let row = MarkRow {
            time,
            kind,
            name,
            bytes_live,
            bytes_live_uncertain: levels.uncertain.as_ref().and_then(|live| live.get(at).copied()),
            bytes_change,
            page_bytes_live,
            page_bytes_change,
        };
        rows.push((at, row));
        if mark.kind.is_phase() {
            next_phase = at;
        }
    }
    // User space first, then by growth; a stable sort, so that equal marks are in the order of their times.
    rows.reverse();
    let first = marks.iter().position(|mark| mark.kind.is_user_space());
    rows.sort_rows_by_key(|(at, row)| {
        let change = row.bytes_change.or(row.page_bytes_change).unwrap_or(0);
        std::cmp::Reverse((Some(*at) == first, change.unsigned_abs(), row.kind.0.is_phase()))
    });
    rows.truncate(limit);
    rows.sort_rows_by_key(|(at, _)| *at);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Groups of what is still allocated.
struct Stays<'c, 'r, 'd> {
    context: &'c ReportContext<'r, 'd>,
    values: Values<'r, 'd>,
}

impl<'c, 'r, 'd> Stays<'c, 'r, 'd> {
    fn new(context: &'c ReportContext<'r, 'd>) -> Self {
        Self { context, values: Values::new(context) }
    }

    /// Sums by a key, of groups with live objects.
    fn by(&self, key: &str) -> GroupTable<SlabSums> {
        let analysis = self.context.analysis;
        let keys: Vec<&'static GroupKey> = GroupKey::parse_slab(key).into_iter().collect();
        let mut groups: Grouping<'_, '_, Totals> = Grouping::new(&keys, &self.values, analysis);
        for (number, parts) in (0u32..).zip(&analysis.balance.sites) {
            let Some(site) = analysis.interner.sites.get(number) else { continue };
            for (cache, totals) in parts {
                let group = Group { site: number, cache: *cache, origin: 0 };
                *groups.of(GroupPart::Slab(&group, site)) += totals;
            }
        }
        let recorded = RecordedSums::slab(self.context.basis(), None);
        let number = |totals: &Totals, key: SortKey| key.number(&in_order(None, *totals));
        let row = |totals: &Totals| SlabSums::of(totals, recorded);
        let mut table = groups.table(&[SortKey::Live], number, usize::MAX, row);
        table.groups.retain(|group| group.row.live != Some(0));
        table.groups_total = table.groups.len();
        table.groups.truncate(self.context.limit);
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(time: u64, kind: MarkKind, name: &str) -> Mark {
        Mark { time, kind, name: name.as_bytes().to_vec() }
    }

    #[test]
    fn a_phase_grows_until_the_next_phase_and_other_marks_until_the_next_mark() {
        let marks = [
            mark(0, MarkKind::Start, ""),
            mark(1, MarkKind::InitcallLevel, "core"),
            mark(2, MarkKind::Initcall, "a"),
            mark(3, MarkKind::Initcall, "b"),
            mark(4, MarkKind::FirstProcess, "/init"),
        ];
        let levels = Levels { slab: Some(vec![0, 10, 11, 15, 12, 20]), uncertain: None, pages: None };
        let rows = mark_rows(&marks, &levels, 9);
        let found: Vec<(u64, Option<i64>)> = rows.iter().map(|row| (row.time, row.bytes_change)).collect();
        assert_eq!(found, [(0, Some(10)), (1, Some(2)), (2, Some(4)), (3, Some(-3)), (4, Some(8))]);
        assert!(rows.iter().all(|row| row.page_bytes_live.is_none() && row.page_bytes_change.is_none()));
        let few = mark_rows(&marks, &levels, 3);
        let times: Vec<u64> = few.iter().map(|row| row.time).collect();
        assert_eq!(times, [0, 2, 4], "user space, and those of most growth");
    }
}
