//! Many parts of a file: streams, chunks, losses, texts.

use kmt_format::write::Loss;

use super::{HEAP, SITE};
use crate::support::hostile::{Made, cache_frees, chunk};

/// Objects that each CPU frees for its neighbour.
pub fn cpus(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    (0..count).for_each(|i| made.kmalloc(i as u32, 7, SITE, HEAP + i * 64));
    (0..count).for_each(|i| made.kfree(((i + 1) % count) as u32, SITE, HEAP + i * 64));
    made.finish()
}

/// Chunks of a few events on four CPUs.
pub fn chunks(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        let cpu = (i % 4) as u32;
        (0..4).for_each(|k| made.kmalloc(cpu, 7, SITE + k * 16, HEAP + (i * 4 + k) * 64));
        made.writer().flush(cpu).unwrap();
    }
    made.finish()
}

/// Losses between chunks.
pub fn losses(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        let cpu = (i % 4) as u32;
        (0..4).for_each(|k| made.kmalloc(cpu, 7, SITE + k * 16, HEAP + (i * 4 + k) * 64));
        made.writer().add_loss(cpu, Loss::counted(i % 7 + 1)).unwrap();
    }
    made.finish()
}

/// Event chunks without events.
pub fn empty_chunks(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    (0..1_000).for_each(|i| made.kmalloc(0, 7, SITE, HEAP + i * 64));
    let body = cache_frees(0, std::iter::empty(), &[]);
    let chunks = (0..count as u32).map(|i| chunk(b"EVNT", Some((i % 100 + 1, i / 100)), &body, false));
    made.with(1, chunks)
}

/// Each free names a text of its own, of some length.
pub fn texts(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.kmalloc(0, 7, SITE, HEAP + i * 64);
        made.cache_free(0, SITE, HEAP + i * 64, format!("{i:0100}").as_bytes());
    }
    made.finish()
}
