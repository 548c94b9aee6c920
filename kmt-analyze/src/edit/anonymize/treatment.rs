//! Treatment of a field of an event.

/// Treatment of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Unchanged.
    Keep,
    /// Becomes zero.
    Zero,
    /// A task id.
    Pid,
    /// An address of the heap.
    Heap,
    /// Any address of data.
    Address,
    /// An address of the text.
    Code,
    /// Addresses of the text.
    Stack,
    /// A page frame number.
    Frame,
    /// A time of the trace's clock.
    Time,
    /// The name of a cache.
    CacheName,
    /// The name of a task.
    TaskName,
    /// An identifier without other meaning.
    Identity,
}
