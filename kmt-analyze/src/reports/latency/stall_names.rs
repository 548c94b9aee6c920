//! Names of stalls.

use crate::collect::stalls::{Stall, StallSums};
use crate::reports::common::labels::Labels;

/// Names stalls for people.
pub struct StallNames<'n, 's, 'd> {
    /// Names of functions and tasks.
    pub labels: &'n Labels<'s, 'd>,
    /// Stalls of the trace.
    pub stalls: &'n StallSums,
}

impl StallNames<'_, '_, '_> {
    /// A stall for people.
    pub fn name(&self, stall: Stall) -> String {
        match stall {
            Stall::Direct => "direct reclaim".to_owned(),
            Stall::Memcg => "memory cgroup reclaim".to_owned(),
            Stall::SoftLimit => "memory cgroup reclaim, soft limit".to_owned(),
            Stall::Node => "node reclaim".to_owned(),
            Stall::DirectCompaction => "direct compaction".to_owned(),
            Stall::Compaction => "compaction in the background".to_owned(),
            Stall::Kswapd(Some(node)) => format!("kswapd of node {node} awake"),
            Stall::Kswapd(None) => "kswapd awake".to_owned(),
            Stall::Shrinker(None, _) => "shrinkers, not told apart".to_owned(),
            Stall::Shrinker(Some(function), shrinker) => {
                let name = self.labels.function(function);
                // Several shrinkers may share their functions; their addresses are not for reports.
                let alike = self.alike(function);
                match alike.iter().position(|&s| s == shrinker) {
                    Some(place) if alike.len() > 1 => format!("shrinker {name} #{}", place + 1),
                    _ => format!("shrinker {name}"),
                }
            }
            Stall::Function(function) => format!("function {}", self.labels.function(function)),
        }
    }

    /// Shrinkers of a function, in the order of their addresses.
    fn alike(&self, function: u64) -> Vec<Option<u64>> {
        let of_function = |stall: &Stall| match *stall {
            Stall::Shrinker(f, shrinker) if f == Some(function) => Some(shrinker),
            _ => None,
        };
        let mut out: Vec<Option<u64>> = self.stalls.kinds.keys().filter_map(of_function).collect();
        out.dedup();
        out
    }

    /// Number of a shrinker among those of the same function.
    pub fn shrinker_number(&self, stall: Stall) -> Option<usize> {
        match stall {
            Stall::Shrinker(Some(function), shrinker) => {
                self.alike(function).iter().position(|&s| s == shrinker).map(|place| place + 1)
            }
            _ => None,
        }
    }
}

/// A stall for machines.
pub fn key(stall: Stall) -> &'static str {
    match stall {
        Stall::Direct => "direct_reclaim",
        Stall::Memcg => "memcg_reclaim",
        Stall::SoftLimit => "memcg_softlimit_reclaim",
        Stall::Node => "node_reclaim",
        Stall::DirectCompaction => "direct_compaction",
        Stall::Compaction => "compaction",
        Stall::Kswapd(_) => "kswapd",
        Stall::Shrinker(..) => "shrinker",
        Stall::Function(_) => "function",
    }
}
