//! Runs of operations by the fast path of the table, where nothing is filtered out and no receiver needs each life.
//!
//! Lives that they end are added up behind the batch, changes are reported behind each run: before an operation that the
//! general path enters.

use super::Ledger;
use super::lives::{ADDRESS_BITS, Life, ZERO_SIZE_PTR};
use super::receiver::Receiver;
use super::slab::count_null;
use super::table::{LifeTable, SlotLocation};
use crate::stream::Interests;
use crate::stream::op::{Kind, Op};

/// Three lives at one address, each replaced by the next.
#[derive(Debug, Clone, Copy)]
pub struct Replaced {
    /// The first, whose implied free at the birth of the second is decided now.
    settled: Life,
    /// The second.
    old: Life,
    /// Position of the birth of the third in its batch.
    position: u32,
}

impl<R: Receiver> Ledger<'_, R> {
    /// Enters operations from `from` on by the fast path, and reports them to the receivers that need each; returns the
    /// position of the first one that it cannot enter.
    #[inline]
    pub(super) fn enter_plain(&mut self, ops: &[Op], from: usize) -> usize {
        let first = (self.ended_count, self.replaced.len());
        let end = from + self.exchange(ops, from);
        let entered = ops.get(from..end).unwrap_or_default();
        if !self.awaited.is_empty() {
            entered.iter().filter(|op| op.code.kind() == Kind::Alloc).for_each(|op| self.hand_alloc(op));
        }
        if self.interests.contains(Interests::CHANGES) {
            self.report_changes(entered, from, first);
        }
        end
    }

    /// Reports the changes of operations that [`Ledger::exchange`] entered, the first of which is at `from` in its batch;
    /// `first` is the first life that they ended, and the first that they replaced.
    fn report_changes(&mut self, entered: &[Op], from: usize, first: (usize, usize)) {
        let (ended, replaced) = (std::mem::take(&mut self.ended), std::mem::take(&mut self.replaced));
        let mut gone = ended.get(first.0..self.ended_count).unwrap_or_default().iter();
        let mut over = replaced.get(first.1..).unwrap_or_default().iter().peekable();
        for (op, position) in entered.iter().zip(from as u32..) {
            let address = op.value & ADDRESS_BITS;
            if op.code.kind() != Kind::Alloc {
                // Frees of NULL end nothing.
                if let Some((life, _)) = (address > ZERO_SIZE_PTR).then(|| gone.next()).flatten() {
                    self.gone(address, life, op.time);
                }
                continue;
            }
            if let Some(replaced) = over.next_if(|replaced| replaced.position == position) {
                self.gone(address, &replaced.old, op.time);
            }
            self.born(address, &Life::of(op));
        }
        (self.ended, self.replaced) = (ended, replaced);
    }

    /// Fast path for the common case: see [`LifeTable::exchange`].
    #[inline]
    fn exchange(&mut self, ops: &[Op], from: usize) -> usize {
        let Self { rules, table, slots, ended, ended_count, replaced, counts, raw, tables, .. } = self;
        let other = |table: &mut LifeTable, op: &Op, at: SlotLocation, position: u32| match op.code.kind() {
            Kind::Alloc if !tables.site(op.code.number()).is_large => table
                .replace(at, op)
                .map(|(settled, old)| replaced.push(Replaced { settled, old, position }))
                .is_some(),
            Kind::Kfree | Kind::CacheFree if op.value & ADDRESS_BITS <= ZERO_SIZE_PTR => {
                count_null(counts, raw, op);
                true
            }
            _ => false,
        };
        match rules.direct_map {
            Some(_) => table.exchange::<true>(ops, slots, from, (ended, ended_count), other),
            None => table.exchange::<false>(ops, slots, from, (ended, ended_count), other),
        }
    }

    /// Adds up the lives that [`Ledger::exchange`] ended.
    pub(super) fn close_ended(&mut self) {
        let ended = std::mem::take(&mut self.ended);
        let count = std::mem::take(&mut self.ended_count);
        self.raw.free_events += count as u64;
        for (life, free) in ended.get(..count).unwrap_or_default() {
            self.close_plain(life, *free);
        }
        self.ended = ended;
        let mut replaced = std::mem::take(&mut self.replaced);
        for Replaced { settled, old, .. } in replaced.drain(..) {
            self.close_implied_free_plain(&settled, old.born);
        }
        self.replaced = replaced;
    }
}
