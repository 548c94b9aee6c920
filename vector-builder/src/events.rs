//! The body of an event chunk.

use crate::bytes::{Bytes, number};
use crate::classes::{Class, Place};
use crate::model::{Event, Layout, Loss, Value, is_timed};

/// A field as a shape keeps it: place, bytes stored, transform, base, offset.
pub type Slot = (u8, usize, u8, u8, usize);

/// The shapes of a class: compact, wide, payload; each with its slots, descriptor and payload length.
pub fn shapes(class: &Class, long: usize) -> [(Vec<Slot>, usize, usize); 3] {
    [0, 1, 2].map(|which| {
        let (mut context, mut descriptor, mut payload) = (0, 0, 0);
        let mut slots = Vec::new();
        let mut take = |counter: &mut usize, place: u8, stored: usize| {
            slots.push((place, stored, 0, 0, *counter));
            *counter += stored;
        };
        let mut values = Vec::new();
        for (i, field) in class.all_fields().iter().enumerate() {
            let size = if field.kind == 0 { field.record_size(long) } else { 4 };
            let narrow = which == 0 && size == 8 && field.kind == 0 && field.shrinks;
            match field.place {
                Place::Id => values.push((i, (0, size, 0, 0, 0))),
                Place::Context => take(&mut context, 1, size),
                _ if which == 2 => take(&mut payload, 4, size),
                Place::Value => values.push((i, (3, size, 0, 0, 0))),
                Place::Returned if is_timed(class, long) => values.push((i, (3, 4, 1, 0, 0))),
                Place::Entered(base) if is_timed(class, long) => values.push((i, (3, 4, 2, base, 4))),
                _ => take(&mut descriptor, 2, if narrow { 4 } else { size }),
            }
        }
        for (i, slot) in values {
            slots.insert(i, slot);
        }
        (slots, descriptor, payload)
    })
}

/// Facts of a chunk for its layout.
pub struct Chunk<'a> {
    /// Events, with the number of their class.
    pub events: &'a [(usize, Event)],
    /// Loss before the chunk.
    pub loss: Loss,
    /// Events before.
    pub first_event: u64,
    /// Time of the last event before, where the chunk has none.
    pub time_before: u64,
}

#[derive(Default)]
struct Tables {
    descriptors: Vec<Vec<u8>>,
    keys: Vec<(usize, usize, Vec<Value>)>,
    contexts: Vec<Vec<u8>>,
    heap: Vec<u8>,
    arrays: Vec<(Vec<u8>, usize)>,
}

impl Tables {
    fn array(&mut self, bytes: &[u8], big: bool) -> usize {
        if let Some((_, at)) = self.arrays.iter().find(|(known, _)| known == bytes) {
            return *at;
        }
        self.heap.resize(self.heap.len().next_multiple_of(4), 0);
        let at = self.heap.len();
        self.heap.extend(number(bytes.len() as u64, 4, big));
        self.heap.extend(bytes);
        self.arrays.push((bytes.to_vec(), at));
        at
    }

    /// The fields that stand in `place`, one behind the other.
    fn pack(&mut self, event: &Event, slots: &[Slot], place: u8, big: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for (value, slot) in event.all_values().iter().zip(slots).filter(|(_, s)| s.0 == place) {
            let stored = match value {
                Value::Number(value) => *value,
                Value::Array(bytes) => self.array(bytes, big) as u64,
            };
            out.extend(number(stored, slot.1, big));
        }
        out
    }

    /// Index of the descriptor, and the value word.
    fn event(&mut self, number_of_class: usize, event: &Event, layout: &Layout) -> (usize, u64) {
        let (class, big) = (event.class, layout.big);
        let shapes = shapes(class, layout.long);
        let values = event.all_values();
        let fields = class.all_fields();
        let word = |name: &str| match values[fields.iter().position(|f| f.name == name).expect("a field")] {
            Value::Number(value) => value,
            Value::Array(_) => unreachable!("a number"),
        };
        let mut value =
            fields.iter().zip(&values).find(|(f, _)| f.place == Place::Value).map_or(0, |(_, v)| match v {
                Value::Number(value) => *value,
                Value::Array(_) => 0,
            });
        let mut which = if fits(&fields, &values, &shapes[0].0) { 0 } else { 1 };
        if is_timed(class, layout.long) {
            let (entered, returned) = (word("calltime"), word("rettime"));
            let low = event.time.checked_sub(returned).filter(|n| *n < 1 << 32);
            let high = returned.checked_sub(entered).filter(|n| *n < 1 << 32);
            match low.zip(high) {
                Some((low, high)) => value = high << 32 | low,
                None => which = 2,
            }
        }
        let slots = &shapes[which].0;
        let repeating = if which == 2 {
            let data = self.pack(event, slots, 4, big);
            self.heap.resize(self.heap.len().next_multiple_of(8), 0);
            value = self.heap.len() as u64;
            self.heap.extend(data);
            Vec::new()
        } else {
            values.iter().zip(slots).filter(|(_, s)| s.0 == 2).map(|(v, _)| v.clone()).collect()
        };
        let key = (number_of_class, which, repeating);
        if let Some(index) = self.keys.iter().position(|known| *known == key) {
            return (index, value);
        }
        let data = if which == 2 { Vec::new() } else { self.pack(event, slots, 2, big) };
        let mut out = Bytes::new(big);
        out.number((number_of_class * 3 + which) as u64, 2)
            .number(shapes[which].1 as u64, 2)
            .raw(&data)
            .align(4);
        self.descriptors.push(out.data);
        self.keys.push(key);
        (self.keys.len() - 1, value)
    }

