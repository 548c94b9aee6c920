//! The naive reader's sub-buffers. Section "RAWP".

use std::collections::BTreeMap;

use super::naive::{Bytes, Class, Event, File, Value};
use super::naive_events::{event, extended};

/// Sub-buffers as section RAWP tells how to walk them; fields as the class places them in the record.
pub fn sub_buffers(body: Bytes<'_>, cpu: u32, classes: &BTreeMap<usize, Class>, file: &mut File) {
    let [head_len, count, len, number] = [0, 40, 44, 48].map(|at| body.u32(at));
    let class_limit = body.u32(60);
    let [stamp_at, commit_at, commit_size, data_at] = [52, 54, 56, 58].map(|at| body.number(at, 2) as usize);
    let long = file.long;
    let list = file.events.entry(cpu).or_default();
    let before = list.len();
    for i in 0..number {
        let sub_buffer = body.from(head_len + i * len, len);
        let mut time = sub_buffer.number(stamp_at, 8);
        let commit = sub_buffer.number(commit_at, commit_size);
        let committed = commit as usize & 0x7ff_ffff;
        assert!(i == 0 || commit >> 30 & 3 == 0, "a loss stands where a chunk starts");
        let data = sub_buffer.from(data_at, committed);
        let mut at = 0;
        while at + 4 <= committed {
            let word = data.u32(at);
            let (kind, delta) =
                if body.big { (word >> 27, word & 0x7ff_ffff) } else { (word & 31, word >> 5) };
            let delta = delta as u64;
            let second = || data.u32(at + 4);
            let long_delta = || delta + ((second() as u64) << 27);
            let record_at = match kind {
                0 => Some((at + 8, second() - 4)),
                1..=28 => Some((at + 4, kind * 4)),
                _ => None,
            };
            if let Some((start, size)) = record_at {
                time = time.wrapping_add(delta);
                list.push(record(data.from(start, size), cpu, time, (classes, class_limit), long));
                at = (start + size).next_multiple_of(4);
                continue;
            }
            match kind {
                29 if delta == 0 => break,
                29 => {
                    time = time.wrapping_add(if delta == 1 { 0 } else { delta });
                    at = (at + 4 + second()).next_multiple_of(4);
                }
                30 => {
                    time = time.wrapping_add(long_delta());
                    at += 8;
                }
                _ => {
                    let upper = time >> 59 << 59;
                    let stamp = long_delta() | upper;
                    let is_wrapped = if upper == 0 { time > stamp + (1 << 58) } else { time > stamp };
                    time = if is_wrapped { stamp.wrapping_add(1 << 59) } else { stamp };
                    at += 8;
                }
            }
        }
    }
    assert_eq!(list.len() - before, count);
}

fn record(
    record: Bytes<'_>,
    cpu: u32,
    time: u64,
    (classes, class_limit): (&BTreeMap<usize, Class>, usize),
    long: usize,
) -> Event {
    let id = record.number(0, 2);
    let (number, class) = classes.range(..class_limit).rev().find(|(_, c)| c.id == id).unwrap();
    // Of several fields with one role the first one counts; if it is an array, there is no depth.
    let depth = class.fields.iter().find(|f| f.role == 18).filter(|f| f.kind == 0);
    // What lies outside the record is cut off.
    let cut = |start: usize, len: usize| {
        let start = start.min(record.data.len());
        &record.data[start..record.data.len().min(start.saturating_add(len))]
    };
    let fields = class.fields.iter().map(|f| match f.kind {
        0 => extended(record.number(f.offset, f.size), f.size, f.signed),
        1 | 4 if f.role == 17 && depth.is_some() => {
            let depth = depth.map_or(0, |f| record.number(f.offset, f.size));
            let room = record.data.len().saturating_sub(f.offset) / long;
            Value::Bytes(cut(f.offset, (depth.min(room as u64) as usize) * long).to_vec())
        }
        1 => {
            let bytes = cut(f.offset, f.size);
            let len = if f.is_text { bytes.iter().position(|&b| b == 0) } else { None };
            Value::Bytes(bytes[..len.unwrap_or(bytes.len())].to_vec())
        }
        4 => Value::Bytes(cut(f.offset, usize::MAX).to_vec()),
        5.. => Value::Opaque,
        kind => {
            let locator = record.u32(f.offset);
            let origin = if kind == 3 { f.offset + 4 } else { 0 };
            Value::Bytes(cut(origin + (locator & 0xffff), locator >> 16).to_vec())
        }
    });
    event((cpu, time), (*number, class), fields.collect())
}
