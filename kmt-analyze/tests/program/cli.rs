//! The process boundary of kmt-analyze, on files made of real captures.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use kmt_format::kernel::ByteOrder;
use kmt_format::write::{Writer, WriterOptions};

use crate::support::files::{Scratch, at, data, json, run, stderr, stdout};
use serde_json::Value;

const CAPTURES: [&str; 4] = ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"];

fn without_page(line: &str) -> String {
    line.split(' ').map(|w| if w.starts_with("page=") { "page=*" } else { w }).collect::<Vec<_>>().join(" ")
}

#[test]
fn dump_is_the_kernels_own_text() {
    for name in CAPTURES {
        let scratch = Scratch::new();
        let output = run(&["dump"], &scratch.convert(&data(name)));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let kernel = fs::read_to_string(data(name).join("trace.txt")).unwrap();
        let ours = stdout(&output);
        assert_eq!(ours.lines().count(), kernel.lines().count());
        for (ours, kernel) in ours.lines().zip(kernel.lines()) {
            assert_eq!(without_page(ours), without_page(kernel), "{name}");
        }
        assert_eq!(stderr(&output).matches("printed as ?").count(), 1, "told once: {}", stderr(&output));
    }
}

#[test]
fn jsonl_has_one_object_an_event() {
    let scratch = Scratch::new();
    let output = run(&["dump", "--format", "jsonl"], &scratch.convert(&data("s390x-6.1")));
    let lines: Vec<Value> = stdout(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), fs::read_to_string(data("s390x-6.1").join("trace.txt")).unwrap().lines().count());
    let alloc = lines.iter().find(|l| l["event"] == "kmem:kmem_cache_alloc").unwrap();
    assert_eq!(alloc["comm"], "sh");
    assert!(alloc["ts"].is_u64() && alloc["cpu"].is_u64() && alloc["pid"].is_i64());
    let fields = &alloc["fields"];
    assert!(fields["ptr"].as_str().unwrap().starts_with("0x"));
    assert!(fields["call_site_text"].as_str().unwrap().contains("+0x"));
    assert!(fields["gfp_flags"].is_u64() && fields["gfp_flags_text"].as_str().unwrap().contains("GFP_"));
    assert_eq!(fields["node"], -1);
    assert!(fields["accounted"].is_boolean());
    let free = lines.iter().find(|l| l["event"] == "kmem:kmem_cache_free").unwrap();
    assert!(free["fields"]["name"].is_string());
}

#[test]
fn dump_of_some_events_is_their_lines() {
    let scratch = Scratch::new();
    for (file, pattern, names) in [
        (
            scratch.convert(&data("x86_64-6.12")),
            "kmem:mm_*",
            &["kmem:mm_page_alloc", "kmem:mm_page_free"][..],
        ),
        (scratch.convert(&data("s390x-6.1")), "kfree", &["kmem:kfree"]),
        (
            scratch.convert(&data("../../../kmt-analyze/tests/data/x86_64-6.18-stacks")),
            "kmalloc",
            &["kmem:kmalloc"],
        ),
    ] {
        let lines = |args: &[&str]| -> Vec<Value> {
            let text = stdout(&run(args, &file));
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let is_of =
            |event: &Value, key: &str| names.iter().any(|n| event[key].as_str().unwrap_or("").starts_with(n));
        let mut expected = lines(&["dump", "--json"]);
        let all = expected.len();
        expected.retain(|e| is_of(e, "event") || is_of(&e["of"], "event"));
        let found = lines(&["dump", "--json", "-e", pattern]);
        assert!(!found.is_empty() && found.len() < all, "{pattern}: {} of {all}", found.len());
        assert_eq!(found, expected, "{pattern}");
        assert_eq!(lines(&["dump", "--json", "--follow", "-e", pattern]), expected, "{pattern}");
    }
    let refused = run(&["dump", "-e", "nothing"], &scratch.convert(&data("s390x-6.1")));
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("has no event nothing") && stderr(&refused).contains("hint:"));
}

