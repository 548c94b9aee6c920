//! Events and their fields.

use kmt_format::read::Trace;

use super::encoder::{all, bundle, event, kfree, kmalloc, msg, num, nums, packet, system_info};
use super::{Folder, converted, read};

const PTR: u64 = 0xffff_8880_0400_0040;

#[test]
fn a_field_that_is_not_in_the_trace_is_unknown() {
    let failed = event(20, 9, 307, all([num(2, 1), num(3, 2), num(5, u64::MAX)]));
    let node = all([
        num(1, 8),
        num(2, 8),
        num(3, 0xffff_ffff_8120_0010),
        num(4, 0xcc0),
        num(5, -1i64 as u64),
        num(6, PTR),
    ]);
    let parts = [kmalloc(10, PTR), kfree(15, PTR), failed, event(30, 9, 300, node)];
    let trace = [system_info("6.1.0", "aarch64"), packet(2, [bundle(3, parts)])].concat();
    let converted = converted(&trace);
    assert_eq!(converted.code, Some(0), "{}", converted.stderr);
    assert_eq!(
        converted.lines,
        [
            "7 [3] 10: kmem:kmalloc: call_site=0xffffffff81200010 ptr=ffff888004000040 bytes_req=50 bytes_alloc=64",
            "7 [3] 15: kmem:kfree: call_site=0xffffffff81200020 ptr=ffff888004000040",
            "9 [3] 20: kmem:mm_page_alloc: pfn=0x0 order=2 migratetype=1",
            "9 [3] 30: kmem:kmalloc_node: call_site=0xffffffff81200010 ptr=ffff888004000040 bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL node=-1",
        ]
    );
    assert_eq!(converted.gfp_flags, [None, None, None, Some(0xcc0)]);
    let trace = Trace::open(&converted.file).unwrap();
    let text = |key| trace.metadata().text(key).unwrap_or_default().to_owned();
    assert_eq!(
        ["source", "kernel.release", "kernel.machine", "page_size.source"].map(text),
        ["Perfetto", "6.1.0", "aarch64", "Perfetto"]
    );
    assert_eq!(trace.header().page_size, Some(16_384));
    assert_eq!(trace.metadata().clock.as_ref().map(|c| c.name.as_str()), Some("boot"));
}

#[test]
fn clocks_have_the_names_of_the_kernel() {
    for (number, name) in [(2, Some("global")), (3, Some("local")), (4, Some("mono_raw")), (1, None)] {
        let converted = converted(&packet(2, [bundle(0, [num(5, number), kfree(1, PTR)])]));
        let trace = Trace::open(&converted.file).unwrap();
        assert_eq!(trace.metadata().clock.as_ref().map(|c| c.name.as_str()), name);
        assert_eq!(converted.stderr.contains("clock of the events is unknown"), name.is_none());
    }
    let two = [bundle(0, [num(5, 2), kfree(1, PTR)]), bundle(0, [kfree(2, PTR)])].map(|b| packet(2, [b]));
    assert!(super::refused(&two.concat(), &[]).contains("has events of several clocks"));
}

#[test]
fn other_events_are_counted_by_number() {
    let print = || event(5, 1, 3, msg(2, "text"));
    let compact = msg(4, all([msg(1, [5, 1, 1]), msg(3, [7, 7, 7])]));
    let converted = converted(&packet(2, [bundle(0, [print(), kmalloc(6, PTR), print(), compact])]));
    assert_eq!((converted.code, converted.lines.len()), (Some(0), 1), "{}", converted.stderr);
    assert!(
        converted.stderr.contains("5 events of other kinds than memory and tasks left out"),
        "{}",
        converted.stderr
    );
    assert!(converted.stderr.contains("3 (2), compact sched (3)"), "{}", converted.stderr);
    let message = super::refused(&packet(2, [bundle(0, [print()])]), &[]);
    assert!(
        message.contains("has no events of memory: its 1 event") && message.contains("hint: "),
        "{message}"
    );
    let message = super::refused(&packet(2, [msg(6, [])]), &[]);
    assert!(message.contains("has no events of ftrace"), "{message}");
}

/// The field of an event with its names.
fn named(name: &str, value: Vec<u8>) -> Vec<u8> {
    msg(2, all([msg(1, name), value]))
}

