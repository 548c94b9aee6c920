//! What `anonymize` leaves out: everything that it does not know.

use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::read::Trace;
use kmt_format::write::{Task, Writer, WriterOptions};

use crate::support::files::{Scratch, convert, data, json, run, stderr, stdout};
use crate::support::foreign::{Capture, Perf};

const COMMON: &str = "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
const KFREE: &str = "\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:u64 serial;\toffset:24;\tsize:8;\tsigned:0;\n\tfield:char board[8];\toffset:32;\tsize:8;\tsigned:0;\n\tfield:pid_t owner_pid;\toffset:40;\tsize:4;\tsigned:1;\n";
const UNKNOWN: &str = "\tfield:u64 serial;\toffset:8;\tsize:8;\tsigned:0;\n";
const CACHE_FREE: &str = "\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n";

const SERIAL: u64 = 0x1122_3344_5566_7788;
const PID: i32 = 23_456;

fn format(name: &str, id: u16, fields: &str) -> String {
    format!("name: {name}\nID: {id}\n{COMMON}{fields}\nprint fmt: \"secret {name} %llx\", REC->serial\n")
}

/// A record: id, common fields, words, and more bytes.
fn record(id: u16, words: &[u64], rest: &[u8]) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend([0, 0]);
    out.extend(PID.to_le_bytes());
    words.iter().for_each(|w| out.extend(w.to_le_bytes()));
    out.extend_from_slice(rest);
    out
}

/// A file that holds a secret wherever one can be.
fn secrets(path: &Path) {
    let options = WriterOptions::new(ByteOrder::Little, 8)
        .align_u64(8)
        .page_size(4096)
        .trace_uuid(*b"secretsecretuuid");
    let mut writer = Writer::new(options).unwrap();
    writer.add_format("kmem", &format("kfree", 1, KFREE)).unwrap();
    writer.add_format("secret", &format("secret_event", 2, UNKNOWN)).unwrap();
    writer.add_format("kmem", &format("kmem_cache_free", 3, CACHE_FREE)).unwrap();
    writer.add_clock(&TraceClock::named("local")).unwrap();
    let release: &[u8] = b"6.1.0-secret";
    let pairs =
        [("kernel.release", release), ("secret.key", b"x"), ("boot_id", b"secret"), ("source", b"secret")];
    writer.add_metadata(&pairs).unwrap();
    writer
        .add_metadata(&[("clock.pair", b"8000000000 1700000000000000000 50"), ("cmdline", b"secret")])
        .unwrap();
    writer.add_file("iomem", b"00100000-1fffffff : System RAM secret\n").unwrap();
    writer.add_file("secret", b"secret").unwrap();
    writer.add_file("meminfo.after", b"MemTotal:  1530284 kB\nSecretHeap: 1 kB\n").unwrap();
    writer.add_file("zoneinfo.after", b"Node 0, zone   Normal\n  start_pfn:           1048576\n").unwrap();
    let slabs = b"slabinfo - version: 2.1\n# name\nsec_1 1 1 8 1 1 : tunables 0 0 0 : slabdata 1 1 0\n";
    writer.add_file_at("slabinfo", slabs, (8_000_000_000, 8_000_000_001)).unwrap();
    let task = Task::new(PID, b"secret".to_vec()).tgid(PID).since(9_000_000_000);
    writer.add_tasks(&[task]).unwrap();
    let mut kfree = record(1, &[0xffff_ffff_8112_3456, 0xffff_8881_0000_1040, SERIAL], b"secret\0\0");
    kfree.extend(PID.to_le_bytes());
    writer.add_event(0, 9_000_000_000, &kfree).unwrap();
    writer.add_event(0, 9_000_000_010, &record(2, &[SERIAL], &[])).unwrap();
    let name = [&(28u32 | 6 << 16).to_le_bytes()[..], b"sec_1\0"].concat();
    let free = record(3, &[0xffff_ffff_8112_3456, 0xffff_8881_0000_2040], &name);
    writer.add_event(0, 9_000_000_020, &free).unwrap();
    fs::write(path, writer.finish().unwrap()).unwrap();
}

fn made(options: &[&str], file: &Path) -> (PathBuf, String) {
    let output = file.with_file_name("anonymous.kmt");
    let done = run(&[&["anonymize", "--force", "-o", output.to_str().unwrap()], options].concat(), file);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    (output, stdout(&done) + &stderr(&done))
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|w| w.eq_ignore_ascii_case(part))
}

