//! The ledger of areas: vmalloc areas and allocations of the percpu allocator, one owner for every address.
//!
//! A free ends the area at its address. An allocation at the address of a live area is an implied free. A free of no live
//! area is of an area allocated before the trace, or of one without an event: boot, `pcpu_get_vm_areas` (mm/vmalloc.c,
//! 6.2 to 7.2).

use std::collections::HashMap;

use super::Ledger;
use super::events::{Area, AreaKind, ClosedArea};
use super::receiver::Receiver;
use crate::int_hash::IntHash;
use crate::ledger::frames::NO_STACK;
use crate::stream::{Op, SideEventKind, SideNumbers};

/// Areas that are allocated.
#[derive(Debug, Default)]
pub struct Areas {
    live: HashMap<(AreaKind, u64), Area, IntHash>,
    /// Last allocation of each origin, which may get a stack.
    waiting: HashMap<u32, (AreaKind, u64), IntHash>,
}

impl Areas {
    /// Adds the stack of the last allocation of its origin.
    pub fn stack(&mut self, op: &Op) {
        let area = self.waiting.remove(&op.origin).and_then(|key| self.live.get_mut(&key));
        if let Some(area) = area.filter(|area| area.origin == op.origin) {
            area.stack = op.code.number();
        }
    }
}

impl<R: Receiver> Ledger<'_, R> {
    /// Enters an event of areas; `counts`: its origin is selected.
    pub(super) fn area(&mut self, kind: SideEventKind, numbers: &SideNumbers, op: &Op, counts: bool) {
        let [first, size, third, call_site, ..] = *numbers;
        let address = first.unwrap_or(0);
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
                self.area_fail(AreaKind::Vmalloc, op, counts);
            }
            SideEventKind::PercpuFail => self.area_fail(AreaKind::Percpu, op, counts),
            SideEventKind::VmallocAlloc => self.area_alloc(address, area(AreaKind::Vmalloc, size)),
            SideEventKind::PercpuAlloc => {
                let bytes = self.percpu_bytes(size, third);
                self.area_alloc(address, area(AreaKind::Percpu, bytes));
            }
            SideEventKind::VmallocFree => self.area_free((AreaKind::Vmalloc, address), op, counts),
            SideEventKind::PercpuFree => self.area_free((AreaKind::Percpu, address), op, counts),
            _ => {}
        }
    }

    /// Bytes of a percpu allocation on all CPUs: those of each CPU, as often as there are possible CPUs.
    ///
    /// `bytes_alloc` of the event (5.19 and later) may have more: pointers to memory cgroups, which are elsewhere
    /// (`pcpu_obj_full_size`, mm/percpu-internal.h). It counts where the number of CPUs is unknown.
    fn percpu_bytes(&self, size: Option<u64>, bytes_alloc: Option<u64>) -> Option<u64> {
        let all = size.filter(|_| self.rules.cpus > 0).map(|size| size.saturating_mul(self.rules.cpus));
        match (all, bytes_alloc) {
            (Some(all), Some(bytes)) => Some(all.min(bytes)),
            (all, bytes) => all.or(bytes),
        }
    }

    fn area_fail(&mut self, kind: AreaKind, op: &Op, counts: bool) {
        self.areas.waiting.remove(&op.origin);
        if counts && self.in_window(op.time) {
            self.receiver.area_failed(kind, op.origin);
        }
    }

    fn area_alloc(&mut self, address: u64, area: Area) {
        let key = (area.kind, address);
        self.areas.waiting.insert(area.origin, key);
        if let Some(old) = self.areas.live.insert(key, area) {
            self.close_area(old, Some((area.born, false)));
        }
    }

    fn area_free(&mut self, key: (AreaKind, u64), op: &Op, counts: bool) {
        if let Some(area) = self.areas.live.remove(&key) {
            self.close_area(area, Some((op.time, true)));
        } else if counts && self.in_window(op.time) {
            self.receiver.area_freed_unknown(key.0, op.origin);
        }
    }

    /// Adds up an area; `end`: its time, and true if by a free.
    fn close_area(&mut self, area: Area, end: Option<(u64, bool)>) {
        if !area.selected {
            return;
        }
        let window_end = self.rules.window.1;
        let ends_in_window = end.is_some_and(|(time, _)| self.in_window(time));
        let is_by_free = end.is_some_and(|(_, is_by_free)| is_by_free);
        let until = end.map_or(window_end, |(time, _)| time.min(window_end));
        self.receiver.closed_area(&ClosedArea {
            area,
            is_born: self.in_window(area.born),
            is_freed: ends_in_window && is_by_free,
            is_implied_free: ends_in_window && !is_by_free,
            is_live: area.born <= window_end && end.is_none_or(|(time, _)| time > window_end),
            uncertain: self.losses.first_between(area.born, until).is_some(),
        });
    }

    /// Adds up all areas that are still allocated, in the order of their addresses.
    pub(super) fn finish_areas(&mut self) {
        let mut live: Vec<_> = std::mem::take(&mut self.areas.live).into_iter().collect();
        live.sort_unstable_by_key(|(key, _)| *key);
        live.into_iter().for_each(|(_, area)| self.close_area(area, None));
    }
}
