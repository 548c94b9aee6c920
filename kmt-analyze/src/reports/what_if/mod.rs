//! `what-if`: the trace's kmallocs played to an allocator with other size classes, or with call sites apart.

use serde_json::{Map, Value, json};

use crate::collect::Collectors;
use crate::collect::Handle;
use crate::collect::Replay;
use crate::collect::replay::{Layout, Played, ReplaySums, best_classes};
use crate::failure::{Failure, Result};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::pass::selection::{Wants, analyse_for};
use crate::render::table::{Align, table};
use crate::render::text::{count, percent};
use crate::reports::common::basis::Input;
use crate::reports::common::labels::Labels;
use crate::reports::common::{Context, View};
use crate::reports::report::{Page, Report};
use crate::stream::Api;

/// The report.
#[derive(Debug, Default)]
pub struct WhatIf {
    /// `None`: layouts that need no look at the trace first.
    question: Option<Question>,
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Question {
    /// Size classes besides the kernel's, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    add: Vec<u64>,
    /// Size classes of the kernel to go without
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    drop: Vec<u64>,
    /// Keep objects of call sites whose name matches in slabs of their own
    #[arg(long, value_name = "REGEX")]
    split: Option<regex::Regex>,
    /// Suggest so many more classes
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=16))]
    best: u8,
}

/// Call sites that a first look at the trace found.
#[derive(Debug, Default)]
pub struct Found {
    long_lived: Vec<String>,
    split: Vec<String>,
}

/// A call site is long-lived if its objects are held for this share of the window on average, in percent.
const LONG_LIVED_PERCENT: u128 = 10;

/// Layouts that need no look at the trace first: what mm/slab_common.c has been asked to have.
fn usual() -> Vec<Layout> {
    let added = |name: &str, added: &[u64]| Layout {
        name: name.to_owned(),
        added: added.to_vec(),
        ..Layout::default()
    };
    vec![
        added("with 160, 320, 640, 1280", &[160, 320, 640, 1280]),
        Layout { name: "without 96, 192".to_owned(), dropped: vec![96, 192], ..Layout::default() },
    ]
}

/// Layouts for a question, with those that a first look at the trace suggests.
fn asked(context: &Context<'_, '_>, question: &Question) -> (Vec<Layout>, Found) {
    let (first, last) = context.selection.span(context.session);
    let mut collectors = Collectors::default();
    let replay = collectors.add(Replay { layouts: Vec::new(), end: last });
    let result = analyse_for(context.session, context.selection, &Wants::of(&collectors));
    let replay = result.get(replay);
    let labels = Labels::new(context.session);
    let mut layouts = Vec::new();
    let mut found = Found::default();
    if !(question.add.is_empty() && question.drop.is_empty()) {
        let mut names = Vec::new();
        let list = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        if !question.add.is_empty() {
            names.push(format!("with {}", list(&question.add)));
        }
        if !question.drop.is_empty() {
            names.push(format!("without {}", list(&question.drop)));
        }
        let mut added = question.add.clone();
        added.sort_unstable();
        let (name, dropped) = (names.join(", "), question.drop.clone());
        layouts.push(Layout { name, added, dropped, ..Layout::default() });
    }
    if let Some(regex) = &question.split {
        let mut layout = Layout { name: format!("{} apart", regex.as_str()), ..Layout::default() };
        for number in 0..result.balance.callers.len() as u32 {
            let (api, _, name) = labels.caller(&result, number);
            if api == Api::Kmalloc && regex.is_match(&name) {
                layout.apart.insert(number);
                found.split.push(name);
            }
        }
        layouts.push(layout);
    }
    let mut requests: Vec<(u64, u64, u128)> =
        replay.requests.iter().map(|(&(req, alloc), r)| (req, alloc, r.held)).collect();
    requests.sort_unstable();
    let best = best_classes(&requests, question.best.into());
    if !best.is_empty() {
        let list: Vec<String> = best.iter().map(u64::to_string).collect();
        let name = format!("with {} (the best {})", list.join(", "), best.len());
        layouts.push(Layout { name, added: best, ..Layout::default() });
    }
    let length = u128::from(last.saturating_sub(first));
    let mut apart = Layout { name: "long-lived apart".to_owned(), ..Layout::default() };
    for (number, caller) in (0u32..).zip(&replay.callers) {
        let is_long =
            caller.allocs > 0 && caller.held / LONG_LIVED_PERCENT >= length * u128::from(caller.allocs) / 100;
        if is_long {
            apart.apart.insert(number);
            found.long_lived.push(labels.caller(&result, number).2);
        }
    }
    if !apart.apart.is_empty() {
        layouts.push(apart);
    }
    (layouts, found)
}

