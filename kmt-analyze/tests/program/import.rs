//! What trace-cmd, perf and the kernel's text hold of a capture is what its raw buffers hold.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::files::{Scratch, at, convert, copy, data, dump, json, run, same_dump, stderr, stdout};
use crate::support::foreign::{Capture, Packing, Perf};
use crate::support::skip::{Lack, skip};
use kmt_capture::import::READS_ZSTD;
use kmt_format::kernel::ByteOrder;
use serde_json::Value;

/// Captures, their byte order, and the size of their sub-buffers.
const CAPTURES: [(&str, ByteOrder, usize); 4] = [
    ("x86_64-6.1", ByteOrder::Little, 4096),
    ("x86_64-6.12", ByteOrder::Little, 65_536),
    ("s390x-6.1", ByteOrder::Big, 4096),
    ("armhf-6.1", ByteOrder::Little, 4096),
];

/// A capture's directory without its tracefs: what lies beside a file that was copied off a target.
fn beside(scratch: &Scratch, name: &str) -> PathBuf {
    let to = scratch.0.join(name);
    copy(&data(name), &to);
    fs::remove_dir_all(to.join("tracefs")).unwrap();
    to
}

#[test]
fn trace_dat_holds_what_the_raw_buffers_hold() {
    for (name, order, sub_buffer_len) in CAPTURES {
        let scratch = Scratch::new();
        let folder = beside(&scratch, name);
        let raw = dump(&scratch.convert(&data(name)));
        let capture = Capture::new(&data(name), order);
        let mut files = vec![("v6", capture.v6(None)), ("v6 instance", capture.v6(Some("mine")))];
        for (what, packing) in
            [("v7", Packing::None), ("v7 with zlib", Packing::Zlib), ("v7 with zstd", Packing::Zstd)]
        {
            files.push((what, capture.v7(packing, sub_buffer_len)));
        }
        // An old trace-cmd does not know that sub-buffers may be larger than pages.
        files.push(("v7 with the size of a page", capture.v7(Packing::None, 4096)));
        for (what, bytes) in files {
            let (input, output) = (folder.join("trace.dat"), folder.join("trace.kmt"));
            fs::write(&input, bytes).unwrap();
            let is_readable = what != "v7 with zstd" || READS_ZSTD;
            match convert(&input, &output, None) {
                Ok(_) if is_readable => same_dump(&dump(&output), &raw, &format!("{name} {what}")),
                Err(error) if !is_readable => assert!(error.contains("was built without"), "{error}"),
                other => panic!("{name} {what}: {other:?}"),
            }
        }
    }
}

#[test]
fn an_instance_is_asked_for_by_name() {
    let scratch = Scratch::new();
    let folder = beside(&scratch, "x86_64-6.1");
    let (input, output) = (folder.join("trace.dat"), folder.join("trace.kmt"));
    fs::write(&input, Capture::new(&data("x86_64-6.1"), ByteOrder::Little).v6(Some("mine"))).unwrap();
    convert(&input, &output, Some("mine")).unwrap();
    let error = convert(&input, &output, Some("other")).unwrap_err();
    assert!(error.contains("no buffer \"other\"") && error.contains("\"mine\""), "{error}");
    let error = convert(&input, &output, Some("")).unwrap_err();
    assert!(error.contains("holds no events"), "{error}");
}

#[test]
fn perf_data_holds_what_the_raw_buffers_hold() {
    for (name, order, _) in CAPTURES {
        let scratch = Scratch::new();
        let folder = beside(&scratch, name);
        let file = scratch.convert(&data(name));
        let (raw, kmt) = (dump(&file), fs::read(&file).unwrap());
        let capture = Capture::new(&data(name), order);
        for (pipe, packed) in [(false, false), (true, false), (false, true)] {
            if packed && !READS_ZSTD {
                continue;
            }
            let bytes = capture.perf(&kmt, Perf { pipe, packed, ..Perf::default() });
            let (input, output) = (folder.join("perf.data"), folder.join("perf.kmt"));
            fs::write(&input, bytes).unwrap();
            convert(&input, &output, None).unwrap();
            same_dump(&dump(&output), &raw, &format!("{name} pipe {pipe} packed {packed}"));
        }
    }
}

