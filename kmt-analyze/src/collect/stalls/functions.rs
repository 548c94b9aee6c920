//! Functions of the function graph tracer, from their entries to their exits.

use std::collections::HashMap;

use crate::int_hash::IntHash;
use crate::ledger::SideEvent;
use crate::stream::{Origin, SideEventKind};

/// Open functions of each stack, by rising depth: function, depth, time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OpenFunctions(HashMap<i32, Vec<(u64, u64, u64)>, IntHash>);

/// Largest depth of a function in the kernel (FTRACE_RETFUNC_DEPTH).
const DEPTH_MAX: usize = 50;

/// Key of the function stack of an event: its task, or its CPU for the idle task.
fn stack_of(origin: Origin) -> i32 {
    if origin.pid == 0 { -1 - i32::try_from(origin.cpu).unwrap_or(0) } else { origin.pid }
}

impl OpenFunctions {
    /// Adds the entry of a function.
    pub(super) fn enter(&mut self, event: &SideEvent) {
        let (Some(func), Some(depth)) = (event.numbers[0], event.numbers[1]) else { return };
        let open = self.0.entry(stack_of(event.origin)).or_default();
        // Functions at this depth or deeper have ended, and their exits were lost.
        while open.last().is_some_and(|(_, other, _)| *other >= depth) {
            open.pop();
        }
        open.push((func, depth, event.time));
    }

    /// Number of functions around the one that the event ended, or else of open ones. A tracer with a threshold records
    /// exits alone, and their depth.
    pub(super) fn around(&self, event: &SideEvent) -> usize {
        let open = self.0.get(&stack_of(event.origin)).map_or(0, Vec::len);
        let depth = event.numbers[1].filter(|_| event.kind == SideEventKind::GraphExit).unwrap_or(0);
        open.max(usize::try_from(depth).unwrap_or(0).min(DEPTH_MAX))
    }

    /// Function of an exit with its begin and end; `None`: they are unknown.
    pub(super) fn exit(&mut self, event: &SideEvent) -> Option<(u64, u64, u64)> {
        let [func, depth, call, ret, ..] = event.numbers;
        let (func, depth) = func.zip(depth)?;
        let times = call.zip(ret).filter(|&(call, ret)| call != 0 && ret >= call);
        let open = self.0.entry(stack_of(event.origin)).or_default();
        let entered = open.binary_search_by_key(&depth, |e| e.1).ok();
        let entered = entered.filter(|&at| open.get(at).is_some_and(|e| e.0 == func));
        let entered = entered.and_then(|at| open.drain(at..).next());
        let (begin, end) = times.or(entered.map(|(.., time)| (time, event.time)))?;
        Some((func, begin, end))
    }
}
