//! Named totals of a summary, as numbers that can be compared between passes.
//!
//! Each total has a class of effects: whether losses lower it, raise it, or both, and the highest value it can have.
//! `pass/ranges` computes the figures of the trace and of thinned traces, and `estimate` makes ranges of them. Their
//! names are the keys of `summary` in JSON.

use crate::ledger::Balance;
use crate::ledger::totals::{EventCounts, FrameTotals, Totals};
use crate::stream::{Api, Interner};

use Effect::{Clumped, Contradicted, Either, EitherUnevenly, Falls, FallsUnevenly, Pairs, Unpaired};

/// Effect of losses on a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Count of events: falls by the lost share.
    Falls,
    /// Count of pairs of events: falls by up to twice the lost share.
    Pairs,
    /// Count of lives that no event contradicts: falls or rises.
    Either,
    /// Count of contradictions by later events: losses add to it, so all but the certain part may be due to them.
    Contradicted,
    /// Count of events without their partner: falls, and rises where the partner was lost.
    Unpaired,
    /// A falling sum dominated by few events: losing one of them changes it much.
    FallsUnevenly,
    /// A sum dominated by few events, of lives that no event contradicts.
    EitherUnevenly,
    /// Count of events that cluster under the pressure that causes losses: the lost part has no bound.
    Clumped,
}

/// Highest value of a total, whatever the lost events were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Most {
    /// Each lost event adds at most 1 to this.
    PlusLost(f64),
    /// This, however many events were lost.
    Fixed(f64),
    /// Not bounded: one lost event may be of any number of bytes or pages.
    Unbounded,
}

/// A named total.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// `slab`, `slab.kmalloc`, `slab.cache`, `slab.raw`, `pages`.
    pub section: &'static str,
    /// Name in the JSON of the section.
    pub name: &'static str,
    /// Value in this pass.
    pub value: f64,
    /// Part that no loss can affect.
    pub certain: f64,
    /// Effect of losses.
    pub effect: Effect,
    /// Highest value.
    pub most: Most,
    /// Number of events, or of their objects, that add up to it; of bytes and pages by the mean size of an allocation.
    pub events: f64,
}

/// All named totals of a pass.
pub fn figures(balance: &Balance, interner: &Interner, page_size: u64) -> Vec<Figure> {
    let mut by_api = [Totals::default(); 2];
    for (site, parts) in interner.sites.items().iter().zip(&balance.sites) {
        if let Some(sum) = by_api.get_mut(site.api as usize) {
            parts.iter().for_each(|(_, totals)| *sum += totals);
        }
    }
    let (mut totals, mut counts) = (Totals::default(), EventCounts::default());
    by_api.iter().for_each(|t| totals += t);
    balance.counts.iter().for_each(|c| counts += c);
    let mut out = Vec::new();
    slab(&mut out, "slab", &totals, &counts);
    for (section, api) in [("slab.kmalloc", Api::Kmalloc), ("slab.cache", Api::Cache)] {
        let of = (by_api.get(api as usize), balance.counts.get(api as usize));
        if let (Some(totals), Some(counts)) = of {
            slab(&mut out, section, totals, counts);
        }
    }
    let raw = balance.raw;
    add(
        &mut out,
        "slab.raw",
        MeanSizes::of(raw.bytes_alloc, 0, raw.alloc_events),
        [
            ("alloc_events", raw.alloc_events, 0, Falls),
            ("free_events", raw.free_events, 0, Falls),
            ("bytes_req", raw.bytes_req, 0, Falls),
            ("bytes_alloc", raw.bytes_alloc, 0, Falls),
        ],
    );
    pages(&mut out, balance, page_size);
    out
}

/// Mean sizes of an allocation.
#[derive(Debug, Clone, Copy)]
struct MeanSizes {
    bytes: f64,
    pages: f64,
}

impl MeanSizes {
    fn of(bytes: u64, pages: u64, allocations: u64) -> Self {
        let mean = |sum| sum as f64 / allocations.max(1) as f64;
        Self { bytes: mean(bytes), pages: mean(pages) }
    }
}

