//! Stacks of the allocations of live objects, where stacks were recorded.

use std::collections::HashMap;

use kmt_format::schema::Meaning;

use crate::collect::sums::{CallSums, StackSums};
use crate::pass;
use crate::reports::common::labels::Labels;
use crate::reports::common::page_sums::of_users;
use crate::trace::session::Session;

/// Largest number of shown stacks of a call site.
const SHOWN: usize = 3;

/// A stack with its survivors.
#[derive(Debug, Clone)]
pub struct RowStack {
    /// Addresses, the innermost first, without the allocator's.
    pub frames: Vec<u64>,
    /// Live objects.
    pub live: u64,
    /// Bytes of live objects.
    pub bytes_live: u64,
}

/// True if slab allocations may have stacks: looking for them takes time for each allocation.
pub fn may_exist(session: &Session<'_>) -> bool {
    let metadata = session.trace.metadata();
    let has_class = session.trace.schema().classes().any(|(_, c)| c.meaning == Meaning::KERNEL_STACK);
    let conditions = metadata.attachment("event_conditions").unwrap_or_default();
    let conditions = String::from_utf8_lossy(conditions);
    let is_asked = conditions.lines().any(|line| {
        let of_slab = line.starts_with("kmem:kmalloc") || line.starts_with("kmem:kmem_cache_alloc");
        of_slab && line.contains("trigger=stacktrace")
    });
    // A live recording lists all of its triggers.
    has_class && (is_asked || metadata.text("source") != Some("live"))
}

/// Stacks with most survivors, by number of the call site.
pub fn by_caller(
    result: &pass::Analysis,
    labels: &Labels<'_, '_>,
    calls: Option<&CallSums>,
) -> HashMap<u32, Vec<RowStack>> {
    let mut found: HashMap<u32, Vec<(u32, StackSums)>> = HashMap::new();
    for (&stack, &sums) in calls.iter().flat_map(|calls| &calls.stacks).filter(|(_, sums)| sums.live > 0) {
        found.entry(sums.caller.unwrap_or(0)).or_default().push((stack, sums));
    }
    let shown = |mut stacks: Vec<(u32, StackSums)>| {
        stacks.sort_by_key(|&(stack, sums)| (std::cmp::Reverse(sums.live), stack));
        let row = |(stack, sums): &(u32, StackSums)| {
            let addresses = result.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
            let frames = of_users(addresses, |address| labels.symbol(address)).collect();
            RowStack { frames, live: sums.live, bytes_live: sums.bytes_live }
        };
        stacks.iter().take(SHOWN).map(row).collect()
    };
    found.into_iter().map(|(caller, stacks)| (caller, shown(stacks))).collect()
}
