//! `waste`: places where memory is wasted, of all kinds in one order, each with a change that would save it.
//!
//! Places come from the sums of the pass and from `fragmentation` (`kinds`); `saves` has the changes. Rows, their order and the
//! screen are here.

mod kinds;
mod saves;

use kinds::{KindRow, PlaceSource, Rounded, WastePlace, Wasted, worst};
use saves::Target;

use std::cmp::Ordering;
use std::collections::HashSet;

use serde::{Serialize, Serializer};

use crate::collect::{Collectors, Handle, Occupancy};
use crate::pass::Needs;
use crate::pass::caches::CacheNames;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::common::basis::Input;
use crate::reports::common::cells::part;
use crate::reports::common::labels::{SourceRow, Symbol};
use crate::reports::common::rows::Address;
use crate::reports::common::sorting::{SortKey, sort_keys};
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::fragmentation::occupancy_of;
use crate::reports::fragmentation::slabs::Traced;
use crate::reports::report::Report;
use crate::sort_rows::SortRows;
use crate::trace::names::function_of;

/// Places where memory is wasted.
#[derive(Debug, clap::Args)]
pub struct WasteReport {
    /// Sort by these columns, the most important first [default: the largest number of each row]
    #[arg(short, long, value_parser = sort_keys(WASTES), value_name = "KEY", value_delimiter = ',')]
    sort: Vec<SortKey>,
}

impl Report for WasteReport {
    type Handles = Handle<Occupancy>;
    type Rows = WasteRows;

    const NAME: &'static str = "waste";
    const TITLE: &'static str = "wasted memory";
    const ABOUT: &'static str = "Wasted memory by call site and cache, and what would save it";
    const RESTS_ON: Input = Input::Allocs;
    const NEEDS: Needs = Needs::CACHE_NAMES;

    fn adds_sums(&self) -> bool {
        true
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(occupancy_of(context))
    }

    /// Rows of a trace.
    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> WasteRows {
        let occupancy = context.analysis.get(*handle);
        let caches = CacheNames::of(context.analysis).of_sites();
        let traced = Traced::of(context, &caches);
        let (mut places, kinds) = kinds::rounding(&traced, occupancy);
        let mut kinds = Vec::from(kinds);
        for (more, kind) in [kinds::slab_tails(&traced), kinds::sparse_slabs(&traced, occupancy)] {
            places.extend(more);
            kinds.push(kind);
        }
        sort(&mut places, &self.sort);
        let places_total = places.len();
        places.truncate(context.limit);
        let is_known = places_total > 0 || context.basis().allocs(None);
        let places_total = is_known.then_some(places_total);
        WasteRows { waste: WasteTable { kinds, places_total, places: rows(&traced, places) } }
    }

