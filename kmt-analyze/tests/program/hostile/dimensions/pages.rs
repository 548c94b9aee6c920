//! Many pages, and of each of their facts many values.

use super::{HEAP, SITE, bytes};
use crate::support::hostile::Made;

/// Pages, every second one freed.
pub fn frames(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.pages(0, 7, i * 2, 0);
        if i % 2 == 1 {
            made.pages_free(1, i * 2, 0);
        }
    }
    made.finish()
}

/// Blocks of all orders, each freed.
pub fn orders(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.pages(0, 7, i << 10, (i % 11) as u32);
        if i > 100 {
            made.pages_free(0, (i - 100) << 10, ((i - 100) % 11) as u32);
        }
    }
    made.finish()
}

/// Each block is of another type.
pub fn migratetypes(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    (0..count).for_each(|i| made.event(0, 13, 7, &bytes(&[i, 0, 0xcc0 + i, i])));
    made.finish()
}

/// Large blocks of which pages are freed one by one.
pub fn parts(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        if i % 512 == 0 {
            made.pages(0, 7, i, 9);
        }
        made.pages_free(0, i ^ 0x155, 0);
    }
    made.finish()
}

/// Each page has a stack of its own.
pub fn stacks(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.pages(0, 7, i, 0);
        made.stack(0, 7, &[SITE + i * 16, SITE + i % 100 * 16]);
    }
    made.finish()
}

/// One frame is allocated again and again, and not freed.
pub fn one_frame(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    (0..count).for_each(|i| made.pages((i % 2) as u32, i as i32 % 100, 1 << 20, (i % 11) as u32));
    made.finish()
}

/// Each block lies in part in the one before, and is freed in part.
pub fn overlapping(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.pages(0, 7, (1 << 30) - i, 10);
        made.pages_free(1, (1 << 30) - i + 512, 9);
    }
    made.finish()
}

/// Blocks that fall back to another type, each in another pageblock.
pub fn fallbacks(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let names = ["alloc_order", "fallback_order", "alloc_migratetype", "fallback_migratetype"];
    let mut fields = vec![("unsigned long", "pfn", 8)];
    fields.extend(names.map(|name| ("int", name, 4)));
    fields.push(("int", "change_ownership", 4));
    made.class("kmem", "mm_page_alloc_extfrag", 20, &fields, "\"%lx\", REC->pfn");
    for i in 0..count {
        let mut rest = (i * 512).to_le_bytes().to_vec();
        [0, 3, 0, 1, 1].iter().for_each(|n: &i32| rest.extend(n.to_le_bytes()));
        made.event(0, 20, 7, &rest);
        made.pages(0, 7, i * 512, 0);
    }
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}