#[test]
fn dump_selects_by_conditions() {
    let scratch = Scratch::new();
    let number = |event: &Value, key: &str| event["fields"][key].as_i64();
    let text = |event: &Value, key: &str| event["fields"][key].as_str().map(str::to_owned);
    type Meets<'f> = &'f dyn Fn(&Value) -> bool;
    let cases: [(&str, Meets<'_>); 9] = [
        ("size>256", &|e| number(e, "bytes_alloc").is_some_and(|n| n > 256)),
        ("bytes_req<=64", &|e| number(e, "bytes_req").is_some_and(|n| n <= 64)),
        ("call_site~^alloc_", &|e| text(e, "call_site_text").is_some_and(|t| t.starts_with("alloc_"))),
        ("cache=names_cache", &|e| text(e, "name").is_some_and(|t| t == "names_cache")),
        ("cache=kmalloc-64", &|e| {
            e["event"] == "kmem:kmalloc" && number(e, "bytes_alloc").is_some_and(|n| n == 64)
        }),
        ("gfp~ZERO", &|e| text(e, "gfp_flags_text").is_some_and(|t| t.contains("ZERO"))),
        ("migratetype=Movable", &|e| number(e, "migratetype") == Some(1)),
        ("event!=kfree", &|e| e["event"] != "kmem:kfree"),
        ("comm=bash", &|e| e["comm"] == "bash"),
    ];
    for name in ["s390x-6.1", "x86_64-6.12", "../../../kmt-analyze/tests/data/x86_64-6.18-stacks"] {
        let file = scratch.convert(&data(name));
        let lines = |args: &[&str]| -> Vec<Value> {
            stdout(&run(args, &file)).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let all = lines(&["dump", "--json"]);
        let key = |event: &Value| format!("{} {}", event["ts"], event["event"].as_str().unwrap_or(""));
        let mut found = 0;
        for (condition, meets) in cases {
            let is_own = |e: &Value| e["of"].is_null() && e["event"] != "ftrace:kernel_stack" && meets(e);
            let owners: Vec<String> = all.iter().filter(|e| is_own(e)).map(key).collect();
            let mut expected = all.clone();
            expected.retain(|e| is_own(e) || !e["of"].is_null() && owners.contains(&key(&e["of"])));
            let selected = lines(&["dump", "--json", "--where", condition]);
            assert_eq!(selected.len(), expected.len(), "{name}: {condition}");
            assert_eq!(selected, expected, "{name}: {condition}");
            assert_eq!(lines(&["dump", "--json", "--follow", "--where", condition]), expected, "{condition}");
            found += usize::from(!expected.is_empty() && expected.len() < all.len());
        }
        assert!(found >= 6, "{name}: {found} conditions select a part");
        let output = run(&["dump", "--where", "order>0"], &file);
        assert!(stderr(&output).contains(" without the field of `order>0` left out"), "{}", stderr(&output));
    }
    let refused = run(&["dump", "--where", "lifetime>1ms"], &scratch.convert(&data("s390x-6.1")));
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("no lifetime") && stderr(&refused).contains("hint:"));
}

#[test]
fn summary_has_every_key_of_the_contract() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.12"));
    let summary = json(&["summary", "--json"], &file);
    for key in ["events", "lost_events", "lost_events_is_minimum", "cpus", "first", "last", "per_cpu"] {
        assert!(!summary["trace"][key].is_null(), "{key}");
    }
    assert_eq!(summary["clock"]["name"], "global");
    assert_eq!(summary["clock"]["unit"], "ns");
    for part in [&summary["slab"], &summary["slab"]["kmalloc"], &summary["slab"]["cache"]] {
        for key in [
            "alloc_events",
            "free_events",
            "alloc_failures",
            "bytes_req",
            "bytes_alloc",
            "bytes_freed",
            "bytes_live",
            "bytes_wasted",
            "bytes_wasted_live",
            "internal_fragmentation_percent",
        ] {
            assert!(part[key].is_number(), "{key}");
        }
    }
    let number = |part: &Value, key: &str| part[key].as_u64().unwrap();
    let slab = &summary["slab"];
    for key in ["alloc_events", "free_events", "bytes_alloc", "bytes_live", "bytes_freed"] {
        assert_eq!(number(slab, key), number(&slab["kmalloc"], key) + number(&slab["cache"], key));
    }
    assert!(number(&slab["raw"], "alloc_events") >= number(slab, "alloc_events"));
    // Reports over the same events add up to the same.
    for (report, key) in [("callers", "callers"), ("caches", "caches")] {
        let rows = json(&[report, "--json"], &file);
        for sum in ["alloc_events", "bytes_alloc", "bytes_live", "bytes_freed"] {
            let total: u64 = rows[key].as_array().unwrap().iter().map(|r| r[sum].as_u64().unwrap()).sum();
            assert_eq!(total, number(slab, sum), "{report} {sum}");
        }
    }
}

