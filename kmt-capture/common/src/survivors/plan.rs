//! Where the events of each class have the fields that decide whether a life can be folded.

use kmt_format::kernel::{ByteOrder, FieldKind};
use kmt_format::read::LEVEL_FLAGS;
use kmt_format::schema::{EventClass, Meaning, Role};
use kmt_format::write::Writer;

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

/// A number in a record; without one its size is 0.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    offset: u16,
    size: u8,
}

impl Place {
    #[inline]
    fn number(self, record: &[u8], order: ByteOrder) -> u64 {
        let start = usize::from(self.offset);
        record.get(start..start + usize::from(self.size)).map_or(0, |bytes| order.uint(bytes))
    }
}

/// Offsets of an `rcu_head` are below it (`__is_kvfree_rcu_offset`, include/linux/rcupdate.h).
const RCU_OFFSET_END: u64 = 4096;

/// Runs of fields of one class at most. Classes of allocations and frees have one or two.
const RUNS_MAX: usize = 4;

/// The runs of fields of a class that are not common to all events, without its address. Where there are too many, the last
/// reaches to the last field.
fn runs(class: &EventClass, value: Place) -> [(u16, u16); RUNS_MAX] {
    let own = class.fields.iter().skip(class.common_count);
    let mut fields: Vec<(usize, usize)> =
        own.map(|field| (field.offset as usize, field.size as usize)).collect();
    fields.retain(|&(offset, _)| value.size == 0 || usize::from(value.offset) != offset);
    fields.sort_unstable();
    let mut out = [(0u16, 0u16); RUNS_MAX];
    let mut used = 0usize;
    for (offset, size) in fields {
        let last = used.checked_sub(1).and_then(|last| out.get_mut(last));
        match last {
            Some(run) if usize::from(run.0) + usize::from(run.1) == offset || used == RUNS_MAX => {
                run.1 = (offset + size).saturating_sub(run.0.into()) as u16;
            }
            _ => {
                if let Some(run) = out.get_mut(used) {
                    *run = (offset as u16, size as u16);
                }
                used += 1;
            }
        }
    }
    out
}

/// Offsets of the locators of the first two texts of a class.
fn texts(class: &EventClass) -> [u16; 2] {
    let mut out = [0; 2];
    let locators = class.fields.iter().filter(|field| field.kind == FieldKind::DataLoc);
    out.iter_mut().zip(locators).for_each(|(at, field)| *at = field.offset as u16);
    out
}

/// Fields of the events of a class.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// What its events do.
    pub kind: Kind,
    /// True if its objects are of caches: an allocation and a free of different interfaces are no plain pair.
    pub of_caches: bool,
    /// Address, or frame.
    value: Place,
    /// Address of the `rcu_head`, from which `value` may be the offset of the object.
    head: Place,
    order: Place,
    pid: Place,
    flags: Place,
    migratetype: Place,
    /// Offsets and lengths of the runs of fields that repeat; unused ones are empty.
    fixed: [(u16, u16); RUNS_MAX],
    /// Offsets of the locators of texts, which repeat too; 0: none.
    texts: [u16; 2],
}

