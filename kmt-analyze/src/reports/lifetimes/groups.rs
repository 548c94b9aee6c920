//! Lifetimes by the keys of `--by`.

use super::life::LifeRow;
use super::sorting::number;
use crate::collect::life_groups::LifeGroupSums;
use crate::collect::lifetimes::CallerLives;
use crate::collect::sums::Sums;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::common::sorting::SortKey;
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Grouping, Values};

/// Groups by keys `by`, sorted by keys `order`.
pub fn compute(
    context: &ReportContext<'_, '_>,
    sums: &LifeGroupSums,
    by: &[&'static GroupKey],
    order: &[SortKey],
    is_timed: bool,
) -> GroupTable<LifeRow> {
    let analysis = context.analysis;
    let values = Values::new(context);
    let mut groups = Grouping::new(by, &values, analysis);
    for (group, lives) in sums.groups.iter().filter(|(_, lives)| lives.any()) {
        let Some(site) = analysis.interner.sites.get(group.site) else { continue };
        let sum: &mut CallerLives = groups.of(GroupPart::Slab(group, site));
        sum.absorb(lives.clone());
    }
    let labels = Labels::new(context.session);
    let row = |lives: &CallerLives| LifeRow::of(lives, analysis, &labels, is_timed);
    groups.table(order, |lives, key: SortKey| number(key, lives), context.limit, row)
}