    /// All places in one table, and what would save the first.
    fn screen(&self, rows: &WasteRows, view: &View) -> Screen {
        let rows = &rows.waste;
        let mut screen = Screen::new(answer(rows, self.sort.first().copied(), view));
        screen.table(
            Table::of_rows("", &rows.places)
                .of("place", "places", rows.places_total.unwrap_or(0))
                .column(Column::whole("kind"), |row| Cell::text(row.kind))
                .column(Column::name("call site or cache"), |row| match row.call_site {
                    Some(_) => Cell::from(&row.name),
                    None => Cell::text(row.name.as_str()),
                })
                .column(Column::number("wasted"), |row| at_times(row, row.wasted.bytes_wasted))
                .column(Column::number("live waste"), |row| Cell::bytes(row.wasted.bytes_wasted_live))
                .column(Column::number("mean waste").leaves(2), |row| {
                    at_times(row, row.wasted.bytes_wasted_on_average)
                })
                .column(Column::number("objects").leaves(3), |row| Cell::count(row.wasted.objects))
                .explain(
                    "wasted",
                    "wasted: by all allocations; live waste: at the end, also of slabs; mean waste: on average over the window.",
                ),
        );
        let change = |row: &PlaceRow| format!("{} ({}): {}", function_of(&row.name), row.kind, row.saves);
        let changed = rows.places.iter().filter(|row| !row.saves.is_empty());
        let changes = changed.take(part(view.limit, CHANGES)).map(change);
        screen.lines("what would save it", changes.collect());
        if rows.places.iter().any(|row| row.api.is_none()) {
            screen.note(
                "Slab tails are those of all slabs of the machine (/proc/slabinfo), and sparse slabs have tails too: do not add up kinds.",
            );
        }
        unknown(rows).into_iter().for_each(|note| screen.note(note));
        screen.next("fragmentation", "unused memory by place, with shares");
        screen.next("what-if", "size classes that would waste less");
        screen
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WasteRows {
    /// Wasted memory.
    pub waste: WasteTable,
}

/// Wasted memory, by kind and by place.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WasteTable {
    /// Sums by kind. They overlap: a sparse slab has a tail, and slab tails are those of all slabs of the machine.
    pub kinds: Vec<KindRow>,
    /// Number of places; `null`: there are none, and no allocation of slab objects was recorded.
    pub places_total: Option<usize>,
    /// Places, by default in the order of the largest of their bytes.
    pub places: Vec<PlaceRow>,
}

/// A place where memory is wasted.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlaceRow {
    /// See `kinds`.
    pub kind: &'static str,
    /// Function and offset of the call site, or its address; else the name of the cache.
    #[serde(serialize_with = "text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub name: Symbol,
    /// `kmalloc` or `cache`; `null`: slabs of a cache.
    pub api: Option<&'static str>,
    /// Address of the call site; `null`: the place is a cache.
    pub call_site: Option<Address>,
    /// Functions at the call site with their source lines, the innermost inlined one first; empty: not known.
    pub source: Vec<SourceRow>,
    /// Bytes that it wastes.
    #[serde(flatten)]
    pub wasted: Wasted,
    /// Bytes requested by the request that wastes most; `null` for slab tails and sparse slabs.
    pub bytes_req: Option<u64>,
    /// Bytes allocated for that request; `null` for slab tails and sparse slabs.
    pub bytes_alloc: Option<u64>,
    /// A change that would save it, as a sentence; empty: the call site asks for many sizes, and none has more than half
    /// of its waste.
    pub saves: String,
}

fn text<S: Serializer>(name: &Symbol, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name)
}

fn rows<'t>(traced: &'t Traced<'_, '_, '_>, places: Vec<WastePlace<'t>>) -> Vec<PlaceRow> {
    let rounded = |place: &WastePlace<'t>| -> Option<Rounded<'t>> {
        match place.source {
            PlaceSource::Rounding(at) => Some((place.kind, at)),
            PlaceSource::Tail(_) | PlaceSource::Sparse(_) => None,
        }
    };
    let wanted: HashSet<Rounded<'t>> = places.iter().filter_map(rounded).collect();
    let requests = worst(traced, &wanted);
    let target = Target::of(traced);
    let row = |place: WastePlace<'t>| {
        let request = rounded(&place).and_then(|rounded| requests.get(&rounded));
        PlaceRow {
            kind: place.kind.name(),
            api: place.api(),
            call_site: place.call_site.map(Address),
            saves: target.sentence(&place, request),
            source: place.name.clone().into_source(),
            name: place.name,
            wasted: place.wasted,
            bytes_req: request.map(|request| request.req),
            bytes_alloc: request.map(|request| request.alloc),
        }
    };
    places.into_iter().map(row).collect()
}

/// Names that sort places.
const WASTES: &[SortKey] = &[SortKey::Waste, SortKey::LiveWaste, SortKey::MeanWaste, SortKey::Name];

