//! What both forms of the report are made of.

use std::collections::BTreeMap;

use super::Row;
use crate::collect::growth::STEPS;
use crate::reports::common::Context;

/// What grows together.
pub(super) struct Family<'r> {
    pub(super) bytes: u64,
    pub(super) per_second: u64,
    pub(super) rows: Vec<&'r Row<'r>>,
}

/// What is printed.
pub(super) struct LeakView<'v, 's, 'd> {
    pub(super) context: &'v Context<'s, 'd>,
    pub(super) rows: &'v [Row<'v>],
    pub(super) pages: &'v [Row<'v>],
    pub(super) page_callers: &'v [Row<'v>],
    pub(super) slab_pages: Option<u64>,
    pub(super) length: u64,
    pub(super) page_size: u64,
}

impl LeakView<'_, '_, '_> {
    /// Amount a second, or in 10^9 ticks, since it began.
    pub(super) fn per_second(&self, row: &Row<'_>) -> u64 {
        let old = self.length.saturating_sub(row.evidence.old_age);
        let before = row.evidence.began.map_or(0, |step| self.length / STEPS as u64 * step as u64);
        let old_length = u128::from(old.saturating_sub(before)).max(1);
        u64::try_from(u128::from(row.evidence.old_amount) * 1_000_000_000 / old_length).unwrap_or(u64::MAX)
    }

    /// What grows together, the largest first; each with its leader in front.
    pub(super) fn families(&self) -> Vec<Family<'_>> {
        let mut by_leader: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, row) in self.rows.iter().enumerate() {
            if let Some(leader) = row.leader {
                by_leader.entry(leader).or_default().push(number);
            }
        }
        let mut families = Vec::new();
        for (leader, mut members) in by_leader {
            // The rows are sorted already, but for the leader.
            members.sort_by_key(|&member| member != leader);
            let rows: Vec<&Row<'_>> =
                members.into_iter().filter_map(|member| self.rows.get(member)).collect();
            let bytes = rows.iter().map(|r| r.evidence.old_amount).fold(0, u64::saturating_add);
            let per_second = rows.iter().map(|r| self.per_second(r)).fold(0, u64::saturating_add);
            families.push(Family { bytes, per_second, rows });
        }
        families.sort_by_key(|f| std::cmp::Reverse(f.bytes));
        families
    }
}