#[test]
fn events_with_their_names_and_described_ones() {
    let reclaim = event(
        1,
        9,
        327,
        all([
            msg(1, "mm_vmscan_wakeup_kswapd"),
            named("nid", num(4, -1i64 as u64)),
            named("why", msg(3, "low")),
        ]),
    );
    let exported = all([
        msg(1, "kmem:kmem_cache_free"),
        named("ptr", num(5, PTR)),
        named("call_site", num(5, 0xffff_ffff_8120_0010)),
        named("call_site_text", msg(3, "f+0x10/0x40 [ext4]")),
        named("cache", msg(3, "dentry")),
        named("text", msg(3, "all of it")),
    ]);
    let field =
        |name: &str, number, kind| msg(2, all([msg(1, name), num(3, number), num(4, 1), num(5, kind)]));
    let descriptor =
        all([msg(1, "mm_lru"), field("page_nr", 1, 4), field("comm", 3, 9), field("delta", 2, 3)]);
    let described = msg(11, all([num(1, 65_537), msg(2, descriptor), msg(3, "pagemap")]));
    let message = all([num(1, 5), num(2, -3i64 as u64), msg(3, "sh")]);
    // Descriptors come after the events.
    let parts = [
        reclaim,
        event(2, 9, 327, exported),
        event(3, 9, 65_537, message),
        described,
        event(4, 9, 65_538, vec![]),
    ];
    let converted = converted(&packet(2, [bundle(0, parts)]));
    assert_eq!(
        converted.lines,
        [
            "9 [0] 1: vmscan:mm_vmscan_wakeup_kswapd: nid=-1 why=low",
            "9 [0] 2: kmem:kmem_cache_free: ptr=ffff888004000040 call_site=f+0x10/0x40 [ext4] name=dentry",
            "9 [0] 3: pagemap:mm_lru: page_nr=5 comm=sh delta=-3",
        ]
    );
    assert!(converted.stderr.contains("65538 (1)"), "{}", converted.stderr);
}

#[test]
fn shrinkers_have_the_names_of_their_symbols() {
    let start = |time, symbol| event(time, 9, 443, all([num(8, symbol), num(7, PTR), num(11, 12)]));
    let symbol = |number, name: &str| msg(26, all([num(1, number), msg(2, name)]));
    // The rows of a packet are for its events and those of later packets, until the state is cleared.
    let packets = |cleared| {
        [
            packet(
                2,
                [bundle(0, [start(1, 1), start(2, 2)]), num(13, 1), msg(12, symbol(1, "super_cache_scan"))],
            ),
            packet(2, [bundle(0, [start(3, 1)]), num(13, cleared)]),
        ]
        .concat()
    };
    let shown = |lines: &[String]| {
        lines.iter().map(|line| line.contains(" shrink=super_cache_scan+0x0")).collect::<Vec<_>>()
    };
    let kept = converted(&packets(2));
    assert_eq!(shown(&kept.lines), [true, false, true], "{:?}", kept.lines);
    assert!(!kept.lines[1].contains("shrink="), "an unknown function is not an address");
    assert_eq!(shown(&converted(&packets(3)).lines), [true, false, false]);
    // With kallsyms beside it, functions have the addresses of the kernel.
    let folder = Folder::new();
    std::fs::write(
        folder.0.join("kallsyms"),
        "ffffffff81234560 t super_cache_scan\nffffffff81234600 t next\n",
    )
    .unwrap();
    let (code, stderr, file) = folder.run(&packets(2), &[]);
    let with = read(code, stderr, file);
    assert_eq!(shown(&with.lines), [true, false, true], "{:?}", with.lines);
    assert!(Trace::open(&with.file).unwrap().symbols().unwrap().resolve(0xffff_ffff_8123_4560).is_some());
}

#[test]
fn addresses_tell_the_size_of_words() {
    let narrow = event(1, 7, 298, nums([0xc012_3456, 0xc800_0040]));
    for (machine, wide, bits) in
        [("armv7l", false, 32), ("armv8l", true, 64), ("", false, 32), ("aarch64", false, 64)]
    {
        let parts = if wide { vec![narrow.clone(), kfree(2, PTR)] } else { vec![narrow.clone()] };
        let trace = [system_info("5.10.0", machine), packet(2, [bundle(0, parts)])].concat();
        let converted = converted(&trace);
        assert!(
            converted.stderr.contains(&format!("of a {bits}-bit kernel")),
            "{machine}: {}",
            converted.stderr
        );
    }
}

#[test]
fn events_that_cannot_be_recorded_are_lost_ones() {
    let without_time = msg(2, all([num(2, 7), msg(298, nums([1, 2]))]));
    let wide = event(5, 7, 310, all([num(1, 1 << 40), num(3, 5)]));
    let converted = converted(&packet(2, [bundle(1, [without_time, wide, kfree(6, PTR)])]));
    assert_eq!((converted.code, converted.lines.len()), (Some(3), 1), "{}", converted.stderr);
    assert_eq!(converted.losses.iter().map(|(_, _, loss)| loss.counted).sum::<u64>(), 2);
    assert!(converted.stderr.contains("1 event without a time or without fields"), "{}", converted.stderr);
    assert!(converted.stderr.contains("1 event with a field that cannot be read"), "{}", converted.stderr);
}