impl Report for WhatIf {
    type Options = Question;
    type Handles = (Handle<Replay>, Option<Found>);
    type Rows = Page;

    const NAME: &'static str = "what-if";
    const KEY: &'static str = "what_if";
    const TITLE: &'static str = "what-if";
    const ABOUT: &'static str = "The trace's kmallocs played to other size classes, or with call sites apart";

    fn new(options: Question, _: &Selection) -> Self {
        Self { question: Some(options) }
    }

    fn usual() -> Option<Self> {
        Some(Self { question: None })
    }

    fn rests_on(&self) -> Input {
        Input::KmallocLives
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        if context.selection.filter(context.session).is_about_lifetimes() {
            return Err(Failure::new("what-if cannot select by lifetime: what begins has none yet")
                .hint("lifetimes, callers, caches and timeline can"));
        }
        Ok(())
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (layouts, found) = match &self.question {
            Some(question) => {
                let (layouts, found) = asked(context, question);
                (layouts, Some(found))
            }
            None => (usual(), None),
        };
        let own = Layout { name: "as the kernel did".to_owned(), ..Layout::default() };
        let layouts = std::iter::once(own).chain(layouts).collect();
        let (_, end) = context.selection.span(context.session);
        (collectors.add(Replay { layouts, end }), found)
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let (replay, found) = (result.get(handles.0), &handles.1);
        let (first, last) = context.selection.span(context.session);
        let length = last.saturating_sub(first);
        let mut out = Map::new();
        let Some(own) = replay.played.first() else { return Page::default() };
        // The kernel's own layout has to come out as the kernel's events have it.
        let exact: u64 = result
            .interner
            .sites
            .items()
            .iter()
            .zip(&result.balance.sites)
            .filter(|(site, _)| site.api == Api::Kmalloc && site.bytes_alloc <= 2 * result.page_size.0)
            .flat_map(|(_, parts)| parts)
            .map(|(_, totals)| totals.bytes_alloc)
            .sum();
        let wasted = worst(replay);
        let shown = context.limit.min(10).min(wasted.len());
        out.insert("what_if".into(), json!({
            "bytes_alloc": exact,
            "bytes_alloc_of_model": own.bytes_alloc,
            "layouts": replay.played.iter().map(|p| layout_json(p, length)).collect::<Vec<_>>(),
            "worst_requests": wasted.iter().take(shown).map(|w| json!({
                "bytes_req": w.0, "bytes_alloc": w.1, "alloc_events": w.2, "bytes_wasted_on_average": average(w.3, length),
            })).collect::<Vec<_>>(),
            "long_lived_call_sites": found.as_ref().map(|f| &f.long_lived),
            "call_sites_apart": found.as_ref().map(|f| &f.split),
        }));
        Page { json: out, text: page(replay, found.as_ref(), &wasted, shown, length) }
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

/// Request size, class, allocations, wasted bytes by time; the worst first.
fn worst(replay: &ReplaySums) -> Vec<(u64, u64, u64, u128)> {
    let mut out: Vec<_> = replay
        .requests
        .iter()
        .map(|(&(req, alloc), r)| {
            (req, alloc, r.allocs, u128::from(alloc.saturating_sub(req)).saturating_mul(r.held))
        })
        .filter(|w| w.3 > 0)
        .collect();
    out.sort_by_key(|w| (std::cmp::Reverse(w.3), w.0, w.1));
    out
}

fn average(byte_time: u128, length: u64) -> u64 {
    u64::try_from(byte_time / u128::from(length.max(1))).unwrap_or(u64::MAX)
}

fn layout_json(played: &Played, length: u64) -> Value {
    json!({
        "name": played.layout().name,
        "added": played.layout().added,
        "dropped": played.layout().dropped,
        "bytes_alloc": played.bytes_alloc,
        "bytes_wasted": played.bytes_wasted,
        "bytes_live_max": played.bytes_live_max,
        "bytes_live_at_end": played.bytes_live,
        "slab_bytes_max": played.bytes_held_max,
        "slab_bytes_at_end": played.bytes_held,
        "slab_bytes_on_average": average(played.held_time, length),
        "requests_not_served": played.not_served,
    })
}

fn page(
    replay: &ReplaySums,
    found: Option<&Found>,
    wasted: &[(u64, u64, u64, u128)],
    shown: usize,
    length: u64,
) -> String {
    use Align::{Left, Right};
    let own = replay.played.first();
    let own_max = own.map_or(0, |p| p.bytes_held_max);
    let own_average = own.map_or(0, |p| average(p.held_time, length));
    let saved = |own: u64, other: u64| match own.checked_sub(other) {
        Some(less) => format!("-{} ({})", count(less), percent(less, own)),
        None => format!("+{} ({})", count(other - own), percent(other - own, own)),
    };
    let rows: Vec<Vec<String>> = replay
        .played
        .iter()
        .enumerate()
        .map(|(number, p)| {
            let mean = average(p.held_time, length);
            let cells = match number {
                0 => [String::new(), String::new()],
                _ => [saved(own_average, mean), saved(own_max, p.bytes_held_max)],
            };
            let [mean_saved, max_saved] = cells;
            vec![
                p.layout().name.clone(),
                count(p.bytes_wasted),
                count(p.bytes_live_max),
                count(mean),
                mean_saved,
                count(p.bytes_held_max),
                max_saved,
                count(p.bytes_held),
            ]
        })
        .collect();
    let columns = [
        ("size classes of kmalloc", Left),
        ("wasted in objects", Right),
        ("in objects, most", Right),
        ("slabs on average", Right),
        ("saved", Right),
        ("slabs, most", Right),
        ("saved", Right),
        ("slabs at the end", Right),
    ];
    let mut out = table(&columns, &rows);
    if shown > 0 {
        let rows: Vec<Vec<String>> = wasted
            .iter()
            .take(shown)
            .map(|w| vec![count(w.0), count(w.1), count(w.2), count(average(w.3, length))])
            .collect();
        let columns =
            [("asked for", Right), ("class", Right), ("allocs", Right), ("wasted on average", Right)];
        out.push_str(&format!("\nrequests that waste most\n{}", table(&columns, &rows)));
    }
    if let Some(found) = found {
        for (what, sites) in [("long-lived", &found.long_lived), ("apart", &found.split)] {
            if !sites.is_empty() {
                let some: Vec<&str> = sites.iter().take(12).map(String::as_str).collect();
                let more = match sites.len() - some.len() {
                    0 => String::new(),
                    n => format!(" and {n} more"),
                };
                out.push_str(&format!("\n{what}: {}{more}\n", some.join(", ")));
            }
        }
    }
    out.push_str("\nPlayed: each object goes to the fullest slab of its class, a class keeps 5 empty slabs, and only objects born in the trace are there. It compares layouts with each other; per-CPU slabs, nodes and memory cgroups, which split slabs further, are not in it.\n");
    out
}
