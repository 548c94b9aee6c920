//! Going through events.

use core::ffi::c_char;
use core::mem::MaybeUninit;
use std::ffi::CString;
use std::sync::Arc;

use super::c_string::until_nul;
use super::error::unfailing;
use super::trace::Trace;
use crate::owned::{LossItem, OwnedEvents, Step};

/// The events of a trace in the kernel's order, and where they are missing. Each thread opens its own.
#[derive(Debug)]
pub struct Events {
    pub(super) inner: OwnedEvents,
    names: Arc<[(CString, CString)]>,
    /// Name of the current event's task, kept for `kmt_comm`.
    comm: CString,
}

/// Result of `kmt_next`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// An internal error.
    Failed = -1,
    /// There are no more events.
    End = 0,
    /// An event.
    Event = 1,
    /// A place of one CPU where events are missing.
    Loss = 2,
}

/// Opens the events of a trace, which stand before the first one; NULL if the trace is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_events_open(trace: Option<&Trace>) -> Option<Box<Events>> {
    unfailing(None, || {
        let trace = trace?;
        let names = Arc::clone(&trace.names);
        Some(Box::new(Events { inner: OwnedEvents::new(&trace.inner), names, comm: CString::default() }))
    })
}

/// Closes events.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_events_close(events: Option<Box<Events>>) {
    unfailing((), || drop(events));
}

/// Goes to the next event or loss: more than 0 while there is one.
///
/// Events come as the kernel would print them: always that of the CPU whose next event is the oldest.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_next(events: Option<&mut Events>) -> Item {
    unfailing(Item::Failed, || match events.map_or(Step::End, |e| e.inner.advance()) {
        Step::Event => Item::Event,
        Step::Loss => Item::Loss,
        Step::End => Item::End,
    })
}

/// Time of the current event in the clock's unit; 0 at a loss.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_time(events: Option<&Events>) -> u64 {
    unfailing(0, || events.and_then(|e| e.inner.event()).map_or(0, |e| e.time()))
}

/// CPU of the current event or loss.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_cpu(events: Option<&Events>) -> u32 {
    unfailing(0, || {
        let of_event = events.and_then(|e| e.inner.event()).map(|e| e.cpu());
        of_event.or_else(|| Some(loss(events)?.cpu)).unwrap_or(0)
    })
}

/// Number of the current event in this order, from 1.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_number(events: Option<&Events>) -> u64 {
    unfailing(0, || events.map_or(0, |e| e.inner.number()))
}

/// Name of the current event, such as "kmalloc"; empty at a loss. Valid until the trace and its events are closed.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_name(events: Option<&Events>) -> *const c_char {
    unfailing(c"".as_ptr(), || names(events).map_or(c"".as_ptr(), |(_, name)| name.as_ptr()))
}

/// System of the current event, such as "kmem". Valid as its name.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_system(events: Option<&Events>) -> *const c_char {
    unfailing(c"".as_ptr(), || names(events).map_or(c"".as_ptr(), |(system, _)| system.as_ptr()))
}

/// Number of the current event's class, which names, fields and meaning depend on; UINT32_MAX at a loss.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_class(events: Option<&Events>) -> u32 {
    unfailing(u32::MAX, || {
        let class = events.and_then(|e| e.inner.event()).map(|e| e.class_index());
        class.and_then(|c| u32::try_from(c).ok()).unwrap_or(u32::MAX)
    })
}

/// Meaning of the current event, such as KMT_KMALLOC; KMT_OTHER for all that have none.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_meaning(events: Option<&Events>) -> u16 {
    unfailing(0, || events.and_then(|e| e.inner.event()).map_or(0, |e| e.class().meaning.0))
}

/// Thread that was running.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_pid(events: Option<&Events>) -> i32 {
    unfailing(0, || events.and_then(|e| e.inner.event()).map_or(0, |e| e.pid()))
}

/// Name of that thread at that time; NULL if not recorded. Valid until `kmt_next`.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_comm(events: Option<&mut Events>) -> *const c_char {
    unfailing(core::ptr::null(), || {
        let Some(events) = events else { return core::ptr::null() };
        let Some(event) = events.inner.event() else { return core::ptr::null() };
        let Some(comm) = events.inner.trace().comm(event.pid(), event.time()) else {
            return core::ptr::null();
        };
        events.comm = until_nul(comm);
        events.comm.as_ptr()
    })
}

/// Return addresses of the current event, the innermost first, into `addresses`, at most `capacity`; how many it has.
///
/// Events recorded with stacks have theirs in an event of their own after them, "kernel_stack": `kmt_stack_of`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_stack(events: Option<&Events>, addresses: *mut u64, capacity: usize) -> usize {
    unfailing(0, || {
        let Some(stack) = events.and_then(|e| e.inner.event()).and_then(|e| e.stack()) else { return 0 };
        let capacity = if addresses.is_null() { 0 } else { capacity };
        for (index, address) in stack.addresses().take(capacity).enumerate() {
            // SAFETY: the caller promises an array of `capacity` numbers, and `index` is below that.
            unsafe { addresses.add(index).write(address) };
        }
        stack.addresses().count()
    })
}

/// Number of the event that the current one, a "kernel_stack", is the stack of; 0 if it is none, or that is not known.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_stack_of(events: Option<&Events>) -> u64 {
    unfailing(0, || events.and_then(|e| e.inner.stack_of()).unwrap_or(0))
}

/// Of the second event of one large kmalloc, which kernels 6.10 and later report twice: call site of the first event; false for
/// all other events. The allocation counts once, at the second event: a sum takes it back at this call site.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_duplicate_call_site(
    events: Option<&Events>,
    call_site: Option<&mut MaybeUninit<u64>>,
) -> bool {
    unfailing(false, || put(call_site, events.and_then(|e| e.inner.duplicate_call_site())))
}

/// Of a loss: events lost on the target, as the kernel counted them.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_loss_lost(events: Option<&Events>) -> u64 {
    unfailing(0, || loss(events).map_or(0, |l| l.lost))
}

/// Of a loss: events that are missing because the file is damaged.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_loss_damaged(events: Option<&Events>) -> u64 {
    unfailing(0, || loss(events).map_or(0, |l| l.damaged))
}

/// Of a loss: whether the numbers above are minimums. The kernel did not count, or what it wrote was damaged.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_loss_is_minimum(events: Option<&Events>) -> bool {
    unfailing(false, || loss(events).is_some_and(|l| l.is_uncounted || l.is_input_damaged))
}

/// Of a loss: time of the event before it on its CPU; false if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_loss_after(events: Option<&Events>, time: Option<&mut MaybeUninit<u64>>) -> bool {
    unfailing(false, || put(time, loss(events).and_then(|l| l.after)))
}

/// Of a loss: time of the next event on its CPU; false if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_loss_before(events: Option<&Events>, time: Option<&mut MaybeUninit<u64>>) -> bool {
    unfailing(false, || put(time, loss(events).and_then(|l| l.before)))
}

/// Sets what the caller passed, where there is a value; whether there is.
pub(super) fn put<T>(place: Option<&mut MaybeUninit<T>>, value: Option<T>) -> bool {
    let is_there = value.is_some();
    if let (Some(place), Some(value)) = (place, value) {
        place.write(value);
    }
    is_there
}

fn loss(events: Option<&Events>) -> Option<&LossItem> {
    events?.inner.loss()
}

fn names(events: Option<&Events>) -> Option<&(CString, CString)> {
    let events = events?;
    events.names.get(events.inner.event()?.class_index())
}
