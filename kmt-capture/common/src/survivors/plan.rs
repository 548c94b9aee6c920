//! Where the events of each class have the fields that decide whether a life can be folded.

use kmt_format::kernel::ByteOrder;
use kmt_format::read::LEVEL_FLAGS;
use kmt_format::schema::{EventClass, Meaning, Role};

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Allocates a slab object.
    Alloc,
    /// Frees a slab object.
    Free,
    /// Gives a slab object up, to be freed after a grace period.
    FreeRcu,
    /// Allocates pages.
    PageAlloc,
    /// Frees pages.
    PageFree,
    /// The call stack of an event before it.
    Stack,
    /// Anything else.
    Other,
}

/// A number in a record.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: usize,
    size: usize,
}

/// Offsets of an `rcu_head` are below it (`__is_kvfree_rcu_offset`, include/linux/rcupdate.h).
const RCU_OFFSET_END: u64 = 4096;

/// Fields of the events of a class.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// What its events do.
    pub kind: Kind,
    /// True if its objects are of caches: an allocation and a free of different interfaces are no plain pair.
    pub of_caches: bool,
    /// Address, or frame.
    value: Option<Place>,
    /// Address of the `rcu_head`, from which `value` may be the offset of the object.
    head: Option<Place>,
    order: Option<Place>,
    pid: Option<Place>,
    flags: Option<Place>,
    migratetype: Option<Place>,
    /// Where the fields begin that are not common to all events.
    own_from: usize,
}

impl Plan {
    /// The plan of a class.
    pub fn of(class: &EventClass) -> Self {
        let place = |role: Role| {
            let field = class.fields.get(class.field_with(role)?)?;
            Some(Place { offset: field.offset as usize, size: (field.size as usize).min(8) })
        };
        let kind = match class.meaning {
            meaning if meaning.is_slab_alloc() => Kind::Alloc,
            meaning if meaning.is_slab_free() => Kind::Free,
            Meaning::FREE_RCU => Kind::FreeRcu,
            Meaning::PAGE_ALLOC => Kind::PageAlloc,
            Meaning::PAGE_FREE => Kind::PageFree,
            Meaning::KERNEL_STACK => Kind::Stack,
            _ => Kind::Other,
        };
        let value = match kind {
            Kind::Alloc | Kind::Free => place(Role::PTR),
            Kind::PageAlloc | Kind::PageFree => place(Role::PFN),
            Kind::FreeRcu => place(Role::RCU_OBJECT),
            _ => None,
        };
        let own = class.fields.iter().skip(class.common_count).map(|field| field.offset as usize).min();
        // Events without an address are like any other.
        let has_value =
            value.is_some() || !matches!(kind, Kind::Alloc | Kind::Free | Kind::PageAlloc | Kind::PageFree);
        Self {
            kind: if has_value { kind } else { Kind::Other },
            of_caches: matches!(class.meaning, Meaning::CACHE_ALLOC | Meaning::CACHE_FREE),
            value,
            head: place(Role::RCU_HEAD).filter(|_| kind == Kind::FreeRcu),
            order: place(Role::ORDER),
            pid: place(Role::PID),
            flags: place(Role::FLAGS),
            migratetype: place(Role::MIGRATETYPE),
            own_from: own.unwrap_or(8),
        }
    }

    /// Address, or frame.
    #[inline]
    pub fn value(&self, record: &[u8], order: ByteOrder) -> u64 {
        let value = number(self.value, record, order);
        match self.head {
            Some(head) if value < RCU_OFFSET_END => number(Some(head), record, order).wrapping_sub(value),
            _ => value,
        }
    }

    /// log2 of the number of pages.
    pub fn page_order(&self, record: &[u8], order: ByteOrder) -> u32 {
        number(self.order, record, order).min(31) as u32
    }

    /// True for a request of movable pages, which are no slab's.
    pub fn is_movable(&self, record: &[u8], order: ByteOrder) -> bool {
        number(self.migratetype, record, order) == 1
    }

    /// Task and interrupt level.
    #[inline]
    pub fn task(&self, record: &[u8], order: ByteOrder) -> Task {
        let level = number(self.flags, record, order) & LEVEL_FLAGS;
        Task { pid: number(self.pid, record, order) as u32, level: level as u8 }
    }

    /// The parts of a record that repeat: without the fields of all events, and without the address.
    #[inline]
    pub fn repeating<'r>(&self, record: &'r [u8]) -> [&'r [u8]; 2] {
        let value = self.value.unwrap_or(Place { offset: record.len(), size: 0 });
        let before = record.get(self.own_from..value.offset).unwrap_or_default();
        let after = record.get(value.offset + value.size..).unwrap_or_default();
        [before, after]
    }
}

/// Task and interrupt level of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Task {
    /// Thread id.
    pub pid: u32,
    /// Bits of common_flags, see [`LEVEL_FLAGS`].
    pub level: u8,
}

#[inline]
fn number(place: Option<Place>, record: &[u8], order: ByteOrder) -> u64 {
    place.and_then(|place| order.uint_at(record, place.offset, place.size)).unwrap_or(0)
}
