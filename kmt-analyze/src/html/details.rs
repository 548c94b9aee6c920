//! Facts on one call site, over the whole recording: sizes, caches, where its objects are freed, who allocates them.
//!
//! Sums come from the collectors of lifetimes and steps and from the ledger, by call site; only the 300 call sites with
//! most bytes have facts, which keeps the page small. `document` packs them with the numbers; the script shows them for
//! a chosen row.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::groups::shortened;
use crate::collect::lifetimes::LifetimeSums;
use crate::collect::steps::StepSums;
use crate::pass::Analysis;
use crate::pass::caches::parts_of;
use crate::render::words::{counted, share, size};
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::sort_rows::SortRows;
use crate::stream::Api;
use crate::trace::names::function_of;

/// Call sites with facts: those with most bytes.
const SITES_MAX: usize = 300;
/// Lines of a fact.
const LINES: usize = 5;

/// A fact and its lines.
#[derive(Serialize)]
pub struct Fact {
    title: &'static str,
    lines: Vec<String>,
}

/// Sums by some key.
type SumsBy<K> = BTreeMap<K, u64>;

/// Sums of one call site.
#[derive(Default)]
struct SiteFacts {
    sizes: SumsBy<(u64, u64)>,
    caches: SumsBy<String>,
    allocated_by: SumsBy<i32>,
    held_by: SumsBy<i32>,
}

/// Call sites with most bytes, allocated or live.
fn chosen(analysis: &Analysis) -> impl Iterator<Item = (u64, Api)> + use<> {
    let mut sums: HashMap<(u64, Api), [u64; 2]> = HashMap::new();
    for part in parts_of(analysis) {
        let sum = sums.entry((part.site.call_site, part.site.api)).or_default();
        let bytes = [part.totals.bytes_alloc, part.totals.bytes_live];
        *sum = std::array::from_fn(|i| sum[i].saturating_add(bytes[i]));
    }
    let sums = sums.into_iter().map(|(key, [allocated, live])| (allocated.max(live), key));
    let mut largest: Vec<(u64, (u64, Api))> = sums.collect();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    largest.into_iter().take(SITES_MAX).map(|(_, key)| key)
}

/// Facts by number of the call site's row; `keys` are the call sites of the rows.
pub fn compute(
    context: &ReportContext<'_, '_>,
    (sums, lifetimes): (&StepSums, &LifetimeSums),
    keys: &BTreeSet<(u64, Api)>,
) -> BTreeMap<usize, Vec<Fact>> {
    let analysis = context.analysis;
    let mut all: HashMap<(u64, Api), SiteFacts> =
        chosen(analysis).map(|key| (key, SiteFacts::default())).collect();
    for part in parts_of(analysis) {
        let Some(site) = all.get_mut(&(part.site.call_site, part.site.api)) else { continue };
        let allocs = part.totals.alloc_events;
        *site.sizes.entry((part.site.bytes_req, part.site.bytes_alloc)).or_default() += allocs;
        *site.caches.entry(part.key.shown(analysis.size_classes)).or_default() += allocs;
    }
    // Sums have no tasks: survivors alone do not show who allocates.
    let is_folded = context.session.trace.header().folded;
    for ((caller, origin), holder) in &sums.holders {
        let Some(&(api, address)) = analysis.balance.callers.get(*caller as usize) else { continue };
        let pid = analysis.interner.origins.get(*origin).map_or(0, |origin| origin.pid);
        let Some(site) = all.get_mut(&(address, api)) else { continue };
        if !is_folded {
            *site.allocated_by.entry(pid).or_default() += holder.bytes_alloc;
        }
        *site.held_by.entry(pid).or_default() += holder.bytes_live;
    }
    let numbers: HashMap<(u64, Api), usize> = analysis
        .balance
        .callers
        .iter()
        .enumerate()
        .map(|(number, &(api, address))| ((address, api), number))
        .filter(|(key, _)| all.contains_key(key))
        .collect();
    let labels = context.labels();
    let facts = |(row, key): (usize, &(u64, Api))| {
        let site = all.get(key)?;
        let lives = numbers.get(key).and_then(|&number| lifetimes.callers.get(number));
        let mut freed: SumsBy<String> = SumsBy::new();
        for (free, (frees, _)) in lives.iter().flat_map(|lives| lives.freed_by.iter()) {
            *freed.entry(function_of(&labels.free_site(analysis, free).1)).or_default() += frees;
        }
        Some((row, site.facts(freed, labels)))
    };
    keys.iter().enumerate().filter_map(facts).collect()
}

impl SiteFacts {
    fn facts(&self, freed: SumsBy<String>, labels: &Labels<'_, '_>) -> Vec<Fact> {
        let sized = |&(requested, allocated): &(u64, u64)| match requested == allocated {
            true => size(allocated),
            false => format!("{} for {} requested", size(allocated), size(requested)),
        };
        let task = |pid: &i32| labels.task(*pid);
        let facts = [
            ("Sizes, by allocations", largest(&self.sizes, sized)),
            ("Caches, by allocations", largest(&self.caches, String::clone)),
            ("Freed at", largest(&freed, String::clone)),
            ("Allocated by, by bytes", largest(&self.allocated_by, task)),
            ("Still allocated, by bytes, for", largest(&self.held_by, task)),
        ];
        let facts = facts.into_iter().filter(|(_, lines)| !lines.is_empty());
        facts.map(|(title, lines)| Fact { title, lines }).collect()
    }
}

/// The largest of some sums, with their shares.
fn largest<K: Ord>(sums: &SumsBy<K>, name: impl Fn(&K) -> String) -> Vec<String> {
    let whole = sums.values().fold(0u64, |sum, part| sum.saturating_add(*part));
    let mut all: Vec<(&K, u64)> =
        sums.iter().map(|(key, sum)| (key, *sum)).filter(|(_, sum)| *sum > 0).collect();
    all.sort_rows_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let more = all.len().saturating_sub(LINES) as u64;
    let shown = all.iter().take(LINES);
    let mut lines: Vec<String> =
        shown.map(|(key, sum)| format!("{} {}", shortened(&name(key)), share(*sum, whole))).collect();
    if more > 0 {
        lines.push(counted(more, "other", "others"));
    }
    lines
}
