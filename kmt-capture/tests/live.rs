//! Recording on the running kernel, with everything that can go wrong: needs root and tracefs.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use kmt_format::Limits;
use kmt_format::read::{Event, StackJoiner, Trace};
use support::alone::{Alone, TRACING, recordings_of_others};

/// One recording test at a time, in a folder of its own, beside an instance that must stay as it is.
struct Bench {
    folder: PathBuf,
    before: BTreeMap<String, String>,
    // Dropped last.
    _alone: Alone,
}

impl Bench {
    /// `None`, counted as a skip, where nothing can be recorded.
    fn new(name: &str) -> Option<Self> {
        let alone = Alone::or_skip()?;
        let other = other();
        fs::create_dir(&other).unwrap();
        for (file, value) in [
            ("trace_clock", "boot"),
            ("buffer_size_kb", "128"),
            ("events/kmem/kmalloc/filter", "bytes_req > 77"),
            ("events/kmem/kfree/trigger", "stacktrace"),
            ("events/kmem/kmalloc/enable", "1"),
            ("options/overwrite", "0"),
            ("tracing_on", "0"),
        ] {
            fs::write(other.join(file), value).unwrap();
        }
        let folder = std::env::temp_dir().join(format!("kmt-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Some(Self { folder, before: state(), _alone: alone })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A command for a recording that ends before it: it works until the test is over, and holds none of our pipes.
    fn endless(&self, work: &str) -> String {
        fs::write(self.path("endless"), "").unwrap();
        let flag = self.path("endless").display().to_string();
        format!("exec > /dev/null 2>&1; while [ -e {flag} ]; do {work}; done")
    }

    /// Starts `record` with these arguments and the output `FOLDER/out.kmt`.
    fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
        command.arg("record").arg("-o").arg(self.path("out.kmt")).args(args);
        command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    fn record(&self, args: &[&str]) -> Output {
        self.start(args).wait_with_output().unwrap()
    }

    /// Everything outside the recorder's own instance is as it was, and that instance is gone.
    fn assert_untouched(&self) {
        let after = state();
        for (file, value) in &self.before {
            assert_eq!(after.get(file), Some(value), "{file}");
        }
        assert_eq!(after.len(), self.before.len());
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::write(other().join("events/enable"), "0");
        let _ = fs::write(other().join("events/kmem/kfree/trigger"), "!stacktrace");
        let gone = (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            fs::remove_dir(other()).is_ok()
        });
        assert!(gone || std::thread::panicking());
    }
}

fn other() -> PathBuf {
    Path::new(TRACING).join("instances").join(format!("other-{}", std::process::id()))
}

/// Every enable, filter, trigger, threshold, clock, size and option: of the top level and of the other instance.
fn state() -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    let mut keep = |path: PathBuf| {
        if let Ok(text) = fs::read_to_string(&path) {
            state.insert(path.display().to_string(), text);
        }
    };
    for dir in [PathBuf::from(TRACING), other()] {
        for name in [
            "tracing_on",
            "trace_clock",
            "current_tracer",
            "tracing_thresh",
            "set_event",
            "set_event_pid",
            "set_ftrace_filter",
            "buffer_size_kb",
            "buffer_percent",
            "buffer_subbuf_size_kb",
            "tracing_cpumask",
            "saved_cmdlines_size",
            "events/enable",
        ] {
            keep(dir.join(name));
        }
        for option in fs::read_dir(dir.join("options")).into_iter().flatten().flatten() {
            keep(option.path());
        }
        for system in ["kmem", "vmscan", "compaction", "task", "cgroup"] {
            for event in fs::read_dir(dir.join("events").join(system)).unwrap().flatten() {
                for file in ["enable", "filter", "trigger"] {
                    keep(event.path().join(file));
                }
            }
        }
    }
    let instances = fs::read_dir(Path::new(TRACING).join("instances")).unwrap().flatten();
    let mut names: Vec<String> = instances.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    state.insert("instances".to_owned(), names.join(" "));
    state
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every chunk that is there can be read; only the end may be torn. Returns the events.
fn readable(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    let Ok(trace) = Trace::open(&bytes, Limits::default()) else {
        assert!(bytes.len() < 192, "{} bytes cannot be opened", bytes.len());
        return 0;
    };
    for damage in trace.damages() {
        assert_eq!(damage.offset + damage.len, bytes.len() as u64, "damage inside: {damage:?}");
    }
    let mut events = 0;
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        events += run.range.len() as u64;
    }
    assert!(merge.damages().is_empty(), "{:?}", merge.damages());
    events
}

/// For each CPU: events in the file + events reported lost = what the kernel's own counters account for.
fn assert_accounted(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    let trace = Trace::open(&bytes, Limits::default()).unwrap();
    assert!(trace.is_finished() && trace.damages().is_empty());
    let mut lost_all = 0;
    for (cpu, counters) in &trace.metadata().counters {
        let after = counters.after.unwrap();
        let lost = after.lost_events().unwrap();
        let events = trace.streams().get(cpu).map_or(0, |s| s.event_count());
        assert_eq!(after.entries, Some(0), "CPU {cpu} was not emptied");
        assert_eq!(events + lost, after.read.unwrap() + lost, "CPU {cpu}: {after:?}");
        assert_eq!(counters.writer.unwrap().events, events);
        lost_all += lost;
    }
    lost_all
}

/// Reads files: some 20,000 events a round.
fn load(rounds: u32) -> String {
    format!(
        "i=0; while [ $i -lt {rounds} ]; do find /usr/lib /etc -type f 2> /dev/null | head -300 | xargs cat > /dev/null 2>&1; i=$((i+1)); done"
    )
}

#[test]
fn every_event_is_in_the_file_or_counted_as_lost() {
    let Some(bench) = Bench::new("accounts") else { return };
    let load = load(6);
    for mode in [&[][..], &["--mmap"], &["--raw"], &["--raw", "--mmap"], &["--compress", "lz4"]] {
        for (size, is_tiny) in [("32M", false), ("64K", true)] {
            let args: Vec<&str> = [mode, &["--force", "-b", size, "--", "sh", "-c", &load]].concat();
            let output = bench.record(&args);
            let lost = assert_accounted(&bench.path("out.kmt"));
            assert_eq!(lost > 0, is_tiny, "{args:?}: {}", stderr(&output));
            assert_eq!(output.status.code(), Some(if is_tiny { 3 } else { 0 }), "{}", stderr(&output));
            assert!(
                stderr(&output).lines().last().unwrap().starts_with("kmt-analyze "),
                "{}",
                stderr(&output)
            );
            bench.assert_untouched();
        }
    }
}

#[test]
fn a_killed_recorder_leaves_a_file_and_its_instance_is_removed() {
    let Some(bench) = Bench::new("kill") else { return };
    let part = bench.path("out.kmt.part");
    let mut random = u64::from(std::process::id()) | 1 << 40;
    // Half of this time a recorder prepares.
    const LIFE_MS_MAX: u64 = 800;
    let runs = std::env::var("KMT_KILLS").map_or(40, |text| text.parse().unwrap());
    let (mut files, mut events) = (0, 0);
    let mut load = Command::new("sh").args(["-c", &bench.endless(&load(1))]).spawn().unwrap();
    for run in 0..runs {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = bench.start(&["--force", "-q", "-b", "256K"]);
        std::thread::sleep(Duration::from_millis((random >> 33) % LIFE_MS_MAX));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        if part.exists() {
            files += 1;
            events += readable(&part);
        }
        // What is left is removed by the next run; now and then by hand.
        if run % 10 == 9 {
            let output = Command::new(env!("CARGO_BIN_EXE_kmt-capture")).arg("clean").output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            bench.assert_untouched();
        }
    }
    load.kill().unwrap();
    let _ = load.wait();
    assert!(files > runs / 2 && events > 10_000, "{files} files, {events} events");
}

/// Whether this test itself was started by nohup: `SigIgn` of /proc/self/status.
fn ignores_hangups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn signals_end_a_recording_in_order() {
    let Some(bench) = Bench::new("signals") else { return };
    let endless = bench.endless("sleep 0.1");
    let cases: [(&str, u32, &[&str]); 3] =
        [("TERM", 1, &[]), ("INT", 2, &[]), ("HUP", 1, &["--", "sh", "-c", &endless])];
    for (signal, times, args) in cases {
        let mut child = bench.start(&[&["--force"][..], args].concat());
        std::thread::sleep(Duration::from_millis(1_000));
        for _ in 0..times {
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        }
        if signal == "HUP" && ignores_hangups() {
            // A recorder that nohup started outlives its terminal.
            std::thread::sleep(Duration::from_millis(500));
            assert!(child.try_wait().unwrap().is_none());
            fs::remove_file(bench.path("endless")).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signal}: {}", stderr(&output));
        assert_eq!(assert_accounted(&bench.path("out.kmt")), 0);
        assert!(readable(&bench.path("out.kmt")) > 0);
        bench.assert_untouched();
    }
}

#[test]
fn a_full_disk_keeps_what_was_recorded() {
    let Some(bench) = Bench::new("full") else { return };
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16m", "none"])
        .arg(&bench.folder)
        .status()
        .unwrap();
    assert!(mounted.success());
    let output = bench.record(&["--", "sh", "-c", &bench.endless(&load(1))]);
    let text = stderr(&output);
    let events = readable(&bench.path("out.kmt.part"));
    let is_alone = !bench.path("out.kmt").exists();
    let _ = Command::new("umount").arg("-l").arg(&bench.folder).status();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("No space left") && text.contains("out.kmt.part holds what was recorded"),
        "{text}"
    );
    assert!(text.contains("is in memory (tmpfs)"), "{text}");
    assert!(events > 10_000 && is_alone, "{events}");
    bench.assert_untouched();
}

