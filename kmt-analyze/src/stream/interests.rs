//! Events that are needed, and the others that are left out and cost nothing.

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
