//! `slabinfo`: live objects by events against the kernel's own counts, cache by cache.
//!
//! The recording has readings of /proc/slabinfo with their times. Events give a count of live objects at each of them. Rows and
//! screen are here.

mod unseen;

use unseen::{SlabChange, SlabChanges, slabinfo_readings};
pub use unseen::{UnseenGrowth, compute as unseen_growth};

use serde::Serialize;

use crate::collect::{Collectors, Handle, Moments, Unmatched};
use crate::pass::Needs;
use crate::pass::coverage::history::{CacheHistory, HistoryAt, histories, times};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, escaped};
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::sort_rows::SortRows;
use crate::trace::names::CacheKey;

/// Live objects against /proc/slabinfo.
#[derive(Debug, clap::Args)]
pub struct SlabInfo;

impl Report for SlabInfo {
    type Handles = (Handle<Moments>, Handle<Unmatched>);
    type Rows = SlabInfoRows;

    const NAME: &'static str = "slabinfo";
    const ABOUT: &'static str = "Live objects against /proc/slabinfo: frees without events";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::SlabLives;

    fn details() -> String {
        "Two copies of /proc/slabinfo in place of FILE: caches that changed from the first to the second, without a trace. \
         Options are --lines, --json and --csv."
            .to_owned()
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let has_none = || {
            "the file has no /proc/slabinfo; kmt-capture record reads it, and convert takes slabinfo.after and \
             slabinfo.at.T0-T1 of a directory"
                .to_owned()
        };
        let is_part = || "slabinfo counts to the end of the trace: omit --time and --at".to_owned();
        let is_whole = context.selection.time.is_none() && context.selection.at.is_none();
        let lacks = context.basis().lacks(self.rests_on());
        lacks
            .or_else(|| unseen::slabinfo_readings(context).0.is_empty().then(has_none))
            .or_else(|| (!is_whole).then(is_part))
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        (
            collectors.add(Moments { times: times(&unseen::slabinfo_readings(context).0) }),
            collectors.add(Unmatched),
        )
    }

    /// Rows of a trace; caches with more live objects than possible are first.
    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> SlabInfoRows {
        let analysis = context.analysis;
        let unmatched = &analysis.get(handles.1).0;
        let changes = SlabChanges::of(context, unmatched);
        let mut unseen_growth = unseen::compute(context, unmatched);
        let (snapshots, times_known) = slabinfo_readings(context);
        let bounds = &context.live_bounds().bounds;
        // Only rows that are shown keep all snapshots.
        let at = |history: &CacheHistory| -> Vec<HistoryAt> {
            let bounded = |at: HistoryAt| HistoryAt { most: at.most.filter(|_| times_known), ..at };
            history.at(&snapshots).map(bounded).collect()
        };
        let ranked = |history: CacheHistory| {
            let at = at(&history);
            let over = |at: &HistoryAt| over(at.live, at.most, at.in_use_max, at.born_while_read);
            let rank = (at.iter().map(over).max(), at.last().map(|at| at.live));
            let is_contradicted = at.iter().any(HistoryAt::is_contradicted);
            (history.key.shown(analysis.size_classes), history, rank, is_contradicted)
        };
        let mut all: Vec<_> =
            histories(analysis, bounds, analysis.get(handles.0)).into_iter().map(ranked).collect();
        all.sort_rows_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        let change = |key: &CacheKey| changes.as_ref()?.until(key, snapshots.last()?);
        let row = |(name, history, _, is_contradicted): &(String, CacheHistory, _, bool)| SlabInfoCache {
            change: change(&history.key),
            is_contradicted: *is_contradicted,
            ..cache(name, &at(history))
        };
        let unseen = || {
            // Some caches are in no event.
            let keys = unseen_growth.iter().map(|grown| CacheKey::Named(grown.cache.as_bytes().to_vec()));
            let grown: Vec<_> = unseen_growth.iter().zip(keys).collect();
            let grown = grown.iter().filter_map(|(grown, key)| Some((&grown.cache, change(key)?)));
            let changed = all.iter().filter_map(|(name, history, ..)| Some((name, change(&history.key)?)));
            let changed = changed.chain(grown);
            changed.max_by_key(|(_, change)| change.unseen.unsigned_abs())
        };
        let most_unseen = unseen().map(|(name, change)| (name.clone(), change));
        unseen_growth.truncate(context.limit);
        let table = SlabInfoTable {
            times: snapshots.iter().map(|s| s.to).collect(),
            read_for: snapshots.iter().map(|s| s.to - s.from).collect(),
            times_known,
            caches_total: all.len(),
            most_unseen,
            unseen_growth,
            caches_contradicted: all.iter().filter(|(.., is_contradicted)| *is_contradicted).count(),
            caches: all.iter().take(context.limit).map(row).collect(),
        };
        SlabInfoRows { slabinfo: table }
    }