/// `perf record --switch-output` leaves a folder of files.
#[test]
fn parts_of_one_recording_of_perf_are_one_trace() {
    let name = "x86_64-6.1";
    let scratch = Scratch::new();
    let file = scratch.convert(&data(name));
    let (raw, kmt) = (dump(&file), fs::read(&file).unwrap());
    let capture = Capture::new(&data(name), ByteOrder::Little);
    let folder = beside(&scratch, name);
    let parts = scratch.0.join("parts");
    fs::create_dir(&parts).unwrap();
    fs::copy(folder.join("kallsyms"), parts.join("kallsyms")).unwrap();
    let part = |number| capture.perf(&kmt, Perf { part: (number, 3), ..Perf::default() });
    for number in 0..3 {
        fs::write(parts.join(format!("perf.data.202611221820190{number}")), part(number)).unwrap();
    }
    let output = scratch.0.join("parts.kmt");
    convert(&parts, &output, None).unwrap();
    same_dump(&dump(&output), &raw, "three parts");
    // One of another recording, or one that is damaged.
    let second = parts.join("perf.data.2026112218201901");
    let sampled = capture.perf(&kmt, Perf { sampled: true, ..Perf::default() });
    fs::write(&second, sampled).unwrap();
    let error = convert(&parts, &output, None).unwrap_err();
    assert!(error.contains("perf.data.2026112218201901 and "), "{error}");
    assert!(error.contains("perf.data.2026112218201900 are not parts of one recording"), "{error}");
    let whole = part(1);
    fs::write(&second, &whole[..whole.len() / 2]).unwrap();
    convert(&parts, &output, None).unwrap();
    let summary = json(&["summary", "--json"], &output);
    let damaged = summary["trust"]["notes"].to_string();
    assert!(damaged.contains("Parts of the recording are missing"), "{damaged}");
}

#[test]
fn a_sampled_recording_of_perf_is_none_of_objects() {
    for (name, order) in [("x86_64-6.1", ByteOrder::Little), ("s390x-6.1", ByteOrder::Big)] {
        let scratch = Scratch::new();
        let folder = beside(&scratch, name);
        let kmt = fs::read(scratch.convert(&data(name))).unwrap();
        let capture = Capture::new(&data(name), order);
        let (input, output) = (folder.join("perf.data"), folder.join("perf.kmt"));
        fs::write(&input, capture.perf(&kmt, Perf { sampled: true, ..Perf::default() })).unwrap();
        convert(&input, &output, None).unwrap();
        let summary = json(&["summary", "--json"], &output);
        let samples = summary["slab"]["kmalloc"]["alloc_events"].as_u64().unwrap();
        let notes = summary["trust"]["notes"].to_string();
        assert!(notes.contains("kmem:kmalloc was sampled") && notes.contains("1000.0 on average"), "{notes}");
        let estimated = &summary["slab"]["kmalloc"]["estimated"];
        assert_eq!(estimated["alloc_events"].as_u64(), Some(1000 * samples), "{name}");
        assert!(at(&summary, "/slab/cache/estimated").is_null());
        assert!(samples > 0 && at(&summary, "/slab/kmalloc/bytes_live").is_null(), "{name}");
        assert!(summary["slab"]["cache"]["bytes_live"].as_u64().is_some(), "caches were recorded in full");
        let text = stdout(&run(&["summary", "--wide"], &output));
        assert!(text.contains("estimated from samples); live objects are unknown"), "{text}");
        assert!(text.lines().any(|l| l.starts_with("estimated allocs ") && l.contains(" ~")), "{text}");
        // Each row tells what its samples stand for, and its table marks it.
        for (report, rows) in [("callers", "callers"), ("caches", "caches"), ("sizes", "sizes")] {
            let table = json(&[report, "--json"], &output);
            let rows = table[rows].as_array().unwrap();
            let sum = |of: &dyn Fn(&Value) -> u64| rows.iter().map(of).sum::<u64>();
            let estimated = |row: &Value| row["estimated"]["bytes_alloc"].as_u64().unwrap_or(0);
            let is_sampled = |row: &Value| !at(row, "/estimated").is_null();
            let exact = |row: &Value| if is_sampled(row) { row["bytes_alloc"].as_u64().unwrap() } else { 0 };
            assert!(sum(&exact) > 0 && sum(&estimated) == 1000 * sum(&exact), "{report}");
            let order: Vec<u64> =
                rows.iter().map(|row| estimated(row).max(row["bytes_alloc"].as_u64().unwrap())).collect();
            assert!(
                order.is_sorted_by(|a, b| a >= b),
                "{report}: sorted by what samples stand for: {order:?}"
            );
            if report == "callers" {
                assert!(rows.iter().any(|row| !is_sampled(row)), "caches were recorded in full");
            }
            let text = stdout(&run(&[report], &output));
            assert!(text.contains(" ~") && text.contains("~ marks estimates"), "{text}");
        }
        for report in ["peak", "lifetimes", "leaks", "what-if"] {
            let refused = run(&[report], &output);
            assert_eq!(refused.status.code(), Some(1), "{report}");
            assert!(stderr(&refused).contains("-c 1"), "{report}: {}", stderr(&refused));
        }
    }
}