#[test]
fn rows_are_sorted_cut_and_filtered() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.12"));
    let rows = json(&["callers", "--json", "--sort", "allocs", "-l", "3"], &file);
    let counts: Vec<u64> =
        rows["callers"].as_array().unwrap().iter().map(|r| r["alloc_events"].as_u64().unwrap()).collect();
    assert!(counts.len() == 3 && counts.is_sorted_by(|a, b| a >= b));
    assert!(rows["callers_total"].as_u64().unwrap() > 3);
    let some = json(&["caches", "--json", "--cache", "kmalloc-"], &file);
    let some = some["caches"].as_array().unwrap();
    assert!(!some.is_empty() && some.iter().all(|r| r["cache"].as_str().unwrap().starts_with("kmalloc-")));
    let per_cpu: u64 = (0..4)
        .map(|cpu| {
            json(&["summary", "--json", "--cpu", &cpu.to_string()], &file)["slab"]["alloc_events"]
                .as_u64()
                .unwrap()
        })
        .sum();
    assert_eq!(per_cpu, json(&["summary", "--json"], &file)["slab"]["alloc_events"].as_u64().unwrap());
    let text = stdout(&run(&["callers", "-l", "2"], &file));
    assert!(text.contains(" call sites (-l 0)"), "{text}");
}

#[test]
fn windows_split_the_trace_without_losing_anything() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let all = json(&["summary", "--json"], &file);
    let (first, last) = (all["trace"]["first"].as_u64().unwrap(), all["trace"]["last"].as_u64().unwrap());
    let middle = (first + last) / 2;
    let seconds = |t: u64| format!("{}.{:09}", t / 1_000_000_000, t % 1_000_000_000);
    let before = json(&["summary", "--json", "--time", &format!("..{}", seconds(middle))], &file);
    let after = json(&["summary", "--json", "--time", &format!("{}..", seconds(middle + 1))], &file);
    for key in ["alloc_events", "free_events", "bytes_alloc", "bytes_freed"] {
        let number = |v: &Value| v["slab"][key].as_u64().unwrap();
        assert_eq!(number(&before) + number(&after), number(&all), "{key}");
    }
    let live = |summary| at(summary, "/slab/bytes_live").as_u64().unwrap();
    assert_eq!(live(&after), live(&all), "live at the end is live at the end");
    let lines = |args: &[&str]| stdout(&run(args, &file)).lines().count();
    let (head, tail) = (format!("..{}", seconds(middle)), format!("{}..", seconds(middle + 1)));
    assert_eq!(lines(&["dump", "--time", &head]) + lines(&["dump", "--time", &tail]), lines(&["dump"]));
    assert_eq!(lines(&["dump", "--time", "+0..", "-l", "7"]), 7);
    // Nothing happened there: that is 0, and not "not recorded".
    let nothing = json(&["summary", "--json", "--pid", "999999"], &file);
    assert_eq!(
        (&nothing["slab"]["alloc_events"], &nothing["slab"]["recorded"]["kmalloc"]),
        (&0.into(), &true.into())
    );
}

#[test]
fn windows_outside_the_trace_and_reversed_ones_are_refused() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for (window, why) in [("1..2", "lies outside the trace"), ("+0.01..+0.001", "ends before it begins")] {
        for args in
            [vec!["summary"], vec!["callers", "--json"], vec!["export", "folded"], vec!["who", "0x1000"]]
        {
            let output = run(&[&args[..], &["--time", window]].concat(), &file);
            let text = stderr(&output);
            assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{args:?} {window}");
            assert!(text.contains(why) && text.contains("goes from 8.702993 to"), "{args:?}: {text}");
        }
    }
}