    /// Caches with frees that have no event first.
    fn screen(&self, SlabInfoRows { slabinfo: rows }: &SlabInfoRows, view: &View) -> Screen {
        let mut screen = Screen::new(answer(rows, view));
        if let Some(growth) = rows.unseen_growth.first() {
            screen.answer(growth.sentence(&[], view));
        }
        let over = |cache: &SlabInfoCache| cache.most_over(&rows.times);
        let known = |number: Option<u64>| number.map_or(Cell::Empty, Cell::Count);
        let has_changes = rows.most_unseen.is_some();
        let mut table = Table::of_rows("", &rows.caches)
            .of("cache", "caches", rows.caches_total)
            .column(Column::name("cache"), |cache| Cell::text(name(cache)))
            .column(Column::number("live objects"), |cache| Cell::Count(cache.live.last().copied().unwrap_or(0)))
            .column(Column::number("at least").leaves(2), |cache| Cell::Count(live_range(cache).0))
            .column(Column::number("at most").leaves(1), |cache| known(live_range(cache).1))
            .column(Column::number("active"), |cache| active(cache))
            .column(Column::number("excess"), |cache| known(over(cache).map(|(over, _)| over)))
            .column(Column::number("excess at").leaves(3), |cache| {
                over(cache).map_or(Cell::Empty, |(_, at)| Cell::text(view.time(at)))
            })
            .columns(CHANGE.into_iter().filter(|_| has_changes), |cache| {
                changes(cache).into_iter().filter(|_| has_changes)
            })
            .explain(
                "active",
                "Active: objects that /proc/slabinfo counts, with those allocated before the trace and free ones in per-CPU slabs; empty: it does not list the cache.",
            );
        if rows.caches.iter().any(is_estimate) {
            table = table.explain(
                "active",
                "~: the cache has more than 10,000 slabs, of which the kernel (since 6.10) counts some and estimates the rest.",
            );
        }
        let excess = match rows.times_known {
            true => "Excess: most live objects beyond those that can be live, at one reading.",
            false => {
                "Excess: live objects beyond the active ones: freed without an event, or after the trace."
            }
        };
        let unseen_note = "Unseen: change of the active objects over the recording that no event shows.";
        screen.table(table.explain("excess", excess).explain("unseen", unseen_note));
        screen.note(if rows.times_known { readings(rows, view) } else { UNTIMED.to_owned() });
        view.part.iter().for_each(|part| screen.note(part.sentence(view.unit)));
        screen.note(unseen(rows));
        screen.next("caches --sort live", "live figures of caches and their bounds");
        screen
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabInfoRows {
    /// Live objects by events and by the kernel.
    pub slabinfo: SlabInfoTable,
}

/// Live objects by events and by the kernel.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabInfoTable {
    /// Times at which reading of each snapshot of /proc/slabinfo ended, in the clock's unit; the last is after the trace.
    pub times: Vec<u64>,
    /// Lengths of the readings, in the clock's unit.
    pub read_for: Vec<u64>,
    /// False: slabinfo is from an unknown time after the trace, and bounds nothing. The time in `times` is the end of the
    /// trace.
    pub times_known: bool,
    /// Number of caches.
    pub caches_total: usize,
    /// Caches with more live objects than slabinfo counts as active.
    pub caches_contradicted: usize,
    /// Caches.
    pub caches: Vec<SlabInfoCache>,
    /// Caches that grew without allocation events, the largest growth first.
    pub unseen_growth: Vec<UnseenGrowth>,
    /// Cache whose change has most that no event shows.
    #[serde(skip)]
    pub most_unseen: Option<(String, SlabChange)>,
}

/// A cache at each snapshot.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabInfoCache {
    /// Name of the cache.
    pub cache: String,
    /// Objects allocated in the trace and not known to be freed.
    pub live: Vec<u64>,
    /// Objects passed to kfree_rcu, and perhaps not yet freed; they are not in `live`, but in what can be live at most.
    pub waiting: Vec<u64>,
    /// Objects that can be live: at least, at most. Where events were lost: 0 to active. `null`: nothing bounds them.
    pub live_range: Vec<(u64, Option<u64>)>,
    /// Active objects by slabinfo, older ones included; `null`: it does not list the cache.
    pub active: Vec<Option<u64>>,
    /// Most objects that can be active: more than `active` where the kernel may have estimated it, which it does for
    /// caches of more than 10,000 slabs since 6.10.
    pub active_max: Vec<Option<u64>>,
    /// Objects allocated while slabinfo was read: in `live`, and in `active` only if the cache's line was written after
    /// them.
    pub born_while_read: Vec<u64>,
    /// Objects that ended while slabinfo was read: not in `live`, and in `active` if the line was written before that.
    pub ended_while_read: Vec<u64>,
    /// Change over the recording; `null`: of kmalloc, of a cache that slabinfo does not list, of a part of the objects, without
    /// slabinfo at the begin, or where frees do not name their caches (before 5.12).
    pub change: Option<SlabChange>,
    /// More objects seem live all the time while slabinfo was read than it counts as active.
    pub is_contradicted: bool,
}

impl SlabInfoCache {
    /// Most objects that seem live beyond those that can be, and the time of that; `None`: there are none.
    pub fn most_over(&self, times: &[u64]) -> Option<(u64, u64)> {
        let bounds = self.active_max.iter().zip(&self.born_while_read);
        let at = self.live.iter().zip(&self.live_range).zip(bounds).zip(times);
        let over =
            at.map(|(((live, (_, most)), (in_use, born)), time)| (over(*live, *most, *in_use, *born), *time));
        over.max_by_key(|(over, _)| *over).filter(|(over, _)| *over > 0)
    }
}