#[test]
fn a_reader_that_goes_away_ends_the_recording() {
    let Some(bench) = Bench::new("pipe") else { return };
    let mut child = Command::new(env!("CARGO_BIN_EXE_kmt-capture"))
        .args(["record", "-o", "-", "--", "sh", "-c", &bench.endless(&load(1))])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut got = vec![0; 12 << 20];
    stdout.read_exact(&mut got).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("Broken pipe"), "{}", stderr(&output));
    fs::write(bench.path("prefix.kmt"), &got).unwrap();
    assert!(readable(&bench.path("prefix.kmt")) > 10_000);
    bench.assert_untouched();
}

#[test]
fn what_is_missing_is_named_and_the_rest_is_recorded() {
    let Some(bench) = Bench::new("missing") else { return };
    let load = load(5);
    let args = [
        "-e",
        "kmem:gone",
        "-e",
        "kmem:kmalloc if bytes_req >= 64",
        "--stack",
        "kmem:kmalloc",
        "--",
        "sh",
        "-c",
        &load,
    ];
    let output = bench.record(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("no event kmem:gone"), "{}", stderr(&output));
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes, Limits::default()).unwrap();
    let conditions =
        String::from_utf8(trace.metadata().attachment("event_conditions").unwrap().to_vec()).unwrap();
    assert!(conditions.contains("kmem:kmalloc filter=bytes_req >= 64\n"), "{conditions}");
    let names: Vec<String> = trace.schema().classes().map(|(_, c)| c.name.clone()).collect();
    assert!(names.contains(&"kernel_stack".to_owned()), "{names:?}");
    assert!(!names.contains(&"kfree".to_owned()), "{names:?}");
    // Each allocation has its stack, and each stack its allocation.
    let (mut joiner, mut stacks, mut allocations) = (StackJoiner::default(), 0, 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).unwrap();
            let of = joiner.see(&event, event.class().name.clone());
            allocations += u64::from(event.class().name == "kmalloc");
            if event.stack().is_some() {
                assert_eq!(of.as_deref(), Some("kmalloc"));
                stacks += 1;
            }
        }
    }
    assert!(stacks > 100 && stacks == allocations, "{stacks} stacks of {allocations} allocations");
    for (args, told) in [
        (&["-e", "kmem:gone"][..], "none of the events kmem:gone"),
        (&["-e", "kmem:kmalloc if nonsense > 1"], "the kernel says"),
        (&["--clock", "sundial"], "no trace clock \"sundial\""),
        (&["--tracefs", "/proc"], "no trace_clock"),
        (&["--", "/no/such/program"], "starting /no/such/program"),
    ] {
        let output = bench.record(&[&["--force"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(told) && stderr(&output).contains("hint: "), "{}", stderr(&output));
        // Nothing was recorded, so nothing is left, and the remedy is that of the failure.
        assert!(!bench.path("out.kmt.part").exists() && !stderr(&output).contains("holds what"), "{args:?}");
        bench.assert_untouched();
    }
}

#[test]
fn an_event_that_is_switched_off_meanwhile_is_told() {
    let Some(bench) = Bench::new("off") else { return };
    let child = bench.start(&["-d", "1500ms", "-b", "1M"]);
    std::thread::sleep(Duration::from_millis(900));
    let instances = fs::read_dir(Path::new(TRACING).join("instances")).unwrap().flatten();
    let ours = instances.map(|e| e.path()).find(|p| p.to_string_lossy().contains("/kmt-")).unwrap();
    fs::write(ours.join("events/kmem/kfree/enable"), "0").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("kmem:kfree went away or was disabled"), "{}", stderr(&output));
    bench.assert_untouched();
}