#[test]
fn losses_are_told_everywhere_and_end_with_3() {
    let scratch = Scratch::new();
    let file = scratch.changed("x86_64-6.1", |dir| {
        let raw = dir.join("tracefs/per_cpu/cpu1/trace_pipe_raw");
        let mut bytes = fs::read(&raw).unwrap();
        // The third sub-buffer: events were lost before it, and the kernel had no room for their number.
        bytes[2 * 4096 + 8 + 3] |= 0x80;
        fs::write(&raw, bytes).unwrap();
        let stats = dir.join("tracefs/per_cpu/cpu1/stats");
        let text = fs::read_to_string(&stats).unwrap();
        fs::write(stats, text.replace("overrun: 0\ncommit", "overrun: 33\ncommit")).unwrap();
    });
    for args in [vec!["info"], vec!["summary"], vec!["callers"], vec!["caches"], vec!["dump", "-l", "1"]] {
        assert_eq!(run(&args, &file).status.code(), Some(3), "{args:?}");
    }
    let info = json(&["info", "--json"], &file);
    assert_eq!(info["trace"]["lost_events"], 33);
    let cpu = &info["trace"]["per_cpu"][1];
    assert_eq!((&cpu["lost_events"], &cpu["uncounted_places"]), (&33.into(), &1.into()));
    assert_eq!(cpu["lost_events_at_uncounted_places"], 33);
    let place = &cpu["losses"][0];
    assert!(place["uncounted"] == true && place["after"].as_u64() < place["before"].as_u64());
    assert!(stdout(&run(&["summary", "--wide"], &file)).contains("event counts are minimums"));
    assert!(json(&["summary", "--json"], &file)["slab"]["uncertain"].as_u64().unwrap() > 0);
}

#[test]
fn info_tells_how_the_recorded_command_ended() {
    let scratch = Scratch::new();
    let mut writer =
        Writer::new(WriterOptions::new(ByteOrder::Little, 8).page_size(4096).trace_uuid([7; 16])).unwrap();
    let pairs = [
        ("record.command", &b"sh -c \x1b[2J"[..]),
        ("record.command_outcome", b"sh exited with 7"),
        ("record.command_status", b"7"),
    ];
    writer.add_metadata(&pairs).unwrap();
    let file = scratch.0.join("made.kmt");
    fs::write(&file, writer.finish().unwrap()).unwrap();
    let text = stdout(&run(&["info"], &file));
    let line = text.lines().find(|line| line.starts_with("command ")).unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains("sh -c ") && line.ends_with("(sh exited with 7)") && !line.contains('\x1b'),
        "{line}"
    );
    assert_eq!(json(&["info", "--json"], &file)["meta"]["record.command_status"], "7");
}

#[test]
fn without_stats_a_loss_is_a_minimum() {
    let scratch = Scratch::new();
    let file = scratch.changed("s390x-6.1", |dir| {
        let cpu = dir.join("tracefs/per_cpu/cpu0");
        fs::remove_file(cpu.join("stats")).unwrap();
        let mut bytes = fs::read(cpu.join("trace_pipe_raw")).unwrap();
        bytes[2 * 4096 + 8 + 4] |= 0x80; // big endian: the upper byte of the low half
        fs::write(cpu.join("trace_pipe_raw"), bytes).unwrap();
    });
    let info = json(&["info", "--json"], &file);
    assert_eq!(info["trace"]["lost_events_is_minimum"], true);
    assert_eq!(info["trace"]["per_cpu"][0]["losses"][0]["lost_events"], Value::Null);
}

#[test]
fn files_that_cannot_be_read() {
    let scratch = Scratch::new();
    let good = fs::read(scratch.convert(&data("armhf-6.1"))).unwrap();
    let check = |name: &str, bytes: &[u8], part: &str| {
        let path = scratch.0.join(name);
        fs::write(&path, bytes).unwrap();
        let output = run(&["info"], &path);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let message = stderr(&output);
        assert!(message.contains(name) && message.contains(part), "{message}");
        assert_eq!(stdout(&output), "");
    };
    check(
        "text",
        b"certainly not a trace, but long enough to hold the header of one, had it one",
        "not a .kmt file",
    );
    check("empty", b"", "is empty");
    check("short", &good[..40], "needs 64 bytes");
    let mut newer = good.clone();
    for copy in [0, 128] {
        newer[copy + 12] = 7;
    }
    check("newer", &newer, "format version 7.x");
    let missing = run(&["info"], Path::new("/no/such/file"));
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(run(&["info"], &scratch.0).status.code(), Some(1), "a directory");
    assert_eq!(run(&["summary", "--time", "nonsense"], Path::new("x")).status.code(), Some(2));
}

