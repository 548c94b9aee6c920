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

/// Numbers of the shrinkers of each function, in the order in which they appear: addresses are not printed.
#[derive(Debug, Default)]
pub struct ShrinkerNumbers(HashMap<u64, HashMap<Option<u64>, usize>>);

/// Most shrinkers of a function that get a number: a file may name any number of them.
const NUMBERED_MAX: usize = 4_096;

impl ShrinkerNumbers {
    /// Number of a shrinker of a known function, from 1.
    pub fn number(&mut self, stall: Stall) -> Option<usize> {
        let Stall::Shrinker(Some(function), shrinker) = stall else { return None };
        let known = self.0.entry(function).or_default();
        let next = known.len() + 1;
        if next > NUMBERED_MAX {
            return known.get(&shrinker).copied();
        }
        Some(*known.entry(shrinker).or_insert(next))
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
