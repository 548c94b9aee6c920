//! Pipeline: decoding and merging on one core, the ledger on another.
//!
//! One thread decodes and merges, the caller's thread enters the operations; between them are parcels with the items
//! that they number first. On one core both run in turn. A pass calls it; the order of operations does not depend on
//! the number of cores.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use kmt_common::out_of_memory::spawn;
use kmt_format::read::Damage;

use super::decode::Decoder;
use super::intern::NewItems;
use super::load::Loader;
use super::merge::Merged;
use super::op::Op;

/// Operations of a parcel: few enough to stay in the cache, enough to make the transfer cheap.
const PARCEL: usize = 2048;
/// Number of parcels in the pipeline.
const PARCELS: usize = 8;

/// Operations, and the items that they number first.
struct Parcel {
    ops: Vec<Op>,
    new_items: NewItems,
}

/// Calls `enter` with all operations in the kernel's order until the first one after `last`, and with the items that they
/// number first; with all of them where a clock steps back, since what is after `last` may come before what is not, and
/// change what follows it. Uses up to `threads` cores; that changes only how many operations a call has.
pub fn run<'t, 'd>(
    loader: &Loader<'t, 'd>,
    mut decoder: Decoder<'t>,
    threads: usize,
    last: u64,
    mut enter: impl FnMut(&[Op], NewItems),
) -> (Decoder<'t>, Vec<Damage>) {
    let until = EndTime { last, is_ordered: loader.is_ordered() };
    decoder.keeps_marks = !until.is_ordered;
    if threads < 2 || loader.chunk_count() < 2 {
        return all(Merged::new(loader.with_workers(0).0, decoder), until, |ops, new_items| {
            enter(ops, new_items);
            true
        });
    }
    thread::scope(|scope| {
        let (chunks, orders) = loader.with_workers(threads.min(loader.chunk_count()) - 2);
        for orders in orders {
            spawn(scope, || orders.work(loader));
        }
        let merged = Merged::new(chunks, decoder);
        let (full, arriving) = sync_channel(PARCELS);
        let (empty, returning) = channel();
        let merging = spawn(scope, move || pack(merged, until, &full, &returning));
        for Parcel { ops, new_items } in arriving {
            enter(&ops, new_items);
            // The other side may have stopped already.
            let _ = empty.send(ops);
        }
        merging.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Merges operations into parcels.
fn pack<'t>(
    merged: Merged<'_, 't, '_>,
    until: EndTime,
    full: &SyncSender<Parcel>,
    returning: &Receiver<Vec<Op>>,
) -> (Decoder<'t>, Vec<Damage>) {
    let mut parcel = Parcel { ops: Vec::with_capacity(PARCEL), new_items: NewItems::default() };
    let result = all(merged, until, |ops, new_items| {
        parcel.ops.extend_from_slice(ops);
        parcel.new_items.append(new_items);
        if parcel.ops.len() + ops.len() <= PARCEL {
            return true;
        }
        let mut ops = returning.try_recv().unwrap_or_else(|_| Vec::with_capacity(PARCEL));
        ops.clear();
        full.send(std::mem::replace(&mut parcel, Parcel { ops, new_items: NewItems::default() })).is_ok()
    });
    // Sending fails only if the other side panics.
    let _ = full.send(parcel);
    result
}

/// The time after which operations are left out.
#[derive(Clone, Copy)]
struct EndTime {
    last: u64,
    /// Times do not fall, so that nothing is wanted after the first operation after `last`. Where a clock steps back,
    /// all events take part in the merge: the result does not depend on which of them are wanted.
    is_ordered: bool,
}

/// All operations up to `until`; ends early if `take` returns false.
fn all<'t>(
    mut merged: Merged<'_, 't, '_>,
    until: EndTime,
    mut take: impl FnMut(&[Op], NewItems) -> bool,
) -> (Decoder<'t>, Vec<Damage>) {
    let is_late = |op: &Op| op.time > until.last;
    let mut new_items = NewItems::default();
    loop {
        let (ops, more) = merged.next_batch();
        new_items.append(more);
        if ops.is_empty() {
            break;
        }
        let goes_on = if until.is_ordered {
            let end = match ops.last() {
                Some(op) if is_late(op) => ops.iter().position(is_late).unwrap_or(ops.len()),
                _ => ops.len(),
            };
            take(ops.get(..end).unwrap_or_default(), std::mem::take(&mut new_items)) && end == ops.len()
        } else {
            let mut parts = ops.split(|op| op.code.is_mark()).filter(|ops| !ops.is_empty());
            parts.all(|ops| take(ops, std::mem::take(&mut new_items)))
        };
        if !goes_on {
            break;
        }
    }
    merged.finish()
}
