//! Sums of pages by the keys of `--by`.

use super::sorting::{PageKey, sort};
use crate::collect::page_groups::PageGroupSums;
use crate::ledger::page_totals::FrameTotals;
use crate::reports::common::ReportContext;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::FrameSums;
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Numbered, Values, sums_by_values};

/// Groups by keys `by`, sorted by keys `order`.
pub fn of(
    context: &ReportContext<'_, '_>,
    sums: &PageGroupSums,
    by: &[&'static GroupKey],
    order: &[PageKey],
) -> GroupTable<FrameSums> {
    let analysis = context.analysis;
    let values = Values::new(context);
    let mut keys = Numbered::new(by, &values, analysis);
    let parts = sums.0.iter().filter(|(_, totals)| **totals != FrameTotals::default());
    let parts = parts.filter_map(|(group, totals)| {
        Some((GroupPart::Pages(group, analysis.interner.pages.get(group.site)?), totals))
    });
    let add = |sum: &mut FrameTotals, totals: &FrameTotals| *sum += totals;
    let mut all = sums_by_values(&mut keys, parts, add);
    sort(&mut all, order, |(group, totals)| (*totals, keys.order(group)));
    let recorded = RecordedSums::pages(context.basis());
    let row = |(_, totals): &(Vec<u32>, FrameTotals)| FrameSums::of(totals, analysis.page_size.0, recorded);
    GroupTable::of(&keys, &all, context.limit, |(group, _)| group, row)
}
