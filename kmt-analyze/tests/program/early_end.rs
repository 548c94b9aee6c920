//! Recordings that ended unexpectedly: the file of a killed recorder, and every copy of it, says so.

use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::raw::ChunkKind;
use kmt_format::read::{EarlyEnd, Trace};
use kmt_format::write::Writer;
use kmt_format::{Compression, Limits};

use crate::support::files::{Scratch, at, convert, data, json, reports, run, stderr, stdout};

/// A capture cut at the last chunk of a kind: before it, or within it.
fn cut(scratch: &Scratch, kind: ChunkKind, within: usize) -> PathBuf {
    let file = scratch.convert(&data("x86_64-6.1"));
    assert_eq!(at(&json(&["summary", "--json"], &file), "/trace/ended_unexpectedly"), false);
    let bytes = fs::read(&file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let last = trace.chunks().filter(|chunk| chunk.kind == kind).last().unwrap();
    let part = scratch.0.join("out.kmt.part");
    fs::write(&part, &bytes[..last.offset as usize + within]).unwrap();
    part
}

/// Copies of a file, by each command that makes one, and copies of these.
fn copies(part: &Path) -> Vec<PathBuf> {
    let name = |of: &Path, by: &str| {
        of.with_file_name(format!("{}-{by}", of.file_name().unwrap().to_str().unwrap()))
    };
    let mut made = Vec::new();
    for of in [part.to_owned(), name(part, "recover")] {
        for by in ["recover", "slice", "anonymize"] {
            let to = name(&of, by);
            let output = run(&[by, "--force", "-o", to.to_str().unwrap()], &of);
            assert_eq!(output.status.code(), Some(3), "{by}: {}", stderr(&output));
            made.push(to);
        }
        let to = name(&of, "convert");
        convert(&of, &to, None).unwrap();
        made.push(to);
    }
    made
}

fn assert_says_so(file: &Path) {
    let name = file.display();
    for report in reports() {
        let output = run(&[report], file);
        let (text, errors) = (stdout(&output), stderr(&output));
        // A report may refuse what was not recorded.
        if output.status.code() == Some(1) {
            assert!(!errors.contains("was lost"), "{report}: only the end is unknown: {errors}");
            continue;
        }
        assert_eq!(output.status.code(), Some(3), "{name} {report}: {errors}");
        assert!(
            errors.contains("ended unexpectedly") || errors.contains("has no end"),
            "{name} {report}: {errors}"
        );
        for claim in ["No events were lost", "Nothing was lost"] {
            assert!(!text.contains(claim), "{name} {report}: {text}");
        }
    }
    let info = run(&["info"], file);
    let info = stdout(&info);
    assert!(info.contains("The recording ended unexpectedly at "), "{info}");
    assert!(info.contains("still in the ring buffers are unknown"), "{info}");
    let claim = "No lost events were counted";
    assert!(info.contains(" unknown ") && !info.contains(claim), "{info}");
    assert!(!stdout(&run(&["summary"], file)).contains(claim));
    let summary = json(&["summary", "--json"], file);
    assert_eq!(at(&summary, "/trace/ended_unexpectedly"), true, "{name}");
    assert_eq!(at(&summary, "/trace/lost_events_is_minimum"), true, "{name}");
    for cpu in at(&summary, "/trace/per_cpu").as_array().unwrap() {
        assert_eq!(at(cpu, "/complete_until").is_null(), at(cpu, "/events") == 0, "{cpu}");
        assert_eq!(at(cpu, "/lost_events_is_minimum"), true, "{cpu}");
    }
}

#[test]
fn every_copy_of_a_cut_recording_says_so_in_every_report() {
    for within in [0, 20_000] {
        let scratch = Scratch::new();
        let part = cut(&scratch, ChunkKind::EVENTS, within);
        assert_says_so(&part);
        for copy in copies(&part) {
            assert_says_so(&copy);
        }
    }
}

/// The time of each CPU is that of its last event, in the part as in its copies.
#[test]
fn copies_keep_until_when_the_events_are_complete() {
    let scratch = Scratch::new();
    let part = cut(&scratch, ChunkKind::EVENTS, 0);
    let end = |file: &Path| -> EarlyEnd {
        let bytes = fs::read(file).unwrap();
        Trace::open(&bytes).unwrap().early_end().unwrap()
    };
    let of_part = end(&part);
    let bytes = fs::read(&part).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    for (cpu, stream) in trace.streams() {
        let last = stream.chunks.iter().map(|(_, info)| info.t_last).max();
        assert_eq!(of_part.complete_until[cpu], last);
    }
    let times = of_part.complete_until.values();
    assert_ne!(times.clone().min(), times.clone().max(), "one CPU ends earlier");
    assert!(times.flatten().count() > 1);
    for copy in copies(&part).iter().filter(|copy| !copy.display().to_string().contains("anonymize")) {
        assert_eq!(end(copy), of_part, "{}", copy.display());
    }
}

/// What may have been freed behind the end of an earlier CPU is uncertain; nothing before it is.
#[test]
fn only_what_lives_at_the_end_is_uncertain() {
    let scratch = Scratch::new();
    let part = cut(&scratch, ChunkKind::INDEX, 0);
    let summary = json(&["summary", "--json"], &part);
    assert!(at(&summary, "/slab/uncertain").as_u64().unwrap() > 0, "{summary:#}");
    let ends: Vec<u64> = at(&summary, "/trace/per_cpu")
        .as_array()
        .unwrap()
        .iter()
        .filter(|cpu| at(cpu, "/events") != 0)
        .map(|cpu| at(cpu, "/complete_until").as_u64().unwrap())
        .collect();
    let end = ends.iter().min().unwrap() - 1_000;
    let first = at(&summary, "/trace/first").as_u64().unwrap();
    let window = format!("+0..+{:.9}", (end - first) as f64 / 1e9);
    let before = json(&["summary", "--json", "--time", &window], &part);
    assert_eq!(at(&before, "/slab/uncertain"), 0, "until {window}");
}

/// Settings that another process changed are in every report, and in the file's copies.
#[test]
fn changes_by_another_process_are_reported() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let whole = fs::read(&file).unwrap();
    let first =
        Trace::open(&whole).unwrap().streams().values().flat_map(|s| &s.chunks).map(|c| c.1.t_first).min();
    let middle = first.unwrap() + 5_000_000;
    for (change, said, is_lossy) in [
        ("tracing_on\t1\t0", "tracing_on changed from \"1\" to \"0\" at ", true),
        ("trace\t\t", "the buffer was cleared at ", true),
        ("buffer_size_kb\t4096\t64", "buffer_size_kb changed from \"4096\" to \"64\" at ", false),
        ("events/kmem/\u{202e}kfree/enable\t1\t\u{1b}[2J", "Another process changed the recording: ", true),
    ] {
        let mut bytes = whole.clone();
        let mut writer = Writer::append_to(&bytes, Limits::default(), Compression::None).unwrap();
        let pair = format!("{middle}\t{}\t{change}", middle + 1_000);
        writer.add_metadata(&[("record.changed", pair.as_bytes())]).unwrap();
        bytes.extend(writer.finish().unwrap());
        fs::write(&file, &bytes).unwrap();
        let slice = file.with_file_name("slice.kmt");
        let sliced = run(&["slice", "--force", "-o", slice.to_str().unwrap()], &file);
        let code = Some(if is_lossy { 3 } else { 0 });
        assert_eq!(sliced.status.code(), code, "{}", stderr(&sliced));
        for file in [&file, &slice] {
            for report in ["findings", "summary", "leaks", "info"] {
                let output = run(&[report], file);
                let text = stdout(&output);
                if report == "leaks" && is_lossy {
                    assert!(text.contains("nknown number of events was lost"), "{text}");
                    continue;
                }
                assert_eq!(output.status.code(), code, "{change} {report}: {}", stderr(&output));
                let words = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
                assert!(words(&text).contains(said), "{change} {report}: {text}");
                let claims =
                    ["No events were lost", "Nothing was lost"].iter().any(|claim| text.contains(claim));
                assert!(!(claims && is_lossy), "{report}: {text}");
                assert!(!text.contains('\u{1b}'), "{report}: {text}");
            }
            let info = json(&["info", "--json"], file);
            assert_eq!(at(&info, "/trace/lost_events_is_minimum"), is_lossy, "{change}");
            assert_eq!(at(&info, "/changes/0/from"), middle);
        }
        // What was freed behind it may have no event.
        let uncertain = json(&["summary", "--json"], &file);
        assert_eq!(at(&uncertain, "/slab/uncertain").as_u64().unwrap() > 0, is_lossy, "{change}");
    }
}