#[test]
fn cut_and_damaged_files_give_what_is_whole_and_end_with_3() {
    let scratch = Scratch::new();
    let good = fs::read(scratch.convert(&data("x86_64-6.12"))).unwrap();
    let path = scratch.0.join("cut");
    fs::write(&path, &good[..good.len() * 3 / 4]).unwrap();
    let output = run(&["dump"], &path);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("has no end"), "{}", stderr(&output));
    let whole = stdout(&run(&["dump"], &scratch.0.join("trace.kmt")));
    assert!(
        stdout(&run(&["summary", "--wide"], &path)).contains("The recording ended unexpectedly at "),
        "reported beside the totals"
    );
    let some = stdout(&output);
    assert!(some.lines().count() > 0 && some.lines().count() < whole.lines().count());
    let mut damaged = good.clone();
    let middle = damaged.len() - 60_000;
    damaged[middle] ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert_eq!(run(&["info"], &path).status.code(), Some(3));
    assert_eq!(json(&["info", "--json"], &path)["integrity"]["sound"], false);
    assert!(
        stdout(&run(&["summary", "--wide"], &path)).contains("The file is incomplete (1 damaged place"),
        "reported beside the totals"
    );
}

#[test]
fn a_file_alone_gives_findings_and_stdin_works() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("armhf-6.1"));
    assert_eq!(stdout(&run(&[], &file)), stdout(&run(&["findings"], &file)));
    let (findings, summary) = (json(&["--json"], &file), json(&["summary", "--json"], &file));
    assert_eq!(findings, json(&["findings", "--json"], &file));
    for totals in ["/slab", "/pages"] {
        assert_eq!(at(&findings, totals), at(&summary, totals));
    }
    assert_eq!(stdout(&run(&["dump", "--json"], &file)), stdout(&run(&["dump", "--format", "jsonl"], &file)));
    let input = fs::File::open(&file).unwrap();
    let program = env!("CARGO_BIN_EXE_kmt-analyze");
    let mut command = Command::new(program);
    let piped = command.args(["summary", "-"]).env("COLUMNS", "80").stdin(input).output().unwrap();
    // The commands to run next name the file.
    let text = |text: String| text.split("\n\n  ").next().map(str::to_owned);
    assert_eq!(text(stdout(&piped)), text(stdout(&run(&["summary"], &file))));
}

/// A stream that is not a trace may be endless, as devices are.
#[test]
fn a_stream_that_is_not_a_trace_is_refused_at_its_begin() {
    let limited =
        format!("ulimit -v 1000000 && exec {} summary - < /dev/zero", env!("CARGO_BIN_EXE_kmt-analyze"));
    let refused = Command::new("sh").args(["-c", &limited]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("kmt-capture convert makes .kmt files"), "{}", stderr(&refused));
}

