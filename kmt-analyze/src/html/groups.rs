//! Rows of the page's tables: flows over time by call site, cache, task, and kind of page.

use std::collections::BTreeMap;

use crate::collect::step_row::Row;
use crate::collect::steps::{Flow, Flows, StepSums};
use crate::collect::sums::Sums;
use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::caches::{CacheKey, name_of, parts_of, usual_names};
use crate::reports::common::Context;
use crate::reports::common::basis::Basis;
use crate::reports::common::labels::Labels;
use crate::reports::common::live_bounds::is_doubtful;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::stream::Api;

/// Longest name, in characters; the rest is left out.
const NAME_MAX: usize = 200;

/// A table of the page.
pub struct Group {
    /// Its key in the page's state.
    pub key: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Bytes of a unit of the flows: a page, or 1.
    pub scale: u64,
    /// Rows, sorted by name.
    pub rows: Vec<GroupRow>,
}

/// A row: its names, and what happened in each step.
pub struct GroupRow {
    /// Name.
    pub name: String,
    /// Function of a call site; empty elsewhere.
    pub function: String,
    /// Numbers that are known.
    pub recorded: RecordedSums,
    /// True if frees of its objects lack events: what seems live may be free.
    pub is_doubtful: bool,
    /// Flows of the steps with changes, by number of the step.
    pub steps: Vec<(u32, Flows)>,
}

/// Sums of one row.
#[derive(Default)]
struct Sum {
    flows: BTreeMap<u32, Flows>,
    totals: Totals,
}

impl Sum {
    fn add_objects(&mut self, row: &Row<Flow>, bytes_req: u64, bytes_alloc: u64) {
        for (step, flow) in row.iter().filter(|(_, flow)| **flow != Flow::default()) {
            self.flows.entry(step as u32).or_default().absorb(Flows::of(flow, bytes_req, bytes_alloc));
        }
    }

    fn add(&mut self, row: &Row<Flows>) {
        for (step, flows) in row.iter().filter(|(_, flows)| **flows != Flows::default()) {
            self.flows.entry(step as u32).or_default().absorb(*flows);
        }
    }

    fn row(self, name: String, function: String, recorded: RecordedSums) -> GroupRow {
        let is_doubtful = is_doubtful(&self.totals);
        let steps = self.flows.into_iter().collect();
        let [name, function] = [name, function].map(|text| shortened(&text));
        GroupRow { name, function, recorded, is_doubtful, steps }
    }
}

/// All tables that have rows.
pub fn of(context: &Context<'_, '_>, analysis: &Analysis, sums: &StepSums) -> Vec<Group> {
    let basis = Basis::of(context.session, analysis);
    let makers = Makers { context, analysis, sums, basis };
    let page = analysis.page_size.0;
    let all = [
        ("sites", "Call sites", 1, makers.call_sites()),
        ("caches", "Caches", 1, makers.caches()),
        ("tasks", "Tasks", 1, makers.tasks(&sums.origins, RecordedSums::slab(&basis, None))),
        ("pagetasks", "Pages by task", page, makers.tasks(&sums.page_origins, RecordedSums::pages(&basis))),
        ("orders", "Pages by order", page, makers.orders()),
    ];
    let groups = all.into_iter().map(|(key, title, scale, rows)| Group { key, title, scale, rows });
    groups.filter(|group| !group.rows.is_empty()).collect()
}

struct Makers<'m, 'd> {
    context: &'m Context<'m, 'd>,
    analysis: &'m Analysis,
    sums: &'m StepSums,
    basis: Basis,
}

impl Makers<'_, '_> {
    fn call_sites(&self) -> Vec<GroupRow> {
        let labels = Labels::of(self.context);
        let mut all: BTreeMap<(u64, Api), Sum> = BTreeMap::new();
        for ((number, _), row) in &self.sums.objects {
            let Some(site) = self.analysis.interner.sites.get(*number) else { continue };
            let sum = all.entry((site.call_site, site.api)).or_default();
            sum.add_objects(row, site.bytes_req, site.bytes_alloc);
        }
        for (site, parts) in self.analysis.interner.sites.items().iter().zip(&self.analysis.balance.sites) {
            if let Some(sum) = all.get_mut(&(site.call_site, site.api)) {
                parts.iter().for_each(|(_, totals)| sum.totals += totals);
            }
        }
        let row = |((address, api), sum): ((u64, Api), Sum)| {
            let recorded = RecordedSums::slab(&self.basis, Some(api));
            sum.row(labels.symbol(address), labels.function(address), recorded)
        };
        all.into_iter().map(row).collect()
    }

    fn caches(&self) -> Vec<GroupRow> {
        let usual = usual_names(self.analysis);
        let interner = &self.analysis.interner;
        let mut all: BTreeMap<CacheKey, Sum> = BTreeMap::new();
        for ((number, cache), row) in &self.sums.objects {
            let Some(site) = interner.sites.get(*number) else { continue };
            let usual = usual.get(*number as usize).copied().flatten();
            let key = match (site.api, cache.or(usual)) {
                (Api::Kmalloc, _) => CacheKey::Kmalloc(site.bytes_alloc),
                (Api::Cache, Some(name)) => CacheKey::Named(interner.name(name).to_vec()),
                (Api::Cache, None) => CacheKey::Nameless(site.bytes_req, site.bytes_alloc),
            };
            all.entry(key).or_default().add_objects(row, site.bytes_req, site.bytes_alloc);
        }
        for part in parts_of(self.analysis) {
            if let Some(sum) = all.get_mut(&part.key) {
                sum.totals += part.totals;
            }
        }
        let row = |(key, sum): (CacheKey, Sum)| {
            let api = if matches!(key, CacheKey::Kmalloc(_)) { Api::Kmalloc } else { Api::Cache };
            let recorded = RecordedSums::slab(&self.basis, Some(api));
            sum.row(name_of(&key, self.analysis), String::new(), recorded)
        };
        all.into_iter().map(row).collect()
    }

    fn tasks(&self, origins: &[Row<Flows>], recorded: RecordedSums) -> Vec<GroupRow> {
        let labels = Labels::of(self.context);
        let mut all: BTreeMap<i32, Sum> = BTreeMap::new();
        for (number, row) in (0u32..).zip(origins).filter(|(_, row)| !row.is_empty()) {
            let pid = self.analysis.interner.origins.get(number).map_or(0, |origin| origin.pid);
            all.entry(pid).or_default().add(row);
        }
        all.into_iter().map(|(pid, sum)| sum.row(labels.task(pid), String::new(), recorded)).collect()
    }

    fn orders(&self) -> Vec<GroupRow> {
        let mut all: BTreeMap<u8, Sum> = BTreeMap::new();
        for (number, row) in (0u32..).zip(&self.sums.page_kinds).filter(|(_, row)| !row.is_empty()) {
            let order = self.analysis.interner.pages.get(number).map_or(0, |kind| kind.order);
            all.entry(order).or_default().add(row);
        }
        let recorded = RecordedSums::pages(&self.basis);
        all.into_iter()
            .map(|(order, sum)| sum.row(format!("order {order}"), String::new(), recorded))
            .collect()
    }
}

/// The first characters of a name.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        None => name.to_owned(),
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or(name)),
    }
}
