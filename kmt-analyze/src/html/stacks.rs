//! Call stacks of the flame graph: as functions, the outermost first.

use std::collections::{BTreeMap, HashMap};

use super::row::{RowSum, SteppedRow};
use crate::collect::steps::StepSums;
use crate::reports::common::ReportContext;
use crate::reports::common::page_sums::of_users;
use crate::reports::common::rows::RecordedSums;
use crate::stream::intern::InternTable;

/// Most stacks of the page; the others are one row.
const STACKS_MAX: usize = 2_000;

/// A row for each path of functions, those with most bytes; its name lists the numbers of the functions. An empty name
/// stands for all others.
pub fn rows(
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
    for (objects, row) in &sums.objects {
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
