//! Names of caches, where only frees have them: each output reads the same ones, also those after its time.

use std::fs;

use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, run, stderr, stdout};
use crate::support::model::{Event, What};

#[test]
fn a_free_after_the_selected_time_names_the_cache() {
    let mut made = Crafted::new();
    let mut event = |time, what| made.event(&Event { time, cpu: 0, pid: 1, what });
    for i in 0..40u64 {
        event(1_000_000 + 20 * i, What::PageAlloc { pfn: 900 + i, order: 0, movable: false });
        let ptr = BASE + ((900 + i) << 12);
        event(1_000_010 + 20 * i, What::Alloc { kmalloc: false, site: 5, ptr, req: 64, alloc: 64 });
    }
    event(20_000_000, What::Free { kfree: false, ptr: BASE + (900 << 12) });
    let scratch = Scratch::new();
    let file = scratch.0.join("made.kmt");
    fs::write(&file, made.writer.finish().unwrap()).unwrap();
    for command in [
        &["caches"][..],
        &["callers", "--by", "cache"],
        &["timeline", "--by", "cache"],
        &["lifetimes", "--by", "cache"],
        &["fragmentation"],
        &["diff", "--by", "cache", "--json", "--against", "+0.002..+0.003"],
        &["export", "csv", "--of", "objects", "-o", "-"],
    ] {
        let all = [command, &["--time", "..+0.001"]].concat();
        let made = run(&all, &file);
        assert!(stdout(&made).contains("cache_a"), "{all:?}\n{}{}", stdout(&made), stderr(&made));
    }
}
