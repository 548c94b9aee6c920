//! Large allocations of kmalloc that the kernel reports twice.
//!
//! From 6.10 on (`__do_kmalloc_node` and `__kmalloc_large_node_noprof`, mm/slub.c of Linux 6.12) both functions log the event. The
//! rule is that of the reports of kmt-analyze (R4 in its ledger), so that sums of own programs are equal to theirs.

use std::collections::BTreeMap;

use super::{Event, Trace};
use crate::schema::{Meaning, Role};

/// Most allocations that are remembered at a time: each for one millisecond.
const WAITING_MAX: usize = 4_096;
/// Bits of an address that tell objects apart: the top byte can be a tag (KASAN of arm64).
const ADDRESS_BITS: u64 = (1 << 56) - 1;
/// Second arguments of `kvfree_call_rcu` below this are offsets of an `rcu_head`: see [`Role::RCU_OBJECT`].
const RCU_OFFSET_END: u64 = 4_096;

/// Finds second events of one kmalloc.
///
/// Kernels 6.10 and later report a kmalloc of more than two pages in an inner and in an outer function. The events have the same
/// address, sizes, CPU and task, and are less than a millisecond apart, without a free between them. The outer event is the
/// second one, and has the call site of the caller: two events of one call site are two allocations, whose free is not in the
/// file. The allocation counts once, at the second event.
///
/// `T` is the caller's own data on the event: what has to be taken back if the event is followed by a second one.
///
/// ```
/// use std::collections::BTreeMap;
/// use kmt_format::read::{DuplicateKmallocs, Trace};
/// use kmt_format::schema::Role;
/// # let file = kmt_format::example()?;
/// let trace = Trace::open(&file)?;
/// let mut duplicates = DuplicateKmallocs::new(&trace);
/// let mut bytes: BTreeMap<u64, u64> = BTreeMap::new();
/// for event in trace.events()? {
///     // All events: frees, too.
///     let earlier = duplicates.see(&event, event.uint_with(Role::CALL_SITE)).flatten();
///     if !event.meaning().is_slab_alloc() {
///         continue;
///     }
///     let size = event.field(Role::BYTES_ALLOC)?.as_u64()?;
///     if let Some(earlier) = earlier {
///         *bytes.entry(earlier).or_default() -= size;
///     }
///     *bytes.entry(event.field(Role::CALL_SITE)?.as_u64()?).or_default() += size;
/// }
/// # assert_eq!(bytes.values().sum::<u64>(), 224);
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug)]
pub struct DuplicateKmallocs<T> {
    /// Largest allocation that is reported once: two pages.
    small_max: u64,
    /// Longest time between both events, in the clock's unit.
    apart_max: u64,
    /// Large allocations that may be reported again, by address.
    waiting: BTreeMap<u64, Waiting<T>>,
}

#[derive(Debug)]
struct Waiting<T> {
    time: u64,
    call_site: Option<u64>,
    call: Call,
    of: T,
}

/// What is equal in both events, besides the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    cpu: u32,
    pid: i32,
    bytes_req: u64,
    bytes_alloc: u64,
}

impl<T> DuplicateKmallocs<T> {
    /// Takes the page size and the clock of the trace. If these are unknown: 4 KiB and nanoseconds.
    pub fn new(trace: &Trace<'_>) -> Self {
        let page_size = trace.header().page_size.filter(|size| size.is_power_of_two()).unwrap_or(4_096);
        let clock = trace.metadata().clock.as_ref();
        Self {
            small_max: page_size.saturating_mul(2),
            apart_max: clock.map_or(1_000_000, |clock| clock.millisecond().0),
            waiting: BTreeMap::new(),
        }
    }

    /// Looks at an event; all events have to come, in the kernel's order. If it is a second event, this returns what was given
    /// with the one before.
    ///
    /// The second event can be followed by a third one. A free ends the wait, and so does another allocation at the address. A
    /// loss does not, as in the reports of kmt-analyze.
    pub fn see(&mut self, event: &Event<'_>, of: T) -> Option<T> {
        let meaning = event.meaning();
        if meaning == Meaning::KMALLOC {
            let bytes_alloc = event.uint_with(Role::BYTES_ALLOC).unwrap_or(0);
            if bytes_alloc > self.small_max {
                return self.see_large(event, bytes_alloc, of);
            }
        }
        if !self.waiting.is_empty() {
            if let Some(address) = object(event, meaning) {
                self.waiting.remove(&(address & ADDRESS_BITS));
            }
        }
        None
    }

    fn see_large(&mut self, event: &Event<'_>, bytes_alloc: u64, of: T) -> Option<T> {
        let address = event.uint_with(Role::PTR)? & ADDRESS_BITS;
        if address == 0 {
            return None;
        }
        let bytes_req = event.uint_with(Role::BYTES_REQ).unwrap_or(0);
        let call = Call { cpu: event.cpu(), pid: event.pid(), bytes_req, bytes_alloc };
        let time = event.time();
        self.make_room(time);
        let call_site = event.uint_with(Role::CALL_SITE);
        let before = self.waiting.insert(address, Waiting { time, call_site, call, of })?;
        let is_outer = before.call_site != call_site;
        let is_second = is_outer && before.call == call && self.is_near(before.time, time);
        is_second.then_some(before.of)
    }

    fn is_near(&self, before: u64, now: u64) -> bool {
        now.saturating_sub(before) <= self.apart_max
    }

    /// Forgets what waited for too long. If more than half is left, forgets all of it: the cost of an event has a bound.
    fn make_room(&mut self, now: u64) {
        if self.waiting.len() < WAITING_MAX {
            return;
        }
        let apart_max = self.apart_max;
        self.waiting.retain(|_, one| now.saturating_sub(one.time) <= apart_max);
        if self.waiting.len() > WAITING_MAX / 2 {
            self.waiting.clear();
        }
    }
}

/// Address of the object that the event allocates, frees, or hands over to be freed.
fn object(event: &Event<'_>, meaning: Meaning) -> Option<u64> {
    if meaning.is_slab_alloc() || meaning.is_slab_free() {
        return event.uint_with(Role::PTR);
    }
    if meaning != Meaning::FREE_RCU {
        return None;
    }
    let object = event.uint_with(Role::RCU_OBJECT)?;
    let is_offset = object < RCU_OFFSET_END;
    if is_offset { Some(event.uint_with(Role::RCU_HEAD)?.wrapping_sub(object)) } else { Some(object) }
}
