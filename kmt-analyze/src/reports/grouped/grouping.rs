//! Sums by the values of the keys of `--by`.

use std::collections::HashMap;

use super::keys::GroupKey;
use super::numbered::{GroupPart, Numbered};
use super::table::{GroupRow, GroupTable};
use super::values::Values;
use crate::pass::Analysis;
use crate::reports::common::sorting::sort_rows;

/// Sums of the groups of `--by`.
pub struct Grouping<'r, 'd, T> {
    keys: Numbered<'r, 'd>,
    sums: HashMap<Vec<u32>, T>,
}

/// Sums of one group, before its row is made.
struct NamedSums<T> {
    /// Numbers of its values.
    group: Vec<u32>,
    /// Text that sorts it by name.
    name: String,
    sums: T,
}

impl<'r, 'd, T: Default> Grouping<'r, 'd, T> {
    /// No groups yet.
    pub fn new(by: &[&'static GroupKey], values: &'r Values<'r, 'd>, analysis: &'r Analysis) -> Self {
        Self { keys: Numbered::new(by, values, analysis), sums: HashMap::new() }
    }

    /// Sums of the group of some allocations.
    pub fn of(&mut self, part: GroupPart<'_>) -> &mut T {
        self.sums.entry(self.keys.of(part)).or_default()
    }

    /// Sums of all groups, in any order.
    pub fn sums(&self) -> impl Iterator<Item = &T> {
        self.sums.values()
    }

    /// The groups sorted by these keys, and then by name: the first `limit` as rows.
    pub fn table<K: Copy, R>(
        self,
        order: &[K],
        number: impl Fn(&T, K) -> Option<u128>,
        limit: usize,
        row: impl Fn(&T) -> R,
    ) -> GroupTable<R> {
        let Self { keys, sums } = self;
        let named = |(group, sums): (Vec<u32>, T)| NamedSums { name: keys.order(&group), group, sums };
        let mut all: Vec<NamedSums<T>> = sums.into_iter().map(named).collect();
        sort_rows(&mut all, order, |group, key| number(&group.sums, key), |a, b| a.name.cmp(&b.name));
        let shown = all.iter().take(limit);
        let rows = shown.map(|group| GroupRow { values: keys.values(&group.group), row: row(&group.sums) });
        GroupTable { by: keys.keys().collect(), groups_total: all.len(), groups: rows.collect() }
    }
}
