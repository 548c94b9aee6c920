//! A number is read as its field is written, or its event is damaged: it is never 0 because it cannot be read.

use kmt_format::read::{Item, Trace};

use crate::{converted, line, run};

#[test]
fn decimal_pointers() {
    let text = [
        line(1, "kfree: call_site=16 ptr=32"),
        line(2, "kmalloc: bytes_alloc=128 bytes_req=104 call_site=18446743524213981056 gfp_flags=GFP_KERNEL ptr=18446743524800004096"),
        line(3, "kfree: call_site=18446743524213981312 ptr=18446743524800004096"),
    ]
    .concat();
    let read = converted(&text);
    read.is_whole();
    assert!(!read.stderr.contains("hashes"), "{}", read.stderr);
    assert_eq!(
        read.texts(),
        [
            "kfree: call_site=16 ptr=0000000000000020",
            "kmalloc: bytes_alloc=128 bytes_req=104 call_site=18446743524213981056 gfp_flags=GFP_KERNEL ptr=ffffff8032710000",
            "kfree: call_site=18446743524213981312 ptr=ffffff8032710000",
        ]
    );
}

/// What decides stands anywhere in the text.
#[test]
fn the_last_line_decides_on_the_first() {
    let mut text = line(1, "kfree: call_site=16 ptr=32");
    for n in 0..40_000 {
        text += &line(2 + n, &format!("kfree: call_site=16 ptr={}", 64 + n % 4));
    }
    assert_eq!(converted(&text).texts()[0], "kfree: call_site=16 ptr=0000000000000032");
    text += &line(50_000, "kfree: call_site=16 ptr=18446743524800004096").repeat(16);
    let read = converted(&text);
    assert_eq!(read.texts()[0], "kfree: call_site=16 ptr=0000000000000020");
    read.is_whole();
}

#[test]
fn a_long_pointer_beside_short_call_sites() {
    let text = [
        line(1, "kmalloc: call_site=81128dd4 ptr=0xffff88003dd83800 bytes_req=768 bytes_alloc=1024 gfp_flags=GFP_KERNEL|GFP_ZERO"),
        line(2, "kfree: call_site=810a7abb ptr=0x0"),
        line(3, "kfree: call_site=810a7abb ptr=0xffff88003dd83800"),
    ]
    .concat();
    let read = converted(&text);
    read.is_whole();
    assert!(read.stderr.contains("64-bit"), "{}", read.stderr);
    assert!(read.lines[0].contains("call_site=81128dd4 ptr=ffff88003dd83800"), "{:?}", read.lines);
    // One long pointer in the text of a 32-bit kernel is damaged, not cut.
    let mut text = String::new();
    for n in 0..40 {
        text += &line(n, &format!("kfree: call_site=810a7abb ptr=c100{n:02}40"));
    }
    text += &line(41, "kfree: call_site=810a7abb ptr=1c1000040");
    let read = converted(&text);
    assert!(read.stderr.contains("32-bit"), "{}", read.stderr);
    assert_eq!((read.code, read.lost, read.lines.len()), (Some(3), 1, 40), "{}", read.stderr);
}

#[test]
fn hexadecimal_numbers() {
    for (req, alloc, pfn, order, gfp) in [
        ("0x28", "0x40", "0x1234", "0x1", "0xcc0"),
        ("40", "64", "4660", "1", "3264"),
        ("28", "40", "1234", "1", "cc0"),
    ] {
        let rest = if req == "28" { "2c 4a f0" } else { "" };
        let rest: String = rest
            .split_whitespace()
            .zip(9..)
            .map(|(n, us)| {
                line(us, &format!("kmalloc: call_site=f+0x1/0x2 ptr=0xffff88000d748a{n} bytes_req={n} bytes_alloc={n} gfp_flags={n}"))
                    + &line(us, &format!("mm_page_alloc: pfn={n} order={order} gfp_flags=cc0 migratetype=0"))
            })
            .collect();
        let text = [
            line(1, &format!("kmalloc: call_site=f+0x1/0x2 ptr=0xffff88000d748480 bytes_req={req} bytes_alloc={alloc} gfp_flags={gfp}")),
            line(2, &format!("mm_page_alloc: pfn={pfn} order={order} gfp_flags={gfp} migratetype=0")),
            rest,
        ]
        .concat();
        let read = converted(&text);
        read.is_whole();
        assert_eq!(
            read.texts()[..2],
            [
                &format!(
                    "kmalloc: call_site=f+0x1/0x2 ptr=ffff88000d748480 bytes_req={req} bytes_alloc={alloc} gfp_flags=GFP_KERNEL"
                )[..],
                &format!("mm_page_alloc: pfn={pfn} order={order} gfp_flags=GFP_KERNEL migratetype=0"),
            ]
        );
    }
}

