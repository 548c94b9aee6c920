//! `summary`: the totals of the exact ledger.

use serde_json::{Map, Value, json};

use super::pages::sums_json;
use crate::collect::Collectors;
use crate::ledger::page_totals::{FrameCounts, FrameTotals};
use crate::ledger::totals::{EventCounts, Totals};
use crate::pass;
use crate::pass::Analysis;
use crate::pass::coverage::bounds::Live;
use crate::pass::ranges::Range;
use crate::pass::selection::Selection;
use crate::pass::sum_of;
use crate::pass::weights::Estimate;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::known::{Known, about, estimated};
use crate::reports::common::live_bounds::LiveBounds;
use crate::reports::common::stated::Keys;
use crate::reports::common::trust::recorded;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Page, Report};
use crate::stream::Api;
use crate::trace::session::Session;
use kmt_format::schema::Meaning;

const EVENTS: [(&str, Meaning); 4] = [
    ("kmalloc", Meaning::KMALLOC),
    ("kfree", Meaning::KFREE),
    ("kmem_cache_alloc", Meaning::CACHE_ALLOC),
    ("kmem_cache_free", Meaning::CACHE_FREE),
];

/// Between which numbers live objects lie: all, those of kmalloc, those of caches.
fn live_bounds(context: &Context<'_, '_>, result: &pass::Analysis) -> [Option<Live>; 3] {
    let bounds = LiveBounds::of(context, result).bounds;
    [None, Some(Api::Kmalloc), Some(Api::Cache)].map(|api| bounds.of_api(api))
}

/// What the samples of an interface stand for, where it was sampled.
fn estimate(result: &pass::Analysis, api: Api) -> Option<Estimate> {
    let mut sum = None;
    let sites = result.interner.sites.items().iter().zip(&result.balance.sites);
    for (site, parts) in sites.filter(|(site, _)| site.api == api) {
        parts.iter().for_each(|(_, totals)| result.weights.add(site, totals, &mut sum));
    }
    sum
}

/// A cell of a number that rests on what may not have been recorded.
fn told(is_known: bool, text: String) -> String {
    if is_known || text.is_empty() { text } else { "not recorded".to_owned() }
}

/// The three columns: all, kmalloc, caches.
type Parts = [(Totals, EventCounts); 3];

/// The report.
#[derive(Debug)]
pub struct Summary;

impl Report for Summary {
    type Options = NoOptions;
    type Handles = ();
    type Rows = Page;

