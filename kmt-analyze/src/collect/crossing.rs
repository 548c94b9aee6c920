//! Objects that are freed on another CPU than they were allocated on (rule R11).

use std::collections::BTreeMap;

use super::grown;
use super::histogram::Histogram;
use crate::ledger::Closed;
use crate::ledger::lives::End;

/// The sink.
#[derive(Debug, Default)]
pub struct Crossing {
    /// By CPU that allocated and CPU that freed, also where they are the same: objects, bytes.
    pub matrix: BTreeMap<(u32, u32), (u64, u64)>,
    /// By number of the call site and interface.
    pub callers: Vec<Crossed>,
}

/// What crosses from one call site.
#[derive(Debug, Clone, Default)]
pub struct Crossed {
    /// Objects that were freed, on any CPU.
    pub freed: u64,
    /// Lifetimes of those that were freed on another CPU.
    pub delay: Histogram,
    /// Bytes of those.
    pub bytes: u64,
    /// Their freeing sites: number, objects.
    pub freed_by: Vec<(u32, u64)>,
}

impl Crossing {
    /// A life is added up.
    #[inline]
    pub fn closed(&mut self, closed: &Closed) {
        let (End::Freed { free, end, .. }, Some(place), true) =
            (closed.end, closed.freed_at, closed.is_freed)
        else {
            return;
        };
        let cell = self.matrix.entry((closed.born_at.cpu, place.cpu)).or_default();
        *cell = (cell.0 + 1, cell.1.saturating_add(closed.bytes_alloc));
        let caller = grown(&mut self.callers, closed.caller);
        caller.freed += 1;
        if closed.born_at.cpu == place.cpu {
            return;
        }
        caller.delay.add(end.saturating_sub(closed.life.born));
        caller.bytes = caller.bytes.saturating_add(closed.bytes_alloc);
        match caller.freed_by.iter_mut().find(|f| f.0 == free.site) {
            Some(by) => by.1 += 1,
            None => caller.freed_by.push((free.site, 1)),
        }
    }
}
