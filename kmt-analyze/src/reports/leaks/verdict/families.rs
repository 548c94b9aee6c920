//! One leak is one finding: objects that one task allocates together and does not free.
//!
//! A pipe that is not closed leaves an inode, a dentry, two files, their blobs and the pipe itself.

use super::{Verdict, goes_with_until};
use crate::collect::growth::Survival;

/// Candidate for a family.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'c> {
    /// Its verdict.
    pub verdict: Verdict,
    /// Births and survivors.
    pub survival: &'c Survival,
    /// Bytes of old survivors: the largest member leads.
    pub old_amount: u64,
    /// Steps that can have old survivors.
    pub old_steps: usize,
}

impl Candidate<'_> {
    fn leads(&self) -> bool {
        matches!(self.verdict, Verdict::Grows | Verdict::Batches)
    }

    /// A reclaimable object cannot be reclaimed while a growing object holds it.
    fn follows(&self) -> bool {
        self.leads() || matches!(self.verdict, Verdict::Reclaimable | Verdict::WithReclaimable)
    }
}

/// The task that allocated most survivors, and their number.
pub fn holder(survival: &Survival) -> Option<(i32, u64)> {
    let holders = survival.holders.iter().map(|(pid, steps)| (*pid, steps.sum()));
    holders.max_by_key(|&(pid, count)| (count, std::cmp::Reverse(pid)))
}

/// True if the survivors of both were allocated together by the task `pid`, which holds most of the first and half of the
/// second. Survivors of other tasks do not matter.
fn belong_together(one: &Candidate<'_>, pid: i32, other: &Candidate<'_>) -> bool {
    let steps = one.old_steps.min(other.old_steps);
    let (Some(a), Some(b)) = (one.survival.holders.get(&pid), other.survival.holders.get(&pid)) else {
        return false;
    };
    let of_others = other.survival.survivors.sum();
    b.sum().saturating_mul(2) >= of_others && goes_with_until(&a.all(), &b.all(), steps)
}

/// Largest number of candidates that lead a family, the largest first: each is compared with all others.
const LEADERS_MAX: usize = 256;

/// Number of the leader of each candidate; `None`: in no family.
pub fn families(candidates: &[Candidate<'_>]) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|&at| candidates.get(at).map(|c| std::cmp::Reverse(c.old_amount)));
    let mut leader_of: Vec<Option<usize>> = vec![None; candidates.len()];
    let mut leaders = 0;
    for leader in order {
        let Some(one) = candidates.get(leader).filter(|c| c.leads()) else { continue };
        if leader_of.get(leader).copied().flatten().is_some() {
            continue;
        }
        leaders += 1;
        let holder = holder(one.survival).filter(|_| leaders <= LEADERS_MAX);
        let Some((pid, _)) = holder else {
            if let Some(of) = leader_of.get_mut(leader) {
                *of = Some(leader);
            }
            continue;
        };
        for (number, (other, of)) in candidates.iter().zip(&mut leader_of).enumerate() {
            let belongs = other.follows() && belong_together(one, pid, other);
            if number == leader || of.is_none() && belongs {
                *of = Some(leader);
            }
        }
    }
    leader_of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::growth::STEPS;

    fn survival(pid: i32, survivors: impl Fn(usize) -> u64) -> Survival {
        let mut survival = Survival::default();
        for step in 0..STEPS {
            survival.survivors.add(step, survivors(step));
            survival.holders.entry(pid).or_default().add(step, survivors(step));
        }
        survival
    }

    #[test]
    fn what_stays_together_is_one_finding() {
        let of =
            |verdict, survival, old_amount| Candidate { verdict, survival, old_amount, old_steps: STEPS };
        let (files, pipe, inode) = (
            survival(7, |s| 2 * (s as u64 % 5)),
            survival(7, |s| s as u64 % 5),
            survival(7, |s| s as u64 % 5),
        );
        let (other_task, other_time) = (survival(8, |s| s as u64 % 5), survival(7, |s| u64::from(s > 16)));
        // Another task leaves some at the same call site, at its own times.
        let mut shared = survival(7, |s| s as u64 % 5);
        for step in 0..9 {
            shared.survivors.add(step, 3);
            shared.holders.entry(9).or_default().add(step, 3);
        }
        let all = [
            of(Verdict::Grows, &shared, 10),
            of(Verdict::Grows, &files, 200),
            of(Verdict::Grows, &pipe, 900),
            of(Verdict::Reclaimable, &inode, 5_000),
            of(Verdict::Grows, &other_task, 100),
            of(Verdict::Grows, &other_time, 50),
            of(Verdict::Young, &pipe, 50),
        ];
        assert_eq!(families(&all), [Some(2), Some(2), Some(2), Some(2), Some(4), Some(5), None]);
    }
}
