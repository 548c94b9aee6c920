//! Rows of the page's tables: flows over time by call site, cache, task, and kind of page; and call stacks of the flame graph.
//!
//! A row has names and sums of each step, so that the page's script can show any range of time. Stacks are functions, the
//! outermost first. `encode` writes both.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::collect::sorted::Sorted;
use crate::collect::steps::{Flow, Flows, Row, StepObjects, StepSums};
use crate::collect::sums::Sums;
use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::caches::{CacheNames, parts_of};
use crate::render::words::escaped;
use crate::reports::common::ReportContext;
use crate::reports::common::page_sums::of_users;
use crate::reports::common::report_context::is_doubtful;
use crate::reports::common::rows::RecordedSums;
use crate::sort_rows::SortRows;
use crate::stream::Api;
use crate::stream::intern::InternTable;
use crate::trace::names::CacheKey;

/// A table of the page.
pub struct RowGroup {
    /// Key of the table in the page's state.
    pub key: &'static str,
    /// Heading of the table.
    pub title: &'static str,
    /// Bytes of a unit of the flows: a page, or 1.
    pub scale: u64,
    /// Rows, sorted by name.
    pub rows: Vec<SteppedRow>,
}

/// Call sites of the rows of their table, in order.
pub fn call_sites(analysis: &Analysis, sums: &StepSums) -> BTreeSet<(u64, Api)> {
    let sites = sums.objects.keys().filter_map(|objects| analysis.interner.sites.get(objects.site));
    sites.map(|site| (site.call_site, site.api)).collect()
}

/// All tables that have rows. `functions` gets those of stacks.
pub fn compute(
    context: &ReportContext<'_, '_>,
    sums: &StepSums,
    functions: &mut InternTable<String>,
) -> Vec<RowGroup> {
    let analysis = context.analysis;
    let slab = RecordedSums::slab(context.basis(), None);
    let has_stacks = sums.objects.keys().any(|objects| objects.stack.is_some());
    let stacks = if has_stacks { self::rows(context, sums, slab, functions) } else { Vec::new() };
    let makers = Makers { context, sums };
    let is_folded = context.session.trace.header().folded;
    let page = analysis.page_size.0;
    let all = [
        ("sites", "Call sites", 1, makers.call_sites()),
        ("caches", "Caches", 1, makers.caches()),
        ("tasks", "Tasks", 1, makers.tasks(&sums.origins, slab)),
        (
            "pagetasks",
            "Pages by task",
            page,
            makers.tasks(&sums.page_origins, RecordedSums::pages(context.basis())),
        ),
        ("orders", "Pages by order", page, makers.orders()),
        ("stacks", "Stacks", 1, stacks),
        ("lifetimes", "Lifetimes", 1, makers.lifetimes(slab)),
    ];
    let groups = all.into_iter().map(|(key, title, scale, rows)| RowGroup { key, title, scale, rows });
    // Sums have no tasks: those of survivors would be a part.
    let is_left_out = |group: &RowGroup| is_folded && ["tasks", "pagetasks"].contains(&group.key);
    groups.filter(|group| !group.rows.is_empty() && !is_left_out(group)).collect()
}

struct Makers<'m, 's, 'd> {
    context: &'m ReportContext<'s, 'd>,
    sums: &'m StepSums,
}