impl Plan {
    /// The plan of a class.
    pub fn of(class: &EventClass) -> Self {
        let place = |role: Role| {
            let field = class.fields.get(class.field_with(role)?)?;
            Some(Place { offset: field.offset.try_into().ok()?, size: field.size.min(8) as u8 })
        };
        let place = |role: Role| place(role).unwrap_or_default();
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
            _ => Place::default(),
        };
        // Events without an address are like any other.
        let has_value =
            value.size > 0 || !matches!(kind, Kind::Alloc | Kind::Free | Kind::PageAlloc | Kind::PageFree);
        Self {
            kind: if has_value { kind } else { Kind::Other },
            of_caches: matches!(class.meaning, Meaning::CACHE_ALLOC | Meaning::CACHE_FREE),
            value,
            head: if kind == Kind::FreeRcu { place(Role::RCU_HEAD) } else { Place::default() },
            order: place(Role::ORDER),
            pid: place(Role::PID),
            flags: place(Role::FLAGS),
            migratetype: place(Role::MIGRATETYPE),
            fixed: runs(class, value),
            texts: texts(class),
        }
    }

    /// Address, or frame.
    #[inline]
    pub fn value(&self, record: &[u8], order: ByteOrder) -> u64 {
        let value = self.value.number(record, order);
        if self.head.size > 0 && value < RCU_OFFSET_END {
            return self.head.number(record, order).wrapping_sub(value);
        }
        value
    }

    /// log2 of the number of pages.
    #[inline]
    pub fn page_order(&self, record: &[u8], order: ByteOrder) -> u8 {
        self.order.number(record, order).min(31) as u8
    }

    /// True for a request of movable pages, which are no slab's.
    pub fn is_movable(&self, record: &[u8], order: ByteOrder) -> bool {
        self.migratetype.number(record, order) == 1
    }

    /// Task and interrupt level.
    #[inline]
    pub fn task(&self, record: &[u8], order: ByteOrder) -> Task {
        let level = self.flags.number(record, order) & LEVEL_FLAGS;
        Task { pid: self.pid.number(record, order) as u32, level: level as u8 }
    }

    /// The parts of a record that repeat: the fields that are not common to all events, without the address. What is between
    /// fields is left over from other events.
    #[inline]
    pub fn repeating<'r>(
        &self,
        record: &'r [u8],
        order: ByteOrder,
    ) -> impl Iterator<Item = &'r [u8]> + use<'r> {
        let (fixed, texts) = (self.fixed, self.texts);
        let part =
            |from: usize, len: usize| record.get(from..(from + len).min(record.len())).unwrap_or_default();
        let fixed = fixed.into_iter().map(move |(from, len)| part(from.into(), len.into()));
        let texts = texts.into_iter().filter(|&at| at > 0).map(move |at| text(record, at, order));
        fixed.chain(texts)
    }

    /// True only if the parts of two records that repeat are the same. Of records that end early it may be false all the same.
    #[inline]
    pub fn repeats(&self, record: &[u8], before: &[u8], order: ByteOrder) -> bool {
        let is_same = |&(from, len): &(u16, u16)| {
            let part = usize::from(from)..usize::from(from) + usize::from(len);
            record.get(part.clone()).is_some_and(|bytes| before.get(part) == Some(bytes))
        };
        let has_same_text = |&at: &u16| text(record, at, order) == text(before, at, order);
        self.fixed.iter().filter(|run| run.1 > 0).all(is_same)
            && self.texts.iter().filter(|&&at| at > 0).all(has_same_text)
    }

    /// The id of an event, and the begin of what repeats: events of which it differs do not repeat each other.
    #[inline]
    pub fn first_word(&self, record: &[u8], order: ByteOrder) -> u64 {
        let [(from, len), ..] = self.fixed;
        let start = usize::from(from);
        let word = record.get(start..start + usize::from(len.min(8))).map_or(0, |bytes| order.uint(bytes));
        word ^ order.uint_at(record, 0, 2).unwrap_or(0) << 48
    }
}

/// The text of a record whose locator is at `at`.
#[inline]
fn text(record: &[u8], at: u16, order: ByteOrder) -> &[u8] {
    let locator = order.uint_at(record, at.into(), 4).unwrap_or(0) as usize;
    let (from, len) = (locator & 0xffff, locator >> 16);
    record.get(from..(from + len).min(record.len())).unwrap_or_default()
}

/// The plans of the classes that had events, by id.
#[derive(Debug, Default)]
pub struct Plans(Vec<Option<Plan>>);

impl Plans {
    /// The plan of an event; `None` if its id has no format.
    #[inline]
    pub fn of(&mut self, record: &[u8], order: ByteOrder, writer: &Writer) -> Option<Plan> {
        if let Some(plan) = self.known(record, order) {
            return Some(*plan);
        }
        let id = event_id(record, order)?;
        let plan = Plan::of(writer.class_of(id)?);
        let at = usize::from(id);
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        if let Some(place) = self.0.get_mut(at) {
            *place = Some(plan);
        }
        Some(plan)
    }

    /// The plan of an event whose class had one before.
    #[inline]
    pub fn known(&self, record: &[u8], order: ByteOrder) -> Option<&Plan> {
        self.0.get(usize::from(event_id(record, order)?))?.as_ref()
    }
}

#[inline]
fn event_id(record: &[u8], order: ByteOrder) -> Option<u16> {
    order.uint_at(record, 0, 2).map(|id| id as u16)
}

/// Task and interrupt level of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Task {
    /// Thread id.
    pub pid: u32,
    /// Bits of common_flags, see [`LEVEL_FLAGS`].
    pub level: u8,
}