/// A recording came to its end with our own exit code: 0, or 3 where it says that a busy machine lost events.
fn recorded(output: &Output) {
    let text = stderr(output);
    let is_lossy = text.contains("events were lost");
    assert_eq!(output.status.code(), Some(if is_lossy { 3 } else { 0 }), "{text}");
}

#[test]
fn files_are_not_overwritten_and_sizes_and_commands_are_heeded() {
    let Some(bench) = Bench::new("files") else { return };
    let output = bench.record(&["-d", "200ms", "-b", "1M"]);
    recorded(&output);
    let again = bench.record(&["-d", "200ms"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("is already there"), "{}", stderr(&again));
    fs::write(bench.path("out.kmt.part"), "left").unwrap();
    fs::remove_file(bench.path("out.kmt")).unwrap();
    let left = bench.record(&["-d", "200ms"]);
    assert!(stderr(&left).contains("cut off") && stderr(&left).contains("convert"), "{}", stderr(&left));
    let sized = bench.record(&["--force", "--max-size", "9M", "--", "sh", "-c", &bench.endless(&load(1))]);
    recorded(&sized);
    assert!(stderr(&sized).contains("--max-size"), "{}", stderr(&sized));
    assert!(fs::metadata(bench.path("out.kmt")).unwrap().len() < 40 << 20);
    let failed = bench.record(&["--force", "--", "sh", "-c", "exit 7"]);
    recorded(&failed);
    assert!(stderr(&failed).contains("sh exited with 7"), "{}", stderr(&failed));
    let named = Command::new(env!("CARGO_BIN_EXE_kmt-capture"))
        .args(["record", "-q", "-d", "700ms", "-b", "1M", "--snapshot-every", "200ms"])
        .current_dir(&bench.folder)
        .output()
        .unwrap();
    recorded(&named);
    let names: Vec<String> =
        fs::read_dir(&bench.folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let name = names.iter().find(|n| n.starts_with("kmt-") && n.ends_with("Z.kmt"));
    let bytes = fs::read(bench.path(name.unwrap_or_else(|| panic!("{names:?}")))).unwrap();
    let trace = Trace::open(&bytes, Limits::default()).unwrap();
    let snapshots = trace.metadata().attachments.iter().filter(|a| a.name.starts_with("slabinfo.at."));
    assert!((1..=4).contains(&snapshots.count()), "every 200 ms of 700");
    assert_ne!(trace.metadata().text("recorder.snapshots_ns"), Some("0"));
    bench.assert_untouched();
}

#[test]
fn tasks_filter_allocations_and_never_frees() {
    let Some(bench) = Bench::new("pid") else { return };
    let mut load =
        Command::new("sh").args(["-c", "while :; do cat /proc/self/maps > /dev/null; done"]).spawn().unwrap();
    let pid = load.id().to_string();
    let output = bench.record(&["--pid", &pid, "-d", "500ms"]);
    load.kill().unwrap();
    let _ = load.wait();
    recorded(&output);
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes, Limits::default()).unwrap();
    let (mut allocations, mut others_frees) = (0, 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).unwrap();
            let is_ours = event.pid().to_string() == pid;
            match event.class().name.as_str() {
                "kmalloc" | "kmem_cache_alloc" | "mm_page_alloc" => {
                    assert!(is_ours);
                    allocations += 1;
                }
                "kfree" | "kmem_cache_free" | "mm_page_free" => others_frees += u64::from(!is_ours),
                _ => {}
            }
        }
    }
    assert!(
        allocations > 100 && others_frees > 100,
        "{allocations} allocations, {others_frees} frees by others"
    );
    bench.assert_untouched();
}

