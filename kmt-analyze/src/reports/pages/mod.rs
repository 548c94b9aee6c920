//! `pages`: what was asked of the page allocator, by order and migrate type, and by call site where stacks tell it.

use std::collections::{BTreeMap, HashMap};

use kmt_format::schema::Meaning;
use serde_json::{Map, Value, json};

use crate::analysis::page_callers::{self, is_allocator};
use crate::collect::Collectors;
use crate::collect::{Handle, PageStacks};
use crate::int_hash::IntHash;
use crate::ledger::frames::NO_STACK;
use crate::ledger::page_totals::{FrameCounts, FrameTotals};
use crate::pass;
use crate::pass::Analysis;
use crate::pass::filter::Names;
use crate::pass::names::TraceNames;
use crate::pass::selection::Selection;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::known::{Known, cell, legend};
use crate::reports::common::stated::Keys;
use crate::reports::common::sums::{more, shown};
use crate::reports::common::trust::recorded;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Page, Report};
use crate::trace::session::Session;

/// The report.
#[derive(Debug)]
pub struct Pages;

impl Report for Pages {
    type Options = NoOptions;
    type Handles = Handle<PageStacks>;
    type Rows = Page;

    const NAME: &'static str = "pages";
    const KEY: &'static str = "pages";
    const TITLE: &'static str = "pages";
    const ABOUT: &'static str = "Page allocations by order, migrate type, flags and call site";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::Pages
    }

    fn keys(&self) -> Keys {
        Keys::Pages
    }

    fn needs_event_counts(&self) -> bool {
        true
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(PageStacks)
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let session = context.session;
        let limit = Some(context.limit);

        let names = TraceNames::new(session);
        let mut matrix: BTreeMap<(u8, i32), FrameTotals> = BTreeMap::new();
        let mut by_gfp: BTreeMap<u64, FrameTotals> = BTreeMap::new();
        let mut all = FrameTotals::default();
        for (site, totals) in result.interner.pages.items().iter().zip(&result.balance.frames.sites) {
            *matrix.entry((site.order, site.migratetype)).or_default() += totals;
            *by_gfp.entry(site.gfp_flags).or_default() += totals;
            all += totals;
        }
        matrix.retain(|_, t| *t != FrameTotals::default());
        by_gfp.retain(|_, t| *t != FrameTotals::default());
        let callers = callers(session, result, result.get(*handles));
        let others = other_events(session, result);
        let known = Known::pages(&Basis::of(session, result));
        let page = PageSums { result, names: &names, matrix, by_gfp, all, callers, others, limit, known };
        let is_recorded = recorded(session, result, Meaning::PAGE_ALLOC) == Some(true)
            || recorded(session, result, Meaning::PAGE_FREE) == Some(true);
        Page::of(
            |out| {
                out.insert("pages".into(), if is_recorded { page.json() } else { Value::Null });
            },
            || if is_recorded { page.text() } else { "page events: not recorded\n".to_owned() },
        )
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

/// Sums of pages by the first caller in the stack that is no allocator; none without stacks.
fn callers(
    session: &Session<'_>,
    result: &pass::Analysis,
    stacks: &HashMap<u32, FrameTotals, IntHash>,
) -> Vec<(u64, String, FrameTotals)> {
    let env = session.print_env();
    let mut by_caller: BTreeMap<u64, FrameTotals> = BTreeMap::new();
    for (stack, totals) in stacks {
        let addresses = result.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
        let caller = if *stack == NO_STACK {
            0
        } else {
            page_callers::caller(addresses, |a| is_allocator(&env.symbol_with_offset(a)))
        };
        *by_caller.entry(caller).or_default() += totals;
    }
    if by_caller.keys().all(|&address| address == 0) {
        return Vec::new();
    }
    let mut rows: Vec<_> = by_caller
        .into_iter()
        .map(|(address, totals)| {
            let name = if address == 0 {
                "(no stack)".to_owned()
            } else {
                escaped(&env.symbol_with_offset(address))
            };
            (address, name, totals)
        })
        .collect();
    rows.sort_by(|a, b| (b.2.frames_alloc, &a.1).cmp(&(a.2.frames_alloc, &b.1)));
    rows
}

/// Events that concern pages and are no allocations or frees: per-CPU lists, fallbacks.
fn other_events(session: &Session<'_>, result: &pass::Analysis) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for &(class, _, number) in &result.event_counts {
        let Some(class) = session.trace.schema().class(class as usize) else { continue };
        let is_page = class.system == "kmem" && class.name.starts_with("mm_");
        if is_page && !matches!(class.meaning, Meaning::PAGE_ALLOC | Meaning::PAGE_FREE) {
            *counts.entry(class.name.clone()).or_insert(0) += number;
        }
    }
    counts
}

