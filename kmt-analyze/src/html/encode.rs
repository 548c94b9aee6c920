//! The page's numbers, packed: variable-length integers, compressed.
//!
//! Layout, for each table: the number of rows; for each row the number of its steps with changes, and the sizes of its
//! objects (allocated, requested); then the numbers of the steps, each but the first of a row as the distance to the one
//! before; then each column over all rows and steps. Numbers are in base 128, the lowest digits first; those of columns
//! are zigzag. Columns that follow from others are stored as the difference to what follows: mostly zeros.
//! `web/src/decode.ts` reads it.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::groups::{RowGroup, SteppedRow};
use crate::collect::steps::Flows;
use crate::collect::sums::Sums;

/// Packs all tables, `times` steps in one.
pub fn packed(groups: &[RowGroup], times: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for group in groups {
        let rows: Vec<Vec<(u32, Flows)>> = group.rows.iter().map(|row| coarser(row, times)).collect();
        let units: Vec<(i64, i64)> = rows.iter().map(|row| sizes(row)).collect();
        put(&mut out, rows.len() as u64);
        for (row, (allocated, requested)) in rows.iter().zip(&units) {
            for number in [row.len() as u64, *allocated as u64, *requested as u64] {
                put(&mut out, number);
            }
        }
        for row in &rows {
            let mut last = 0;
            for (step, _) in row {
                put(&mut out, u64::from(step - last));
                last = *step;
            }
        }
        let is_pages = group.scale > 1;
        for column in 0..if is_pages { 5 } else { 10 } {
            for (row, units) in rows.iter().zip(&units) {
                for (_, flows) in row {
                    let number = if is_pages { pages(flows, column) } else { objects(flows, *units, column) };
                    put(&mut out, zigzag(number));
                }
            }
        }
    }
    out
}

/// A column of slab objects; `units` are the sizes of an object.
fn objects(flows: &Flows, (allocated, requested): (i64, i64), column: usize) -> i64 {
    let beyond = |bytes: i64, count: i64, size: i64| bytes.wrapping_sub(count.wrapping_mul(size));
    match column {
        0 => flows.allocs,
        1 => beyond(flows.bytes_alloc, flows.allocs, allocated),
        2 => beyond(flows.bytes_req, flows.allocs, requested),
        3 => flows.frees,
        4 => beyond(flows.bytes_freed, flows.frees, allocated),
        5 => flows.unseen,
        6 => beyond(flows.bytes_unseen, flows.unseen, allocated),
        7 => beyond(flows.live_change, flows.allocs - flows.frees - flows.unseen, 1),
        8 => beyond(flows.bytes_live_change, flows.live_change, allocated),
        _ => beyond(flows.bytes_req_live_change, flows.live_change, requested),
    }
}

/// A column of pages.
fn pages(flows: &Flows, column: usize) -> i64 {
    match column {
        0 => flows.allocs,
        1 => flows.bytes_alloc,
        2 => flows.bytes_freed,
        3 => flows.bytes_unseen,
        _ => flows.bytes_live_change - (flows.bytes_alloc - flows.bytes_freed - flows.bytes_unseen),
    }
}

/// Sizes of the objects of a row, if all have the same; else those of the first, or 0.
fn sizes(row: &[(u32, Flows)]) -> (i64, i64) {
    let first = row.iter().find(|(_, flows)| flows.allocs > 0);
    first.map_or((0, 0), |(_, flows)| (flows.bytes_alloc / flows.allocs, flows.bytes_req / flows.allocs))
}

/// The steps of a row, several in one.
fn coarser(row: &SteppedRow, times: u32) -> Vec<(u32, Flows)> {
    let mut out: Vec<(u32, Flows)> = Vec::with_capacity(row.steps.len());
    for (step, flows) in &row.steps {
        match out.last_mut().filter(|(last, _)| *last == step / times) {
            Some((_, sum)) => sum.absorb(*flows),
            None => out.push((step / times, *flows)),
        }
    }
    out
}

/// A length and sign in one: small numbers stay small.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Compressed (RFC 1950), as the browser's DecompressionStream reads it.
pub fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = ZlibEncoder::new(Vec::new(), Compression::new(7));
    // Writing to memory cannot fail.
    let _ = out.write_all(bytes);
    out.finish().unwrap_or_default()
}

/// About the compressed size, by every eighth piece: to compress all takes a second where there is much.
pub fn estimate(bytes: &[u8]) -> usize {
    const PIECE: usize = 1 << 15;
    let sample: Vec<u8> = bytes.chunks(PIECE).step_by(8).flatten().copied().collect();
    match sample.len() {
        0 => 0,
        length => (compressed(&sample).len() as u128 * bytes.len() as u128 / length as u128) as usize,
    }
}

/// Base 64 (RFC 4648, section 4).
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) as usize & 63;
            out.push(if digit > three.len() { '=' } else { char::from(DIGITS[value]) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_base_64() {
        let of = |text: &str| base64(text.as_bytes());
        assert_eq!(
            [of(""), of("f"), of("fo"), of("foo"), of("foobar")],
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYmFy"]
        );
    }

    #[test]
    fn small_numbers_take_a_byte() {
        assert_eq!([0, -1, 1, -64, i64::MIN].map(zigzag), [0, 1, 2, 127, u64::MAX]);
        let mut out = Vec::new();
        for number in [127, 128, u64::MAX] {
            put(&mut out, number);
        }
        assert_eq!(out.len(), 1 + 2 + 10);
    }
}
