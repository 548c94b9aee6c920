//! The body of an event chunk: head, tables, heap, records. Spec section "EVNT".

use zerocopy::IntoBytes;

use super::EventChunkBuilder;
use crate::raw::{Epoch, EventsHead};

impl EventChunkBuilder {
    /// Appends the body; returns where in it the records start.
    pub(super) fn layout<O: zerocopy::ByteOrder>(&self, out: &mut Vec<u8>) -> usize {
        let head_len = size_of::<EventsHead<O>>();
        let starts = core::iter::once(0).chain(self.context_ends.iter().copied());
        let context_ranges = starts.zip(&self.context_ends).map(|(start, &end)| start as usize..end as usize);
        let longest = context_ranges.clone().map(|range| range.len()).max().unwrap_or(0);
        // Never 0, also where a kernel has no common fields besides the id: readers count contexts by it.
        let context_stride = longest.max(1).next_multiple_of(4);
        let epochs = head_len;
        let descriptors = epochs + self.epochs.len() * size_of::<Epoch<O>>();
        let descriptor_data = descriptors + self.descriptor_offsets.len() * 4;
        let contexts = (descriptor_data + self.descriptor_data.len()).next_multiple_of(8);
        // The records come last: of a torn chunk all that are there can be used.
        let heap = (contexts + self.contexts.len() * context_stride).next_multiple_of(8);
        let records = (heap + self.heap.len()).next_multiple_of(16);
        let head = EventsHead::<O> {
            head_len: (head_len as u32).into(),
            loss_flags: self.loss.flags().into(),
            lost_events: self.loss.counted.into(),
            t_base: self.summary().t_base.into(),
            t_last: self.t_last.into(),
            first_event: self.first_event.into(),
            record_count: (self.record_count as u32).into(),
            descriptor_count: (self.descriptor_offsets.len() as u32).into(),
            context_count: (self.contexts.len() as u32).into(),
            epoch_count: (self.epochs.len() as u32).into(),
            epochs_offset: (epochs as u32).into(),
            descriptors_offset: (descriptors as u32).into(),
            contexts_offset: (contexts as u32).into(),
            records_offset: (records as u32).into(),
            heap_offset: (heap as u32).into(),
            heap_len: (self.heap.len() as u32).into(),
            record_stride: (8 + self.long_size as u16).into(),
            context_stride: (context_stride as u16).into(),
            reserved: 0.into(),
            classes: self.summary().classes.into(),
        };
        let start = out.len();
        out.reserve(records + self.records.len());
        out.extend_from_slice(head.as_bytes());
        for &(first_record, upper) in &self.epochs {
            let epoch = Epoch::<O> { first_record: first_record.into(), upper: upper.into() };
            out.extend_from_slice(epoch.as_bytes());
        }
        for offset in &self.descriptor_offsets {
            self.order.push(out, (descriptor_data as u32 + offset).into(), 4);
        }
        out.extend_from_slice(&self.descriptor_data);
        out.resize(start + contexts, 0);
        for (i, range) in context_ranges.enumerate() {
            out.extend_from_slice(self.context_data.get(range).unwrap_or_default());
            out.resize(start + contexts + (i + 1) * context_stride, 0);
        }
        out.resize(start + heap, 0);
        out.extend_from_slice(&self.heap);
        out.resize(start + records, 0);
        out.extend_from_slice(&self.records);
        records
    }
}