#[test]
fn threads_that_start_meanwhile_belong_to_their_process() {
    let Some(bench) = Bench::new("threads") else { return };
    let pid = std::process::id().to_string();
    let child = bench.start(&["--pid", &pid, "-e", "kmem", "-d", "2500ms"]);
    std::thread::sleep(Duration::from_millis(1_200));
    let thread = std::thread::spawn(|| {
        let id = fs::read_link("/proc/thread-self").unwrap();
        for _ in 0..60 {
            let _ = fs::read_to_string("/proc/self/maps");
            std::thread::sleep(Duration::from_millis(10));
        }
        id.file_name().unwrap().to_string_lossy().parse::<i32>().unwrap()
    });
    let thread = thread.join().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes, Limits::default()).unwrap();
    let (mut by_thread, mut by_others) = (0, 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).unwrap();
            if event.class().name == "kmem_cache_alloc" || event.class().name == "kmalloc" {
                let tgid = trace.metadata().tasks.iter().find(|t| t.pid == event.pid()).map_or(0, |t| t.tgid);
                by_thread += u64::from(event.pid() == thread);
                by_others += u64::from(tgid.to_string() != pid);
            }
        }
    }
    assert!(by_thread > 10, "{by_thread} allocations of the new thread");
    assert_eq!(by_others, 0);
    bench.assert_untouched();
}