/// Objects that seem live beyond those that can be, or, where nothing bounds them, beyond those that slabinfo counts.
fn over(live: u64, most: Option<u64>, in_use_max: Option<u64>, born_while_read: u64) -> u64 {
    let in_use = in_use_max.map(|in_use| in_use.saturating_add(born_while_read));
    most.or(in_use).map_or(0, |most| live.saturating_sub(most))
}

fn cache(name: &str, at: &[HistoryAt]) -> SlabInfoCache {
    SlabInfoCache {
        cache: name.to_owned(),
        live: at.iter().map(|at| at.live).collect(),
        waiting: at.iter().map(|at| at.waiting).collect(),
        live_range: at.iter().map(|at| (at.least, at.most)).collect(),
        active: at.iter().map(|at| at.active).collect(),
        active_max: at.iter().map(|at| at.in_use_max).collect(),
        born_while_read: at.iter().map(|at| at.born_while_read).collect(),
        ended_while_read: at.iter().map(|at| at.ended_while_read).collect(),
        change: None,
        is_contradicted: false,
    }
}

/// Limit of a reading whose time is unknown.
const UNTIMED: &str = "The time of this /proc/slabinfo is not in the file: it was read after the trace, and bounds no live figure. A change includes what happened between the readings and the trace. A directory can give the time as slabinfo.at.T0-T1 (docs/import.md).";

/// Columns of the change over the recording.
const CHANGE: [Column; 3] = [
    Column::number("change").leaves(6),
    Column::number("by events").leaves(5),
    Column::number("unseen").leaves(4),
];

/// Cells under [`CHANGE`].
fn changes(cache: &SlabInfoCache) -> [Cell; 3] {
    let Some(change) = cache.change else { return [Cell::Empty, Cell::Empty, Cell::Empty] };
    let about = |number| match change.is_estimate {
        true => Cell::About(Box::new(Cell::Change(number))),
        false => Cell::Change(number),
    };
    [about(change.active), Cell::Change(change.events), about(change.unseen)]
}

/// The largest change that no event shows.
fn unseen(rows: &SlabInfoTable) -> String {
    let Some((name, change)) = &rows.most_unseen else { return String::new() };
    let unseen = counted(change.unseen.unsigned_abs(), "object", "objects");
    format!(
        "The largest change that no event shows: {unseen} of {name}. Active objects include free ones in per-CPU slabs, so up to a slab for each CPU means nothing."
    )
}

/// Caches that slabinfo contradicts, and the worst.
fn answer(rows: &SlabInfoTable, view: &View) -> String {
    let all = counted(rows.caches_total as u64, "cache", "caches");
    if !rows.times_known {
        let than = "live at the end of the trace than /proc/slabinfo counted some time later";
        return match rows.caches_contradicted {
            0 => format!("In none of {all} were more objects {than}."),
            some => format!("In {} of {all} more objects were {than}.", count(some as u64)),
        };
    }
    if rows.caches_contradicted == 0 {
        return format!(
            "No sign of frees without events: in none of {all} more objects seem live than /proc/slabinfo counts as active."
        );
    }
    let worst = rows.caches.first().and_then(|cache| cache.most_over(&rows.times).map(|over| (cache, over)));
    let worst = worst.map_or(String::new(), |(cache, (over, at))| {
        format!(" {} has {} too many at {}.", name(cache), counted(over, "object", "objects"), view.time(at))
    });
    format!(
        "Objects were freed without events in {} of {all}: more seem live than /proc/slabinfo counts as active.{worst}",
        count(rows.caches_contradicted as u64)
    )
}

/// Name of a cache on one line.
fn name(cache: &SlabInfoCache) -> String {
    escaped(cache.cache.as_bytes())
}

/// A cache at the last reading.
fn live_range(cache: &SlabInfoCache) -> (u64, Option<u64>) {
    cache.live_range.last().copied().unwrap_or((0, None))
}

/// Objects that /proc/slabinfo counts as active at the end.
fn active(cache: &SlabInfoCache) -> Cell {
    match cache.active.last().copied().flatten().map(Cell::Count) {
        Some(active) if is_estimate(cache) => Cell::About(Box::new(active)),
        active => active.unwrap_or(Cell::Empty),
    }
}

/// True if the kernel may have estimated the number of active objects at the last reading.
fn is_estimate(cache: &SlabInfoCache) -> bool {
    cache.active.last() != cache.active_max.last()
}

/// Readings of slabinfo that were compared.
fn readings(rows: &SlabInfoTable, view: &View) -> String {
    let Some((last, during)) = rows.times.split_last() else { return String::new() };
    match during {
        [] => format!("/proc/slabinfo was read once, at the end ({}).", view.time(*last)),
        during => format!(
            "Live, at least, at most and active are at the end of the trace; /proc/slabinfo was also read {} during it.",
            counted(during.len() as u64, "time", "times")
        ),
    }
}
