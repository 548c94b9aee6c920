//! The bodies of all other chunks.

use crate::bytes::Bytes;
use crate::classes::Class;
use crate::events::shapes;
use crate::model::{Layout, Op};
use crate::rows::{Heap, table};
use crate::tables;

/// A schema chunk with these classes, the first of which has number `first`.
pub fn schema(classes: &[&Class], first: usize, layout: &Layout) -> Vec<u8> {
    let Layout { big, long, padded, .. } = *layout;
    let more = if padded { 4 } else { 0 };
    let [mut class_rows, mut field_rows, mut shape_rows, mut slot_rows] = [(); 4].map(|()| Bytes::new(big));
    let [class_len, field_len, shape_len, slot_len] = [44, 32, 16, 8].map(|len| len + more);
    let mut heap = Heap::default();
    for (i, class) in classes.iter().enumerate() {
        let text = class.format_text(long);
        let (text_at, text_len) = heap.push(text.as_bytes());
        let (system, name) = (heap.push(class.system.as_bytes()), heap.push(class.name.as_bytes()));
        let fields = class.all_fields();
        let end = class_rows.len() + class_len;
        class_rows
            .number(class.id.into(), 2)
            .number(class.meaning.into(), 2)
            .number(fields.len() as u64, 2)
            .number(4, 2);
        class_rows.u32(field_rows.len() / field_len).u32(system.0).u32(system.1).u32(name.0).u32(name.1);
        let print_at = text.find("print fmt: ").expect("every format has one") + 11;
        class_rows.u32(text_at).u32(text_len).u32(text_at + print_at).u32(class.print.len()).fill(0xee, end);
        for (field, offset) in fields.iter().zip(class.offsets(long)) {
            let (name, ctype) = (heap.push(field.name.as_bytes()), heap.push(field.ctype.as_bytes()));
            let end = field_rows.len() + field_len;
            field_rows
                .u32(name.0)
                .u32(name.1)
                .u32(ctype.0)
                .u32(ctype.1)
                .u32(offset)
                .u32(field.record_size(long));
            field_rows.raw(&[field.kind, field.signed.into(), field.element_size(long) as u8, 0]);
            field_rows.number(field.role.into(), 2).number(0, 2).fill(0xee, end);
        }
        for (slots, descriptor, payload) in shapes(class, long) {
            let end = shape_rows.len() + shape_len;
            shape_rows
                .u32(first + i)
                .u32(slot_rows.len() / slot_len)
                .u32(descriptor)
                .u32(payload)
                .fill(0xee, end);
            for (place, stored, transform, base, offset) in slots {
                let end = slot_rows.len() + slot_len;
                slot_rows.raw(&[place, stored as u8, transform, base]).u32(offset).fill(0xee, end);
            }
        }
    }
    let mut out = Bytes::new(big);
    let head_len = if padded { 48 } else { 40 };
    out.u32(head_len).u32(first).u32(first * 3).u32(classes.len()).u32(field_rows.len() / field_len);
    out.u32(classes.len() * 3).u32(slot_rows.len() / slot_len).u32(heap.bytes.len());
    for len in [class_len, field_len, shape_len, slot_len] {
        out.number(len as u64, 2);
    }
    out.fill(0xee, head_len)
        .raw(&class_rows.data)
        .raw(&field_rows.data)
        .raw(&shape_rows.data)
        .raw(&slot_rows.data);
    out.raw(&heap.bytes).data.clone()
}

