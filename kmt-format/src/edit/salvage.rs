//! The records that a torn event chunk still holds.

use std::borrow::Cow;
use zerocopy::{ByteOrder as Order, FromBytes};

use crate::kernel::with_order;
use crate::raw::EventsHead;
use crate::read::recovering::Contents;
use crate::read::{ChunkRef, EventChunk};

/// The body of a chunk with the records that are there and not out of place; `None` if there is none.
///
/// `stored` is what is left of the body. No checksum covers the records: the chunk is to be marked.
pub(super) fn salvage(
    contents: &Contents<'_>,
    chunk: &ChunkRef,
    stored: &[u8],
) -> Option<(Vec<u8>, EventChunk<'static>)> {
    let layout = with_order!(contents.header.order, O => SalvageLayout::of::<O>(stored)?);
    let stride = contents.header.long_size.saturating_add(8);
    // The tables come before the records: then the first records do not depend on later ones.
    without_records(contents, chunk, stored, &layout)?;
    let there = stored.len().checked_sub(layout.records_at)?.checked_div(stride).unwrap_or(0);
    // Records are checked in their order, so what is good is a beginning of them.
    let (mut good, mut bad) = (0usize, there.min(layout.record_count).saturating_add(1));
    let mut best = None;
    while good.saturating_add(1) < bad {
        let count = good.saturating_add(bad.saturating_sub(good) / 2);
        match attempt(contents, chunk, stored, &layout, count) {
            Some(found) => {
                best = Some(found);
                good = count;
            }
            None => bad = count,
        }
    }
    best
}

struct SalvageLayout {
    records_at: usize,
    record_count: usize,
    t_base: u64,
}

impl SalvageLayout {
    fn of<O: Order>(stored: &[u8]) -> Option<Self> {
        let (head, _) = EventsHead::<O>::ref_from_prefix(stored).ok()?;
        Some(Self {
            records_at: head.records_offset.get() as usize,
            record_count: head.record_count.get() as usize,
            t_base: head.t_base.get(),
        })
    }
}

/// Checks what is before the records.
fn without_records(
    contents: &Contents<'_>,
    chunk: &ChunkRef,
    stored: &[u8],
    layout: &SalvageLayout,
) -> Option<()> {
    let header = &contents.header;
    let mut body = stored.get(..layout.records_at)?.to_vec();
    with_order!(header.order, O => cut::<O>(&mut body, 0, layout.t_base))?;
    let (schema, limits) = (Some(&contents.schema), &contents.limits);
    EventChunk::parse(Cow::Borrowed(&body), chunk, header, schema, limits, 0).ok().map(|_| ())
}

/// The first `count` records as a chunk of their own.
fn attempt(
    contents: &Contents<'_>,
    chunk: &ChunkRef,
    stored: &[u8],
    layout: &SalvageLayout,
    count: usize,
) -> Option<(Vec<u8>, EventChunk<'static>)> {
    let header = &contents.header;
    let stride = header.long_size.saturating_add(8);
    let end = layout.records_at.checked_add(count.checked_mul(stride)?)?;
    let mut body = stored.get(..end)?.to_vec();
    let last = count.checked_sub(1)?;
    let offset =
        header.order.uint_at(&body, layout.records_at.saturating_add(last.saturating_mul(stride)), 4)?;
    let upper = with_order!(header.order, O => upper_of::<O>(&body, last));
    let t_last = layout.t_base.wrapping_add(u64::from(upper?) << 32 | offset);
    with_order!(header.order, O => cut::<O>(&mut body, count, t_last))?;
    let events =
        EventChunk::parse(Cow::Borrowed(&body), chunk, header, Some(&contents.schema), &contents.limits, 0);
    let events = events.ok()?.into_owned();
    Some((body, events))
}

/// The upper half of the time of a record.
fn upper_of<O: Order>(body: &[u8], record: usize) -> Option<u32> {
    let (head, _) = EventsHead::<O>::ref_from_prefix(body).ok()?;
    let count = head.epoch_count.get() as usize;
    // The offset of an empty table means nothing.
    let start = if count == 0 { 0 } else { head.epochs_offset.get() as usize };
    let epochs = body.get(start..)?;
    let (epochs, _) = <[crate::raw::Epoch<O>]>::ref_from_prefix_with_elems(epochs, count).ok()?;
    let epoch = epochs.iter().rev().find(|e| e.first_record.get() as usize <= record);
    Some(epoch.map_or(0, |e| e.upper.get()))
}

fn cut<O: Order>(body: &mut [u8], count: usize, t_last: u64) -> Option<()> {
    let (head, _) = EventsHead::<O>::mut_from_prefix(body).ok()?;
    head.record_count = (count as u32).into();
    head.t_last = t_last.into();
    Some(())
}
