//! Names of stalls.

use std::collections::HashMap;

use crate::collect::stalls::{Stall, StallSums};
use crate::reports::common::labels::Labels;

/// Names of stalls in the text.
pub struct StallNames<'n, 's, 'd> {
    /// Names of functions and tasks.
    pub labels: &'n Labels<'s, 'd>,
    /// Stalls of the trace.
    pub stalls: &'n StallSums,
    /// Numbers of shrinkers that share a function.
    shrinkers: HashMap<Stall, (usize, usize)>,
}

impl<'n, 's, 'd> StallNames<'n, 's, 'd> {
    /// Names of the stalls of a trace.
    pub fn new(labels: &'n Labels<'s, 'd>, stalls: &'n StallSums) -> Self {
        Self { labels, stalls, shrinkers: stalls.shrinker_numbers() }
    }

    /// Name of a stall in the text.
    pub fn name(&self, stall: Stall) -> String {
        let function = |address| self.labels.function(address);
        match stall {
            // They are numbered, since addresses are not printed.
            Stall::Shrinker(..) => match self.shrinkers.get(&stall) {
                Some((number, of)) if *of > 1 => format!("{} #{number}", name_of(stall, function)),
                _ => name_of(stall, function),
            },
            _ => name_of(stall, function),
        }
    }

    /// Number of a shrinker among those of the same function.
    pub fn shrinker_number(&self, stall: Stall) -> Option<usize> {
        self.shrinkers.get(&stall).map(|(number, _)| *number)
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
