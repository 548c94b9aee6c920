//! Fields of an event class by role, looked up once a class, and the events that a pass needs.
//!
//! Classes that no collector, condition or ledger rule needs are left out before their events are decoded; they cost nothing.

use kmt_format::read::{Event, Schema};
use kmt_format::schema::{EventClass, Meaning, Place, Role, Transform};

use super::side_events::SideEventPlan;
use crate::trace::unknown::is_without_address;

/// Field indices of one class.
#[derive(Debug, Clone, Default)]
pub struct DecodePlan {
    /// Meaning of the class.
    pub meaning: Option<Meaning>,
    /// Fields of the class that a side event needs.
    pub side_event: Option<SideEventPlan>,
    fields: [Option<u8>; ROLES.len()],
}

const ROLES: [Role; 16] = [
    Role::PTR,
    Role::CALL_SITE,
    Role::BYTES_REQ,
    Role::BYTES_ALLOC,
    Role::GFP_FLAGS,
    Role::NODE,
    Role::ACCOUNTED,
    Role::CACHE_NAME,
    Role::PFN,
    Role::ORDER,
    Role::MIGRATETYPE,
    Role::PID,
    Role::FLAGS,
    Role::STACK,
    Role::RCU_HEAD,
    Role::RCU_OBJECT,
];

/// Offsets of an `rcu_head` are below this (`__is_kvfree_rcu_offset()`, include/linux/rcupdate.h of 5.9 and later).
const RCU_OFFSET_END: u64 = 4096;

impl DecodePlan {
    fn of(class: &EventClass) -> Self {
        let fields = ROLES.map(|role| class.field_with(role).and_then(|f| u8::try_from(f).ok()));
        let meaning = if is_without_address(class) { Meaning::OTHER } else { class.meaning };
        Self { meaning: Some(meaning), side_event: SideEventPlan::of(class), fields }
    }

    /// Plans of all classes, by class index.
    pub fn all(schema: &Schema) -> Vec<Self> {
        (0..schema.class_count()).map(|i| schema.class(i).map(Self::of).unwrap_or_default()).collect()
    }

    /// Index of the field with that role.
    pub fn field(&self, role: Role) -> Option<usize> {
        let index = ROLES.iter().position(|&r| r == role)?;
        self.fields.get(index).copied().flatten().map(usize::from)
    }

    /// Number in the field with that role.
    pub fn uint(&self, event: &Event<'_>, role: Role) -> Option<u64> {
        event.uint(self.field(role)?)
    }

    /// The object passed to kfree_rcu: in older kernels the address of its `rcu_head` minus the offset.
    pub fn rcu_object(&self, event: &Event<'_>) -> Option<u64> {
        let object = self.uint(event, Role::RCU_OBJECT)?;
        let is_offset = object < RCU_OFFSET_END;
        if is_offset { Some(self.uint(event, Role::RCU_HEAD)?.wrapping_sub(object)) } else { Some(object) }
    }

    /// Text in the field with that role.
    pub fn text<'e>(&self, event: &'e Event<'_>, role: Role) -> Option<&'e [u8]> {
        event.text(self.field(role)?)
    }

    /// True if the field with that role is the unmodified value word.
    pub fn is_value(&self, schema: &Schema, shape: usize, role: Role, long_size: usize) -> bool {
        let Some(shape) = schema.shape(shape).filter(|s| s.payload_len == 0) else { return false };
        let slot = self.field(role).and_then(|f| shape.slots.get(f));
        slot.is_some_and(|s| {
            let is_word = s.place == Place::Value && s.offset == 0 && usize::from(s.stored) == long_size;
            is_word && s.transform == Transform::None
        })
    }
}

bitflags::bitflags! {
    /// Events of the ledger that a receiver needs; the methods are those of [`Receiver`](crate::ledger::Receiver).
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Interests: u16 {
        /// Each life when it is added up: `closed`.
        const LIVES = 1;
        /// Each life, if `freed_plain` and `implied_free_plain` are enough for a plain one: the ledger adds those up
        /// faster.
        const PLAIN_LIVES = 1 << 1;
        /// Births and ends at once: `changed`.
        const CHANGES = 1 << 2;
        /// The first slab allocation of a task after each page allocation or side event of it, before the ledger enters it:
        /// `slab_alloc`.
        const SLAB_ALLOCS = 1 << 3;
        /// Lives have the number of their stack. No effect if the trace has no stacks.
        const SLAB_STACKS = 1 << 4;
        /// Frees without a life: `unmatched`, `freed_unknown`.
        const UNMATCHED = 1 << 5;
        /// Page events as they occur: `page_alloc`, `page_free`.
        const PAGES = 1 << 6;
        /// Frames when they are added up, and failed allocations: `closed_frames`, `page_failed`.
        const FRAMES = 1 << 7;
        /// Live frames with slab objects are marked.
        const SLAB_FRAMES = 1 << 8;
        /// Frames have the number of their stack. No effect if the trace has no stacks.
        const PAGE_STACKS = 1 << 9;
        /// Other events of the page allocator: `side_event`.
        const PAGE_SIDE_EVENTS = 1 << 10;
        /// Reclaim, compaction, function graphs: `side_event`.
        const STALLS = 1 << 11;
        /// Starts and exits of tasks: `side_event`.
        const TASKS = 1 << 12;
        /// vmalloc areas and percpu allocations when they are added up: `closed_area`, `area_failed`, `area_freed_unknown`.
        const AREAS = 1 << 13;
        /// Areas have the number of their stack. No effect if the trace has no stacks.
        const AREA_STACKS = 1 << 14;

        /// Those for which `closed` is called.
        const ANY_LIVES = Self::LIVES.bits() | Self::PLAIN_LIVES.bits();
        /// Those for which `side_event` is called.
        const ANY_SIDE_EVENTS = Self::PAGE_SIDE_EVENTS.bits() | Self::STALLS.bits() | Self::TASKS.bits();
        /// Those that only a trace with stacks can have.
        const STACKS = Self::SLAB_STACKS.bits() | Self::PAGE_STACKS.bits() | Self::AREA_STACKS.bits();
    }
}
