//! One operation: the part of an event that the ledger needs.
//!
//! An operation has its code (kind and number of its site), time, address or frame, and the number of its origin. Its
//! layout is that of a life of the ledger, so that an allocation is copied into the table as it is. `decode` makes
//! operations, `merge` orders them, the ledger consumes them.

/// An operation. Its last 16 bytes have the layout of a life of the ledger, which is moved in one piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Op {
    /// Address, page frame number, number of a side event, or the `StackOf` of a stack.
    pub value: u64,
    /// Time in the clock's unit.
    pub time: u64,
    /// Kind, and the number of its site.
    pub code: OpCode,
    /// Number of the CPU, task and level.
    pub origin: u32,
}

/// Kind of an operation, and the number of its site among those of its kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpCode(u32);

/// Kinds of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Allocation of a slab object; number of a [`Site`](super::Site).
    Alloc,
    /// Free of a slab object by size; number of a [`FreeSite`](super::FreeSite).
    Kfree,
    /// Free of a slab object to its cache; number of a [`FreeSite`](super::FreeSite).
    CacheFree,
    /// Allocation of pages; number of a [`PageSite`](super::PageSite).
    PageAlloc,
    /// Free of 2^number pages.
    PageFree,
    /// The call stack of the last allocation of its origin: the value is a `StackOf`.
    Stack,
    /// A side event; number of a [`SideEventKind`](super::SideEventKind), the value is the number of its
    /// [`SideNumbers`](super::SideNumbers) if the kind has fields.
    SideEvent,
    /// kfree_rcu of a slab object, to be freed after a grace period; number of a [`FreeSite`](super::FreeSite).
    FreeRcu,
    /// Not relevant to the ledger.
    Other,
}

const KIND_SHIFT: u32 = 28;

impl OpCode {
    /// Not relevant to the ledger: left out of the stream.
    pub const OTHER: Self = Self(14 << KIND_SHIFT);
    /// Not resolved yet.
    pub const UNKNOWN: Self = Self(15 << KIND_SHIFT);
    /// Must be resolved for each event.
    pub const BY_EVENT: Self = Self(15 << KIND_SHIFT | 1);
    /// Upper bound of numbers.
    pub const NUMBERS: u32 = 1 << KIND_SHIFT;

    /// Code of that kind and number. A number that does not fit becomes [`OpCode::OTHER`]: a file would need 250
    /// million distinct sites.
    pub fn new(kind: Kind, number: u32) -> Self {
        if number < Self::NUMBERS { Self((kind as u32) << KIND_SHIFT | number) } else { Self::OTHER }
    }

    /// The kind.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.0 >> KIND_SHIFT {
            0 => Kind::Alloc,
            1 => Kind::Kfree,
            2 => Kind::CacheFree,
            3 => Kind::PageAlloc,
            4 => Kind::PageFree,
            5 => Kind::Stack,
            6 => Kind::SideEvent,
            7 => Kind::FreeRcu,
            _ => Kind::Other,
        }
    }

    /// The number.
    #[inline]
    pub fn number(self) -> u32 {
        self.0 & (Self::NUMBERS - 1)
    }

    /// Kind and number as one; the number alone for an allocation of a slab object.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// True for an allocation or a free of a slab object.
    #[inline]
    pub fn is_slab(self) -> bool {
        self.0 < (Kind::PageAlloc as u32) << KIND_SHIFT
    }

    /// True for an allocation or a free of pages.
    #[inline]
    pub fn is_page(self) -> bool {
        (Kind::PageAlloc as u32..Kind::Stack as u32).contains(&(self.0 >> KIND_SHIFT))
    }

    /// True for a free of a slab object; valid for these and allocations only.
    #[inline]
    pub fn is_slab_free(self) -> bool {
        self.0 >= (Kind::Kfree as u32) << KIND_SHIFT
    }

    /// True for a free to a cache; valid for frees only.
    #[inline]
    pub fn is_cache_free(self) -> bool {
        self.0 >= (Kind::CacheFree as u32) << KIND_SHIFT
    }

    /// True for the three codes without a kind.
    #[inline]
    pub fn is_mark(self) -> bool {
        self.0 >= Self::OTHER.0
    }

    /// True if the event must be decoded to find the code.
    #[inline]
    pub fn needs_event(self) -> bool {
        self.0 >= Self::UNKNOWN.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_numbers_come_back() {
        let kinds = [
            Kind::Alloc,
            Kind::Kfree,
            Kind::CacheFree,
            Kind::PageAlloc,
            Kind::PageFree,
            Kind::Stack,
            Kind::SideEvent,
            Kind::FreeRcu,
        ];
        for kind in kinds {
            let code = OpCode::new(kind, 77);
            assert_eq!((code.kind(), code.number(), code.is_mark()), (kind, 77, false));
            assert_eq!(code.is_slab(), matches!(kind, Kind::Alloc | Kind::Kfree | Kind::CacheFree));
        }
        for mark in [OpCode::OTHER, OpCode::UNKNOWN, OpCode::BY_EVENT, OpCode::new(Kind::Alloc, u32::MAX)] {
            assert!(mark.is_mark());
            assert_eq!(mark.kind(), Kind::Other);
        }
        assert!(
            !OpCode::OTHER.needs_event() && OpCode::UNKNOWN.needs_event() && OpCode::BY_EVENT.needs_event()
        );
    }
}
