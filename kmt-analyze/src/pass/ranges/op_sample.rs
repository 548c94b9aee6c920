//! Operations that are kept for thinning.

use std::collections::BTreeMap;

use crate::int_hash::spread;
use crate::ledger::Rules;
use crate::ledger::lives::ADDRESS_BITS;
use crate::stream::op::{Kind, Op};
use crate::stream::{Interner, SharedInterner};

/// Operations in their order, and how they spread over the CPUs.
#[derive(Debug, Default)]
pub struct Streams {
    /// The operations.
    pub ops: Vec<Op>,
    /// Of each operation the index of its CPU in `cpus`.
    pub cpu_of: Vec<u16>,
    /// CPUs.
    pub cpus: Vec<u32>,
}

/// Operations that are kept for thinning: all of a small trace, those of some pages of a large one.
///
/// Nothing passes between pages but what a page event does to its own, so that a part of the pages moves as all do.
#[derive(Debug)]
pub struct OpSample {
    /// What is kept.
    pub streams: Streams,
    /// One in so many pages.
    one_in: u64,
    page_size: u64,
    base: u64,
    cpus: BTreeMap<u32, u16>,
    origins: Vec<u16>,
}

/// Operations to keep at most, roughly: some 100 MiB.
const KEPT_MAX: u64 = 3_000_000;
/// Pages that go together: slabs have up to so many.
const TOGETHER_LOG2: u32 = 3;

impl OpSample {
    /// Of a trace of so many events.
    pub fn new(events: u64, rules: &Rules) -> Self {
        Self {
            streams: Streams::default(),
            one_in: events.div_ceil(KEPT_MAX).max(1),
            page_size: rules.page_size,
            base: rules.direct_map.map_or(0, |m| m.base),
            cpus: BTreeMap::new(),
            origins: Vec::new(),
        }
    }

    /// Looks at operations, in their order.
    pub fn add(&mut self, ops: &[Op], interner: &SharedInterner) {
        let interner = Interner::lock(interner);
        for origin in interner.origins.items().iter().skip(self.origins.len()) {
            let next = self.cpus.len() as u16;
            let cpu = *self.cpus.entry(origin.cpu).or_insert(next);
            if cpu == next {
                self.streams.cpus.push(origin.cpu);
            }
            self.origins.push(cpu);
        }
        drop(interner);
        for op in ops.iter().filter(|op| !matches!(op.code.kind(), Kind::Stack | Kind::SideEvent)) {
            let page = if op.code.is_slab() {
                (op.value & ADDRESS_BITS).wrapping_sub(self.base) / self.page_size.max(1)
            } else {
                op.value
            };
            let group = (page & ADDRESS_BITS) >> TOGETHER_LOG2;
            if self.one_in > 1 && spread(group) % self.one_in != 0 {
                continue;
            }
            self.streams.ops.push(*op);
            self.streams.cpu_of.push(self.origins.get(op.origin as usize).copied().unwrap_or(0));
        }
    }
}