#[test]
fn a_value_that_cannot_be_read_is_a_damaged_event() {
    let whole = "kmalloc: call_site=f+0x1/0x2 ptr=0xffff88000d748480 bytes_req=40 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1 accounted=false";
    let page = "mm_page_alloc: page=ffffea0000000040 pfn=1 order=0 migratetype=0 gfp_flags=GFP_KERNEL";
    for (from, to) in [
        ("bytes_req=40 bytes_alloc", "bytes_req=40bytes_alloc"),
        ("bytes_alloc=64 ", "bytes_alloc=6x4 "),
        ("bytes_alloc=64 ", "bytes_alloc= "),
        ("bytes_alloc=64 ", ""),
        ("ptr=0xffff88000d748480", "ptr=0xffff88000d74848z"),
        ("ptr=0xffff88000d748480", "ptr=0xffff88000d7484801"),
        ("call_site=f+0x1/0x2", "call_site=?"),
        ("GFP_KERNEL", "GFP_KER\u{fffd}EL"),
        ("node=-1", "node=-"),
        ("accounted=false", "accounted=fa"),
        ("pfn=1", "pfn=1z"),
        ("order=0", "order=99999999999"),
        ("migratetype=0", "migratetype=M"),
    ] {
        let is_page = page.contains(from);
        let damaged = if is_page { page } else { whole }.replace(from, to);
        let text = [line(1, whole), line(2, page), line(3, &damaged)].concat();
        let read = converted(&text);
        assert_eq!((read.code, read.lost, read.lines.len()), (Some(3), 1, 2), "{damaged}: {:?}", read.lines);
        assert!(read.stderr.contains("cannot be read") && read.stderr.contains("line 3"), "{}", read.stderr);
    }
    // A field that no event has is none of the text.
    let without = |event: &str| event.replace(" bytes_alloc=64", "");
    converted(&[line(1, &without(whole)), line(2, page)].concat()).is_whole();
    // A page pointer adds nothing to a frame number.
    let read =
        converted(&[line(1, page), line(2, &page.replace("ffffea0000000040", "(____ptrval____)"))].concat());
    read.is_whole();
    assert_eq!(
        read.texts()[1],
        "mm_page_alloc: page=(____ptrval____) pfn=1 order=0 migratetype=0 gfp_flags=GFP_KERNEL"
    );
}

#[test]
fn notations_of_the_option_fields() {
    let text = line(
        1,
        "kmalloc: call_site=f+0x1/0x20 (-2124362512) ptr=0xffff888100001000 (-131385437173216) bytes_req=0x3c (60) bytes_alloc=0x40 (64) gfp_flags=0xcc0 (3264) node=0xffffffff (-1) accounted=(1)",
    );
    let read = converted(&text);
    read.is_whole();
    assert_eq!(
        read.texts(),
        [
            "kmalloc: call_site=f+0x1/0x20 ptr=ffff888100001000 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1 accounted=true"
        ]
    );
}

/// Kernels of vendors print the name of the caller behind its address, or under another key.
#[test]
fn texts_behind_numbers() {
    let alloc = |site: &str| {
        format!(
            "kmalloc: call_site={site} ptr=b7d93cc0 bytes_req=12 bytes_alloc=64 gfp_flags=GFP_ATOMIC|__GFP_ZERO"
        )
    };
    for site in ["805ee260 caller(alloc_atomic+0x24/0x28)", "805ee260 alloc_atomic", "f+0x24/0x28 [ext4]"] {
        let read = converted(&line(1, &alloc(site)));
        read.is_whole();
        assert_eq!(read.texts(), [alloc(site)]);
        assert_eq!(read.sites[0] == Some(0x805e_e260), site.starts_with('8'), "{:x?}", read.sites);
    }
    let read = converted(&line(1, &alloc("805ee260").replace("call_site", "caller")));
    read.is_whole();
    assert!(read.lines[0].contains("caller=805ee260"), "{:?}", read.lines);
}

/// Pages of HTML that old systrace made: each line of the trace is one of a string in a script.
#[test]
fn lines_of_a_script() {
    let text: String = [
        "# tracer: nop\n".to_owned(),
        line(
            1,
            "kmalloc: call_site=c0323456 ptr=e5001200 bytes_req=100 bytes_alloc=128 gfp_flags=GFP_KERNEL",
        ),
        line(2, "kfree: call_site=c0323466 ptr=e5001200"),
        line(3, "mm_page_free: page=c1a00000 pfn=4096 order=0"),
    ]
    .concat();
    let page = format!(
        "<!DOCTYPE HTML>\n<script>\n  var linuxPerfData = \"\\\n{}\";\n",
        text.replace('\n', "\\n\\\n")
    );
    let (read, plain) = (converted(&page), converted(&text));
    plain.is_whole();
    assert_eq!((read.code, read.lost), (Some(0), 0), "{}", read.stderr);
    assert_eq!(read.lines, plain.lines);
    assert_eq!(read.lines.len(), 3);
}

/// Flags of new tasks are hexadecimal, also those without a letter.
#[test]
fn flags_of_new_tasks_are_hexadecimal() {
    let texts = [
        "task_newtask: pid=900 comm=server clone_flags=1200000 oom_score_adj=0",
        "task_newtask: pid=901 comm=server clone_flags=3d0f00 oom_score_adj=0",
    ];
    let text = [line(1, texts[0]), line(2, texts[1])].concat();
    assert_eq!(converted(&text).texts(), texts);
    let file = run(&text, &[]).2.unwrap();
    let trace = Trace::open(&file).unwrap();
    let numbers = trace.items().filter_map(|item| match item {
        Item::Event(event) => event.uint(event.class().field_named("clone_flags")?),
        _ => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [0x120_0000, 0x3d_0f00]);
}