#[test]
fn lost_records_of_perf_are_losses() {
    let scratch = Scratch::new();
    let folder = beside(&scratch, "s390x-6.1");
    let kmt = fs::read(scratch.convert(&data("s390x-6.1"))).unwrap();
    let capture = Capture::new(&data("s390x-6.1"), ByteOrder::Big);
    let (input, output) = (folder.join("perf.data"), folder.join("perf.kmt"));
    fs::write(&input, capture.perf(&kmt, Perf { loses: true, ..Perf::default() })).unwrap();
    convert(&input, &output, None).unwrap();
    let summary = json(&["summary", "--json"], &output);
    assert_eq!(summary["trace"]["lost_events"], 17);
    assert_eq!(run(&["summary"], &output).status.code(), Some(3));
}

#[test]
fn the_kernels_text_holds_what_it_prints() {
    for (name, ..) in CAPTURES {
        let scratch = Scratch::new();
        let input = scratch.0.join("trace.txt");
        fs::copy(data(name).join("trace.txt"), &input).unwrap();
        let output = scratch.0.join("text.kmt");
        convert(&input, &output, None).unwrap();
        same_dump(&dump(&output), &fs::read_to_string(&input).unwrap(), name);
        // Names of functions stand for their addresses, so sums agree where symbols do.
        let (text, raw) = (
            json(&["summary", "--json"], &output),
            json(&["summary", "--json"], &scratch.convert(&data(name))),
        );
        for key in ["alloc_events", "free_events", "bytes_req", "bytes_alloc", "bytes_freed"] {
            let key = format!("/slab/{key}");
            assert_eq!(at(&text, &key), at(&raw, &key), "{name} {key}");
        }
    }
}

#[test]
fn other_layouts_of_text() {
    let scratch = Scratch::new();
    let input = scratch.0.join("log.txt");
    let lines = "cpus=2\n\
        \x20  a b-1-77    [001]     1.000001: kmalloc:              (f+0x10) call_site=f+0x10 ptr=0xffff888000001000 bytes_req=24 bytes_alloc=32 gfp_flags=GFP_KERNEL|__GFP_ZERO\n\
        CPU:1 [LOST 5 EVENTS]\n\
        \x20  a b-1-77    [001] d..1. 1.000002: kernel_stack:         <stack trace >\n\
        => f (ffffffff81000000)\n\
        garbage\n\
        \x20 <idle>-0     [000] ..s.  1.000002: kfree:                (g+0x4) call_site=g+0x4 ptr=0xffff888000001000\n\
        \x20 <idle>-0     [000] ..s.  1.000002: mm_page_alloc: page=(null) pfn=0 order=3 migratetype=0 gfp_flags=GFP_ATOMIC\n";
    fs::write(&input, lines).unwrap();
    let output = scratch.0.join("log.kmt");
    convert(&input, &output, None).unwrap();
    let summary = json(&["summary", "--json"], &output);
    assert_eq!(summary["slab"]["bytes_alloc"], 32);
    assert_eq!(summary["trace"]["lost_events"], 5);
    assert_eq!(summary["pages"]["alloc_failures"], 1);
    let text = dump(&output);
    assert!(text.contains("call_site=f+0x10") && text.contains("gfp_flags=GFP_KERNEL|__GFP_ZERO"), "{text}");
    assert!(text.contains("a b-1-77"), "{text}");
}

#[test]
fn hashed_pointers_are_said_and_what_needs_addresses_is_refused() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("log.txt"), scratch.0.join("log.kmt"));
    let mut lines = String::new();
    for n in 0..40u32 {
        let ptr = n.wrapping_mul(0x9e37_79b9) | 1;
        let head = format!("     sh-1     [000] .....     1.{n:06}: ");
        lines += &format!(
            "{head}kmalloc: call_site=f+0x1/0x20 ptr=00000000{ptr:08x} bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL node=-1 accounted=false\n"
        );
    }
    fs::write(&input, lines).unwrap();
    convert(&input, &output, None).unwrap();
    assert_eq!(json(&["summary", "--json"], &output)["slab"]["bytes_alloc"], 320);
    let refused = run(&["fragmentation"], &output);
    let text = stdout(&refused) + &stderr(&refused);
    assert!(text.contains("hashes of addresses"), "{text}");
    let refused = run(&["who", "0x1000"], &output);
    assert!(stderr(&refused).contains("hashes of addresses"), "{}", stderr(&refused));
}

