//! Lifetimes by the keys of `--by`.

use super::life::LifeRow;
use super::sorting::{LifetimeKey, sort};
use crate::collect::life_groups::LifeGroupSums;
use crate::collect::lifetimes::CallerLives;
use crate::collect::sums::Sums;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Numbered, Values, sums_by_values};

/// Groups by keys `by`, sorted by keys `order`.
pub fn of(
    context: &ReportContext<'_, '_>,
    sums: &LifeGroupSums,
    by: &[&'static GroupKey],
    order: &[LifetimeKey],
    is_timed: bool,
) -> GroupTable<LifeRow> {
    let analysis = context.analysis;
    let values = Values::new(context);
    let mut keys = Numbered::new(by, &values, analysis);
    let parts = sums.groups.iter().filter(|(_, lives)| lives.any());
    let parts = parts.filter_map(|(group, lives)| {
        Some((GroupPart::Slab(group, analysis.interner.sites.get(group.site)?), lives))
    });
    let add = |sum: &mut CallerLives, lives: &CallerLives| sum.absorb(lives.clone());
    let found = sums_by_values(&mut keys, parts, add);
    let named = |(group, lives): (Vec<u32>, CallerLives)| (keys.order(&group), group, lives);
    let mut all: Vec<(String, Vec<u32>, CallerLives)> = found.into_iter().map(named).collect();
    sort(&mut all, order, |(name, _, lives)| (lives, name));
    let labels = Labels::new(context.session);
    let row =
        |(_, _, lives): &(String, Vec<u32>, CallerLives)| LifeRow::of(lives, analysis, &labels, is_timed);
    GroupTable::of(&keys, &all, context.limit, |(_, group, _)| group, row)
}
