//! Sample of operations for thinning.

use std::collections::BTreeMap;

use crate::int_hash::spread;
use crate::ledger::Rules;
use crate::ledger::lives::ADDRESS_BITS;
use crate::stream::NewItems;
use crate::stream::op::{Kind, Op};

/// Operations in their order, with their CPUs.
#[derive(Debug, Default)]
pub struct Streams {
    /// The operations.
    pub ops: Vec<Op>,
    /// Index in `cpus` of the CPU of each operation.
    pub cpu_of: Vec<u16>,
    pub cpus: Vec<u32>,
}

/// Operations for thinning: all of a small trace, those of some pages of a large one.
///
/// Pages are independent of each other except for page events on the same page, so a part of the pages behaves as all
/// do.
#[derive(Debug)]
pub struct OpSample {
    /// The sample.
    pub streams: Streams,
    /// One in this number of pages is in the sample.
    one_in: u64,
    page_shift: u32,
    base: u64,
    /// Operations after this time are not in the sample: only some passes read them.
    last: u64,
    /// Index in `streams.cpus`.
    cpus: BTreeMap<u32, u16>,
    /// CPU of each origin, and its index in `streams.cpus` once it has an operation.
    origins: Vec<(u32, Option<u16>)>,
}

/// Approximate limit of the sample: about 100 MiB.
const KEPT_MAX: u64 = 3_000_000;
/// log2 of the pages that are sampled together: slabs have up to this number.
const TOGETHER_LOG2: u32 = 3;

impl OpSample {
    /// A sample of a trace with this number of events until the last that every pass reads.
    pub fn new(events: u64, rules: &Rules) -> Self {
        Self {
            streams: Streams::default(),
            one_in: events.div_ceil(KEPT_MAX).max(1),
            page_shift: rules.page_size.trailing_zeros().min(63),
            base: rules.direct_map.map_or(0, |m| m.base),
            last: rules.last_read(),
            cpus: BTreeMap::new(),
            origins: Vec::new(),
        }
    }

    /// Adds operations, in their order, and items that they number first.
    pub fn add(&mut self, ops: &[Op], new_items: &NewItems) {
        self.origins.extend(new_items.origins.iter().map(|(origin, _)| (origin.cpu, None)));
        let is_balanced = |op: &&Op| !matches!(op.code.kind(), Kind::Stack | Kind::SideEvent);
        let last = self.last;
        for op in ops.iter().filter(is_balanced).filter(|op| op.time <= last) {
            let page = if op.code.is_slab() {
                (op.value & ADDRESS_BITS).wrapping_sub(self.base) >> self.page_shift
            } else {
                op.value
            };
            let group = (page & ADDRESS_BITS) >> TOGETHER_LOG2;
            if self.one_in > 1 && spread(group) % self.one_in != 0 {
                continue;
            }
            let Some(&(number, index)) = self.origins.get(op.origin as usize) else { continue };
            let cpu = index.unwrap_or_else(|| self.index_of(op.origin as usize, number));
            self.streams.ops.push(*op);
            self.streams.cpu_of.push(cpu);
        }
    }

    /// Index of the CPU of an origin, by its first operation: events that only some passes read number none.
    fn index_of(&mut self, origin: usize, cpu: u32) -> u16 {
        let next = self.cpus.len() as u16;
        let index = *self.cpus.entry(cpu).or_insert(next);
        if index == next {
            self.streams.cpus.push(cpu);
        }
        if let Some(known) = self.origins.get_mut(origin) {
            known.1 = Some(index);
        }
        index
    }
}
