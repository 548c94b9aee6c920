//! Event chunks that keep only a loss: that of a chunk whose events cannot be used, but whose head can.

use zerocopy::{ByteOrder as Order, IntoBytes};

use crate::kernel::with_order;
use crate::raw::{ChunkKind, EventsHead};
use crate::read::recovering::Contents;
use crate::read::{ChunkRef, EventsInfo};

/// A chunk without events in place of `chunk`, with its body and the fields of its head; `None` if the prefix is not
/// there or not right, or nothing was lost.
///
/// `stored` is body and padding, or as much as there is of them.
pub(super) fn loss_alone(
    contents: &Contents<'_>,
    chunk: &ChunkRef,
    stored: &[u8],
) -> Option<(ChunkRef, Vec<u8>, EventsInfo)> {
    let info = contents.head(chunk, stored).ok().filter(|info| !info.loss.is_none())?;
    let before = contents.streams.get(&chunk.cpu?).and_then(|stream| {
        let index = stream.chunks.partition_point(|(other, _)| other.offset < chunk.offset);
        stream.chunks.get(index.checked_sub(1)?)
    });
    // Without events a head has the time of the last event before.
    let time = before.map_or(info.t_first, |(_, info)| info.t_last);
    let info = EventsInfo { t_first: time, t_last: time, event_count: 0, classes: 0, ..info };
    let long_size = contents.header.long_size;
    let body = with_order!(contents.header.order, O => head::<O>(&info, long_size).as_bytes().to_vec());
    Some((ChunkRef { kind: ChunkKind::EVENTS, ..*chunk }, body, info))
}

fn head<O: Order>(info: &EventsInfo, long_size: usize) -> EventsHead<O> {
    let end = (size_of::<EventsHead<O>>() as u32).into();
    EventsHead {
        head_len: end,
        loss_flags: info.loss.flags().into(),
        lost_events: info.loss.counted.into(),
        t_base: info.t_first.into(),
        t_last: info.t_last.into(),
        first_event: info.first_event.into(),
        record_count: 0.into(),
        descriptor_count: 0.into(),
        context_count: 0.into(),
        epoch_count: 0.into(),
        epochs_offset: end,
        descriptors_offset: end,
        contexts_offset: end,
        records_offset: end,
        heap_offset: end,
        heap_len: 0.into(),
        record_stride: (long_size.saturating_add(8) as u16).into(),
        context_stride: 0.into(),
        reserved: 0.into(),
        classes: info.classes.into(),
    }
}