struct PageSums<'r> {
    result: &'r pass::Analysis,
    names: &'r dyn Names,
    matrix: BTreeMap<(u8, i32), FrameTotals>,
    by_gfp: BTreeMap<u64, FrameTotals>,
    all: FrameTotals,
    callers: Vec<(u64, String, FrameTotals)>,
    others: BTreeMap<String, u64>,
    limit: Option<usize>,
    known: Known,
}

/// Sums and counts of all pages.
pub fn sums_json(
    all: &FrameTotals,
    counts: &FrameCounts,
    page_size: u64,
    known: Known,
) -> Map<String, Value> {
    let mut out = json::frames(all, page_size);
    let more = json!({
        "free_events": counts.frees_matched + counts.free_only_events,
        "frees_matched": counts.frees_matched,
        "frees_partial": counts.frees_partial,
        "frees_unmatched": counts.free_only_events,
        "pages_free_only": counts.free_only_frames,
        "raw": {
            "alloc_events": counts.raw_alloc_events,
            "free_events": counts.raw_free_events,
            "bytes_req": counts.raw_frames_alloc.saturating_mul(page_size),
            "bytes_alloc": counts.raw_frames_alloc.saturating_mul(page_size),
            "bytes_freed": counts.raw_frames_freed.saturating_mul(page_size),
        },
    });
    if let Value::Object(more) = more {
        out.extend(more);
    }
    // What is asked for is what is given: pages have no internal fragmentation that their events would tell.
    out.insert("bytes_req".into(), json!(all.frames_alloc.saturating_mul(page_size)));
    out.insert("bytes_wasted".into(), json!(0));
    out.insert("bytes_wasted_live".into(), json!(0));
    out.insert("internal_fragmentation_percent".into(), json!(0.0));
    known.mask(out)
}

