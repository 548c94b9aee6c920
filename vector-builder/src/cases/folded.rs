//! Files with folded lives: intervals of sums beside the events of what lives longer.

use super::Maker;
use crate::model::{Event, Fold, Lives, Op};

/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;

/// Bin of a length: the number itself up to 31, else 32 bins for each power of two.
pub fn bin(length: u64) -> u32 {
    if length < 32 {
        return length as u32;
    }
    let shift = length.ilog2() - 5;
    32 * (shift + 1) + (length >> shift) as u32 - 32
}

/// Frees of NULL with the free of another row, between two rows of lives. The last one has lives longer than a millisecond and
/// than a second.
fn first(m: Maker) -> Fold {
    let small = Lives {
        alloc: Some(m.kmalloc(10, 0x40, 100)),
        free: m.kfree(12, 0x40),
        sums: [5, 1, 2, 10 + 31 + 32 + 1_000 + 1_001, 1_001, 0, 0],
        bins: vec![(bin(10), 1), (bin(31), 1), (bin(32), 1), (bin(1_000), 2)],
    };
    let long = Lives {
        alloc: Some(m.cache_alloc(20, 0x80, "dentry")),
        free: m.free(30, 0x80, "dentry"),
        sums: [3, 0, 3, MS + (MS + 1) + 1_500 * MS, 1_500 * MS, 2, 1],
        bins: vec![(bin(MS), 2), (bin(1_500 * MS), 1)],
    };
    Fold {
        number: 0,
        begin: 1_000,
        end: 1_000 + 10_000 * MS,
        threshold: 10_000 * MS,
        written_through: false,
        cpus: vec![(0, 14), (3, 9)],
        rows: vec![small, null_frees(m.kfree(13, 0), 7), long],
    }
}

/// Rows with two allocations and one free; a bin that is listed three times; a row without lives; frees of NULL of a cache.
fn second(m: Maker, number: u64) -> Fold {
    let row = |bytes, sums, bins| Lives {
        alloc: Some(m.kmalloc(10, 0x40, bytes)),
        free: m.kfree(11, 0x40),
        sums,
        bins,
    };
    let rows = vec![
        row(9, [1 << 33, 0, 0, 9_000 * MS, 9_000 * MS, 1, 1], {
            vec![(0, u32::MAX), (0, u32::MAX), (0, 1), (bin(9_000 * MS), 1)]
        }),
        row(10, [0, 0, 0, 0, 0, 0, 0], vec![]),
        null_frees(m.free(12, 0, "inode_cache"), 3),
    ];
    let begin = 1_000 + 10_000 * MS * number;
    let cpus = vec![(1, (1 << 34) + 3)];
    Fold { number, begin, end: begin + 10_000 * MS, written_through: true, cpus, rows, ..first(m) }
}

/// Frees of NULL: a number, and nothing else.
pub fn null_frees(free: Event, count: u64) -> Lives {
    Lives { alloc: None, free, sums: [count, 0, 0, 0, 0, 0, 0], bins: vec![] }
}

/// An interval where nothing was folded.
fn empty(m: Maker, number: u64) -> Fold {
    let begin = 1_000 + 10_000 * MS * number;
    Fold { number, begin, end: begin, cpus: vec![], rows: vec![], ..first(m) }
}

/// Three intervals, the last one empty, and events of objects that live longer.
pub fn intervals(m: Maker) -> Vec<Op> {
    vec![
        Op::Clock("mono", false, true),
        Op::Event(0, m.kmalloc(2_000, 0x40, 100)),
        Op::Fold(first(m)),
        Op::Event(3, m.kfree(11_000 * MS, 0x40)),
        Op::Fold(second(m, 1)),
        Op::Fold(empty(m, 2)),
        Op::Event(0, m.page(25_000 * MS, 3, 0)),
    ]
}

/// The first interval, and the third one, are missing.
pub fn gap(m: Maker) -> Vec<Op> {
    vec![Op::Fold(second(m, 1)), Op::Fold(Fold { cpus: vec![(7, 2)], ..empty(m, 3) }), Op::Append, {
        Op::Fold(second(m, 4))
    }]
}

/// Frees of NULL alone, and more events than 64 bits count.
pub fn most(m: Maker) -> Vec<Op> {
    let rows = vec![null_frees(m.kfree(1, 0), u64::MAX)];
    vec![Op::Fold(Fold { cpus: vec![(0, u64::MAX), (1, 1)], rows, ..first(m) })]
}
