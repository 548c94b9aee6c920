//! The ledger of areas: vmalloc areas and allocations of the percpu allocator, one owner for every address.
//!
//! A free ends the area at its address. An allocation at the address of a live area is an implied free. A free of no live
//! area is of an area allocated before the trace, or of one without an event: boot, `pcpu_get_vm_areas` (mm/vmalloc.c,
//! 6.2 to 7.2).

use std::collections::HashMap;

use super::Rules;
use super::events::{Area, AreaKind, ClosedArea};
use super::receiver::Receiver;
use crate::int_hash::IntHash;
use crate::ledger::frames::NO_STACK;
use crate::stream::{Op, SideEventKind, SideNumbers};
use crate::trace::losses::Losses;

/// The ledger of areas.
#[derive(Debug)]
pub struct Areas {
    rules: Rules,
    live: HashMap<(AreaKind, u64), Area, IntHash>,
    /// Last allocation of each origin, which may get a stack.
    waiting: HashMap<u32, (AreaKind, u64), IntHash>,
}

impl Areas {
    /// An empty ledger.
    pub fn new(rules: Rules) -> Self {
        Self { rules, live: HashMap::default(), waiting: HashMap::default() }
    }

    /// Enters an event; `counts`: its origin is selected.
    pub fn enter(
        &mut self,
        kind: SideEventKind,
        numbers: &SideNumbers,
        op: &Op,
        counts: bool,
        losses: &Losses,
        receiver: &mut impl Receiver,
    ) {
        let [first, size, third, call_site, ..] = *numbers;
        let area = |kind, bytes_alloc| Area {
            kind,
            born: op.time,
            bytes_req: size.unwrap_or(0),
            bytes_alloc,
            call_site: call_site.unwrap_or(0),
            origin: op.origin,
            stack: NO_STACK,
            selected: counts,
        };
        match kind {
            SideEventKind::VmallocAlloc if third.is_some_and(|failed| failed != 0) => {
                self.fail(AreaKind::Vmalloc, op, counts, receiver);
            }
            SideEventKind::PercpuFail => self.fail(AreaKind::Percpu, op, counts, receiver),
            SideEventKind::VmallocAlloc => {
                self.alloc(first.unwrap_or(0), area(AreaKind::Vmalloc, size), losses, receiver);
            }
            SideEventKind::PercpuAlloc => {
                self.alloc(first.unwrap_or(0), area(AreaKind::Percpu, third), losses, receiver);
            }
            SideEventKind::VmallocFree => {
                self.free((AreaKind::Vmalloc, first.unwrap_or(0)), op, counts, losses, receiver);
            }
            SideEventKind::PercpuFree => {
                self.free((AreaKind::Percpu, first.unwrap_or(0)), op, counts, losses, receiver);
            }
            _ => {}
        }
    }

    /// Adds the stack of the last allocation of its origin.
    pub fn stack(&mut self, op: &Op) {
        let area = self.waiting.remove(&op.origin).and_then(|key| self.live.get_mut(&key));
        if let Some(area) = area.filter(|area| area.origin == op.origin) {
            area.stack = op.code.number();
        }
    }

    fn in_window(&self, time: u64) -> bool {
        (self.rules.window.0..=self.rules.window.1).contains(&time)
    }

    fn fail(&mut self, kind: AreaKind, op: &Op, counts: bool, receiver: &mut impl Receiver) {
        self.waiting.remove(&op.origin);
        if counts && self.in_window(op.time) {
            receiver.area_failed(kind, op.origin);
        }
    }

    fn alloc(&mut self, address: u64, area: Area, losses: &Losses, receiver: &mut impl Receiver) {
        let key = (area.kind, address);
        self.waiting.insert(area.origin, key);
        if let Some(old) = self.live.insert(key, area) {
            self.close(old, Some((area.born, false)), losses, receiver);
        }
    }

    fn free(
        &mut self,
        key: (AreaKind, u64),
        op: &Op,
        counts: bool,
        losses: &Losses,
        receiver: &mut impl Receiver,
    ) {
        if let Some(area) = self.live.remove(&key) {
            self.close(area, Some((op.time, true)), losses, receiver);
        } else if counts && self.in_window(op.time) {
            receiver.area_freed_unknown(key.0, op.origin);
        }
    }

    /// Adds up an area; `end`: its time, and true if by a free.
    fn close(&self, area: Area, end: Option<(u64, bool)>, losses: &Losses, receiver: &mut impl Receiver) {
        if !area.selected {
            return;
        }
        let window_end = self.rules.window.1;
        let ends_in_window = end.is_some_and(|(time, _)| self.in_window(time));
        let is_by_free = end.is_some_and(|(_, is_by_free)| is_by_free);
        let until = end.map_or(window_end, |(time, _)| time.min(window_end));
        let closed = ClosedArea {
            area,
            is_born: self.in_window(area.born),
            is_freed: ends_in_window && is_by_free,
            is_implied_free: ends_in_window && !is_by_free,
            is_live: area.born <= window_end && end.is_none_or(|(time, _)| time > window_end),
            uncertain: losses.first_between(area.born, until).is_some(),
        };
        receiver.closed_area(&closed);
    }

    /// Adds up all areas that are still allocated, in the order of their addresses.
    pub fn finish(mut self, losses: &Losses, receiver: &mut impl Receiver) {
        let mut live: Vec<_> = std::mem::take(&mut self.live).into_iter().collect();
        live.sort_unstable_by_key(|(key, _)| *key);
        live.into_iter().for_each(|(_, area)| self.close(area, None, losses, receiver));
    }
}