impl Makers<'_, '_, '_> {
    fn call_sites(&self) -> Vec<SteppedRow> {
        let labels = self.context.labels();
        let mut all: BTreeMap<(u64, Api), RowSum> = BTreeMap::new();
        for (objects, row) in &self.sums.objects {
            let Some(site) = self.context.analysis.interner.sites.get(objects.site) else { continue };
            let sum = all.entry((site.call_site, site.api)).or_default();
            sum.add_objects(row, site.bytes_req, site.bytes_alloc);
        }
        for (site, parts) in
            self.context.analysis.interner.sites.items().iter().zip(&self.context.analysis.balance.sites)
        {
            if let Some(sum) = all.get_mut(&(site.call_site, site.api)) {
                parts.iter().for_each(|(_, totals)| sum.totals += totals);
            }
        }
        let row = |((address, api), sum): ((u64, Api), RowSum)| {
            let recorded = RecordedSums::slab(self.context.basis(), Some(api));
            let row = sum.row(labels.symbol(address), labels.caller_function(address), recorded);
            SteppedRow { source: self.source(address), ..row }
        };
        all.into_iter().map(row).collect()
    }

    fn source(&self, address: u64) -> String {
        let table = self.context.session.source();
        let directory = || table.directory(address).map(|dir| dir.marked(&format!("{}/", dir.path)));
        let path = table.shown(address).map(|frame| frame.file.into_owned()).or_else(directory);
        path.map_or(String::new(), |path| shortened(&escaped(path.as_bytes())))
    }

    fn caches(&self) -> Vec<SteppedRow> {
        let names = CacheNames::of(self.context.analysis);
        let interner = &self.context.analysis.interner;
        let mut all: BTreeMap<CacheKey, RowSum> = BTreeMap::new();
        for (objects, row) in &self.sums.objects {
            let Some(site) = interner.sites.get(objects.site) else { continue };
            let Some(key) = names.key(objects.site, objects.cache) else { continue };
            all.entry(key).or_default().add_objects(row, site.bytes_req, site.bytes_alloc);
        }
        for part in parts_of(self.context.analysis) {
            if let Some(sum) = all.get_mut(&part.key) {
                sum.totals += part.totals;
            }
        }
        let row = |(key, sum): (CacheKey, RowSum)| {
            let api = if matches!(key, CacheKey::Kmalloc(_)) { Api::Kmalloc } else { Api::Cache };
            let recorded = RecordedSums::slab(self.context.basis(), Some(api));
            sum.row(key.shown(self.context.analysis.size_classes), String::new(), recorded)
        };
        all.into_iter().map(row).collect()
    }

    fn tasks(&self, origins: &[Row<Flows>], recorded: RecordedSums) -> Vec<SteppedRow> {
        let labels = self.context.labels();
        let mut all: BTreeMap<i32, RowSum> = BTreeMap::new();
        for (number, row) in (0u32..).zip(origins).filter(|(_, row)| !row.is_empty()) {
            let pid = self.context.analysis.interner.origins.get(number).map_or(0, |origin| origin.pid);
            all.entry(pid).or_default().add(row);
        }
        all.into_iter().map(|(pid, sum)| sum.row(labels.task(pid), String::new(), recorded)).collect()
    }

    /// Objects freed by an event, by size and length of life: the name of a row is the number of binary digits of its
    /// lifetime, and the size. Its column of allocations has the frees.
    fn lifetimes(&self, recorded: RecordedSums) -> Vec<SteppedRow> {
        let rows = self.sums.lifetimes.iter().filter(|_| recorded.lives);
        let row = |((digits, bytes), row): (&(u32, u64), &Row<u64>)| {
            let mut sum = RowSum::default();
            for (step, frees) in row.iter().filter(|(_, frees)| **frees > 0) {
                let frees = i64::try_from(*frees).unwrap_or(i64::MAX);
                // Alike columns take no room.
                *sum.flows.of(step as u32) = Flows { allocs: frees, live_change: frees, ..Flows::default() };
            }
            sum.row(format!("{digits} {bytes}"), String::new(), recorded)
        };
        let mut rows: Vec<SteppedRow> = rows.map(row).collect();
        rows.sort_rows_by(|a, b| a.name.cmp(&b.name));
        rows
    }

    fn orders(&self) -> Vec<SteppedRow> {
        let mut all: BTreeMap<u8, RowSum> = BTreeMap::new();
        for (number, row) in (0u32..).zip(&self.sums.page_kinds).filter(|(_, row)| !row.is_empty()) {
            let order = self.context.analysis.interner.pages.get(number).map_or(0, |kind| kind.order);
            all.entry(order).or_default().add(row);
        }
        let recorded = RecordedSums::pages(self.context.basis());
        all.into_iter()
            .map(|(order, sum)| sum.row(format!("order {order}"), String::new(), recorded))
            .collect()
    }
}

/// Longest name, in characters; the rest is left out.
const NAME_MAX: usize = 200;

/// A row: its names, and what happened in each step.
pub struct SteppedRow {
    pub name: String,
    /// Function of a call site; empty elsewhere.
    pub function: String,
    /// Source file of a call site or, where that is not known, its directory, with `/` at its end and `~` before it if it is
    /// inferred; empty elsewhere.
    pub source: String,
    /// Numbers that are known.
    pub recorded: RecordedSums,
    /// True if frees of its objects lack events: what seems live may be free.
    pub is_doubtful: bool,
    /// Flows of the steps with changes, by number of the step.
    pub steps: Vec<(u32, Flows)>,
}