#[test]
fn what_is_unknown_is_left_out() {
    let scratch = Scratch::new();
    let file = scratch.0.join("secret.kmt");
    secrets(&file);
    assert!(holds(&fs::read(&file).unwrap(), b"secret"), "the file is made as it should");
    let secrets = [
        &b"secret"[..],
        b"sec_1",
        b"iomem",
        b"start_pfn",
        b"boot_id",
        b"serial",
        b"clock.pair",
        b"board",
        b"owner",
    ];
    for options in [&["--for", "public", "--hide-symbols", "--hide-caches"][..], &["--for", "public"]] {
        let bytes = fs::read(made(options, &file).0).unwrap();
        for secret in secrets {
            assert!(!holds(&bytes, secret), "{options:?}: {}", String::from_utf8_lossy(secret));
        }
    }
    let (output, _) = made(&["--for", "public"], &file);
    assert_eq!(json(&["verify", "--json"], &output)["verify"]["sound"], true);
    let bytes = fs::read(&output).unwrap();
    let numbers =
        [SERIAL, 0xffff_ffff_8112_3456, 0xffff_8881_0000_1040, 9_000_000_000, 8_000_000_000, 1_700_000_000];
    for number in numbers {
        assert!(
            !holds(&bytes, &number.to_le_bytes()) && !holds(&bytes, number.to_string().as_bytes()),
            "{number}"
        );
    }
    assert!(!holds(&bytes, &PID.to_le_bytes()), "the task's id");
    let (old, new) = (fs::read(&file).unwrap(), bytes);
    let (old, new) = (Trace::open(&old).unwrap(), Trace::open(&new).unwrap());
    assert_ne!(old.header().trace_uuid, new.header().trace_uuid);
    assert_eq!(new.event_count(), 3, "the event of an unknown class counts, without its fields");
    let metadata = new.metadata();
    assert_eq!(metadata.text("kernel.release"), Some("6.1.0"));
    assert_eq!(metadata.attachment("meminfo.after"), Some(&b"MemTotal:  1530284 kB\n"[..]));
    let snapshot = metadata.attachments.iter().find(|a| a.name == "slabinfo").unwrap();
    assert_eq!(snapshot.times, Some((0, 1)), "the snapshot is the first thing that happened");
    assert_eq!(metadata.tasks[0].time, 1_000_000_000);
    let text = stdout(&run(&["dump"], &output));
    assert!(text.contains("kfree: call_site=0x") && text.contains(" ptr=0x"), "{text}");
    assert!(text.contains("kmem_cache_free: call_site=0x") && text.contains(" name=cache-"), "{text}");
    let events = stdout(&run(&["dump", "--format", "jsonl"], &output));
    let last: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    let name = last["fields"]["name"].as_str().unwrap();
    assert!(name.starts_with("cache-") && name.len() == 12, "not cut to the old length: {name}");
}

#[test]
fn the_manifest_tells_what_remains() {
    let scratch = Scratch::new();
    let file = scratch.0.join("secret.kmt");
    secrets(&file);
    let (_, text) = made(&[], &file);
    for part in [
        "kept:      3 events",
        "meminfo.after",
        "1 task name,",
        "2 attached files",
        "1 unknown event class (1 event)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("1 block of memory"), "{text}");
    let (_, text) = made(&["--json", "--hide-caches"], &file);
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(manifest["anonymize"]["kept"]["events"], 3);
    assert_eq!(manifest["anonymize"]["replaced"]["cache_names"], 1);
    assert_eq!(manifest["anonymize"]["left_out"]["files"], 2);
    assert_eq!(manifest["anonymize"]["seeded"], false);
    let both = run(&["anonymize", "--json", "-o", "-"], &file);
    assert_eq!(both.status.code(), Some(1));
    assert!(both.stdout.is_empty() && stderr(&both).contains("hint:"), "{}", stderr(&both));
}

#[test]
fn modules_outside_mainline_are_hidden_in_public() {
    let scratch = Scratch::new();
    let file = scratch.changed("x86_64-6.12", |capture| {
        for name in ["kallsyms", "modules"] {
            let text = fs::read_to_string(capture.join(name)).unwrap();
            fs::write(capture.join(name), text.replace("netfs", "acme_fs")).unwrap();
        }
    });
    let site = |file: &Path| stdout(&run(&["dump"], file));
    assert!(
        site(&file).contains("acme_fs_free_request_rcu+0x26/0x40 [acme_fs]"),
        "the file is made as it should"
    );
    let (kept, _) = made(&[], &file);
    assert!(site(&kept).contains("acme_fs_free_request_rcu+0x26/0x40 [acme_fs]"));
    let (public, _) = made(&["--for", "public"], &file);
    assert!(!holds(&fs::read(&public).unwrap(), b"acme_fs"));
    let text = site(&public);
    assert!(
        text.contains("[module-") && text.contains("kmem_cache_alloc: call_site=getname_flags"),
        "others are kept"
    );
    // The same module under its own name is one of mainline's.
    let file = scratch.convert(&data("x86_64-6.12"));
    let (public, _) = made(&["--for", "public"], &file);
    assert!(site(&public).contains("netfs_free_request_rcu+0x26/0x40 [netfs]"));
}

#[test]
fn samples_stand_for_as_many_allocations_as_before() {
    let scratch = Scratch::new();
    let kmt = fs::read(scratch.convert(&data("x86_64-6.1"))).unwrap();
    let capture = Capture::new(&data("x86_64-6.1"), ByteOrder::Little);
    let (input, file) = (scratch.0.join("perf.data"), scratch.0.join("perf.kmt"));
    fs::write(&input, capture.perf(&kmt, Perf { sampled: true, ..Perf::default() })).unwrap();
    convert(&input, &file, None).unwrap();
    for options in [&[][..], &["--hide-symbols", "--for", "public"]] {
        let (output, _) = made(options, &file);
        let estimates = |file: &Path| {
            let rows = json(&["callers", "--json"], file);
            let rows = rows["callers"].as_array().unwrap();
            let mut rows: Vec<String> = rows.iter().map(|row| row["estimated"].to_string()).collect();
            rows.sort_unstable();
            rows
        };
        let (before, after) = (estimates(&file), estimates(&output));
        assert!(before.iter().any(|row| row != "null") && before == after, "{before:?} {after:?}");
        assert_eq!(json(&["verify", "--json"], &output)["verify"]["sound"], true);
    }
}
