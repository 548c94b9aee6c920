//! `what-if`: the trace's kmallocs played to an allocator with other size classes, or with call sites apart.

use serde_json::{Map, Value, json};

use super::basis::Input;
use super::parts::{Labels, Page, Report, Subject};
use super::selection::{Wants, analyse_for};
use crate::collect::replay::{Layout, Played, best_classes};
use crate::collect::{Replay, Sinks};
use crate::pass;
use crate::render::table::{Align, table};
use crate::render::text::{count, percent};
use crate::stream::Api;

/// The report.
#[derive(Debug, Default)]
pub struct WhatIf {
    /// Layouts to be played besides the kernel's own.
    layouts: Vec<Layout>,
    /// Request sizes, objects, bytes wasted by time: what the first look found.
    found: Option<Found>,
}

/// What one asks for.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Classes besides the kernel's.
    pub added: Vec<u64>,
    /// Classes of the kernel to go without.
    pub dropped: Vec<u64>,
    /// Call sites to keep apart.
    pub split: Option<regex::Regex>,
    /// How many more classes are to be suggested.
    pub best: usize,
}

#[derive(Debug, Default)]
struct Found {
    long_lived: Vec<String>,
    split: Vec<String>,
}

/// A call site is long-lived if its objects are held for this share of the window on average, in percent.
const LONG_LIVED_PERCENT: u128 = 10;

impl WhatIf {
    /// Layouts that need no look at the trace first: what mm/slab_common.c has been asked to have.
    pub fn usual() -> Self {
        let added = |name: &str, added: &[u64]| Layout {
            name: name.to_owned(),
            added: added.to_vec(),
            ..Layout::default()
        };
        let layouts = vec![
            added("with 160, 320, 640, 1280", &[160, 320, 640, 1280]),
            Layout { name: "without 96, 192".to_owned(), dropped: vec![96, 192], ..Layout::default() },
        ];
        Self { layouts, found: None }
    }

    /// Layouts for a question, with those that a first look at the trace suggests.
    pub fn asked(subject: &Subject<'_, '_>, question: &Question) -> Self {
        let sinks = || Sinks { replay: Some(Replay::new(Vec::new())), ..Sinks::default() };
        let mut result =
            analyse_for(subject.session, subject.selection, &Wants { sinks: &sinks, ..Wants::default() });
        let mut replay = result.balance.sinks.replay.take().unwrap_or_default();
        let (first, last) = subject.selection.span(subject.session);
        replay.finish(last);
        let labels = Labels::new(subject.session);
        let mut out = Self::default();
        let mut found = Found::default();
        if !(question.added.is_empty() && question.dropped.is_empty()) {
            let mut names = Vec::new();
            let list = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            if !question.added.is_empty() {
                names.push(format!("with {}", list(&question.added)));
            }
            if !question.dropped.is_empty() {
                names.push(format!("without {}", list(&question.dropped)));
            }
            let mut added = question.added.clone();
            added.sort_unstable();
            let (name, dropped) = (names.join(", "), question.dropped.clone());
            out.layouts.push(Layout { name, added, dropped, ..Layout::default() });
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
            out.layouts.push(layout);
        }
        let mut requests: Vec<(u64, u64, u128)> =
            replay.requests.iter().map(|(&(req, alloc), r)| (req, alloc, r.held)).collect();
        requests.sort_unstable();
        let best = best_classes(&requests, question.best);
        if !best.is_empty() {
            let list: Vec<String> = best.iter().map(u64::to_string).collect();
            let name = format!("with {} (the best {})", list.join(", "), best.len());
            out.layouts.push(Layout { name, added: best, ..Layout::default() });
        }
        let length = u128::from(last.saturating_sub(first));
        let mut apart = Layout { name: "long-lived apart".to_owned(), ..Layout::default() };
        for (number, caller) in (0u32..).zip(&replay.callers) {
            let is_long = caller.allocs > 0
                && caller.held / LONG_LIVED_PERCENT >= length * u128::from(caller.allocs) / 100;
            if is_long {
                apart.apart.insert(number);
                found.long_lived.push(labels.caller(&result, number).2);
            }
        }
        if !apart.apart.is_empty() {
            out.layouts.push(apart);
        }
        out.found = Some(found);
        out
    }
}

impl Report for WhatIf {
    fn title(&self) -> &'static str {
        "what-if"
    }

    fn rests_on(&self) -> Input {
        Input::KmallocLives
    }

    fn want(&self, _: &Subject<'_, '_>, sinks: &mut Sinks) {
        let own = Layout { name: "as the kernel did".to_owned(), ..Layout::default() };
        sinks.replay = Some(Replay::new(std::iter::once(own).chain(self.layouts.iter().cloned()).collect()));
    }

    fn page(&self, subject: &Subject<'_, '_>, result: &mut pass::Result) -> Page {
        let mut replay = result.balance.sinks.replay.take().unwrap_or_default();
        let (first, last) = subject.selection.span(subject.session);
        replay.finish(last);
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
        let wasted = worst(&replay);
        let shown = subject.limit.min(10).min(wasted.len());
        out.insert("what_if".into(), json!({
            "bytes_alloc": exact,
            "bytes_alloc_of_model": own.bytes_alloc,
            "layouts": replay.played.iter().map(|p| layout_json(p, length)).collect::<Vec<_>>(),
            "worst_requests": wasted.iter().take(shown).map(|w| json!({
                "bytes_req": w.0, "bytes_alloc": w.1, "alloc_events": w.2, "bytes_wasted_on_average": average(w.3, length),
            })).collect::<Vec<_>>(),
            "long_lived_call_sites": self.found.as_ref().map(|f| &f.long_lived),
            "call_sites_apart": self.found.as_ref().map(|f| &f.split),
        }));
        Page { json: out, text: self.text(&replay, &wasted, shown, length) }
    }
}

/// Request size, class, allocations, wasted bytes by time; the worst first.
fn worst(replay: &Replay) -> Vec<(u64, u64, u64, u128)> {
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

impl WhatIf {
    fn text(&self, replay: &Replay, wasted: &[(u64, u64, u64, u128)], shown: usize, length: u64) -> String {
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
        if let Some(found) = &self.found {
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
}
