//! Files that have much of one thing: a program whose work is a product of two counts takes minutes for them.

use crate::support::hostile::Made;

const SITE: u64 = 0xffff_ffff_8100_0000;
const HEAP: u64 = 0xffff_8880_0000_0000;

/// Each object of one call site is freed at another place, on another CPU.
pub fn freeing_sites(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.kmalloc(0, 7, SITE, HEAP + i * 64);
        made.kfree(1, SITE + i * 16, HEAP + i * 64);
    }
    made.finish()
}