impl PageSums<'_> {
    fn gfp(&self, flags: u64) -> String {
        escaped(&self.names.gfp(&self.result.interner, flags))
    }

    fn json(&self) -> Value {
        let page_size = self.result.page_size.0;
        let mut out = sums_json(&self.all, &self.result.balance.frames.counts, page_size, self.known);
        let cell = |((order, migratetype), totals): (&(u8, i32), &FrameTotals)| {
            let mut out = self.known.mask(json::frames(totals, page_size));
            out.insert("order".into(), json!(order));
            out.insert("migratetype".into(), json!(migratetype));
            out.insert("migratetype_text".into(), json!(self.names.migratetype(*migratetype)));
            Value::from(out)
        };
        let gfp = |(flags, totals): (&u64, &FrameTotals)| {
            let mut out = self.known.mask(json::frames(totals, page_size));
            out.insert("gfp_flags".into(), json!(flags));
            out.insert("gfp_flags_text".into(), json!(self.gfp(*flags)));
            Value::from(out)
        };
        let caller = |(address, name, totals): &(u64, String, FrameTotals)| {
            let mut out = self.known.mask(json::frames(totals, page_size));
            out.remove("alloc_events");
            out.remove("alloc_failures");
            out.insert("call_site".into(), if *address == 0 { Value::Null } else { json::address(*address) });
            out.insert("symbol".into(), json!(name));
            Value::from(out)
        };
        out.insert("by_order_and_migratetype".into(), self.matrix.iter().map(cell).collect());
        out.insert("by_gfp_flags".into(), self.by_gfp.iter().map(gfp).collect());
        out.insert("callers".into(), self.callers.iter().map(caller).collect());
        out.insert("other_events".into(), json!(self.others));
        out.into()
    }

    fn text(&self) -> String {
        let (t, c) = (&self.all, &self.result.balance.frames.counts);
        let size = self.result.page_size.0;
        let known = self.known;
        let line = |name: &str, is_known: bool, events: Option<u64>, pages: u64| {
            vec![
                name.to_owned(),
                cell(is_known, events.map_or(String::new(), count)),
                cell(is_known, count(pages)),
                cell(is_known, count(pages.saturating_mul(size))),
            ]
        };
        let rows = [
            line("allocations", known.allocs, Some(t.alloc_events), t.frames_alloc),
            line("  failed", known.allocs, Some(t.alloc_failures), 0),
            line("frees of what was allocated", known.lives, Some(c.frees_matched), t.frames_freed),
            line("  in parts", known.lives, Some(c.frees_partial), 0),
            line("frees of what was not", known.lives, Some(c.free_only_events), c.free_only_frames),
            line("allocated again while live", known.lives, None, t.frames_freed_unseen),
            line("live at the end", known.lives, None, t.frames_live),
            line("  uncertain", known.lives, None, t.frames_live_uncertain),
        ];
        use Align::{Left, Right};
        let columns = [("pages", Left), ("events", Right), ("pages", Right), ("bytes", Right)];
        let mut out = table(&columns, &rows) + legend(known.all());
        out.push_str("\nallocations by order and migrate type asked for (live pages behind them)\n");
        out.push_str(&self.matrix_text());
        let gfp_rows: Vec<Vec<String>> = {
            let mut rows: Vec<_> = self.by_gfp.iter().collect();
            rows.sort_by_key(|(flags, t)| (std::cmp::Reverse(t.frames_alloc), **flags));
            let shown = shown(self.limit, rows.len());
            rows.iter()
                .take(shown)
                .map(|(flags, t)| {
                    vec![
                        self.gfp(**flags),
                        count(t.alloc_events),
                        count(t.alloc_failures),
                        count(t.frames_alloc),
                        cell(known.lives, count(t.frames_live)),
                    ]
                })
                .collect()
        };
        let columns =
            [("gfp_flags", Left), ("allocs", Right), ("failed", Right), ("pages", Right), ("live", Right)];
        out.push_str(&format!("\n{}", table(&columns, &gfp_rows)));
        out.push_str(&more(gfp_rows.len(), self.by_gfp.len(), "values"));
        out.push_str(&self.callers_text());
        if !self.others.is_empty() {
            let rows: Vec<Vec<String>> =
                self.others.iter().map(|(n, c)| vec![n.clone(), count(*c)]).collect();
            out.push_str(&format!("\n{}", table(&[("other page events", Left), ("events", Right)], &rows)));
        }
        out.push_str(
            "\nPages hold slab objects too: slab and page totals are not to be added. Bulk allocations and migration targets have no event; their frees are those of what was not allocated.\n",
        );
        out
    }

    fn matrix_text(&self) -> String {
        let mut types: Vec<i32> = self.matrix.keys().map(|k| k.1).collect();
        types.sort_unstable();
        types.dedup();
        let names: Vec<String> = types.iter().map(|t| self.names.migratetype(*t)).collect();
        let mut columns = vec![("order", Align::Right)];
        columns.extend(names.iter().map(|n| (n.as_str(), Align::Right)));
        let last = self.matrix.keys().map(|k| k.0).max().unwrap_or(0);
        let cell = |t: &FrameTotals| {
            if t.frames_live > 0 && self.known.lives {
                format!("{} ({})", count(t.alloc_events), count(t.frames_live))
            } else {
                count(t.alloc_events)
            }
        };
        let rows: Vec<Vec<String>> = (0..=last)
            .map(|order| {
                let cells = types.iter().map(|t| self.matrix.get(&(order, *t)).map_or(".".to_owned(), cell));
                std::iter::once(order.to_string()).chain(cells).collect()
            })
            .collect();
        table(&columns, &rows)
    }

    fn callers_text(&self) -> String {
        if self.callers.is_empty() {
            return "\nno stacks: record with --stack 'kmem:mm_page_alloc' to see who asks for pages\n"
                .to_owned();
        }
        let shown = shown(self.limit, self.callers.len());
        use Align::{Left, Right};
        let columns = [("call site", Left), ("pages", Right), ("freed", Right), ("live", Right)];
        let rows: Vec<Vec<String>> = self
            .callers
            .iter()
            .take(shown)
            .map(|(_, name, t)| {
                let lives = |number| cell(self.known.lives, count(number));
                vec![name.clone(), count(t.frames_alloc), lives(t.frames_freed), lives(t.frames_live)]
            })
            .collect();
        format!("\n{}{}", table(&columns, &rows), more(shown, self.callers.len(), "call sites"))
    }
}
