//! `peak`: the time of most live slab memory, and the call sites that allocated it.
//!
//! The collector `Peak` keeps live bytes of each site at the peak. Rows are sites with their share of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::collect::peak::LiveBytes;
use crate::collect::{Collectors, Handle, Peak};
use crate::failure::{Failure, Result};
use crate::pass::condition::Key;
use crate::pass::{Analysis, Needs};
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::basis::{Input, too_lossy};
use crate::reports::common::labels::{Labels, Symbol};
use crate::reports::common::rows::Address;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::sort_rows::SortRows;
use crate::stream::Api;
use crate::trace::names::function_of;

/// Share of lost events above which the report does not answer.
pub const LOST_PERCENT_MAX: f64 = 1.0;

/// The report.
#[derive(Debug, clap::Args)]
pub struct PeakReport;

impl Report for PeakReport {
    type Handles = Handle<Peak>;
    type Rows = PeakRows;

    const NAME: &'static str = "peak";
    const ABOUT: &'static str = "Time of most live slab memory, and its call sites";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::SlabLives;

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        if context.selection.has_term_on(Key::Lifetime) {
            return Err(Failure::new(
                "peak cannot select by lifetime: objects that are live at that time have not ended",
            )
            .hint("timeline selects by lifetime: it counts objects when they have ended"));
        }
        Ok(())
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let window = context.selection.bounds(context.session);
        collectors.add(Peak { window })
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let why = "the peak may be in a gap, or an effect of lost frees; summary gives ranges";
        let lacks = context.basis().lacks(self.rests_on());
        lacks.or_else(|| too_lossy(context, LOST_PERCENT_MAX, why))
    }

    /// Rows of the peak.
    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> PeakRows {
        let (analysis, peak) = (context.analysis, context.analysis.get(*handle));
        let labels = Labels::new(context.session);
        // Where events were lost, more objects may be live: no range.
        let is_whole = !context.session.losses.any();
        let certain = is_whole.then(|| context.live_bounds().bounds.certain_sites());
        let callers = by_caller(analysis, peak, certain.as_deref());
        let mut all = PeakSums::default();
        for sums in callers.values() {
            all.objects += sums.objects;
            all.bytes_least += sums.bytes_least;
            all.objects_least += sums.objects_least;
        }
        let mut callers: Vec<(u64, Api, Symbol, PeakSums)> = callers
            .into_iter()
            .map(|((address, api), sums)| (address, api, labels.located(address), sums))
            .collect();
        callers.sort_rows_by(|(_, _, a, of_a), (_, _, b, of_b)| {
            of_b.bytes.cmp(&of_a.bytes).then_with(|| a.cmp(b))
        });
        let callers_total = callers.len();
        callers.truncate(context.limit);
        let (waiting_bytes, waiting_objects) = peak.waiting_at_peak;
        let highest = peak.highest.map(|(bytes, time)| (bytes.max(0) as u64, time));
        let in_whole = highest.filter(|_| is_whole);
        let peak = PeakRow {
            time: highest.map(|(_, time)| time),
            bytes_live: highest.map(|(bytes, _)| bytes),
            bytes_live_range: in_whole
                .map(|(bytes, _)| [all.bytes_least, bytes + waiting_bytes.max(0) as u64]),
            live: highest.map(|_| all.objects),
            live_range: in_whole.map(|_| [all.objects_least, all.objects + waiting_objects.max(0) as u64]),
            callers_total,
            callers: callers.into_iter().map(|caller| row(caller, is_whole)).collect(),
        };
        PeakRows { peak }
    }

    /// The peak, its range, and the call sites that allocated the memory.
    fn screen(&self, PeakRows { peak }: &PeakRows, view: &View) -> Screen {
        let (Some(bytes), Some(objects), Some(at)) = (peak.bytes_live, peak.live, peak.time) else {
            return Screen::new("No peak: no slab object was allocated in the selected part of the trace.");
        };
        let objects = counted(objects, "object", "objects");
        let mut screen = Screen::new(format!(
            "Slab memory peaked at {} with {} in {objects}{}.",
            view.time(at),
            view.bytes(bytes),
            most(peak, bytes),
        ));
        let least = least(peak);
        if let Some((bytes, objects)) = least {
            screen.answer(format!(
                "At least {} in {} is certain; frees of the rest may have no event.",
                view.bytes(bytes),
                counted(objects, "object", "objects"),
            ));
        }
        screen.table(callers(peak, bytes, least.is_some()));
        screen.note("Objects allocated before the trace are not counted.");
        if let Some(at) = view.time_option(at) {
            screen.next(CommandLine::from("caches").option("--at", at), "caches that held the memory then");
        }
        screen.next("timeline", "live memory over time");
        screen
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeakRows {
    /// The peak.
    pub peak: PeakRow,
}

/// Slab objects live when their bytes were most, of those allocated in the trace.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeakRow {
    /// Time of the peak, in the clock's unit; `null`: no slab object was live.
    pub time: Option<u64>,
    /// Live bytes.
    pub bytes_live: Option<u64>,
    /// Live bytes: at least, at most; `null`: no slab object was live, or events were lost.
    pub bytes_live_range: Option<[u64; 2]>,
    /// Live objects.
    pub live: Option<u64>,
    /// Live objects: at least, at most; `null` as for the bytes.
    pub live_range: Option<[u64; 2]>,
    /// Number of call sites and interfaces, including those beyond the limit of rows.
    pub callers_total: usize,
    /// Call sites and interfaces, those of most live bytes first.
    pub callers: Vec<PeakCallerRow>,
}

