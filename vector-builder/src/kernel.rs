//! Data of the kernel: records and sub-buffers.

use crate::bytes::{Bytes, number};
use crate::model::{End, Event, How, Layout, Loss, Value, is_stack};

/// The record of an event, from `common_type` on. Padding is 0xa5, as stale memory would be.
pub fn record(event: &Event, big: bool, long: usize) -> Vec<u8> {
    let class = event.class;
    let (fields, offsets) = (class.all_fields(), class.offsets(long));
    let ends = fields
        .iter()
        .zip(&offsets)
        .map(|(f, o)| o + if is_stack(class, f.name) { 0 } else { f.record_size(long) });
    let mut record = vec![0xa5; ends.max().unwrap_or(0)];
    for ((field, &offset), value) in fields.iter().zip(&offsets).zip(event.all_values()) {
        match value {
            Value::Number(value) => {
                let bytes = number(value, field.record_size(long), big);
                record[offset..offset + bytes.len()].copy_from_slice(&bytes);
            }
            Value::Array(bytes) if field.kind == 1 && !is_stack(class, field.name) => {
                record[offset..offset + bytes.len()].copy_from_slice(&bytes);
                if let Some(nul) = record[..offset + field.size].get_mut(offset + bytes.len()) {
                    *nul = 0;
                }
            }
            Value::Array(bytes) if field.kind == 1 || field.kind == 4 => {
                record.resize(record.len().max(offset), 0xa5);
                record.extend(bytes);
            }
            Value::Array(bytes) => {
                record.resize(record.len().next_multiple_of(4), 0xa5);
                let origin = if field.kind == 3 { offset + 4 } else { 0 };
                let locator = (bytes.len() << 16 | (record.len() - origin)) as u64;
                record[offset..offset + 4].copy_from_slice(&number(locator, 4, big));
                record.extend(bytes);
            }
        }
    }
    record.resize(record.len().next_multiple_of(4), 0xa5);
    record
}

/// A sub-buffer: time stamp, commit word, events with deltas, the lost count behind them.
pub fn sub_buffer(events: &[Event], loss: Loss, how: How, layout: &Layout) -> Vec<u8> {
    let Layout { big, long, sub_buffer_len, .. } = *layout;
    let mut data = Bytes::new(big);
    let start = events.first().map_or(0, |e| e.time);
    let mut last = start;
    let head = |kind: u64, delta: u64, data: &mut Bytes| {
        let word = if big { kind << 27 | delta } else { delta << 5 | kind };
        data.number(word, 4);
    };
    for event in events {
        let record = record(event, big, long);
        let mut delta = event.time.wrapping_sub(last);
        last = event.time;
        if how.discards && !data.is_empty() {
            // A kernel makes 0 into 1, and a reader takes it back.
            let taken = delta / 2;
            head(29, taken.max(1), &mut data);
            data.number(8, 4).raw(&[0xa5; 4]);
            delta -= if taken > 1 { taken } else { 0 };
        }
        if how.absolute {
            head(31, event.time & 0x7ff_ffff, &mut data);
            data.number(event.time >> 27 & 0xffff_ffff, 4);
            delta = 0;
        }
        if delta >= 1 << 27 {
            head(30, delta & 0x7ff_ffff, &mut data);
            data.number(delta >> 27, 4);
            delta = 0;
        }
        if record.len() <= 112 {
            head(record.len() as u64 / 4, delta, &mut data);
        } else {
            head(0, delta, &mut data);
            data.number(record.len() as u64 + 4, 4);
        }
        data.raw(&record);
    }
    let room = sub_buffer_len - 8 - long;
    match how.end {
        End::Data => {}
        End::Void => {
            head(29, 0, &mut data);
            data.raw(&[0xa5; 8]);
        }
        End::Filler => {
            let rest = room - data.len();
            head(29, 1, &mut data);
            data.number(rest as u64 - 4, 4).fill(0xa5, room);
        }
    }
    let flags = match loss {
        Loss { uncounted: true, .. } if how.stored_alone => 1 << 30,
        Loss { counted, .. } if counted > 0 => 3u64 << 30,
        Loss { uncounted: true, .. } => 1 << 31,
        _ => 0,
    };
    let mut out = Bytes::new(big);
    out.number(start, 8).number(data.len() as u64 | flags, long).raw(&data.data);
    if loss.counted > 0 && how.end != End::Filler {
        out.number(loss.counted, long);
    }
    assert!(out.len() <= sub_buffer_len, "the events of a vector fit into a sub-buffer");
    out.fill(0, sub_buffer_len).data.clone()
}
