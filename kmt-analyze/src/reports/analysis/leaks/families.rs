//! Call sites that grow together.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use super::judged::Judged;
use super::verdict::Verdict;
use crate::collect::growth::STEPS;

/// Call sites that grow together.
pub struct Family<'r> {
    /// Bytes of old survivors of the call sites.
    pub bytes: u64,
    /// Bytes of old survivors of all of them per second, or per 10^9 ticks.
    pub per_second: u64,
    /// Number of the leader: [`Judged::leader`] of the rows.
    pub leader: usize,
    /// Call sites, the leader first.
    pub rows: Vec<&'r Judged<'r>>,
}

/// Length of the first steps of a window.
pub fn until(step: usize, window: u64) -> u64 {
    (window / STEPS as u64).saturating_mul(step as u64)
}

/// Old bytes per second, or per 10^9 ticks, since growth began; of batches from the first to the last.
pub fn per_second(evidence: &Evidence, old_bytes: u64, length: u64) -> u64 {
    if let Some((steps, objects)) = evidence.paced.filter(|_| evidence.verdict == Verdict::Batches) {
        let bytes = u128::from(old_bytes) * u128::from(objects) / u128::from(evidence.old.max(1));
        let time = u128::from(until(steps, length)).max(1);
        return u64::try_from(bytes.saturating_mul(1_000_000_000) / time).unwrap_or(u64::MAX);
    }
    u64::try_from(u128::from(old_bytes) * 1_000_000_000 / old_length(evidence, length)).unwrap_or(u64::MAX)
}

/// Time in which the old survivors were allocated, since growth began; at least 1.
fn old_length(evidence: &Evidence, length: u64) -> u128 {
    let old = length.saturating_sub(evidence.old_age);
    let before = evidence.began.map_or(0, |step| until(step, length));
    u128::from(old.saturating_sub(before)).max(1)
}

/// Bytes that growth at the rate of these old bytes adds in a whole window: a measure of the growth of rows that are
/// judged over different times.
pub fn per_window(evidence: &Evidence, old_bytes: u64, length: u64) -> u64 {
    let time = match evidence.paced.filter(|_| evidence.verdict == Verdict::Batches) {
        Some((steps, objects)) => {
            u128::from(until(steps, length)) * u128::from(evidence.old.max(1)) / u128::from(objects.max(1))
        }
        None => old_length(evidence, length),
    };
    u64::try_from(u128::from(old_bytes) * u128::from(length) / time.max(1)).unwrap_or(u64::MAX)
}

/// True if these rows grew in the same time: they are judged over the same steps, from the same start.
pub fn are_of_one_time<'r>(rows: impl IntoIterator<Item = &'r Judged<'r>>) -> bool {
    let mut times = rows.into_iter().map(|row| {
        let e = &row.evidence;
        let batches = (e.verdict == Verdict::Batches).then_some(e.batches);
        (e.part.from, e.part.to, e.began, batches)
    });
    let first = times.next();
    times.all(|time| Some(time) == first)
}

/// Families, the largest first.
pub fn families<'r>(rows: &'r [Judged<'r>], length: u64) -> Vec<Family<'r>> {
    let mut by_leader: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        if let Some(leader) = row.leader {
            by_leader.entry(leader).or_default().push(number);
        }
    }
    let mut families = Vec::new();
    for (leader, mut members) in by_leader {
        // The rows are sorted, except for the leader.
        members.sort_by_key(|&member| member != leader);
        let rows: Vec<&Judged<'_>> = members.into_iter().filter_map(|member| rows.get(member)).collect();
        let bytes = rows.iter().map(|r| r.evidence.old_amount).fold(0, u64::saturating_add);
        let per_second = rows.iter().map(|r| per_second(&r.evidence, r.evidence.old_amount, length));
        let per_second = per_second.fold(0, u64::saturating_add);
        families.push(Family { bytes, per_second, leader, rows });
    }
    families.sort_by_key(|f| std::cmp::Reverse(f.bytes));
    families
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::growth::SurvivorSums;

    #[test]
    fn a_page_in_four_seconds_is_growth() {
        let evidence = Evidence { old_age: 20_000_000_000, ..Evidence::of(&SurvivorSums::default(), 1, 0) };
        assert_eq!(per_second(&evidence, 24 * 4096, 120_000_000_000), 983);
        assert_eq!(per_window(&evidence, 20 * 4096, 120_000_000_000), 24 * 4096);
    }
}