/// Kind, flags and body of a chunk without events.
pub fn metadata(op: &Op, layout: &Layout) -> (&'static [u8; 4], u8, Vec<u8>) {
    let big = layout.big;
    let bytes = || Bytes::new(big);
    let more = if layout.padded { 8 } else { 0 };
    match op {
        Op::Clock(name, ticks, comparable) => {
            let mut out = bytes();
            out.u32(12 + more).raw(&[(*ticks).into(), (*comparable).into(), 0, 0]).u32(name.len());
            (b"CLOK", 1, out.fill(0xee, 12 + more).raw(name.as_bytes()).data.clone())
        }
        Op::Meta(pairs) => {
            let mut out = bytes();
            out.u32(12 + more).u32(8 + more).u32(pairs.len()).fill(0xee, 12 + more);
            for (key, value) in pairs {
                let end = out.len() + 8 + more;
                out.u32(key.len()).u32(value.len()).fill(0xee, end);
                out.raw(key.as_bytes()).raw(value).align(4);
            }
            (b"META", 2, out.data)
        }
        Op::File(name, contents, times) => {
            let mut out = bytes();
            let (first, last) = times.unwrap_or((0, 0));
            out.u32(40 + more).u32(name.len()).number(contents.len() as u64, 8);
            out.number(first, 8).number(last, 8).number(times.is_some().into(), 4).u32(0);
            out.fill(0xee, 40 + more).raw(name.as_bytes()).align(8).raw(contents);
            (b"FILE", 2, out.data)
        }
        Op::Lines(..) | Op::Cgroups(..) | Op::Sums(..) => tables::chunk(op, layout),
        Op::Tasks(tasks) => {
            let row = |(time, pid, tgid, comm): &(u64, i32, i32, &str)| {
                let mut row = bytes();
                row.number(*time, 8)
                    .number(*pid as u64, 4)
                    .number(*tgid as u64, 4)
                    .raw(comm.as_bytes())
                    .fill(0, 32);
                row
            };
            (b"TASK", 2, table(&tasks.iter().map(row).collect::<Vec<_>>(), 32, layout))
        }
        Op::Stats(stats) => {
            let row = |(cpu, taken, numbers): &(u32, u64, [Option<u64>; 11])| {
                let present = (0..11).filter(|&i| numbers[i].is_some()).fold(0, |bits, i| bits | 1 << i);
                let mut row = bytes();
                row.number(u64::from(*cpu), 4).number(*taken, 4).number(present, 4).u32(0);
                numbers.iter().for_each(|n| {
                    row.number(n.unwrap_or(0), 8);
                });
                row
            };
            (b"STAT", 2, table(&stats.iter().map(row).collect::<Vec<_>>(), 104, layout))
        }
        Op::Symbols(owners, symbols, (start, end)) => {
            let mut heap = Vec::new();
            let [mut owner_rows, mut block_rows] = [bytes(), bytes()];
            for (name, base, size) in owners {
                let row_end = owner_rows.len() + 24 + more;
                owner_rows.number(*base, 8).number(*size, 8).u32(heap.len()).u32(name.len());
                owner_rows.fill(0xee, row_end);
                heap.extend_from_slice(name.as_bytes());
            }
            // The writer's blocks have 32 symbols; another writer's may have fewer.
            for block in symbols.chunks(if layout.padded { 2 } else { 32 }) {
                let row_end = block_rows.len() + 16 + more;
                block_rows.number(block[0].0, 8).u32(heap.len()).number(block.len() as u64, 2).number(0, 2);
                block_rows.fill(0xee, row_end);
                symbol_block(&mut heap, block);
            }
            let block_count = symbols.len().div_ceil(if layout.padded { 2 } else { 32 });
            let mut out = bytes();
            out.u32(48 + more).u32(owners.len()).u32(symbols.len()).u32(block_count);
            out.number(*start, 8).number(*end, 8).u32(24 + more).u32(16 + more).u32(heap.len()).u32(0);
            out.fill(0xee, 48 + more);
            (b"KSYM", 2, out.raw(&owner_rows.data).raw(&block_rows.data).raw(&heap).data.clone())
        }
        _ => unreachable!("not metadata"),
    }
}

/// Each symbol by its difference from the one before.
fn symbol_block(heap: &mut Vec<u8>, symbols: &[crate::model::Symbol]) {
    let (mut last_address, mut last_owner, mut last_name) = (symbols[0].0, 0, "");
    for (address, size, kind, owner, name) in symbols {
        heap.push(if *owner == last_owner { *kind } else { *kind | 0x80 });
        if *owner != last_owner {
            leb128(heap, u64::from(*owner));
        }
        leb128(heap, address - last_address);
        leb128(heap, *size);
        let shared = name.bytes().zip(last_name.bytes()).take_while(|(a, b)| a == b).count();
        heap.push(shared as u8);
        leb128(heap, (name.len() - shared) as u64);
        heap.extend_from_slice(&name.as_bytes()[shared..]);
        (last_address, last_owner, last_name) = (*address, *owner, name);
    }
}

/// 7 bits a byte, the lowest first; the upper bit says that another byte follows.
fn leb128(out: &mut Vec<u8>, number: u64) {
    match number >> 7 {
        0 => out.push(number as u8),
        rest => {
            out.push(number as u8 | 0x80);
            leb128(out, rest);
        }
    }
}
