//! Decoding and merging on one core, the ledger on another.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use kmt_format::read::Damage;

use super::decode::Decoder;
use super::load::{Loader, StopOnDrop};
use super::merge::Merged;
use super::op::Op;

/// Operations handed over at a time: few enough to be near when they arrive, enough that handing over costs nothing.
const PARCEL: usize = 2048;
/// Parcels on their way.
const PARCELS: usize = 8;

/// Operations, and how many interned items they may name.
struct Parcel {
    ops: Vec<Op>,
    interned: usize,
}

/// Calls `enter` with all operations in the kernel's order, up to the time `last`, and with the number of interned
/// items that they may name. Uses up to `threads` cores; the calls are the same whatever their number, but for how
/// many operations they have.
pub fn run<'t, 'd>(
    loader: &Loader<'t, 'd>,
    decoder: Decoder<'t>,
    threads: usize,
    last: u64,
    mut enter: impl FnMut(&[Op], usize),
) -> (Decoder<'t>, Vec<Damage>) {
    let merged = Merged::new(loader, decoder);
    if threads < 2 || loader.chunk_count() < 2 {
        return all(merged, last, |ops, interned| {
            enter(ops, interned);
            true
        });
    }
    thread::scope(|scope| {
        let _stop = StopOnDrop(loader);
        for _ in 2..threads.min(loader.chunk_count()) {
            scope.spawn(|| loader.work());
        }
        let (full, arriving) = sync_channel(PARCELS);
        let (empty, returning) = channel();
        let merging = scope.spawn(move || pack(merged, last, &full, &returning));
        for Parcel { ops, interned } in arriving {
            enter(&ops, interned);
            // The other side may be done, and want no more.
            let _ = empty.send(ops);
        }
        merging.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Merges into parcels.
fn pack<'t>(
    merged: Merged<'_, 't, '_>,
    last: u64,
    full: &SyncSender<Parcel>,
    returning: &Receiver<Vec<Op>>,
) -> (Decoder<'t>, Vec<Damage>) {
    let mut parcel = Parcel { ops: Vec::with_capacity(PARCEL), interned: 0 };
    let result = all(merged, last, |ops, interned| {
        parcel.ops.extend_from_slice(ops);
        parcel.interned = interned;
        if parcel.ops.len() + ops.len() <= PARCEL {
            return true;
        }
        let mut ops = returning.try_recv().unwrap_or_else(|_| Vec::with_capacity(PARCEL));
        ops.clear();
        full.send(std::mem::replace(&mut parcel, Parcel { ops, interned })).is_ok()
    });
    // Nobody listens only if the other side panics.
    let _ = full.send(parcel);
    result
}

/// All operations up to `last`; ends early if `take` says so.
fn all<'t>(
    mut merged: Merged<'_, 't, '_>,
    last: u64,
    mut take: impl FnMut(&[Op], usize) -> bool,
) -> (Decoder<'t>, Vec<Damage>) {
    loop {
        let (ops, interned) = merged.next_batch();
        if ops.is_empty() {
            break;
        }
        let end = match ops.last() {
            Some(op) if op.time > last => ops.iter().position(|op| op.time > last).unwrap_or(ops.len()),
            _ => ops.len(),
        };
        let is_end = end < ops.len();
        if !take(ops.get(..end).unwrap_or_default(), interned) || is_end {
            break;
        }
    }
    merged.finish()
}
