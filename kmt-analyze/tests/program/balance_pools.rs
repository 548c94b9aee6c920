//! `balance` of recordings with events of page pools: pages that a pool took and did not give back.

use std::fs;

use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::write::{Task, Writer, WriterOptions};
use serde_json::Value;

use crate::balance::{BEFORE, after};
use crate::balance_pages::{KERNEL, recording};
use crate::support::files::{Scratch, at, data, json, run, stdout};

/// Fields of page_pool_state_hold and page_pool_state_release (include/trace/events/page_pool.h, 6.18).
fn pool_format(id: u16, name: &str, count: &str) -> String {
    format!(
        "name: {name}\nID: {id}\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:const struct page_pool * pool;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:const void * netmem;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:u32 {count};\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long pfn;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n"
    )
}

#[test]
fn pools_hold_what_they_took_and_did_not_give_back() {
    let scratch = Scratch::new();
    let options = WriterOptions::new(ByteOrder::Little, 8).page_size(4096).trace_uuid([6; 16]);
    let mut writer = Writer::new(options).unwrap();
    let path = data("x86_64-6.1").join("tracefs/events/kmem/mm_page_alloc/format");
    let alloc = writer.add_format("kmem", &fs::read_to_string(path).unwrap()).unwrap();
    let hold = writer.add_format("page_pool", &pool_format(901, "page_pool_state_hold", "hold")).unwrap();
    let release =
        writer.add_format("page_pool", &pool_format(902, "page_pool_state_release", "release")).unwrap();
    writer.add_clock(&TraceClock::named("mono")).unwrap();
    writer.add_tasks(&[820, 821].map(|pid| Task::new(pid, format!("task-{pid}")))).unwrap();
    for (name, text) in BEFORE {
        writer.add_file(&format!("{name}.before"), text.as_bytes()).unwrap();
        writer.add_file(&format!("{name}.after"), after(name, text).as_bytes()).unwrap();
    }
    const FIRST: u64 = 0xffff_8880_0123_0000;
    const SECOND: u64 = 0xffff_8880_0456_0000;
    const THIRD: u64 = 0xffff_8880_0789_0000;
    let mut time = 1_000_000;
    let mut event = |id: u16, cpu: u32, pid: u32, words: &[u64]| {
        time += 1_000;
        let mut record = [&id.to_le_bytes()[..], &[0, 0], &pid.to_le_bytes()].concat();
        words.iter().for_each(|word| record.extend(word.to_le_bytes()));
        writer.add_event(cpu, time, &record).unwrap();
    };
    let pool = |address: u64, pfn: u64| [address, 0xffff_ea00_0000_0000 + pfn, 1, pfn];
    // Pages of order 2 for the second pool; the allocation of another CPU is of another page.
    for pfn in [0x100, 0x200, 0x300] {
        event(alloc, 0, 820, &[pfn, 2, KERNEL, 0]);
        event(alloc, 1, 821, &[pfn + 0x50, 5, KERNEL, 0]);
        event(hold, 0, 820, &pool(SECOND, pfn));
    }
    (0x1000..0x1010).for_each(|pfn| event(hold, 1, 821, &pool(FIRST, pfn)));
    (0x1000..0x100c).for_each(|pfn| event(release, 0, 820, &pool(FIRST, pfn)));
    // Older than the trace, and given back; then taken again, and once more without a release.
    event(release, 0, 820, &pool(FIRST, 0x2000));
    event(hold, 0, 820, &pool(FIRST, 0x2000));
    event(hold, 0, 820, &pool(FIRST, 0x2000));
    event(release, 1, 821, &pool(SECOND, 0x100));
    event(release, 1, 821, &pool(THIRD, 0x3000));
    let file = scratch.0.join("pools.kmt");
    fs::write(&file, writer.finish().unwrap()).unwrap();
    let report = json(&["balance", "--json"], &file);
    let row = |pool: u64, task: Option<&str>, pages: u64, [holds, releases, older]: [u64; 3]| {
        serde_json::json!({
            "pool": pool, "task": task, "bytes_held": 4096 * pages, "holds": holds, "releases": releases,
            "releases_older": older,
        })
    };
    let expected = [
        row(1, Some("task-820-820"), 8, [3, 1, 0]),
        row(2, Some("task-821-821"), 5, [18, 13, 1]),
        row(3, None, 0, [0, 1, 1]),
    ];
    assert_eq!(*at(&report, "/page_pools"), Value::from(expected.to_vec()));
    let screen = stdout(&run(&["balance"], &file));
    assert!(screen.contains("Pages of page pools") && screen.contains("pool 2"), "{screen}");
    let without = recording(&scratch, true, &[]);
    assert!(at(&json(&["balance", "--json"], &without), "/page_pools").is_null());
}