/// Sorts by these keys, the largest numbers first and unknown ones last; then by the largest number of each place, live
/// bytes, name and kind. Without keys the largest numbers decide: slabs waste at the end, rounding over all allocations,
/// and one table has both.
///
/// Keys are compared where they are: there may be a place for each call site.
fn sort(places: &mut [WastePlace<'_>], keys: &[SortKey]) {
    // After `name`, numbers do not count.
    let end = keys.iter().position(|&key| key == SortKey::Name);
    let has_numbers = end.is_none();
    let keys = &keys[..end.unwrap_or(keys.len())];
    places.sort_unstable_by(|one, other| {
        let numbers = keys.iter().map(|&key| number(other, key).cmp(&number(one, key)));
        let more = || {
            let largest = other.wasted.largest().cmp(&one.wasted.largest());
            largest.then(other.wasted.bytes_wasted_live.cmp(&one.wasted.bytes_wasted_live))
        };
        numbers
            .fold(Ordering::Equal, Ordering::then)
            .then_with(|| if has_numbers { more() } else { Ordering::Equal })
            .then_with(|| one.name.cmp(&other.name))
            .then_with(|| one.kind.cmp(&other.kind))
            .then_with(|| one.call_site.cmp(&other.call_site))
    });
}

fn number(place: &WastePlace<'_>, key: SortKey) -> Option<u64> {
    match key {
        SortKey::Waste => place.wasted.bytes_wasted,
        SortKey::LiveWaste => place.wasted.bytes_wasted_live,
        SortKey::MeanWaste => place.wasted.bytes_wasted_on_average,
        _ => None,
    }
}

/// Changes that are shown, unless more are allowed.
const CHANGES: usize = 6;

/// Reasons why numbers are unknown, each with its kinds.
fn unknown(rows: &WasteTable) -> Vec<String> {
    let unknown: Vec<_> =
        rows.kinds.iter().filter_map(|row| Some((row.kind, row.unknown.as_ref()?))).collect();
    let same = unknown.chunk_by(|a, b| a.1 == b.1).filter_map(|kinds| {
        let names: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
        Some(format!("{}: unknown; {}.", names.join(", "), kinds.first()?.1))
    });
    same.collect()
}

/// Bytes over time, which slabs do not have.
fn at_times(row: &PlaceRow, bytes: Option<u64>) -> Cell {
    if row.bytes_req.is_none() { Cell::Empty } else { Cell::bytes(bytes) }
}

/// The sums of the kinds, what is wasted now first, and the place that wastes most.
fn answer(rows: &WasteTable, sort: Option<SortKey>, view: &View) -> String {
    let Some(first) = rows.places.first() else {
        return "No wasted memory was found. It needs allocations with their requested sizes, page events or /proc/slabinfo."
            .to_owned();
    };
    let bytes = |number: u64| view.bytes(number);
    let wasted = &first.wasted;
    let (number, when) = match sort {
        None if wasted.bytes_wasted > wasted.bytes_wasted_live => (wasted.bytes_wasted, BY_ALL),
        None | Some(SortKey::LiveWaste) => (wasted.bytes_wasted_live, AT_END),
        Some(SortKey::MeanWaste) => (wasted.bytes_wasted_on_average, "on average"),
        Some(SortKey::Waste) => (wasted.bytes_wasted, BY_ALL),
        Some(_) => (None, ""),
    };
    let most = number.filter(|number| *number > 0).map(|number| {
        format!(" Largest waste {when}: {} in {} ({}).", bytes(number), function_of(&first.name), first.kind)
    });
    format!("{}{}", by_kind(rows, view), most.unwrap_or_default())
}

/// Waste of all allocations, and that of live objects and slabs.
const BY_ALL: &str = "by all allocations";
const AT_END: &str = "at the end";

/// Sums of the kinds, the largest first: at the end, and of all allocations, most of which are freed.
fn by_kind(rows: &WasteTable, view: &View) -> String {
    let sums = |when: &str, of: fn(&Wasted) -> Option<u64>| {
        let known = rows.kinds.iter().filter_map(|row| Some((of(&row.wasted)?, row.kind)));
        let mut known: Vec<(u64, &str)> = known.filter(|(bytes, _)| *bytes > 0).collect();
        // The sort is stable: kinds of equal sums keep their order.
        known.sort_rows_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        known.first()?;
        let parts: Vec<String> =
            known.iter().map(|(bytes, kind)| format!("{kind} {}", view.bytes(*bytes))).collect();
        Some(format!("{when}: {}", parts.join(", ")))
    };
    let all = sums(BY_ALL, |wasted| wasted.bytes_wasted);
    let live = sums(AT_END, |wasted| wasted.bytes_wasted_live);
    let texts: Vec<String> = live.into_iter().chain(all).collect();
    if texts.is_empty() {
        return "No waste is known.".to_owned();
    }
    format!("{}.", capitalized(&texts.join("; ")))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
