//! Many slab objects, and of each of their facts many values.

use super::{HEAP, SITE, bytes};
use crate::support::hostile::Made;

/// Objects of one call site that stay.
pub fn live(count: u64) -> Vec<u8> {
    many(count, |made, i| made.kmalloc(0, 7, SITE, HEAP + i * 64))
}

/// Objects that are freed a hundred events later.
pub fn lives(count: u64) -> Vec<u8> {
    many(count, |made, i| {
        made.kmalloc((i % 2) as u32, 7, SITE, HEAP + i * 64);
        if i >= 50 {
            made.kfree(0, SITE, HEAP + (i - 50) * 64);
        }
    })
}

/// Each object has a call site of its own.
pub fn call_sites(count: u64) -> Vec<u8> {
    many(count, |made, i| made.kmalloc(0, 7, SITE + i * 16, HEAP + i * 64))
}

/// The same, each freed by the next one.
pub fn lives_of_call_sites(count: u64) -> Vec<u8> {
    many(count, |made, i| {
        made.kmalloc(0, 7, SITE + i * 16, HEAP + i * 64);
        made.kfree(0, SITE + i * 16, HEAP + i.saturating_sub(1) * 64);
    })
}

/// Each object has sizes of its own.
pub fn sizes(count: u64) -> Vec<u8> {
    facts(count, |i| [i + 1, i + 8, 0xcc0, u64::MAX])
}

/// Each object has flags of its own.
pub fn gfp_flags(count: u64) -> Vec<u8> {
    facts(count, |i| [60, 64, i, u64::MAX])
}

/// Each object is asked for on another node.
pub fn nodes(count: u64) -> Vec<u8> {
    facts(count, |i| [60, 64, 0xcc0, i])
}

/// Each frees what no event allocated.
pub fn unseen(count: u64) -> Vec<u8> {
    many(count, |made, i| made.kfree(0, SITE + i % 1000 * 16, HEAP + i * 64))
}

/// One address is allocated again and again, and not freed.
pub fn one_address(count: u64) -> Vec<u8> {
    many(count, |made, i| made.kmalloc(0, 7, SITE + i % 1000 * 16, HEAP))
}

/// Each object lies half in the one before.
pub fn overlapping(count: u64) -> Vec<u8> {
    many(count, |made, i| made.kmalloc(0, 7, SITE, HEAP + i * 32))
}

/// Each object lives longer than the one before, at a call site of its own.
pub fn lengths(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    (0..count).for_each(|i| made.kmalloc(0, 7, SITE + i * 16, HEAP + i * 64));
    (0..count).rev().for_each(|i| made.kfree(1, SITE, HEAP + i * 64));
    made.finish()
}

/// Each event comes longer after the one before.
pub fn gaps(count: u64) -> Vec<u8> {
    many(count, |made, i| {
        made.set_time(1_000_000 + i * i * 1_000);
        made.kmalloc(0, 7, SITE, HEAP + i * 64);
    })
}

/// Each event of a CPU comes before the one before, and after one of another CPU.
pub fn steps_back(count: u64) -> Vec<u8> {
    many(count, |made, i| {
        made.set_time((1 << 40) - i * 1_000);
        made.kmalloc((i % 3) as u32, 7, SITE, HEAP + i * 64);
        made.set_time((1 << 30) + i * 1_000);
        made.kfree(((i + 1) % 3) as u32, SITE, HEAP + i * 64);
    })
}

fn facts(count: u64, facts: impl Fn(u64) -> [u64; 4]) -> Vec<u8> {
    many(count, |made, i| {
        let rest = [&[SITE, HEAP + i * 64], &facts(i)[..]].concat();
        made.event(0, 11, 7, &bytes(&rest)[..44]);
    })
}

fn many(count: u64, mut event: impl FnMut(&mut Made, u64)) -> Vec<u8> {
    let mut made = Made::default();
    (0..count).for_each(|i| event(&mut made, i));
    made.finish()
}