#[test]
fn a_reader_that_does_not_read_can_be_interrupted() {
    let Some(bench) = Bench::new("blocked") else { return };
    let mut child = Command::new(env!("CARGO_BIN_EXE_kmt-capture"))
        .args(["record", "-o", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let pid = child.id().to_string();
    // Two that come at once may be one to the process.
    let status = (0..200).find_map(|_| {
        let _ = Command::new("kill").args(["-s", "INT", &pid]).status();
        std::thread::sleep(Duration::from_millis(100));
        child.try_wait().unwrap()
    });
    let status = status.unwrap_or_else(|| {
        child.kill().unwrap();
        panic!("it still runs after 200 signals");
    });
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(text.contains("does not read"), "{text}");
    bench.assert_untouched();
}

#[test]
fn recordings_of_others_are_met_and_our_own_are_not() {
    let Some(bench) = Bench::new("others") else { return };
    assert!(recordings_of_others().is_empty(), "{:?}", recordings_of_others());
    let stranger = Path::new(TRACING).join("instances/kmt-test-stranger");
    fs::create_dir(&stranger).unwrap();
    fs::write(stranger.join("events/kmem/kmalloc/enable"), "1").unwrap();
    let met = recordings_of_others();
    fs::write(stranger.join("events/kmem/kmalloc/enable"), "0").unwrap();
    fs::remove_dir(&stranger).unwrap();
    assert_eq!(met, [format!("instance {}", stranger.display())]);
    let child = bench.start(&["-d", "1s", "-b", "1M"]);
    std::thread::sleep(Duration::from_millis(900));
    assert!(recordings_of_others().is_empty(), "{:?}", recordings_of_others());
    assert!(child.wait_with_output().unwrap().status.success());
    bench.assert_untouched();
}

#[test]
fn check_tells_facts_and_remedies() {
    let Some(bench) = Bench::new("check") else { return };
    let run = |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_kmt-capture")).args(args).output().unwrap();
    let text = run(&["check"]);
    assert_eq!(text.status.code(), Some(0), "{}", stderr(&text));
    let text = String::from_utf8(text.stdout).unwrap();
    let instance = format!("other-{}", std::process::id());
    for fact in ["tracefs", "kmem: slab: all 4", "sub-buffers", "symbols", "memory", "disk", &instance] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
    let json = String::from_utf8(run(&["check", "--json"]).stdout).unwrap();
    assert!(json.starts_with("{\"facts\":[{\"name\":\"kernel\"") && json.ends_with("]}\n"), "{json}");
    assert_eq!(json.matches("\"state\":").count(), json.matches("\"remedy\":").count());
    let bad = run(&["check", "--tracefs", "/proc"]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stdout).contains("BAD      tracefs"));
    bench.assert_untouched();
}

#[test]
fn what_the_snippet_saves_is_converted() {
    let Some(bench) = Bench::new("snippet") else { return };
    let script = Command::new(env!("CARGO_BIN_EXE_kmt-capture")).arg("snippet").output().unwrap().stdout;
    fs::write(bench.path("snippet.sh"), script).unwrap();
    let saved = bench.path("saved");
    let mut load = Command::new("sh").args(["-c", &bench.endless(&load(1))]).spawn().unwrap();
    let output = Command::new("sh")
        .arg(bench.path("snippet.sh"))
        .arg(&saved)
        .arg("1")
        .env("BUFKB", "65536")
        .output()
        .unwrap();
    fs::remove_file(bench.path("endless")).unwrap();
    load.wait().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    bench.assert_untouched();
    let converted = Command::new(env!("CARGO_BIN_EXE_kmt-capture"))
        .args(["convert", "-o"])
        .arg(bench.path("out.kmt"))
        .arg(&saved)
        .output()
        .unwrap();
    assert_eq!(converted.status.code(), Some(0), "{}", stderr(&converted));
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes, Limits::default()).unwrap();
    assert!(trace.event_count() > 10_000 && trace.symbols().is_some());
    for (cpu, counters) in &trace.metadata().counters {
        let events = trace.streams().get(cpu).map_or(0, |s| s.event_count());
        assert_eq!(Some(events), counters.before.unwrap().entries, "CPU {cpu}");
        let after = counters.after.map_or(Some(0), |after| after.entries);
        assert_eq!(after, Some(0), "CPU {cpu}");
    }
    assert_eq!(trace.metadata().clock.as_ref().unwrap().name, "mono");
    // The state behind the trace tells when it was read, and that was at once.
    let last =
        trace.streams().values().filter_map(|s| s.chunks.last()).map(|(_, info)| info.t_last).max().unwrap();
    let names = trace.metadata().attachments.iter().filter_map(|a| a.name.strip_prefix("slabinfo.at."));
    let times: Vec<Vec<u64>> = names.map(|n| n.split('-').map(|t| t.parse().unwrap()).collect()).collect();
    let [times] = &times[..] else { panic!("{times:?}") };
    assert!(
        times[0] + 1_000 >= last && times[1] >= times[0] && times[0] < last + 1_000_000_000,
        "{times:?}, {last}"
    );
}
