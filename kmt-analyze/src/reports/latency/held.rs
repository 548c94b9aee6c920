//! Tracepoints that are kept until the stalls and functions that they belong to have ended.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::tracepoints::{OwnerFunction, TracepointOwners};
use crate::collect::stalls::Interval;
use crate::int_hash::IntHash;
use crate::ledger::SideEvent;
use crate::stream::SideEventKind;

/// Events of one kind that are kept for each task: the latest. A function has one or two of its own.
const EACH_MAX: usize = 5;
/// Characters of a text.
const TEXT_MAX: usize = 1_024;
/// Tasks with kept events.
const TASKS_MAX: usize = 4_096;

/// A tracepoint.
#[derive(Debug)]
pub struct HeldEvent {
    kind: SideEventKind,
    pub time: u64,
    owners: TracepointOwners,
    pub text: String,
}

/// Latest tracepoints of each task, by rising time.
#[derive(Debug, Default)]
pub struct HeldEvents {
    tasks: HashMap<i32, Vec<HeldEvent>, IntHash>,
    /// True if a function was traced.
    has_functions: bool,
}

impl HeldEvents {
    /// Keeps an event, if a rule is about it.
    pub fn hold(&mut self, event: &SideEvent, text: impl FnOnce() -> String) {
        self.has_functions |= matches!(event.kind, SideEventKind::GraphEntry | SideEventKind::GraphExit);
        let Some(owners) = TracepointOwners::of(event) else { return };
        if self.tasks.len() >= TASKS_MAX && !self.tasks.contains_key(&event.origin.pid) {
            self.tasks.clear();
        }
        let events = self.tasks.entry(event.origin.pid).or_default();
        let is_alike = |held: &HeldEvent| held.kind == event.kind;
        let mut alike = events.iter().enumerate().filter(|(_, held)| is_alike(held)).map(|(at, _)| at);
        if let (Some(oldest), true) = (alike.next(), alike.count() + 1 >= EACH_MAX) {
            events.remove(oldest);
        }
        let text = text().chars().take(TEXT_MAX).collect();
        events.push(HeldEvent { kind: event.kind, time: event.time, owners, text });
    }

    /// Takes the events that belong to a stall over the threshold, which has ended.
    pub fn take(&mut self, interval: &Interval, function: Option<OwnerFunction>) -> Vec<HeldEvent> {
        let Entry::Occupied(mut entry) = self.tasks.entry(interval.pid) else { return Vec::new() };
        let has_functions = self.has_functions;
        let is_its = |held: &HeldEvent| {
            let is_within = (interval.begin..=interval.end).contains(&held.time);
            held.owners.include(interval, function, held.time)
                || (is_within && held.owners.is_unknown(has_functions))
        };
        let (taken, kept): (Vec<_>, Vec<_>) = std::mem::take(entry.get_mut()).into_iter().partition(is_its);
        if kept.is_empty() {
            drop(entry.remove())
        } else {
            *entry.get_mut() = kept
        }
        taken
    }
}