/// Columns of an event that Perfetto's form of it has as well.
fn exported_rows(file: &std::path::Path) -> Vec<Value> {
    let lines = stdout(&run(&["export", "ndjson", "--events", "-o", "-"], file));
    let mut rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Stacks have no frames there.
    rows.retain(|row| row["event"] != "ftrace:kernel_stack");
    for row in &mut rows {
        let is_text_only = row.as_object().unwrap().len() == 7;
        if let (false, Some(row)) = (is_text_only, row.as_object_mut()) {
            row.remove("text");
        }
    }
    rows
}

#[test]
fn an_export_to_perfetto_can_be_read_back() {
    let stacks = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks");
    for folder in CAPTURES.map(|(name, ..)| data(name)).into_iter().chain([stacks]) {
        let scratch = Scratch::new();
        let (file, exported, again) =
            (scratch.convert(&folder), scratch.0.join("trace.pftrace"), scratch.0.join("again.kmt"));
        let export = run(&["export", "perfetto", "--events", "-o", exported.to_str().unwrap()], &file);
        assert!(export.status.success(), "{}", stderr(&export));
        convert(&exported, &again, None).unwrap();
        let (rows, expected) = (exported_rows(&again), exported_rows(&file));
        assert_eq!(rows.len(), expected.len(), "{folder:?}");
        for (row, expected) in rows.iter().zip(&expected) {
            assert_eq!(row, expected, "{folder:?}");
        }
        for key in ["alloc_events", "free_events", "bytes_req", "bytes_alloc", "bytes_live"] {
            let key = format!("/slab/{key}");
            let [new, old] = [&again, &file].map(|file| json(&["summary", "--json"], file));
            assert_eq!(at(&new, &key), at(&old, &key), "{folder:?} {key}");
        }
    }
}

/// Every reader, on everything that was cut or changed: an error or a file, but no panic.
#[test]
fn damaged_files_are_refused_or_read_as_far_as_they_go() {
    let scratch = Scratch::new();
    let capture = Capture::new(&data("armhf-6.1"), ByteOrder::Little);
    let kmt = fs::read(scratch.convert(&data("armhf-6.1"))).unwrap();
    let text = fs::read(data("armhf-6.1").join("trace.txt")).unwrap();
    let seeds = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/perfetto");
    let seed = |name: &str| fs::read(seeds.join(name)).unwrap();
    let whole = [
        capture.v6(Some("mine")),
        capture.v7(Packing::None, 4096),
        capture.v7(Packing::Zstd, 4096),
        capture.v7(Packing::Zlib, 4096),
        capture.perf(&kmt, Perf::default()),
        capture.perf(&kmt, Perf { pipe: true, ..Perf::default() }),
        capture.perf(&kmt, Perf { packed: true, ..Perf::default() }),
        text[..20_000].to_vec(),
        seed("new"),
        seed("dense"),
        seed("zlib"),
        seed("sources"),
    ];
    let (input, output) = (scratch.0.join("input"), scratch.0.join("out.kmt"));
    let try_it = |bytes: &[u8], what: &str| {
        fs::write(&input, bytes).unwrap();
        if let Err(error) = convert(&input, &output, None) {
            assert!(error.contains("input"), "{what}: {error}");
        }
    };
    for (number, bytes) in whole.iter().enumerate() {
        for step in 0..24 {
            let len = bytes.len() * step / 24;
            try_it(&bytes[..len], &format!("{number} cut at {len}"));
        }
        let mut random = 7u64;
        for _ in 0..60 {
            let mut bytes = bytes.clone();
            for _ in 0..4 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Headers are where it hurts.
                let range = if random >> 62 == 0 { bytes.len() } else { 4096.min(bytes.len()) };
                let at = (random >> 16) as usize % range;
                bytes[at] = (random >> 8) as u8;
            }
            try_it(&bytes, &format!("{number} changed"));
        }
    }
    for (bytes, says) in [
        (&b"\x17\x08\x44tracing5\0\0\x08\0\x10\0\0"[..], "version \"5\""),
        (b"\x17\x08\x44tracing6\0\x07\x08\0\x10\0\0", "offset 12: byte order 7 is invalid"),
        (b"PERFILE2\x68\0\0\0\0\0\0\0", "offset 16"),
        (b"some text\nwithout events\n", "no line is an event of a trace; the first is \"some text\""),
        (b"\0\0\0\0", "not a recording that convert reads"),
    ] {
        fs::write(&input, bytes).unwrap();
        let error = convert(&input, &output, None).unwrap_err();
        assert!(error.contains(says) && error.contains("hint: "), "{error}");
    }
}

