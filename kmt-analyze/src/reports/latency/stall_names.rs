//! Names of stalls.

use crate::collect::stalls::{Stall, StallSums};
use crate::reports::common::labels::Labels;

/// Names of stalls in the text.
pub struct StallNames<'n, 's, 'd> {
    /// Names of functions and tasks.
    pub labels: &'n Labels<'s, 'd>,
    /// Stalls of the trace.
    pub stalls: &'n StallSums,
}

impl StallNames<'_, '_, '_> {
    /// Name of a stall in the text.
    pub fn name(&self, stall: Stall) -> String {
        let function = |address| self.labels.function(address);
        match stall {
            Stall::Shrinker(Some(of), shrinker) => {
                // Several shrinkers may share their functions; they are numbered, since addresses are not printed.
                let alike = self.alike(of);
                let number = alike.iter().position(|&s| s == shrinker).filter(|_| alike.len() > 1);
                let name = name_of(stall, function);
                number.map_or(name.clone(), |place| format!("{name} #{}", place + 1))
            }
            _ => name_of(stall, function),
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

/// Name of a stall in the text; `function` names the function at an address. Shrinkers of one function are alike.
pub fn name_of(stall: Stall, function: impl Fn(u64) -> String) -> String {
    match stall {
        Stall::Direct => "direct reclaim".to_owned(),
        Stall::Memcg => "memory cgroup reclaim".to_owned(),
        Stall::SoftLimit => "memory cgroup reclaim, soft limit".to_owned(),
        Stall::Node => "node reclaim".to_owned(),
        Stall::DirectCompaction => "direct compaction".to_owned(),
        Stall::Compaction => "compaction in the background".to_owned(),
        Stall::Kswapd(Some(node)) => format!("kswapd of node {node} awake"),
        Stall::Kswapd(None) => "kswapd awake".to_owned(),
        Stall::Shrinker(None, _) => "shrinkers, function unknown".to_owned(),
        Stall::Shrinker(Some(address), _) => format!("shrinker {}", function(address)),
        Stall::Function(address) => format!("function {}", function(address)),
    }
}

/// Name of a stall in JSON.
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
