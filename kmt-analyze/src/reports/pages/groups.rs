//! Sums of pages by the keys of `--by`.

use super::sorting::number;
use crate::collect::page_groups::PageGroupSums;
use crate::ledger::page_totals::FrameTotals;
use crate::reports::common::ReportContext;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::FrameSums;
use crate::reports::common::sorting::SortKey;
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Grouping, Values};

/// Groups by keys `by`, sorted by keys `order`.
pub fn compute(
    context: &ReportContext<'_, '_>,
    sums: &PageGroupSums,
    by: &[&'static GroupKey],
    order: &[SortKey],
) -> GroupTable<FrameSums> {
    let analysis = context.analysis;
    let values = Values::new(context);
    let mut groups = Grouping::new(by, &values, analysis);
    for (group, totals) in sums.0.iter().filter(|(_, totals)| **totals != FrameTotals::default()) {
        let Some(site) = analysis.interner.pages.get(group.site) else { continue };
        let sum: &mut FrameTotals = groups.of(GroupPart::Pages(group, site));
        *sum += totals;
    }
    let recorded = RecordedSums::pages(context.basis());
    let row = |totals: &FrameTotals| FrameSums::of(totals, analysis.page_size.0, recorded);
    groups.table(order, |totals, key: SortKey| number(key, totals), context.limit, row)
}