/// Live objects of one call site and interface.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PeakCallerRow {
    /// Address of the call site.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// `kmalloc` or `cache`.
    pub api: &'static str,
    /// Live bytes.
    pub bytes_live: u64,
    /// Live bytes: at least, at most; `null`: events were lost, or objects of the call site waited for a grace period.
    pub bytes_live_range: Option<[u64; 2]>,
    /// Live objects.
    pub live: u64,
    /// Live objects: at least, at most; `null` as for the bytes.
    pub live_range: Option<[u64; 2]>,
    /// Certain live objects, also of a call site without a range.
    #[serde(skip)]
    pub live_least: u64,
}

/// Live objects of a call site.
#[derive(Debug, Clone, Copy, Default)]
struct PeakSums {
    bytes: u64,
    objects: u64,
    /// Bytes of objects that are certainly live: frees of their kind have events.
    bytes_least: u64,
    /// Number of objects that are certainly live.
    objects_least: u64,
    /// Other objects of the call site may wait for a grace period; their number at the peak is known for all call sites
    /// together only.
    has_waiting: bool,
}

fn by_caller(
    analysis: &Analysis,
    peak: &LiveBytes,
    certain: Option<&[bool]>,
) -> BTreeMap<(u64, Api), PeakSums> {
    let mut callers: BTreeMap<(u64, Api), PeakSums> = BTreeMap::new();
    for (number, bytes, objects) in peak.sites() {
        let Some(site) = analysis.interner.sites.get(number) else { continue };
        let sums = callers.entry((site.call_site, site.api)).or_default();
        sums.bytes += bytes;
        sums.objects += objects;
        if certain.is_none_or(|certain| certain.get(number as usize) == Some(&true)) {
            sums.bytes_least += bytes;
            sums.objects_least += objects;
        }
        sums.has_waiting |= peak.has_waiting(number);
    }
    callers.retain(|_, sums| sums.objects > 0);
    callers
}

fn row((address, api, symbol, sums): (u64, Api, Symbol, PeakSums), is_whole: bool) -> PeakCallerRow {
    let is_bounded = is_whole && !sums.has_waiting;
    PeakCallerRow {
        call_site: Address(address),
        symbol,
        api: api.name(),
        bytes_live: sums.bytes,
        bytes_live_range: is_bounded.then_some([sums.bytes_least, sums.bytes]),
        live: sums.objects,
        live_range: is_bounded.then_some([sums.objects_least, sums.objects]),
        live_least: sums.objects_least,
    }
}

/// The call site of most bytes, if there are several.
fn most(peak: &PeakRow, all_bytes: u64) -> String {
    let first = peak.callers.first().filter(|_| peak.callers_total > 1);
    first.map_or(String::new(), |row| {
        format!(", {} of it by {}", share(row.bytes_live, all_bytes), function_of(&row.symbol))
    })
}

/// Certain live bytes and objects, if there are fewer of them.
fn least(peak: &PeakRow) -> Option<(u64, u64)> {
    let ([bytes, _], [objects, _]) = (peak.bytes_live_range?, peak.live_range?);
    (Some(objects) < peak.live).then_some((bytes, objects))
}

/// Live objects at the peak by call site.
fn callers(peak: &PeakRow, all_bytes: u64, has_least: bool) -> Table {
    Table::of_rows("", &peak.callers)
        .of("call site", "call sites", peak.callers_total)
        .column(Column::name("call site"), |row| Cell::from(&row.symbol))
        .column(Column::whole("api").leaves(4), |row| Cell::text(row.api))
        .column(Column::number("live objects"), |row| Cell::Count(row.live))
        .column(Column::number("live"), |row| Cell::Bytes(row.bytes_live))
        .column(Column::number("share"), |row| Cell::share(row.bytes_live, all_bytes))
        .column(Column::whole("").leaves(2), |row| Cell::bar(row.bytes_live, all_bytes))
        .column_if(has_least, Column::number("live at least").leaves(3), |row| Cell::Count(row.live_least))
        .into()
}
