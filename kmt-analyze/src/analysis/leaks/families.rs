//! One leak is one finding: objects that are born together, by one task, and stay together.
//!
//! A pipe that is not closed leaves an inode, a dentry, two files, their blobs and the pipe itself.

use super::{Verdict, goes_with_until};
use crate::collect::growth::Survival;

/// What a family may be made of.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'c> {
    /// Its verdict.
    pub verdict: Verdict,
    /// Its course.
    pub course: &'c Survival,
    /// Old bytes: the largest leads.
    pub old_amount: u64,
    /// Steps that can have old ones.
    pub old_steps: usize,
}

impl Candidate<'_> {
    fn leads(&self) -> bool {
        matches!(self.verdict, Verdict::Grows | Verdict::Batches)
    }

    /// What the kernel would take back stays where something that grows holds it.
    fn follows(&self) -> bool {
        self.leads() || matches!(self.verdict, Verdict::Reclaimable | Verdict::WithReclaimable)
    }
}

/// The task that most survivors are of, and how many.
pub fn holder(course: &Survival) -> Option<(i32, u64)> {
    let holders = course.holders.iter().map(|(pid, steps)| (*pid, steps.sum()));
    holders.max_by_key(|&(pid, count)| (count, std::cmp::Reverse(pid)))
}

/// Whether what stays of both was born together: of the task `pid` that holds most of the first, which holds half of the
/// second.
/// What others left there does not matter.
fn belong_together(one: &Candidate<'_>, pid: i32, other: &Candidate<'_>) -> bool {
    let steps = one.old_steps.min(other.old_steps);
    let (Some(a), Some(b)) = (one.course.holders.get(&pid), other.course.holders.get(&pid)) else {
        return false;
    };
    let of_others = other.course.survivors.sum();
    b.sum().saturating_mul(2) >= of_others && goes_with_until(&a.all(), &b.all(), steps)
}

/// At most this number of candidates, the largest, lead a family: each of them is compared with all others.
const LEADERS_MAX: usize = 256;

/// For each candidate the number of the one that leads its family; `None`: it is in none.
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
        let holder = holder(one.course).filter(|_| leaders <= LEADERS_MAX);
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

    fn course(pid: i32, survivors: impl Fn(usize) -> u64) -> Survival {
        let mut course = Survival::default();
        for step in 0..STEPS {
            course.survivors.add(step, survivors(step));
            course.holders.entry(pid).or_default().add(step, survivors(step));
        }
        course
    }

    #[test]
    fn what_stays_together_is_one_finding() {
        let of = |verdict, course, old_amount| Candidate { verdict, course, old_amount, old_steps: STEPS };
        let (files, pipe, inode) =
            (course(7, |s| 2 * (s as u64 % 5)), course(7, |s| s as u64 % 5), course(7, |s| s as u64 % 5));
        let (other_task, other_time) = (course(8, |s| s as u64 % 5), course(7, |s| u64::from(s > 16)));
        // Another task leaves some where the pipes do, too, at its own times.
        let mut shared = course(7, |s| s as u64 % 5);
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