    fn context(&mut self, event: &Event, big: bool) -> usize {
        let [flags, preempt, pid] = event.context;
        let bytes = [number(flags, 1, big), number(preempt, 1, big), number(pid, 4, big)].concat();
        self.contexts.iter().position(|c| *c == bytes).unwrap_or_else(|| {
            self.contexts.push(bytes);
            self.contexts.len() - 1
        })
    }
}

fn fits(fields: &[crate::classes::Field], values: &[Value], slots: &[Slot]) -> bool {
    fields.iter().zip(values).zip(slots).all(|((field, value), slot)| match value {
        Value::Number(value) if slot.0 == 2 && slot.1 == 4 => match field.signed {
            true => i32::try_from(*value as i64).is_ok(),
            false => u32::try_from(*value).is_ok(),
        },
        _ => true,
    })
}

/// The `classes` of a head with events of these classes.
pub fn class_bits(classes: impl Iterator<Item = usize>) -> u64 {
    classes.fold(0, |bits, class| bits | 1 << (class % 64))
}

/// The body, and where in it the records start.
pub fn body(chunk: &Chunk<'_>, layout: &Layout) -> (Vec<u8>, usize) {
    let Layout { big, long, .. } = *layout;
    let mut tables = Tables::default();
    let t_base = chunk.events.first().map_or(chunk.time_before, |(_, e)| e.time);
    let t_last = chunk.events.last().map_or(chunk.time_before, |(_, e)| e.time);
    let mut records = Bytes::new(big);
    let mut epochs = Bytes::new(big);
    let mut upper = 0;
    for (i, (class, event)) in chunk.events.iter().enumerate() {
        let context = tables.context(event, big);
        let (descriptor, value) = tables.event(*class, event, layout);
        let offset = event.time - t_base;
        if offset >> 32 != upper {
            upper = offset >> 32;
            epochs.u32(i).number(upper, 4);
        }
        records
            .number(offset & 0xffff_ffff, 4)
            .number(descriptor as u64, 2)
            .number(context as u64, 2)
            .number(value, long);
    }
    let head_len = if layout.padded { 104 } else { 96 };
    let stride = 8;
    let contexts: Vec<u8> = tables.contexts.iter().flat_map(|c| [c.as_slice(), &[0; 2]].concat()).collect();
    let descriptors_len: usize = tables.descriptors.iter().map(Vec::len).sum();
    let first =
        if layout.records_first { usize::next_multiple_of(head_len, 16) + records.len() } else { head_len };
    let epochs_at = first;
    let table_at = epochs_at + epochs.len();
    let data_at = table_at + tables.descriptors.len() * 4;
    let contexts_at = (data_at + descriptors_len).next_multiple_of(8);
    let heap_at = (contexts_at + contexts.len()).next_multiple_of(8);
    let records_at = if layout.records_first {
        head_len.next_multiple_of(16)
    } else {
        (heap_at + tables.heap.len()).next_multiple_of(16)
    };
    let mut out = Bytes::new(big);
    out.u32(head_len).number(chunk.loss.flags(), 4).number(chunk.loss.counted, 8);
    out.number(t_base, 8).number(t_last, 8).number(chunk.first_event, 8);
    out.u32(chunk.events.len())
        .u32(tables.descriptors.len())
        .u32(tables.contexts.len())
        .u32(epochs.len() / 8);
    out.u32(epochs_at).u32(table_at).u32(contexts_at).u32(records_at).u32(heap_at).u32(tables.heap.len());
    let context_stride = if contexts.is_empty() { 4 } else { stride };
    out.number(8 + long as u64, 2).number(context_stride, 2).u32(0);
    let classes = chunk.events.iter().map(|(class, _)| *class);
    out.number(class_bits(classes), 8).fill(0xee, head_len);
    if layout.records_first {
        out.fill(0, records_at).raw(&records.data);
    }
    out.raw(&epochs.data);
    let mut at = data_at;
    for descriptor in &tables.descriptors {
        out.u32(at);
        at += descriptor.len();
    }
    tables.descriptors.iter().for_each(|d| {
        out.raw(d);
    });
    out.fill(0, contexts_at).raw(&contexts).fill(0, heap_at).raw(&tables.heap);
    if !layout.records_first {
        out.fill(0, records_at).raw(&records.data);
    }
    (out.data, records_at)
}
