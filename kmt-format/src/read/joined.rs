//! Stacks joined to the events at which they were taken. Spec section "EVNT", Stacks.

use std::collections::BTreeMap;

use super::Event;
use crate::schema::{Meaning, Role};

/// Bits of common_flags for the context level of an event: hard interrupt, soft interrupt, NMI
/// (`enum trace_flag_type`, include/linux/trace_events.h of Linux 6.12).
pub const LEVEL_FLAGS: u64 = 0x08 | 0x10 | 0x40;

/// Finds the event that each `ftrace:kernel_stack` belongs to.
///
/// The kernel writes the stack of a trigger right after its event; only interrupts can come between, with events and
/// stacks of their own. So a stack belongs to the last event before it of the same CPU, task and level.
///
/// `T` is the caller's own data on the event.
///
/// ```
/// use kmt_format::read::{Item, StackJoiner, Trace};
/// # let file = kmt_format::example()?;
/// let trace = Trace::open(&file)?;
/// let mut joiner = StackJoiner::default();
/// for item in trace.items() {
///     match item {
///         Item::Event(event) => {
///             if let Some(time) = joiner.see(&event, event.time()) {
///                 println!("the stack of the event at {time}");
/// #               assert_eq!(time, 1_000);
///             }
///         }
///         Item::Loss(gap) => joiner.gap(gap.cpu),
///         _ => {}
///     }
/// }
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug)]
pub struct StackJoiner<T> {
    cpus: BTreeMap<u32, Vec<(i32, u64, T)>>,
}

impl<T> Default for StackJoiner<T> {
    fn default() -> Self {
        Self { cpus: BTreeMap::new() }
    }
}

impl<T> StackJoiner<T> {
    /// Looks at an event; those of one CPU come in their order. Of a stack it returns what was given with its event.
    pub fn see(&mut self, event: &Event<'_>, of: T) -> Option<T> {
        let level = event.uint_with(Role::FLAGS).unwrap_or(0) & LEVEL_FLAGS;
        let is_stack = event.class().meaning == Meaning::KERNEL_STACK;
        self.see_at(event.cpu(), event.pid(), level, is_stack, of)
    }

    /// [`StackJoiner::see`] by properties of an event: its CPU, its task, those bits of its flags that are in
    /// [`LEVEL_FLAGS`], and whether it is a stack.
    pub fn see_at(&mut self, cpu: u32, pid: i32, level: u64, is_stack: bool, of: T) -> Option<T> {
        let waiting = self.cpus.entry(cpu).or_default();
        if is_stack {
            let place = waiting.iter().position(|(p, l, _)| (*p, *l) == (pid, level))?;
            return Some(waiting.swap_remove(place).2);
        }
        // On one level there is one event at a time: the one before gets no stack any more.
        waiting.retain(|(_, l, _)| *l != level);
        waiting.push((pid, level, of));
        None
    }

    /// Forgets what waits on that CPU: events are missing there.
    pub fn gap(&mut self, cpu: u32) {
        self.cpus.remove(&cpu);
    }
}
