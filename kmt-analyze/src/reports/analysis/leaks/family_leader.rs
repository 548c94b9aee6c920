//! The call site that leads a family of objects and names it: the one that allocates the thing itself, not its common
//! parts.

use super::kernel_names::{GENERAL, INDICES, THINGS};

/// A call site of a family.
#[derive(Debug, Clone, Copy)]
pub struct FamilySite<'f> {
    pub function: &'f str,
    /// Old survivors.
    pub old: u64,
    /// Allocations in the time of the old survivors.
    pub old_births: u64,
    /// Bytes of old survivors.
    pub old_amount: u64,
}

/// True for a function that allocates nodes of an index.
pub fn is_index(function: &str) -> bool {
    INDICES.iter().any(|start| function.starts_with(start))
}

/// Rank of a call site; the highest one names its family.
fn rank(site: &FamilySite<'_>) -> usize {
    // Without what the compiler adds: `.isra.0`, `.cold`.
    let function = site.function.split('.').next().unwrap_or_default().trim_end_matches("_noprof");
    let thing = THINGS.iter().position(|&thing| thing == function);
    match thing {
        Some(at) => 1 + THINGS.len() - at,
        None => usize::from(!GENERAL.iter().any(|start| function.starts_with(start))),
    }
}

/// A site at which others allocate this many times as much as the family does not name the family.
const OTHERS_MAX: f64 = 20.0;

/// Number of the call site that names the family. Sites of which others use more than their part come after those that only
/// this family uses; of several alike the one with most bytes.
pub fn leading_site(sites: &[(usize, FamilySite<'_>)]) -> Option<usize> {
    let share = |site: &FamilySite<'_>| site.old as f64 / site.old_births.max(1) as f64;
    let best = sites.iter().map(|(_, site)| share(site)).fold(0.0, f64::max);
    let is_own = |site: &FamilySite<'_>| share(site) * OTHERS_MAX >= best;
    let key = |(_, site): &&(usize, FamilySite<'_>)| (is_own(site), rank(site), site.old_amount);
    // The first of equal ones.
    sites.iter().rev().max_by_key(key).map(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(function: &str, old: u64, old_births: u64, old_amount: u64) -> FamilySite<'_> {
        FamilySite { function, old, old_births, old_amount }
    }

    #[test]
    fn the_thing_names_the_family_not_its_parts() {
        let of = |sites: &[FamilySite<'_>]| {
            let sites: Vec<_> = sites.iter().copied().enumerate().collect();
            leading_site(&sites).map(|at| sites[at].1.function.to_owned())
        };
        let file = site("alloc_empty_file", 100, 500, 9_000);
        assert_eq!(of(&[file, site("do_eventfd", 100, 500, 800)]).as_deref(), Some("do_eventfd"));
        assert_eq!(of(&[file, site("my_driver_open", 100, 500, 800)]).as_deref(), Some("my_driver_open"));
        let netns = [site("neigh_parms_alloc", 9, 9, 90_000), site("copy_net_ns", 9, 9, 40_000)];
        assert_eq!(of(&netns).as_deref(), Some("copy_net_ns"));
        // A site at which others allocate most names no family.
        let shared = site("sk_prot_alloc", 100, 30_000, 80_000);
        assert_eq!(of(&[shared, site("my_socket", 100, 500, 800)]).as_deref(), Some("my_socket"));
        assert_eq!(of(&[file]).as_deref(), Some("alloc_empty_file"));
        assert_eq!(of(&[]), None);
    }
}
