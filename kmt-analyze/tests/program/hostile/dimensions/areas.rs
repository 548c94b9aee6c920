//! Many vmalloc areas and percpu allocations, and of each of their facts many values.

use super::{HEAP, LONG, SITE, bytes};
use crate::support::hostile::Made;

/// Percpu allocations, every second one freed, each of a call site of its own.
pub fn percpu(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let fields = ["call_site", "size", "ptr", "bytes_alloc"].map(|name| (LONG, name, 8));
    made.class("percpu", "percpu_alloc_percpu", 30, &fields, "\"%lx\", REC->ptr");
    made.class("percpu", "percpu_free_percpu", 31, &[(LONG, "ptr", 8)], "\"%lx\", REC->ptr");
    for i in 0..count {
        made.event(0, 30, 7, &bytes(&[SITE + i * 16, i, i * 8, i * 4]));
        if i % 2 == 1 {
            made.event(1, 31, 7, &bytes(&[i * 8]));
        }
    }
    made.finish()
}

/// Each area, and each percpu allocation, lies in part in the one before.
pub fn overlapping(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let fields = ["addr", "size", "failed"].map(|name| (LONG, name, 8));
    made.class("vmalloc", "alloc_vmap_area", 30, &fields, "\"%lx\", REC->addr");
    let fields = ["call_site", "size", "ptr", "bytes_alloc"].map(|name| (LONG, name, 8));
    made.class("percpu", "percpu_alloc_percpu", 31, &fields, "\"%lx\", REC->ptr");
    for i in 0..count {
        made.event(0, 30, 7, &bytes(&[HEAP + (i << 12), 1 << 30, 0]));
        made.event(0, 31, 7, &bytes(&[SITE, 1 << 20, i * 8, 1 << 20]));
    }
    made.finish()
}

/// Areas, each with a stack of its own, and their lines in vmallocinfo.
pub fn vmalloc(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let fields = ["addr", "size", "failed"].map(|name| (LONG, name, 8));
    made.class("vmalloc", "alloc_vmap_area", 30, &fields, "\"%lx\", REC->addr");
    made.class("vmalloc", "free_vmap_area_noflush", 31, &[(LONG, "va_start", 8)], "\"%lx\", REC->va_start");
    let mut info = String::new();
    for i in 0..count {
        made.event(0, 30, 7, &bytes(&[HEAP + (i << 13), 8192, u64::from(i % 5 == 4)]));
        made.stack(0, 7, &[SITE + i * 16, SITE + i % 100 * 16]);
        if i % 3 == 2 {
            made.event(1, 31, 7, &bytes(&[HEAP + (i << 13)]));
        }
        info += &format!("0x{i:016x}-0x{:016x}    8192 caller_{i}+0x10/0x20 pages=1 vmalloc\n", i + 1);
    }
    made.writer().add_file("vmallocinfo.before", b"").unwrap();
    made.writer().add_file("vmallocinfo.after", info.as_bytes()).unwrap();
    made.finish()
}