/// Adds figures: name, value, the part that no loss can affect (0 where the effect does not need it), effect. Totals that
/// are in neither `most` nor in bytes nor pages count events or their objects.
fn add<const N: usize>(
    out: &mut Vec<Figure>,
    section: &'static str,
    sizes: MeanSizes,
    rows: [(&'static str, u64, u64, Effect); N],
) {
    out.extend(rows.map(|(name, value, certain, effect)| {
        let (value, certain) = (value as f64, certain as f64);
        let (most, size) = match name.split('_').next() {
            Some("bytes") => (Most::Unbounded, sizes.bytes),
            Some("pages") => (Most::Unbounded, sizes.pages),
            _ => (Most::PlusLost(value), 1.0),
        };
        Figure { section, name, value, certain, effect, most, events: value / size.max(1.0) }
    }));
}

/// Raises the highest value of the last total of this name.
fn raise(out: &mut [Figure], name: &str, by: u64) {
    if let Some(figure) = out.iter_mut().rev().find(|figure| figure.name == name) {
        figure.most = Most::PlusLost(figure.value + by as f64);
    }
}

fn slab(out: &mut Vec<Figure>, section: &'static str, t: &Totals, c: &EventCounts) {
    let live_certain = t.live - t.live_uncertain.min(t.live);
    let bytes_live_certain = t.bytes_live.saturating_sub(t.bytes_live_uncertain);
    let implied_certain = t.implied_frees - t.implied_frees_uncertain.min(t.implied_frees);
    // Waste: one allocation just above a size class adds as much as hundreds of others. Live waste is never certain.
    let rows = [
        ("alloc_events", t.alloc_events, 0, Falls),
        ("free_events", t.frees_matched + c.unmatched_frees(), 0, Falls),
        ("alloc_failures", c.alloc_failures, 0, Clumped),
        ("bytes_req", t.bytes_req, 0, Falls),
        ("bytes_alloc", t.bytes_alloc, 0, Falls),
        ("bytes_wasted", t.bytes_wasted(), 0, FallsUnevenly),
        ("frees_matched", t.frees_matched, 0, Pairs),
        ("bytes_freed", t.bytes_freed, 0, Pairs),
        ("cross_cpu_frees", c.cross_cpu_frees, 0, Pairs),
        ("mixed_api_frees", c.mixed_api_frees, 0, Pairs),
        ("null_frees", c.null_frees, 0, Falls),
        ("live", t.live, live_certain, Either),
        ("bytes_live", t.bytes_live, bytes_live_certain, Either),
        ("bytes_wasted_live", t.bytes_wasted_live(), 0, EitherUnevenly),
        ("freed_unseen", t.implied_frees, implied_certain, Contradicted),
        ("bytes_freed_unseen", t.bytes_freed_implied, 0, Contradicted),
        ("frees_unmatched", c.unmatched_frees(), 0, Unpaired),
        ("frees_allocated_before", c.allocated_before, 0, Unpaired),
        ("frees_untraced_birth", c.untraced_birth, 0, Unpaired),
    ];
    add(out, section, MeanSizes::of(t.bytes_alloc, 0, t.alloc_events), rows);
    // A lost page event may have freed all objects of a slab.
    raise(out, "freed_unseen", t.live);
    out.push(Figure {
        section,
        name: "internal_fragmentation_percent",
        value: t.internal_fragmentation_percent(),
        certain: 0.0,
        effect: Either,
        most: Most::Fixed(100.0),
        events: t.alloc_events as f64,
    });
}

fn pages(out: &mut Vec<Figure>, balance: &Balance, page_size: u64) {
    let mut t = FrameTotals::default();
    balance.frames.sites.iter().for_each(|s| t += s);
    let c = balance.frames.counts;
    let bytes = |frames: u64| frames.saturating_mul(page_size);
    let live_certain = t.frames_live.saturating_sub(t.frames_live_uncertain);
    let rows = [
        ("alloc_events", t.alloc_events, 0, Falls),
        ("alloc_failures", t.alloc_failures, 0, Clumped),
        ("pages_alloc", t.frames_alloc, 0, Falls),
        ("bytes_alloc", bytes(t.frames_alloc), 0, Falls),
        ("bytes_req", bytes(t.frames_alloc), 0, Falls),
        ("free_events", c.frees_matched + c.free_only_events, 0, Falls),
        ("frees_matched", c.frees_matched, 0, Pairs),
        ("pages_freed", t.frames_freed, 0, Pairs),
        ("bytes_freed", bytes(t.frames_freed), 0, Pairs),
        ("pages_freed_unseen", t.frames_freed_implied, 0, Contradicted),
        ("bytes_freed_unseen", bytes(t.frames_freed_implied), 0, Contradicted),
        ("frees_unmatched", c.free_only_events, 0, Unpaired),
        ("pages_free_only", c.free_only_frames, 0, Unpaired),
        ("pages_live", t.frames_live, live_certain, Either),
        ("bytes_live", bytes(t.frames_live), bytes(live_certain), Either),
    ];
    add(out, "pages", MeanSizes::of(bytes(t.frames_alloc), t.frames_alloc, t.alloc_events), rows);
    // The pages of one lost allocation may have been freed one by one.
    raise(out, "frees_matched", c.free_only_events);
}
