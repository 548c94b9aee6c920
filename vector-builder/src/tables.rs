//! Tables with texts: source lines, cgroups, totals.

use crate::bytes::Bytes;
use crate::model::{Layout, Op};
use crate::rows::{Heap, table_with};

/// Kind, flags and body of such a chunk.
pub fn chunk(op: &Op, layout: &Layout) -> (&'static [u8; 4], u8, Vec<u8>) {
    let mut heap = Heap::default();
    let mut rows = Vec::new();
    let mut row = |fill: &mut dyn FnMut(&mut Bytes, &mut Heap)| {
        let mut row = Bytes::new(layout.big);
        fill(&mut row, &mut heap);
        rows.push(row);
    };
    let (kind, row_len) = match op {
        Op::Lines(lines) => {
            for (address, function, file, line, depth) in lines {
                row(&mut |row, heap| {
                    let (function, file) = (heap.push(function.as_bytes()), heap.push(file.as_bytes()));
                    row.number(*address, 8).u32(function.0).u32(function.1).u32(file.0).u32(file.1);
                    row.number(*line, 4).number(*depth, 2).number(0, 2);
                });
            }
            (b"LINE", 32)
        }
        Op::Cgroups(cgroups) => {
            for (time, id, pid, hierarchy, path) in cgroups {
                row(&mut |row, heap| {
                    let path = heap.push(path.as_bytes());
                    row.number(*time, 8).number(*id, 8).number(*pid as u64, 4).number(*hierarchy, 4);
                    row.u32(path.0).u32(path.1);
                });
            }
            (b"CGRP", 32)
        }
        Op::Sums(sums) => {
            for ([first, last], call_site, function, meaning, numbers) in sums {
                row(&mut |row, heap| {
                    let function = heap.push(function.as_bytes());
                    row.number(*first, 8).number(*last, 8).number(*call_site, 8);
                    numbers.iter().for_each(|n| {
                        row.number(n.unwrap_or(0), 8);
                    });
                    let present = (0..3).filter(|&i| numbers[i].is_some()).fold(0, |bits, i| bits | 1 << i);
                    row.u32(function.0).u32(function.1).number(*meaning, 2).number(present, 2).u32(0);
                });
            }
            (b"SUMS", 64)
        }
        _ => unreachable!("no table with texts"),
    };
    (kind, 2, table_with(&rows, row_len, &heap.bytes, layout))
}