/// The kernel's `events/ftrace/print/format`, as of 6.1.
const PRINT_FORMAT: &str = "name: print
ID: 5
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;

print fmt: \"%ps: %s\", (void *)REC->ip, REC->buf
";

/// The real thing: what trace-cmd itself makes of raw buffers, in each of its formats.
#[test]
fn files_that_trace_cmd_makes() {
    let scratch = Scratch::new();
    let folder = beside(&scratch, "x86_64-6.1");
    let capture = data("x86_64-6.1");
    let (tracefs, kallsyms) = (scratch.0.join("tracefs"), capture.join("kallsyms"));
    copy(&capture.join("tracefs"), &tracefs);
    // Without a format there trace-cmd 3.1 crashes.
    fs::create_dir_all(tracefs.join("events/ftrace/print")).unwrap();
    fs::write(tracefs.join("events/ftrace/print/format"), PRINT_FORMAT).unwrap();
    if Command::new("trace-cmd").arg("--version").output().is_err() {
        return skip(Lack::Program, "trace-cmd is not installed");
    }
    let trace_cmd = |args: &[&std::ffi::OsStr]| {
        let made = Command::new("trace-cmd").current_dir(&scratch.0).args(args).output();
        made.is_ok_and(|o| o.status.success())
    };
    let raw: Vec<PathBuf> =
        (0..4).map(|cpu| tracefs.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"))).collect();
    let (head, whole) = (scratch.0.join("head.dat"), scratch.0.join("whole.dat"));
    let mut restore: Vec<&std::ffi::OsStr> =
        vec!["restore".as_ref(), "-o".as_ref(), whole.as_ref(), "-i".as_ref(), head.as_ref()];
    restore.extend(raw.iter().map(|p| p.as_os_str()));
    let begin: [&std::ffi::OsStr; 8] = [
        "restore".as_ref(),
        "-c".as_ref(),
        "-t".as_ref(),
        tracefs.as_ref(),
        "-k".as_ref(),
        kallsyms.as_ref(),
        "-o".as_ref(),
        head.as_ref(),
    ];
    assert!(trace_cmd(&begin) && trace_cmd(&restore), "trace-cmd cannot restore");
    let expected = dump(&scratch.convert(&capture));
    let (input, output) = (folder.join("trace.dat"), folder.join("trace.kmt"));
    for (version, compression) in [("6", "none"), ("7", "none"), ("7", "zstd"), ("7", "zlib")] {
        let _ = fs::remove_file(&input);
        let options = ["convert", "--file-version", version, "--compression", compression, "-i"];
        let mut args: Vec<&std::ffi::OsStr> = options.iter().map(|o| o.as_ref()).collect();
        args.extend([whole.as_os_str(), "-o".as_ref(), input.as_os_str()]);
        let is_made = trace_cmd(&args) && input.exists();
        // A trace-cmd may be built without one of the compressions.
        assert!(is_made || compression != "none", "trace-cmd cannot write version {version}");
        if is_made && compression == "zstd" && !READS_ZSTD {
            assert!(convert(&input, &output, None).unwrap_err().contains("was built without"));
        } else if is_made {
            convert(&input, &output, None).unwrap();
            same_dump(&dump(&output), &expected, &format!("version {version}, {compression}"));
        }
    }
}

/// Every way in which kernels and tools print one event is the same event.
#[test]
fn one_event_in_all_formats_of_text() {
    let pairs = "call_site=f+0x1/0x20 ptr=ffff888100001000 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1 accounted=false";
    let doubled = "call_site=f+0x1/0x20 (-2124362512) ptr=0xffff888100001000 (-131385437173216) bytes_req=0x3c (60) bytes_alloc=0x40 (64) gfp_flags=0xcc0 (3264) node=0xffffffff (-1) accounted=0";
    for (what, line) in [
        ("plain", format!("     dbus-daemon-77      [001] d..1.     1.500000: kmalloc: {pairs}\n")),
        ("CRLF", format!("     dbus-daemon-77      [001] d..1.     1.500000: kmalloc: {pairs}\r\n")),
        ("fields", format!("     dbus-daemon-77      [001] d..1.     1.500000: kmalloc: {doubled}\n")),
        ("latency", format!("dbus-daemon-77       1d..1. 1500000us : kmalloc: {pairs}\n")),
        (
            "latency of trace-cmd",
            format!("dbus-daemon-77       1d..1. 1.500000: kmalloc:              {pairs}\n"),
        ),
        (
            "a console",
            format!("<4>[   12.345690] dbus-daemon-77       1d..1. 1500000us : kmalloc: {pairs}\n"),
        ),
        ("perf script", format!("     dbus-daemon 77 [001]     1.500000: kmem:kmalloc: {pairs}\n")),
    ] {
        let scratch = Scratch::new();
        let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
        // Many lines before the first event are no reason to give up.
        fs::write(&input, format!("{}{line}", "a log of something else\n".repeat(25_000))).unwrap();
        convert(&input, &output, None).unwrap_or_else(|e| panic!("{what}: {e}"));
        let dump = dump(&output);
        assert!(dump.contains("dbus-daemon-77") && dump.contains("[001]"), "{what}: {dump}");
        assert!(dump.contains(" 1.500000: kmalloc: call_site=f+0x1/0x20 ptr="), "{what}: {dump}");
        let slab = json(&["summary", "--json"], &output)["slab"]["kmalloc"].clone();
        assert_eq!((&slab["bytes_req"], &slab["bytes_alloc"]), (&60.into(), &64.into()), "{what}");
        assert_eq!(slab["alloc_failures"], 0, "{what}");
    }
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    fs::write(&input, format!("kmalloc: {pairs}\nkmalloc: {pairs}\n")).unwrap();
    let error = convert(&input, &output, None).unwrap_err();
    assert!(error.contains("lack the CPU and the time") && error.contains("context-info"), "{error}");
    // What looks like an event and cannot be read is a loss.
    fs::write(
        &input,
        format!(
            "      sh-77      [001] d..1.     1.500000: kmalloc: {pairs}\n   sh-77 [00 kmalloc: call_s\n"
        ),
    )
    .unwrap();
    convert(&input, &output, None).unwrap();
    assert_eq!(json(&["summary", "--json"], &output)["trace"]["lost_events"], 1);
}

#[test]
fn a_text_without_some_of_its_lines_is_incomplete() {
    let line = |us: u64, event: &str| format!("      sh-77      [000] d..1.     1.{us:06}: {event}\n");
    let allocation = |us| {
        let event = "kmalloc: call_site=f+0x1/0x20 ptr=ffff888104289080 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL";
        line(us, event)
    };
    let free = |us| line(us, "kfree: call_site=g+0x1/0x20 ptr=ffff888104289080");
    // The frees of the first allocations, or of all.
    let entries = |frees: u64| -> String {
        (0..200)
            .map(|n| allocation(2 * n) + &if n < frees { free(2 * n + 1) } else { String::new() })
            .collect()
    };
    let converted = |scratch: &Scratch, text: &str| {
        let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
        fs::write(&input, text).unwrap();
        convert(&input, &output, None).unwrap();
        output
    };
    let printed = |report: &str, file: &std::path::Path| {
        let output = run(&[report], file);
        (output.status.code(), stdout(&output).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    const BLAME: &str = "of freed objects had no free event";
    let head = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 400/400   #P:1\n#\n";
    for (frees, lost) in [(200, 0), (50, 150)] {
        let scratch = Scratch::new();
        let file = converted(&scratch, &format!("{head}{}", entries(frees)));
        let trace = &json(&["summary", "--json"], &file)["trace"];
        assert_eq!((&trace["lost_events"], &trace["missing_in_input"]), (&lost.into(), &lost.into()));
        assert_eq!(trace["per_cpu"][0]["lost_events_is_minimum"], true, "{trace}");
        for report in ["waste", "summary", "caches"] {
            let (code, text) = printed(report, &file);
            assert_eq!(code, Some(if lost == 0 { 0 } else { 3 }), "{report}: {text}");
            assert!(!text.contains(BLAME), "{report}: {text}");
            assert_eq!(text.contains("150 events (37.5 % of all) are missing"), lost > 0, "{report}: {text}");
        }
    }
    // The same without a header: nothing shows that lines are missing.
    let scratch = Scratch::new();
    let (code, text) = printed("waste", &converted(&scratch, &entries(50)));
    assert!(code == Some(0) && text.contains(BLAME), "{text}");
}
