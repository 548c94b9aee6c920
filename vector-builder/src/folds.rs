//! Folded lives: the body of a FOLD chunk.

use crate::bytes::Bytes;
use crate::classes::{Class, Place};
use crate::events::{self, Chunk};
use crate::model::{Event, Fold, Layout, Loss, Value};

/// An event without what belongs to one event alone: time, task, address.
pub fn sample(event: &Event) -> Event {
    let mut sample = Event { time: 0, context: [0; 3], ..event.clone() };
    for (field, value) in event.class.fields.iter().zip(&mut sample.values) {
        if field.place == Place::Value {
            *value = Value::Number(0);
        }
    }
    sample
}

/// In place of the index of an allocation: the row has frees of NULL.
const NULL_FREES: usize = 0xffff_ffff;

/// The samples of an interval, each once, and their indices for each row.
fn samples(fold: &Fold) -> (Vec<Event>, Vec<[usize; 2]>) {
    let mut all: Vec<Event> = Vec::new();
    let mut index_of = |event: &Event| {
        let event = sample(event);
        let known = all.iter().position(|e| e.class.id == event.class.id && e.values == event.values);
        known.unwrap_or_else(|| {
            all.push(event);
            all.len() - 1
        })
    };
    let indices = fold.rows.iter().map(|row| {
        let alloc = row.alloc.as_ref().map_or(NULL_FREES, &mut index_of);
        [alloc, index_of(&row.free)]
    });
    let indices = indices.collect();
    (all, indices)
}

/// Classes of the samples, in the order of their first use.
pub fn classes(fold: &Fold) -> Vec<&'static Class> {
    samples(fold).0.iter().map(|event| event.class).collect()
}

/// The body, and the length of its head; `number_of` gives the number of a class.
pub fn body(fold: &Fold, layout: &Layout, number_of: &dyn Fn(u16) -> usize) -> (Vec<u8>, usize) {
    let more = if layout.padded { 8 } else { 0 };
    let (events, indices) = samples(fold);
    let bin_count: usize = fold.rows.iter().map(|row| row.bins.len()).sum();
    let [head_len, row_len, cpu_len, bin_len] = [88, 72, 16, 8].map(|len| len + more);
    let rows_at = head_len;
    let cpus_at = rows_at + fold.rows.len() * row_len;
    let bins_at = cpus_at + fold.cpus.len() * cpu_len;
    let events_at = (bins_at + bin_count * bin_len).next_multiple_of(16);
    let mut out = Bytes::new(layout.big);
    out.u32(head_len).number(fold.written_through.into(), 4).number(fold.number, 8);
    out.number(fold.begin, 8).number(fold.end, 8).number(fold.threshold, 8);
    out.u32(fold.rows.len()).u32(row_len).u32(fold.cpus.len()).u32(cpu_len).u32(bin_count).u32(bin_len);
    out.u32(rows_at).u32(cpus_at).u32(bins_at).u32(events_at);
    out.number(fold.events(), 8).fill(0xee, head_len);
    let mut first_bin = 0;
    for (row, [alloc, free]) in fold.rows.iter().zip(indices) {
        let end = out.len() + row_len;
        out.u32(alloc).u32(free);
        row.sums.iter().for_each(|sum| {
            out.number(*sum, 8);
        });
        out.u32(first_bin).u32(row.bins.len()).fill(0xee, end);
        first_bin += row.bins.len();
    }
    for (cpu, events) in &fold.cpus {
        let end = out.len() + cpu_len;
        out.number((*cpu).into(), 4).u32(0).number(*events, 8).fill(0xee, end);
    }
    for (bin, count) in fold.rows.iter().flat_map(|row| &row.bins) {
        let end = out.len() + bin_len;
        out.number((*bin).into(), 4).number((*count).into(), 4).fill(0xee, end);
    }
    let events: Vec<(usize, Event)> = events.into_iter().map(|e| (number_of(e.class.id), e)).collect();
    let chunk = Chunk { events: &events, loss: Loss::default(), first_event: 0, time_before: 0 };
    out.fill(0, events_at).raw(&events::body(&chunk, layout).0);
    (out.data, head_len)
}
