//! The naive reader's events. Sections "EVNT" and "Shapes and slots".

use std::collections::BTreeMap;

use super::naive::{Bytes, Class, Event, Field, File, Shape, Slot, Value};

pub fn events(
    body: Bytes<'_>,
    cpu: u32,
    classes: &BTreeMap<usize, Class>,
    shapes: &BTreeMap<usize, Shape>,
    file: &mut File,
) {
    let [
        records,
        descriptors,
        contexts,
        epochs,
        epochs_at,
        descriptors_at,
        contexts_at,
        records_at,
        heap_at,
        heap_len,
    ] = [40, 44, 48, 52, 56, 60, 64, 68, 72, 76].map(|at| body.u32(at));
    let t_base = body.number(16, 8);
    let (stride, context_stride) = (body.number(80, 2) as usize, body.number(82, 2) as usize);
    assert_eq!(stride, 8 + file.long);
    let heap = body.from(if heap_len == 0 { 0 } else { heap_at }, heap_len);
    let list = file.events.entry(cpu).or_default();
    for i in 0..records {
        let at = records_at + i * stride;
        let upper = (0..epochs)
            .map(|e| epochs_at + e * 8)
            .rfind(|&e| body.u32(e) <= i)
            .map(|e| body.number(e + 4, 4))
            .unwrap_or(0);
        let time = t_base.wrapping_add(upper << 32 | body.number(at, 4));
        assert!((body.number(at + 4, 2) as usize) < descriptors);
        assert!((body.number(at + 6, 2) as usize) < contexts);
        let descriptor = body.u32(descriptors_at + body.number(at + 4, 2) as usize * 4);
        let shape = &shapes[&(body.number(descriptor, 2) as usize)];
        let context = contexts_at + body.number(at + 6, 2) as usize * context_stride;
        let word = body.number(at + 8, stride - 8);
        let class = &classes[&shape.class];
        let stored = |n: usize| {
            let slot = &shape.slots[n];
            match slot.place {
                0 => class.id,
                1 => body.number(context + slot.offset, slot.stored),
                2 => body.number(descriptor + 4 + slot.offset, slot.stored),
                3 => word >> (8 * slot.offset) & (u64::MAX >> (64 - 8 * slot.stored)),
                4 => {
                    assert!(shape.payload_len >= slot.offset + slot.stored);
                    heap.number(word as usize + slot.offset, slot.stored)
                }
                other => panic!("place {other}"),
            }
        };
        let values: Vec<Value> = (0..class.fields.len())
            .map(|n| value(n, &class.fields, &shape.slots, time, &stored, heap))
            .collect();
        list.push(event((cpu, time), (shape.class, class), values));
    }
}

/// The value of a field; `stored` gives the stored number of one.
fn value(
    n: usize,
    fields: &[Field],
    slots: &[Slot],
    time: u64,
    stored: &dyn Fn(usize) -> u64,
    heap: Bytes<'_>,
) -> Value {
    let (field, slot) = (&fields[n], &slots[n]);
    if field.kind > 4 || slot.place > 4 || slot.transform > 2 {
        return Value::Opaque;
    }
    if field.kind != 0 {
        let at = stored(n) as usize;
        return Value::Bytes(heap.from(at + 4, heap.u32(at)).data.to_vec());
    }
    let from = match slot.transform {
        0 => return extended(stored(n), if slot.place == 0 { 2 } else { slot.stored }, field.signed),
        1 => time,
        _ if slots[slot.base].transform == 2 => return Value::Opaque,
        _ => match value(slot.base, fields, slots, time, stored, heap) {
            Value::Number(number) => number,
            _ => return Value::Opaque,
        },
    };
    extended(from.wrapping_sub(stored(n)), field.size, field.signed)
}

/// The lower `len` bytes of a number, extended to 64 bits.
pub fn extended(number: u64, len: usize, signed: bool) -> Value {
    let shift = 64 - 8 * len;
    let raw = number << shift;
    Value::Number(if signed { (raw as i64 >> shift) as u64 } else { raw >> shift })
}

/// An event of these values.
pub fn event((cpu, time): (u32, u64), (number, class): (usize, &Class), values: Vec<Value>) -> Event {
    let with_role = |role: u64| {
        let at = class.fields.iter().position(|f| f.role == role);
        at.map_or(0, |at| if let Value::Number(n) = values[at] { n } else { 0 })
    };
    // Of common_pid the lower four bytes count.
    let (flags, pid) = (with_role(2), with_role(4) & 0xffff_ffff);
    let names = class.fields.iter().map(|f| f.name.clone());
    Event {
        cpu,
        time,
        system: class.system.clone(),
        name: class.name.clone(),
        signed: class.fields.iter().map(|f| f.signed).collect(),
        class: number,
        meaning: class.meaning,
        flags,
        pid,
        fields: names.zip(values).collect(),
    }
}
