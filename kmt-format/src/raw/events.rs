//! The body of an event chunk. Spec section "EVNT".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U16, U32, U64, Unaligned};

/// Head of an event chunk. Offsets count from the start of the body.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct EventsHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// [`loss_flags`].
    pub loss_flags: U32<O>,
    /// Events lost just before the first event of this chunk, where they were counted.
    pub lost_events: U64<O>,
    /// Time of the first event, in the clock's unit; time offsets count from it.
    pub t_base: U64<O>,
    /// Time of the last event.
    pub t_last: U64<O>,
    /// Number of events of this CPU in the chunks before this one.
    pub first_event: U64<O>,
    /// Number of records.
    pub record_count: U32<O>,
    /// Number of descriptors.
    pub descriptor_count: U32<O>,
    /// Number of contexts.
    pub context_count: U32<O>,
    /// Number of epochs.
    pub epoch_count: U32<O>,
    /// Offset of the epochs.
    pub epochs_offset: U32<O>,
    /// Offset of the table of descriptor offsets.
    pub descriptors_offset: U32<O>,
    /// Offset of the contexts.
    pub contexts_offset: U32<O>,
    /// Offset of the records.
    pub records_offset: U32<O>,
    /// Offset of the heap.
    pub heap_offset: U32<O>,
    /// Length of the heap in bytes.
    pub heap_len: U32<O>,
    /// Bytes from one record to the next: 16, or 12 where the target's long has 4 bytes.
    pub record_stride: U16<O>,
    /// Bytes from one context to the next.
    pub context_stride: U16<O>,
    /// Written as 0, ignored by readers.
    pub reserved: U32<O>,
    /// Bit *n* is set if the chunk may hold events of a class whose number modulo 64 is *n*.
    pub classes: U64<O>,
}

const _: () = assert!(size_of::<EventsHead<zerocopy::LE>>() == 96);

/// Bits of the `loss_flags` of an event chunk's head. None set: nothing was lost here, as far as is known.
pub mod loss_flags {
    /// `lost_events` events were lost, as the kernel counted them.
    pub const COUNTED: u32 = 1;
    /// At least one more event was lost, and the kernel did not count.
    pub const UNCOUNTED: u32 = 2;
    /// Part of the input was damaged here and could not be decoded.
    pub const DAMAGED_INPUT: u32 = 4;
    /// Lost events were overwritten because the buffer was meant to keep the newest events only: the recording
    /// begins here.
    pub const OVERWRITTEN: u32 = 8;
}

/// From record `first_record` on, the upper half of the time offset is `upper`.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct Epoch<O: ByteOrder> {
    /// Index of the first record of the epoch.
    pub first_record: U32<O>,
    /// Upper 32 bits of the time offset.
    pub upper: U32<O>,
}

/// An event of a target whose long has 8 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct Record64<O: ByteOrder> {
    /// Low 32 bits of the time offset from `t_base`.
    pub time_offset: U32<O>,
    /// Index of the descriptor.
    pub descriptor: U16<O>,
    /// Index of the context.
    pub context: U16<O>,
    /// The value word.
    pub value: U64<O>,
}

/// An event of a target whose long has 4 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct Record32<O: ByteOrder> {
    /// Low 32 bits of the time offset from `t_base`.
    pub time_offset: U32<O>,
    /// Index of the descriptor.
    pub descriptor: U16<O>,
    /// Index of the context.
    pub context: U16<O>,
    /// The value word.
    pub value: U32<O>,
}

const _: () = assert!(size_of::<Record64<zerocopy::LE>>() == 16);
const _: () = assert!(size_of::<Record32<zerocopy::LE>>() == 12);

/// Head of a chunk of sub-buffers; they follow, each `sub_buffer_len` bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SubBuffersHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// [`loss_flags`].
    pub loss_flags: U32<O>,
    /// Events lost just before the first event of this chunk, where they were counted.
    pub lost_events: U64<O>,
    /// Time of the first event, in the clock's unit.
    pub t_base: U64<O>,
    /// Time of the last event.
    pub t_last: U64<O>,
    /// Number of events of this CPU in the chunks before this one.
    pub first_event: U64<O>,
    /// Number of events in the sub-buffers.
    pub record_count: U32<O>,
    /// Length of a sub-buffer in bytes.
    pub sub_buffer_len: U32<O>,
    /// Number of sub-buffers.
    pub sub_buffer_count: U32<O>,
    /// Offset of `timestamp` in `events/header_page`.
    pub timestamp_offset: U16<O>,
    /// Offset of `commit`.
    pub commit_offset: U16<O>,
    /// Size of `commit`.
    pub commit_size: U16<O>,
    /// Offset of `data`.
    pub data_offset: U16<O>,
    /// Classes of the events: those with numbers below this; of several with one id the highest number holds.
    pub class_limit: U32<O>,
    /// As in [`EventsHead`].
    pub classes: U64<O>,
}

const _: () = assert!(size_of::<SubBuffersHead<zerocopy::LE>>() == 72);