    const NAME: &'static str = "summary";
    const KEY: &'static str = "summary";
    const TITLE: &'static str = "summary";
    const ABOUT: &'static str = "Totals of the exact ledger, slab and pages";
    const HAS_LINES: bool = false;

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::Nothing
    }

    fn keys(&self) -> Keys {
        Keys::All
    }

    fn needs_ranges(&self) -> bool {
        true
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, _: &Self::Handles) -> Page {
        let session = context.session;

        let [kmalloc, cache] = Api::ALL.map(|api| sum_of(result, Some(api)));
        let [kmalloc_counts, cache_counts] = result.balance.counts;
        let mut all = kmalloc;
        all += &cache;
        let mut all_counts = kmalloc_counts;
        all_counts += &cache_counts;
        let parts = [(all, all_counts), (kmalloc, kmalloc_counts), (cache, cache_counts)];
        let basis = Basis::of(session, result);
        let known = [
            Known::slab(&basis, None),
            Known::slab(&basis, Some(Api::Kmalloc)),
            Known::slab(&basis, Some(Api::Cache)),
        ];
        let live = live_bounds(context, result);
        Page::of(
            |out| document(out, session, result, &parts, known, live),
            || page(session, result, &parts, known, live),
        )
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

/// A slab event was recorded, or it is not known that none was.
fn has_slab(session: &Session<'_>, result: &pass::Analysis) -> bool {
    EVENTS.iter().any(|(_, meaning)| recorded(session, result, *meaning) == Some(true))
}

fn document(
    out: &mut Map<String, Value>,
    session: &Session<'_>,
    result: &pass::Analysis,
    parts: &Parts,
    known: [Known; 3],
    live: [Option<Live>; 3],
) {
    let part = |at: usize| known[at].mask(json::slab_part(&parts[at].0, &parts[at].1));
    let [all, kmalloc, cache] = [0, 1, 2].map(part);
    let events: Map<String, Value> =
        EVENTS.iter().map(|(name, m)| ((*name).to_owned(), json!(recorded(session, result, *m)))).collect();
    let slab = if has_slab(session, result) {
        let [mut slab, mut kmalloc, mut cache] = [all, kmalloc, cache];
        for (part, api) in [(&mut kmalloc, Api::Kmalloc), (&mut cache, Api::Cache)] {
            part.insert("estimated".into(), estimated(estimate(result, api)));
        }
        for (part, section) in
            [(&mut kmalloc, "slab.kmalloc"), (&mut cache, "slab.cache"), (&mut slab, "slab")]
        {
            part.insert("ranges".into(), ranges_json(result, section));
        }
        for ((part, live), known) in [&mut slab, &mut kmalloc, &mut cache].into_iter().zip(live).zip(known) {
            let live = live.filter(|_| known.lives);
            part.insert("live_range".into(), json!(live.map(|l| l.objects)));
            part.insert("bytes_live_range".into(), json!(live.map(|l| l.bytes)));
        }
        slab.insert("kmalloc".into(), kmalloc.into());
        slab.insert("cache".into(), cache.into());
        let raw = result.balance.raw;
        let raw = json!({
            "alloc_events": raw.alloc_events,
            "free_events": raw.free_events,
            "bytes_req": raw.bytes_req,
            "bytes_alloc": raw.bytes_alloc,
            "ranges": ranges_json(result, "slab.raw"),
        });
        slab.insert("raw".into(), raw);
        slab = known[0].mask(slab);
        slab.insert("recorded".into(), events.into());
        slab.into()
    } else {
        // Not recorded is not the same as none.
        Value::Null
    };
    out.insert("slab".into(), slab);
    let has_pages = [Meaning::PAGE_ALLOC, Meaning::PAGE_FREE]
        .into_iter()
        .any(|m| recorded(session, result, m) == Some(true));
    let pages = || pages_json(result, Known::pages(&Basis::of(session, result)));
    out.insert("pages".into(), if has_pages { pages().into() } else { Value::Null });
}

fn all_frames(result: &pass::Analysis) -> FrameTotals {
    let mut all = FrameTotals::default();
    result.balance.frames.sites.iter().for_each(|t| all += t);
    all
}

fn pages_json(result: &pass::Analysis, known: Known) -> Map<String, Value> {
    let mut out = sums_json(&all_frames(result), &result.balance.frames.counts, result.page_size.0, known);
    out.insert("ranges".into(), ranges_json(result, "pages"));
    out
}

/// Low and high of each total of a section; null where nothing was lost, or nobody knows how much.
fn ranges_json(result: &pass::Analysis, section: &str) -> Value {
    let Some(ranges) = &result.ranges else { return Value::Null };
    let of_section = ranges.iter().filter(|((s, _), _)| *s == section);
    let number = |x: f64| if x.fract() == 0.0 && x < 1e15 { json!(x as u64) } else { json!(x) };
    let pair = |((_, name), range): (&(&str, &str), &Option<Range>)| {
        ((*name).to_owned(), json!(range.map(|r| [number(r.low), number(r.high)])))
    };
    Value::Object(of_section.map(pair).collect())
}

/// The ranges that matter most, as text.
fn ranges_page(result: &pass::Analysis) -> String {
    let Some(ranges) = &result.ranges else { return String::new() };
    let rows: Vec<Vec<String>> = RANGES
        .iter()
        .filter_map(|(title, section, name)| {
            let range = ranges.get(&(*section, *name)).copied().flatten()?;
            Some(vec![(*title).to_owned(), count(range.low as u64), count(range.high as u64)])
        })
        .collect();
    let columns =
        [("with what was lost, between", Align::Left), ("low", Align::Right), ("high", Align::Right)];
    format!(
        "\n{}estimated from what further losses like these would do to each total\n",
        table(&columns, &rows)
    )
}

/// Title, section and name of the totals whose ranges the text shows; the JSON has all.
const RANGES: [(&str, &str, &str); 12] = [
    ("allocations", "slab", "alloc_events"),
    ("  bytes requested", "slab", "bytes_req"),
    ("  bytes allocated", "slab", "bytes_alloc"),
    ("    by kmalloc", "slab.kmalloc", "bytes_alloc"),
    ("    from caches", "slab.cache", "bytes_alloc"),
    ("frees", "slab", "free_events"),
    ("  matched", "slab", "frees_matched"),
    ("  bytes freed", "slab", "bytes_freed"),
    ("bytes live at the end", "slab", "bytes_live"),
    ("freed unseen", "slab", "freed_unseen"),
    ("bytes of pages allocated", "pages", "bytes_alloc"),
    ("bytes of pages live", "pages", "bytes_live"),
];

fn pages_page(result: &pass::Analysis, known: Known) -> String {
    let (all, counts) = (all_frames(result), result.balance.frames.counts);
    if all == FrameTotals::default() && counts == FrameCounts::default() {
        return String::new();
    }
    let bytes = |frames: u64| count(frames.saturating_mul(result.page_size.0));
    let row = |name: &str, is_known: bool, events: Option<u64>, frames: u64| {
        let cells = [events.map_or(String::new(), count), count(frames), bytes(frames)];
        std::iter::once(name.to_owned()).chain(cells.map(|text| told(is_known, text))).collect()
    };
    let free_events = counts.frees_matched + counts.free_only_events;
    let rows: [Vec<String>; 7] = [
        row("allocations", known.allocs, Some(all.alloc_events), all.frames_alloc),
        row("  failed", known.allocs, Some(all.alloc_failures), 0),
        if known.lives {
            row("frees", true, Some(counts.frees_matched), all.frames_freed)
        } else {
            row("frees", known.frees, Some(free_events), counts.raw_frames_freed)
        },
        row("  in parts", known.lives, Some(counts.frees_partial), 0),
        row(
            "  of what was not allocated here",
            known.lives,
            Some(counts.free_only_events),
            counts.free_only_frames,
        ),
        row("allocated again while live", known.lives, None, all.frames_freed_unseen),
        row("live at the end", known.lives, None, all.frames_live),
    ];
    let columns =
        [("pages", Align::Left), ("events", Align::Right), ("pages", Align::Right), ("bytes", Align::Right)];
    format!("\n{}slab objects lie in pages: the two tables are not to be added\n", table(&columns, &rows))
}

fn page(
    session: &Session<'_>,
    result: &pass::Analysis,
    parts: &Parts,
    known: [Known; 3],
    live: [Option<Live>; 3],
) -> String {
    let mut out = String::new();
    let pages_known = Known::pages(&Basis::of(session, result));
    if !has_slab(session, result) {
        return format!("slab events: not recorded\n{}", pages_page(result, pages_known));
    }
    let columns =
        [("slab", Align::Left), ("total", Align::Right), ("kmalloc", Align::Right), ("caches", Align::Right)];
    let not_recorded: Vec<&str> = EVENTS
        .iter()
        .filter(|(_, m)| recorded(session, result, *m) != Some(true))
        .map(|(name, _)| *name)
        .collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut line = |name: &str, of: fn(Known) -> bool, number: &dyn Fn(&Totals, &EventCounts) -> String| {
        let mut row = vec![name.to_owned()];
        let numbers = parts.iter().zip(known);
        row.extend(numbers.map(|((totals, counts), known)| told(of(known), number(totals, counts))));
        // What a cache rounds up and what kmalloc wastes are different things; their sum means nothing.
        if name.contains("wasted") || name.contains("fragmentation") {
            row.splice(1..2, ["-".to_owned()]);
        }
        rows.push(row);
    };
    line("allocations", |k| k.allocs, &|t, _| count(t.alloc_events));
    line("  bytes requested", |k| k.allocs, &|t, _| count(t.bytes_req));
    line("  bytes allocated", |k| k.allocs, &|t, _| count(t.bytes_alloc));
    line("  bytes wasted", |k| k.allocs, &|t, _| count(t.bytes_wasted()));
    line("  internal fragmentation", |k| k.allocs, &|t, _| {
        format!("{:.2} %", t.internal_fragmentation_percent())
    });
    line("  failed", |k| k.allocs, &|_, c| count(c.alloc_failures));
    line("frees", |k| k.frees, &|t, c| count(t.frees_matched + c.unmatched_frees()));
    line("  matched", |k| k.lives, &|t, _| count(t.frees_matched));
    line("  bytes freed", |k| k.lives, &|t, _| count(t.bytes_freed));
    line("  of objects allocated before", |k| k.lives, &|_, c| count(c.allocated_before));
    line("  of untraced birth", |k| k.lives, &|_, c| count(c.untraced_birth));
    line("  on another CPU", |k| k.lives, &|_, c| count(c.cross_cpu_frees));
    line("  by the other interface", |k| k.lives, &|_, c| count(c.mixed_api_frees));
    line("  logged late", |k| k.lives, &|_, c| count(c.late_frees));
    line("freed unseen", |k| k.lives, &|t, _| count(t.freed_unseen));
    line("  bytes", |k| k.lives, &|t, _| count(t.bytes_freed_unseen));
    line("live at the end", |k| k.lives, &|t, _| count(t.live));
    line("  bytes live", |k| k.lives, &|t, _| count(t.bytes_live));
    line("  bytes wasted live", |k| k.lives, &|t, _| count(t.bytes_wasted_live()));
    let is_bounded = |((totals, _), live): (&(Totals, EventCounts), &Option<Live>)| {
        live.is_some_and(|live| live.objects[1] != totals.live)
    };
    if parts.iter().zip(&live).any(is_bounded) {
        let mut row = |name: &str, most: fn(Live) -> u64| {
            let cells = live.iter().zip(known);
            let cell = |(live, known): (&Option<Live>, Known)| {
                told(known.lives, live.map_or("?".to_owned(), |live| count(most(live))))
            };
            rows.push([name.to_owned()].into_iter().chain(cells.map(cell)).collect());
        };
        row("live at most", |live| live.objects[1]);
        row("  bytes", |live| live.bytes[1]);
    }
    let mut line = |name: &str, of: fn(Known) -> bool, number: &dyn Fn(&Totals, &EventCounts) -> String| {
        let numbers = parts.iter().zip(known);
        let cells = numbers.map(|((totals, counts), known)| told(of(known), number(totals, counts)));
        rows.push([name.to_owned()].into_iter().chain(cells).collect());
    };
    line("uncertain lives", |k| k.lives, &|t, _| count(t.uncertain));
    line("no objects: frees of NULL", |k| k.frees, &|_, c| count(c.null_frees));
    line("  frees of zero-size objects", |k| k.frees, &|_, c| count(c.zero_size_frees));
    line("  second reports of one kmalloc", |k| k.allocs, &|_, c| count(c.double_reports));
    out.push_str(&table(&columns, &rows));
    if !not_recorded.is_empty() {
        out.push_str(&format!(
            "\nno events of {}: whether they were recorded, the file does not tell, or says that they were not\n",
            not_recorded.join(", ")
        ));
    }
    for (name, api) in [("kmalloc", Api::Kmalloc), ("caches", Api::Cache)] {
        let Some(estimate) = estimate(result, api) else { continue };
        out.push_str(&format!(
            "\nestimated of all {name}, by the events that samples stand for: {} allocations of {} bytes, {} asked for\n",
            about(Some(estimate.alloc_events), 0),
            about(Some(estimate.bytes_alloc), 0),
            about(Some(estimate.bytes_req), 0),
        ));
    }
    out.push_str(&pages_page(result, pages_known));
    out.push_str(&ranges_page(result));
    out.push_str("\nlive is since the start of the trace; objects older than it are not in these numbers\n");
    out
}