/// Sums of one row.
#[derive(Default)]
pub struct RowSum {
    /// By number of the step.
    pub flows: Sorted<Flows>,
    /// Over all steps.
    pub totals: Totals,
}

impl RowSum {
    /// Adds objects of one size.
    pub fn add_objects(&mut self, row: &Row<Flow>, bytes_req: u64, bytes_alloc: u64) {
        for (step, flow) in row.iter().filter(|(_, flow)| **flow != Flow::default()) {
            self.flows.of(step as u32).absorb(Flows::of(flow, bytes_req, bytes_alloc));
        }
    }

    /// Adds objects of several sizes.
    pub fn add(&mut self, row: &Row<Flows>) {
        for (step, flows) in row.iter().filter(|(_, flows)| **flows != Flows::default()) {
            self.flows.of(step as u32).absorb(*flows);
        }
    }

    /// Adds another row.
    pub fn add_all(&mut self, other: &Self) {
        for (step, flows) in other.flows.iter() {
            self.flows.of(step).absorb(*flows);
        }
    }

    /// Bytes allocated in all steps.
    pub fn bytes_alloc(&self) -> i64 {
        self.flows.iter().fold(0, |sum, (_, flows)| sum.saturating_add(flows.bytes_alloc))
    }

    /// The row.
    pub fn row(self, name: String, function: String, recorded: RecordedSums) -> SteppedRow {
        let is_doubtful = is_doubtful(&self.totals);
        let steps = self.flows.into_list();
        let [name, function] = [name, function].map(|text| shortened(&text));
        SteppedRow { name, function, source: String::new(), recorded, is_doubtful, steps }
    }
}

/// The first characters of a name.
pub fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        None => name.to_owned(),
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or(name)),
    }
}

/// Most stacks of the page; the others are one row.
const STACKS_MAX: usize = 2_000;

/// A row for each path of functions, those with most bytes; its name lists the numbers of the functions. An empty name
/// stands for all others.
fn rows(
    context: &ReportContext<'_, '_>,
    sums: &StepSums,
    recorded: RecordedSums,
    functions: &mut InternTable<String>,
) -> Vec<SteppedRow> {
    let analysis = context.analysis;
    let labels = context.labels();
    let mut by_address: HashMap<(u64, bool), u32> = HashMap::new();
    let mut number = |address: u64, is_caller: bool| {
        *by_address.entry((address, is_caller)).or_insert_with(|| {
            let name = if is_caller { labels.caller_function(address) } else { labels.function(address) };
            functions.number(&name)
        })
    };
    let mut paths: HashMap<(Option<u32>, u64), Vec<u32>> = HashMap::new();
    let mut all: BTreeMap<Vec<u32>, RowSum> = BTreeMap::new();
    // Functions are numbered by their first stack: the order of a map differs in each run.
    let mut objects: Vec<(&StepObjects, &Row<Flow>)> = sums.objects.iter().collect();
    objects.sort_unstable_by_key(|(objects, _)| **objects);
    for (objects, row) in objects {
        let Some(site) = analysis.interner.sites.get(objects.site) else { continue };
        let path = paths.entry((objects.stack, site.call_site)).or_insert_with(|| {
            let stack = objects.stack.and_then(|number| analysis.interner.stacks.get(number));
            let mut frames: Vec<u64> =
                stack.map_or(Vec::new(), |stack| of_users(stack, |a| labels.symbol(a)).collect());
            if frames.is_empty() {
                frames.push(site.call_site);
            }
            frames.iter().enumerate().rev().map(|(at, &address)| number(address, at == 0)).collect()
        });
        all.entry(path.clone()).or_default().add_objects(row, site.bytes_req, site.bytes_alloc);
    }
    let mut all: Vec<(Vec<u32>, RowSum)> = all.into_iter().collect();
    all.sort_by_cached_key(|(path, sum)| (std::cmp::Reverse(sum.bytes_alloc()), path.clone()));
    let others = all.split_off(STACKS_MAX.min(all.len()));
    if !others.is_empty() {
        let mut sum = RowSum::default();
        others.iter().for_each(|(_, other)| sum.add_all(other));
        all.push((Vec::new(), sum));
    }
    let name = |path: &[u32]| path.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    all.into_iter().map(|(path, sum)| sum.row(name(&path), String::new(), recorded)).collect()
}
