//! Named totals of a summary, as numbers that can be compared between passes.

use crate::ledger::Balance;
use crate::ledger::page_totals::FrameTotals;
use crate::ledger::totals::{EventCounts, Totals};
use crate::stream::{Api, Interner};

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
    for (name, value) in [
        ("alloc_events", raw.alloc_events),
        ("free_events", raw.free_events),
        ("bytes_req", raw.bytes_req),
        ("bytes_alloc", raw.bytes_alloc),
    ] {
        out.push(falls("slab.raw", name, value));
    }
    pages(&mut out, balance, page_size);
    out
}

fn falls(section: &'static str, name: &'static str, value: u64) -> Figure {
    Figure { section, name, value: value as f64, certain: value as f64, effect: Effect::Falls }
}

fn either(section: &'static str, name: &'static str, value: u64, certain: u64) -> Figure {
    Figure { section, name, value: value as f64, certain: certain as f64, effect: Effect::Either }
}

fn pairs(section: &'static str, name: &'static str, value: u64) -> Figure {
    Figure { section, name, value: value as f64, certain: value as f64, effect: Effect::Pairs }
}

fn contradicted(section: &'static str, name: &'static str, value: u64, certain: u64) -> Figure {
    Figure { section, name, value: value as f64, certain: certain as f64, effect: Effect::Contradicted }
}

/// Waste: one allocation just above a size class adds as much as hundreds of others. Live waste is never certain.
fn unevenly(section: &'static str, name: &'static str, value: u64, effect: Effect) -> Figure {
    let certain = if effect == Effect::FallsUnevenly { value as f64 } else { 0.0 };
    Figure { section, name, value: value as f64, certain, effect }
}

fn clumped(section: &'static str, name: &'static str, value: u64) -> Figure {
    Figure { section, name, value: value as f64, certain: value as f64, effect: Effect::Clumped }
}

fn unpaired(section: &'static str, name: &'static str, value: u64) -> Figure {
    Figure { section, name, value: value as f64, certain: 0.0, effect: Effect::Unpaired }
}

fn slab(out: &mut Vec<Figure>, section: &'static str, t: &Totals, c: &EventCounts) {
    out.extend([
        falls(section, "alloc_events", t.alloc_events),
        falls(section, "free_events", t.frees_matched + c.unmatched_frees()),
        clumped(section, "alloc_failures", c.alloc_failures),
        falls(section, "bytes_req", t.bytes_req),
        falls(section, "bytes_alloc", t.bytes_alloc),
        unevenly(section, "bytes_wasted", t.bytes_wasted(), Effect::FallsUnevenly),
        pairs(section, "frees_matched", t.frees_matched),
        pairs(section, "bytes_freed", t.bytes_freed),
        pairs(section, "cross_cpu_frees", c.cross_cpu_frees),
        pairs(section, "mixed_api_frees", c.mixed_api_frees),
        falls(section, "null_frees", c.null_frees),
        either(section, "live", t.live, t.live - t.live_uncertain.min(t.live)),
        either(section, "bytes_live", t.bytes_live, t.bytes_live.saturating_sub(t.bytes_live_uncertain)),
        unevenly(section, "bytes_wasted_live", t.bytes_wasted_live(), Effect::EitherUnevenly),
        contradicted(
            section,
            "freed_unseen",
            t.implied_frees,
            t.implied_frees - t.implied_frees_uncertain.min(t.implied_frees),
        ),
        contradicted(section, "bytes_freed_unseen", t.bytes_freed_implied, 0),
        unpaired(section, "frees_unmatched", c.unmatched_frees()),
        unpaired(section, "frees_allocated_before", c.allocated_before),
        unpaired(section, "frees_untraced_birth", c.untraced_birth),
    ]);
    out.push(Figure {
        section,
        name: "internal_fragmentation_percent",
        value: t.internal_fragmentation_percent(),
        certain: 0.0,
        effect: Effect::Either,
    });
}

fn pages(out: &mut Vec<Figure>, balance: &Balance, page_size: u64) {
    let mut t = FrameTotals::default();
    balance.frames.sites.iter().for_each(|s| t += s);
    let c = balance.frames.counts;
    let bytes = |frames: u64| frames.saturating_mul(page_size);
    let live_certain = t.frames_live.saturating_sub(t.frames_live_uncertain);
    out.extend([
        falls("pages", "alloc_events", t.alloc_events),
        clumped("pages", "alloc_failures", t.alloc_failures),
        falls("pages", "pages_alloc", t.frames_alloc),
        falls("pages", "bytes_alloc", bytes(t.frames_alloc)),
        falls("pages", "bytes_req", bytes(t.frames_alloc)),
        falls("pages", "free_events", c.frees_matched + c.free_only_events),
        pairs("pages", "frees_matched", c.frees_matched),
        pairs("pages", "pages_freed", t.frames_freed),
        pairs("pages", "bytes_freed", bytes(t.frames_freed)),
        contradicted("pages", "pages_freed_unseen", t.frames_freed_implied, 0),
        contradicted("pages", "bytes_freed_unseen", bytes(t.frames_freed_implied), 0),
        unpaired("pages", "frees_unmatched", c.free_only_events),
        unpaired("pages", "pages_free_only", c.free_only_frames),
        either("pages", "pages_live", t.frames_live, live_certain),
        either("pages", "bytes_live", bytes(t.frames_live), bytes(live_certain)),
    ]);
}