/// Files of other tools are named, with the command that converts them or with what to do.
#[test]
fn other_files_are_named() {
    let scratch = Scratch::new();
    let event =
        "            sh-7       [001] d..1. 1.500000: kfree: call_site=f+0x1/0x2 ptr=ffff888100001000\n";
    let kernel_log = "[    1.000000] Linux version 6.1\n";
    for (name, bytes, says) in [
        (
            "a b.dat",
            &b"\x17\x08\x44tracing6\0\0"[..],
            &["a trace.dat of trace-cmd", "convert '", "a b.dat' -o '", "a b.kmt'`"][..],
        ),
        ("perf.data", b"PERFILE2\x68\0", &["a perf.data", "perf.kmt`"]),
        ("trace.txt", event.as_bytes(), &["a text with events", "trace.kmt`"]),
        ("trace.kmt", event.as_bytes(), &["a text with events", "trace.converted.kmt`"]),
        ("x.gz", b"\x1f\x8b\x08\0", &["a compressed file", "x.kmt`"]),
        (
            "slab",
            b"slabinfo - version: 2.1\n",
            &["a copy of /proc/slabinfo", "slabinfo BEFORE AFTER", "slabinfo.before"],
        ),
        ("vmcore", b"KDUMP   \x06\0\0\0", &["vmcore", "trace dump -t"]),
        ("log", kernel_log.as_bytes(), &["a kernel log without events"]),
    ] {
        let path = scratch.0.join(name);
        fs::write(&path, bytes).unwrap();
        let output = run(&["info"], &path);
        let message = stderr(&output);
        assert!(output.status.code() == Some(1) && message.contains("hint: "), "{message}");
        assert!(says.iter().all(|part| message.contains(part)), "{says:?}: {message}");
    }
    let folder = scratch.0.join("lttng");
    fs::create_dir_all(&folder).unwrap();
    assert!(stderr(&run(&["info"], &folder)).contains("kmt-capture convert "));
    fs::write(folder.join("metadata"), "/* CTF 1.8 */\n").unwrap();
    assert!(stderr(&run(&["info"], &folder)).contains("babeltrace2"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.12"));
    let program = env!("CARGO_BIN_EXE_kmt-analyze");
    let mut child = Command::new(program)
        .arg("dump")
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A sub-buffer as a 4.4 kernel writes it, by its sources: filtered events that went through the ring buffer and were
/// discarded, 4-byte gfp_flags, flags without underscores, four flag columns and a pid column of five.
#[test]
fn kernel_4_4_prints_as_it_did() {
    let scratch = Scratch::new();
    let dir = scratch.0.join("4.4");
    let write = |name: &str, contents: &[u8]| {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    };
    write(
        "uname",
        b"Linux board 4.4.0-210-generic #242-Ubuntu SMP Fri Apr 16 x86_64 x86_64 x86_64 GNU/Linux\n",
    );
    write("tracefs/trace_clock", b"[local] global\n");
    write("tracefs/saved_cmdlines", b"42 sh\n");
    write(
        "tracefs/events/header_page",
        b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n",
    );
    let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n";
    let flags = "(REC->gfp_flags) ? __print_flags(REC->gfp_flags, \"|\", {(unsigned long)((((( gfp_t)(0x400000u|0x2000000u)) | \
        (( gfp_t)0x40u) | (( gfp_t)0x80u)))), \"GFP_KERNEL\"}, {(unsigned long)(( gfp_t)0x8000u), \"GFP_ZERO\"}) : \"GFP_NOWAIT\"";
    let kmalloc = format!(
        "name: kmalloc\nID: 451\nformat:\n{common}\tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:size_t bytes_alloc;\toffset:32;\tsize:8;\tsigned:0;\n\tfield:gfp_t gfp_flags;\toffset:40;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"call_site=%lx ptr=%p bytes_req=%zu bytes_alloc=%zu gfp_flags=%s\", REC->call_site, REC->ptr, \
        REC->bytes_req, REC->bytes_alloc, {flags}\n"
    );
    let free = format!(
        "name: kmem_cache_free\nID: 449\nformat:\n{common}\nprint fmt: \"call_site=%lx ptr=%p\", REC->call_site, REC->ptr\n"
    );
    write("tracefs/events/kmem/kmalloc/format", kmalloc.as_bytes());
    write("tracefs/events/kmem/kmem_cache_free/format", free.as_bytes());
    let event = |type_len: u32, delta: u32, id: u16, flags: u8, preempt: u8, words: &[u64], tail: &[u8]| {
        let mut out = (type_len | delta << 5).to_le_bytes().to_vec();
        out.extend(id.to_le_bytes());
        out.extend([flags, preempt, 42, 0, 0, 0]);
        words.iter().for_each(|w| out.extend(w.to_le_bytes()));
        out.extend(tail);
        out
    };
    let (site, ptr) = (0xffff_ffff_8100_0123u64, 0xffff_8800_1234_5680u64);
    let mut data =
        event(12, 0, 451, 0x09, 0x11, &[site, ptr, 100, 128], &[0xc0, 0x80, 0x40, 0x02, 9, 9, 9, 9]);
    // Discarded: type 29, a delta of 2 us, and the length of what is skipped.
    data.extend((29u32 | 2_000 << 5).to_le_bytes());
    data.extend(28u32.to_le_bytes());
    data.extend([0xaa; 24]);
    data.extend(event(12, 500_000, 451, 0, 0, &[site, 0, 8192, 8192], &[0, 0, 0, 0, 9, 9, 9, 9]));
    data.extend(event(6, 1_000_000, 449, 0x10, 0, &[site, ptr], &[]));
    let mut page = 1_000_000_000u64.to_le_bytes().to_vec();
    page.extend((data.len() as u64).to_le_bytes());
    page.extend(&data);
    page.resize(4096, 0);
    write("tracefs/per_cpu/cpu0/trace_pipe_raw", &page);
    let file = scratch.convert(&dir);
    assert_eq!(
        stdout(&run(&["dump"], &file)),
        "              sh-42    [000] d.h11     1.000000: kmalloc: call_site=ffffffff81000123 ptr=ffff880012345680 \
         bytes_req=100 bytes_alloc=128 gfp_flags=GFP_KERNEL|GFP_ZERO\n              \
         sh-42    [000] ....     1.000502: kmalloc: call_site=ffffffff81000123 ptr=0000000000000000 \
         bytes_req=8192 bytes_alloc=8192 gfp_flags=GFP_NOWAIT\n              \
         sh-42    [000] ..s.     1.001502: kmem_cache_free: call_site=ffffffff81000123 ptr=ffff880012345680\n"
    );
    let slab = json(&["summary", "--json"], &file)["slab"].clone();
    assert_eq!(
        (&slab["kmalloc"]["alloc_failures"], &slab["kmalloc"]["bytes_alloc"]),
        (&1.into(), &128.into())
    );
    // Neither kfree nor kmem_cache_alloc was recorded.
    assert!(at(&slab, "/kmalloc/bytes_live").is_null() && at(&slab, "/cache/alloc_events").is_null());
}

#[test]
fn every_way_of_storing_dumps_the_same() {
    for name in CAPTURES {
        let scratch = Scratch::new();
        let plain = scratch.convert(&data(name));
        let expected = run(&["dump"], &plain).stdout;
        // The commands to run next name the file.
        let without_next = |text: String| text.split("\n\n  ").next().unwrap_or_default().to_owned();
        let summary = without_next(stdout(&run(&["summary"], &plain)));
        assert!(!expected.is_empty());
        use kmt_format::Compression::{Lz4, None, Zstd};
        for (compression, verbatim) in [(Lz4, false), (Zstd, false), (None, true), (Lz4, true)] {
            if !compression.is_available() {
                continue;
            }
            let output = scratch.0.join("stored.kmt");
            let (input, output_path) = (data(name), output.clone());
            let options = kmt_capture::convert::Options {
                input,
                output: output_path,
                force: true,
                compression,
                verbatim,
                quiet: true,
                symbols: kmt_capture::record::Symbols::Used,
                instance: Option::None,
                boot: Option::None,
                survivors: Option::None,
                limits: kmt_capture::convert::Limits::default(),
            };
            kmt_capture::convert::convert(&options).unwrap();
            assert!(run(&["dump"], &output).stdout == expected, "{name} {compression:?} {verbatim}");
            let stored = without_next(stdout(&run(&["summary"], &output)));
            assert_eq!(stored, summary, "{name} {compression:?} {verbatim}");
            let info: Value = serde_json::from_slice(&run(&["info", "--json"], &output).stdout).unwrap();
            assert_eq!(info["storage"]["verbatim"].as_u64().unwrap() > 0, verbatim);
            assert_eq!(
                info["storage"]["plain"].as_u64().unwrap() == 0,
                compression != None,
                "{}",
                info["storage"]
            );
        }
    }
}

#[test]
fn a_file_that_grows_is_followed_to_its_end() {
    use std::io::Write;
    for name in CAPTURES {
        let scratch = Scratch::new();
        let file = scratch.convert(&data(name));
        let whole = fs::read(&file).unwrap();
        let growing = scratch.0.join("growing.kmt");
        let mut output = fs::File::create(&growing).unwrap();
        let (first, rest) = whole.split_at(whole.len() / 3);
        output.write_all(first).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"))
            .args(["dump", "--follow"])
            .arg(&growing)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        for piece in rest.chunks(rest.len() / 3 + 1) {
            std::thread::sleep(std::time::Duration::from_millis(100));
            output.write_all(piece).unwrap();
        }
        let followed = child.wait_with_output().unwrap();
        let dumped = run(&["dump"], &file);
        assert_eq!(followed.status.code(), dumped.status.code(), "{}", stderr(&followed));
        assert!(stdout(&followed) == stdout(&dumped) && !dumped.stdout.is_empty());
        // A stream that breaks off gives what has come, and says so.
        let mut child = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"))
            .args(["dump", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&whole[..whole.len() - 200]).unwrap();
        let cut = child.wait_with_output().unwrap();
        assert_eq!(cut.status.code(), Some(3), "{}", stderr(&cut));
        assert!(stderr(&cut).contains("has no end"), "{}", stderr(&cut));
    }
}

#[test]
fn the_version_names_the_release_and_the_format() {
    let output = Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).arg("--version").output().unwrap();
    assert_eq!(stdout(&output), concat!("kmt-analyze ", env!("CARGO_PKG_VERSION"), " (format 1.0)\n"));
}
