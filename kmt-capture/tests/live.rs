//! Recording on the running kernel, with everything that can go wrong: needs root and tracefs.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use kmt_format::Limits;
use kmt_format::edit::Join;
use kmt_format::read::{Event, StackJoiner, Trace};
use kmt_format::schema::Role;
use support::alone::{Alone, TRACING, is_foreign, is_recording, recordings_of_others};

/// One recording test at a time, in a folder of its own, beside an instance that must stay as it is.
struct Bench {
    folder: PathBuf,
    before: BTreeMap<String, String>,
    instances: BTreeSet<String>,
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
        Some(Self { folder, before: state(), instances: instances(), _alone: alone })
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
        // Recorders of other processes come and go.
        let after = instances();
        let is_others = |name: &&String| name.starts_with("kmt-");
        let gone: Vec<_> = self.instances.difference(&after).filter(|name| !is_others(name)).collect();
        let left: Vec<_> = after.difference(&self.instances).filter(|name| !is_foreign(name)).collect();
        assert!(gone.is_empty() && left.is_empty(), "gone {gone:?}, left {left:?}");
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
    state
}

/// Names of all instances.
fn instances() -> BTreeSet<String> {
    let instances = fs::read_dir(Path::new(TRACING).join("instances")).unwrap().flatten();
    instances.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every chunk that is there can be read; only the end may be torn. Returns the events.
fn readable(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    let Ok(trace) = Trace::open(&bytes) else {
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

/// For each CPU: events in the file + those in sums + events reported lost = what the kernel's own counters account for.
fn assert_accounted(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert!(trace.is_finished() && trace.damages().is_empty());
    let mut lost_all = 0;
    let mut folded: BTreeMap<u32, u64> = BTreeMap::new();
    for (chunk, _) in trace.folds() {
        for &(cpu, events) in trace.read_fold(chunk).unwrap().cpus() {
            *folded.entry(cpu).or_default() += events;
        }
    }
    assert_eq!(trace.folds_missing(), 0);
    for (cpu, counters) in &trace.metadata().counters {
        let after = counters.after.unwrap();
        let lost = after.lost_events().unwrap();
        let events = trace.streams().get(cpu).map_or(0, |s| s.event_count());
        let folded = folded.get(cpu).copied().unwrap_or(0);
        assert_eq!(after.entries, Some(0), "CPU {cpu} was not emptied");
        assert_eq!(events + folded + lost, after.read.unwrap() + lost, "CPU {cpu}: {after:?}");
        assert_eq!(counters.writer.unwrap().events, Some(events));
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
    let read = load(6);
    // How fast the machine reads small buffers is left to no chance: the recorder stands still meanwhile.
    let unread = format!("kill -STOP $PPID; {read}; kill -CONT $PPID");
    for mode in [&[][..], &["--raw"], &["--compress", "lz4"], &["--survivors=100ms"]] {
        for (size, is_tiny) in [("32M", false), ("64K", true)] {
            let load = if is_tiny { &unread } else { &read };
            let args: Vec<&str> = [mode, &["--force", "-b", size, "--", "sh", "-c", load]].concat();
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
    let mut state = u64::from(std::process::id()) | 1 << 40;
    let mut load = Command::new("sh").args(["-c", &bench.endless(&load(1))]).spawn().unwrap();
    let start = Instant::now();
    let mut first = bench.start(&["-q", "-b", "256K"]);
    recording(first.id());
    // Chunks are written once a second at least.
    let life_ms_max = 2 * start.elapsed().as_millis() as u64 + 2_000;

    first.kill().unwrap();
    first.wait().unwrap();
    let runs = std::env::var("KMT_KILLS").map_or(40, |text| text.parse().unwrap());
    let (mut files, mut events, mut longest) = (0, 0, Duration::ZERO);
    for run in 0..runs {
        let mut child = bench.start(&["--force", "-q", "-b", "256K"]);
        if run % 10 == 5 {
            // It removes what the one before left, which had no guard: killed earlier, it would leave it there.
            recording(child.id());
        }
        std::thread::sleep(Duration::from_millis(random(&mut state) % life_ms_max));
        // Every fifth one loses its guard first.
        let guard = guard_of(child.id()).filter(|_| run % 5 == 4);
        guard.into_iter().for_each(|guard| signal("KILL", guard));
        child.kill().unwrap();
        // What is left without a guard is removed by the next run; now and then by hand, also while the
        // recorder was not waited for.
        if guard.is_some() && run % 10 == 9 {
            let state = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            while !state().contains(") Z ") {
                std::thread::sleep(Duration::from_millis(5));
            }
            let output = clean().output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            bench.assert_untouched();
        }
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        if part.exists() {
            files += 1;
            events += readable(&part);
        }
        if guard.is_none() {
            longest = longest.max(gone_after(child.id()));
            bench.assert_untouched();
        }
    }
    println!("instances of killed recorders were gone after {} ms at most", longest.as_millis());
    load.kill().unwrap();
    let _ = load.wait();
    assert!(files > runs / 2 && events > 10_000, "{files} files, {events} events");
}

/// Numbers that differ from run to run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Call sites of the events that are this much older than the last one, and how many of them have no name.
fn unnamed(trace: &Trace<'_>, older_ns: u64) -> (u64, u64) {
    let last = trace.streams().values().flat_map(|s| &s.chunks).map(|(_, info)| info.t_last).max().unwrap();
    let (mut sites, mut nameless) = (0, 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events().filter(|event| event.time() + older_ns < last) {
            let Some(site) = event.uint_with(Role::CALL_SITE) else { continue };
            sites += 1;
            nameless += u64::from(trace.symbols().and_then(|table| table.resolve(site)).is_none());
        }
    }
    (sites, nameless)
}

/// The file of a killed recorder names what was recorded a second before, also under load, and says that it was cut; so does
/// its copy. KMT_KILLS gives the number of kills, and then that second is tested; a program without optimisation has more.
#[test]
fn a_killed_recording_has_names_and_says_that_it_was_cut() {
    let Some(bench) = Bench::new("names") else { return };
    let kills = std::env::var("KMT_KILLS").ok().map(|text| text.parse::<u64>().unwrap());
    let (runs, within_ns) = kills.map_or((2, 4_500_000_000), |kills| (kills, 1_000_000_000));
    let mut state = u64::from(std::process::id()) | 1 << 40;
    let (mut all_sites, part) = (0, bench.path("out.kmt.part"));
    for run in 0..runs {
        let is_loaded = run % 2 == 0;
        let work = if is_loaded { bench.endless(&load(1)) } else { bench.endless("sleep 0.1; ls /") };
        let mut loads: Vec<Child> =
            (0..2).map(|_| Command::new("sh").args(["-c", &work]).spawn().unwrap()).collect();
        let mut child = bench.start(&["--force", "-q"]);
        recording(child.id());
        let (least_ms, more_ms) = if kills.is_some() { (1_200, 2_000) } else { (6_000, 500) };
        std::thread::sleep(Duration::from_millis(least_ms + random(&mut state) % more_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(bench.path("endless")).unwrap();
        loads.iter_mut().for_each(|load| drop(load.wait()));
        gone_after(child.id());
        let bytes = fs::read(&part).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        let (sites, nameless) = unnamed(&trace, within_ns);
        assert_eq!(nameless, 0, "run {run}: of {sites} call sites");
        all_sites += sites;
        let end = trace.early_end().expect("a killed recorder does not finish its file");
        assert!(end.complete_until.values().all(Option::is_some), "{end:?}");
        let copy = bench.path("copy.kmt");
        let mut convert = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
        let converted =
            convert.arg("convert").arg(&part).arg("-o").arg(&copy).arg("--force").output().unwrap();
        assert_eq!(converted.status.code(), Some(3), "{}", stderr(&converted));
        let bytes = fs::read(&copy).unwrap();
        let copy = Trace::open(&bytes).unwrap();
        assert!(copy.is_finished() && copy.early_end() == Some(end));
    }
    assert!(all_sites > 10_000, "{all_sites} call sites");
    bench.assert_untouched();
}

fn clean() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    command.arg("clean");
    command
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// The process that guards that recorder.
fn guard_of(recorder: u32) -> Option<u32> {
    let start = format!("kmt-capture\0guard\0{recorder}-");
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|e| e.path());
    let mut guards = processes
        .filter(|p| fs::read_to_string(p.join("cmdline")).is_ok_and(|line| line.starts_with(&start)));
    guards.next()?.file_name()?.to_str()?.parse().ok()
}

/// Instance of that recorder.
fn instance_of(recorder: u32) -> Option<PathBuf> {
    let instances = fs::read_dir(Path::new(TRACING).join("instances")).unwrap().flatten();
    let start = format!("kmt-{recorder}-");
    instances.map(|e| e.path()).find(|p| p.file_name().unwrap().to_string_lossy().starts_with(&start))
}

/// Waits until a recorder that was killed has no instance and no guard.
fn gone_after(recorder: u32) -> Duration {
    let start = Instant::now();
    while instance_of(recorder).is_some() || guard_of(recorder).is_some() {
        assert!(start.elapsed() < Duration::from_secs(10), "it stays");
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

/// Waits until a recorder records.
fn recording(recorder: u32) -> PathBuf {
    let found = (0..500).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        instance_of(recorder).filter(|dir| is_recording(dir))
    });
    found.expect("it does not record")
}

#[test]
fn a_guard_puts_settings_back_that_a_killed_recorder_left() {
    let Some(bench) = Bench::new("guard") else { return };
    let setting = bench.path("setting");
    fs::write(&setting, "changed").unwrap();
    let mut child = bench.start(&["-q", "-b", "1M"]);
    let instance = recording(child.id());
    // As the recorder notes what it changes outside its instance.
    let notes = Path::new("/run/kmt-capture");
    let _ = fs::DirBuilder::new().mode(0o700).create(notes);
    let owner = instance.file_name().unwrap().to_str().unwrap().strip_prefix("kmt-").unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = format!("boot {}\nwrite\t{}\tbefore\n", boot.trim(), setting.display());
    fs::write(notes.join(format!("{owner}.undo")), text).unwrap();
    child.kill().unwrap();
    // Until it is waited for, its number stays in /proc.
    gone_after(child.id());
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert_eq!(fs::read_to_string(&setting).unwrap(), "before");
    assert!(!notes.join(format!("{owner}.undo")).exists());
    bench.assert_untouched();
}

#[test]
fn a_guard_does_nothing_while_its_recorder_lives() {
    let Some(bench) = Bench::new("stopped") else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    command.arg("record").arg("-o").arg(bench.path("out.kmt")).args(["-b", "1M"]);
    let child = command.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
    let instance = recording(child.id());
    signal("STOP", child.id());
    std::thread::sleep(Duration::from_millis(1_500));
    let cleaned = String::from_utf8(clean().output().unwrap().stdout).unwrap();
    assert!(instance.exists() && cleaned.contains("nothing to clean"), "{cleaned}");
    signal("CONT", child.id());
    let guard = guard_of(child.id()).expect("a guard");
    // It keeps neither the file nor a file system in use.
    let process = PathBuf::from(format!("/proc/{guard}"));
    assert_eq!(fs::read_link(process.join("cwd")).unwrap(), Path::new("/"));
    let open = fs::read_dir(process.join("fd")).unwrap().flatten().map(|e| fs::read_link(e.path()).unwrap());
    let open: Vec<PathBuf> = open.collect();
    assert!(!open.iter().any(|file| file.starts_with(&bench.folder)), "{open:?}");
    // Ctrl-C is for all of the terminal's foreground; a service manager's SIGTERM for all of the service.
    signal("TERM", guard);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(guard_of(child.id()), Some(guard));
    let group = Command::new("kill").args(["-s", "INT", "--", &format!("-{}", child.id())]).status().unwrap();
    assert!(group.success());
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    recorded(&output);
    assert_eq!((guard_of(pid), instance.exists()), (None, false));
    assert!(readable(&bench.path("out.kmt")) > 0);
    bench.assert_untouched();
}

#[test]
fn a_killed_recorder_is_cleaned_up_behind_by_several_at_once() {
    let Some(bench) = Bench::new("several") else { return };
    for _ in 0..3 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kmt-capture"))
            .args(["record", "-q", "-b", "1M", "-o", "-"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || stdout.read_to_end(&mut Vec::new()));
        recording(child.id());
        child.kill().unwrap();
        let cleaners: Vec<Child> =
            (0..3).map(|_| clean().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()).collect();
        // The reader of a pipe sees its end: the guard does not hold it.
        reader.join().unwrap().unwrap();
        for cleaner in cleaners {
            let output = cleaner.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        }
        child.wait().unwrap();
        gone_after(child.id());
        bench.assert_untouched();
    }
}

/// What scripts of [`with_own_mounts`] begin with. Only /sys/kernel/tracing is mounted, once: a recorder finds tracefs also
/// within debugfs, and a machine may have it several times. `unmount` hides it; `begun` waits until the recorder `$kmt`
/// records, 10 s at most.
const MOUNTS: &str = r#"
unmount() {
    for mount in $(awk '$3 == "debugfs" || $3 == "tracefs" { print $2 }' /proc/mounts | sort -r); do umount -l $mount; done
}
begun() {
    for i in $(seq 500); do
        cat /sys/kernel/tracing/instances/kmt-$kmt-*/tracing_on 2> /dev/null | grep -q 1 && return
        sleep 0.02
    done
    kill -9 $kmt; echo 'it does not record' >&2; exit 9
}
unmount; mount -t tracefs none /sys/kernel/tracing || exit 8
"#;

/// Runs a shell script in a mount namespace of its own, with the program as `$program` and a folder as `$folder`, for a
/// minute at most.
fn with_own_mounts(bench: &Bench, script: &str) -> Output {
    Command::new("timeout")
        .args(["-k", "5", "60", "unshare", "-m", "--propagation", "private", "sh", "-c"])
        .arg([MOUNTS, script].concat())
        .env("program", env!("CARGO_BIN_EXE_kmt-capture"))
        .env("folder", &bench.folder)
        .output()
        .unwrap()
}

#[test]
fn tracefs_that_is_unmounted_meanwhile_is_left_as_it_was() {
    let Some(bench) = Bench::new("unmounted") else { return };
    let start = Instant::now();
    let first = bench.record(&["-q", "--force", "-b", "256K", "-d", "1ms"]);
    recorded(&first);
    let whole_ms = start.elapsed().as_millis();
    // From before tracefs is looked for until after the recording has begun.
    for step in 0..9 {
        for hide in ["unmount", "mount -t tmpfs none /sys/kernel/tracing"] {
            let after = whole_ms * step / 7;
            let output = with_own_mounts(
                &bench,
                &format!(
                    "$program record -q --force -b 256K -d 300ms -o $folder/out.kmt & sleep {}.{:03}; {hide}; wait $!",
                    after / 1000,
                    after % 1000
                ),
            );
            // Where tracefs is not there when it is looked for, it is mounted, or the end is a failure.
            assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{after} ms: {}", stderr(&output));
            assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
            bench.assert_untouched();
        }
    }
}

#[test]
fn a_recorder_that_is_killed_after_tracefs_was_unmounted_leaves_nothing() {
    let Some(bench) = Bench::new("unmounted-killed") else { return };
    let output = with_own_mounts(
        &bench,
        "$program record -q --force -b 256K -o $folder/out.kmt & kmt=$!
        begun; unmount; kill -9 $kmt; sleep 1",
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    bench.assert_untouched();
}

#[test]
fn a_mount_of_tracefs_that_a_killed_recorder_made_is_undone() {
    let Some(bench) = Bench::new("mounted") else { return };
    let output = with_own_mounts(
        &bench,
        "unmount
        $program record -q --force -b 256K -o $folder/out.kmt & kmt=$!
        begun
        grep -c ' /sys/kernel/tracing ' /proc/mounts; ls /run/kmt-capture | grep -c ^$kmt-
        kill -9 $kmt; sleep 1
        grep -c ' /sys/kernel/tracing ' /proc/mounts; ls /run/kmt-capture 2> /dev/null | grep -c ^$kmt-; true",
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n1\n0\n0\n", "{}", stderr(&output));
    bench.assert_untouched();
}

/// True if this test itself was started by nohup: `SigIgn` of /proc/self/status.
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
fn a_signal_at_any_time_ends_in_a_whole_file_or_none() {
    let Some(bench) = Bench::new("early") else { return };
    let start = Instant::now();
    let mut first = bench.start(&["-q", "-b", "256K"]);
    recording(first.id());
    let ready_ms = start.elapsed().as_millis() as u64;
    first.kill().unwrap();
    first.wait().unwrap();
    fs::remove_file(bench.path("out.kmt.part")).unwrap();
    let mut files = 0;
    for step in 0..12 {
        let child = bench.start(&["-q", "--force", "-b", "256K"]);
        std::thread::sleep(Duration::from_millis(ready_ms * step / 10));
        let pid = child.id();
        signal("INT", pid);
        // Impatience changes nothing.
        for _ in 0..3 {
            let _ =
                Command::new("kill").args(["-s", "TERM", &pid.to_string()]).stderr(Stdio::null()).status();
        }
        let output = child.wait_with_output().unwrap();
        let out = bench.path("out.kmt");
        assert!(guard_of(pid).is_none());
        match output.status.code() {
            Some(0 | 3) => {
                let bytes = fs::read(&out).unwrap();
                assert!(Trace::open(&bytes).unwrap().is_finished());
                files += 1;
                fs::remove_file(out).unwrap();
            }
            // Before it had done anything.
            None => assert!(matches!(output.status.signal(), Some(2 | 15)) && !out.exists()),
            Some(_) => panic!("{step}: {}", stderr(&output)),
        }
        assert!(!bench.path("out.kmt.part").exists(), "{step}");
        bench.assert_untouched();
    }
    assert!(files > 4, "{files}");
}

#[test]
fn a_pipe_without_a_reader_can_be_interrupted() {
    let Some(bench) = Bench::new("fifo") else { return };
    assert!(Command::new("mkfifo").arg(bench.path("out.kmt")).status().unwrap().success());
    let mut child = bench.start(&[]);
    std::thread::sleep(Duration::from_millis(500));
    // Not SIGINT: jobs that a shell runs in the background are started with that ignored.
    signal("TERM", child.id());
    let ended = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        child.try_wait().unwrap()
    });
    let _ = child.kill();
    let _ = child.wait();
    assert!(ended.is_some(), "it waits for a reader, whatever the user wants");
    bench.assert_untouched();
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
    // Small buffers make small pieces of loss: chunks are closed at each, and full at other times.
    let runs = [&[][..], &["--raw"], &["--compress", "lz4"], &["-b", "256K"]].map(|mode| {
        let load = bench.endless(&load(1));
        let output = bench.record(&[mode, &["--force", "--", "sh", "-c", &load]].concat());
        let events = readable(&bench.path("out.kmt"));
        let is_named = fs::remove_file(bench.path("out.kmt")).is_ok();
        (mode, stderr(&output), output.status.code(), events, is_named)
    });
    // Somebody else takes the room at once.
    let fill =
        format!("head -c 20M /dev/zero > {}; {}", bench.path("fill").display(), bench.endless(&load(1)));
    let filled = bench.record(&["--force", "--", "sh", "-c", &fill]);
    let part = bench.path("out.kmt.part");
    let events_filled = if part.exists() { readable(&part) } else { 0 };
    let _ = Command::new("umount").arg("-l").arg(&bench.folder).status();
    for (mode, text, code, events, is_named) in runs {
        assert_eq!(code, Some(3), "{mode:?}: {text}");
        assert!(text.contains("the file system of the output is full"), "{mode:?}: {text}");
        assert!(text.contains("is in memory (tmpfs)"), "{text}");
        assert!(events > 10_000 && is_named, "{mode:?}: {events}");
    }
    let text = stderr(&filled);
    assert_eq!(filled.status.code(), Some(1), "{text}");
    assert!(text.contains("No space left"), "{text}");
    let filled = kmt_common::text::grouped(events_filled);
    let hint = format!("out.kmt.part has the {filled} events recorded until then: kmt-analyze");
    assert!(events_filled == 0 || text.contains(&hint), "not {events_filled}: {text}");
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
    let trace = Trace::open(&bytes).unwrap();
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
        for event in run.events() {
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
        (&["-e", "kmem:kmalloc if nonsense > 1"], "the kernel's message"),
        (&["--clock", "sundial"], "no trace clock \"sundial\""),
        (&["--tracefs", "/proc"], "no trace_clock"),
        (&["--", "/no/such/program"], "starting /no/such/program"),
        (&["-b", "4000G"], "buffer_size_kb: Cannot allocate memory"),
    ] {
        let output = bench.record(&[&["--force"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(told) && stderr(&output).contains("hint: "), "{}", stderr(&output));
        // Nothing was recorded, so nothing is left, and the remedy is that of the failure.
        assert!(
            !bench.path("out.kmt.part").exists() && !stderr(&output).contains("recorded until then"),
            "{args:?}"
        );
        bench.assert_untouched();
    }
}

/// What another process does to a recording: a script in the directory of its buffer, and what the recorder reports.
const MEDDLING: [(&str, &str); 12] = [
    ("echo 0 > tracing_on", "tracing_on changed from \"1\" to \"0\""),
    ("echo 0 > tracing_on; echo 1 > tracing_on", "this recording: tracing_on "),
    ("echo 0 > events/kmem/kfree/enable", "events/kmem/kfree/enable changed from \"1\" to \"0\""),
    (
        "echo 0 > events/kmem/kfree/enable; echo 1 > events/kmem/kfree/enable",
        "this recording: events/kmem/kfree/enable ",
    ),
    ("echo 0 > events/kmem/enable; echo 1 > events/kmem/enable", "this recording: events/kmem/"),
    ("echo '!kmem:kfree' >> set_event", "events/kmem/kfree/enable changed from \"1\" to \"0\""),
    (
        "echo 'bytes_req > 64' > events/kmem/kmalloc/filter",
        "events/kmem/kmalloc/filter changed from \"none\" to",
    ),
    ("echo 1 > set_event_pid", "set_event_pid changed"),
    ("echo 1 > tracing_cpumask", "tracing_cpumask changed"),
    ("echo > trace", "the buffer was cleared"),
    ("echo uptime > trace_clock", "trace_clock changed from \"mono\" to \"uptime\""),
    ("timeout 0.5 cat per_cpu/cpu0/trace_pipe > /dev/null", "has read"),
];

/// Each change by another process is reported with the figures, and stored with its time. KMT_KILLS asks for ten rounds.
#[test]
fn each_change_by_another_process_is_reported() {
    let Some(bench) = Bench::new("meddling") else { return };
    let rounds = if std::env::var_os("KMT_KILLS").is_some() { 10 } else { 1 };
    for (script, expected) in MEDDLING.iter().cycle().take(rounds * MEDDLING.len()) {
        let work = bench.endless("ls -lR /etc; sleep 0.1");
        let mut load = Command::new("sh").args(["-c", &work]).spawn().unwrap();
        let child = bench.start(&["--force", "-q", "-b", "16M"]);
        let instance = recording(child.id());
        std::thread::sleep(Duration::from_millis(400));
        let changed = Command::new("sh").args(["-c", script]).current_dir(&instance).status().unwrap();
        assert!(changed.success() || script.starts_with("timeout"), "{script}");
        std::thread::sleep(Duration::from_millis(500));
        signal("INT", child.id());
        let output = child.wait_with_output().unwrap();
        fs::remove_file(bench.path("endless")).unwrap();
        load.wait().unwrap();
        assert_eq!(output.status.code(), Some(3), "{script}: {}", stderr(&output));
        assert!(stderr(&output).contains("another process"), "{script}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{script}: {}", stderr(&output));
        let bytes = fs::read(bench.path("out.kmt")).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        assert!(trace.is_finished() && trace.damages().is_empty());
        let chunks = || trace.streams().values().flat_map(|stream| &stream.chunks);
        assert!(chunks().any(|(_, info)| info.loss.uncounted || info.loss.counted > 0), "{script}: no mark");
        // Times of another clock are not among ours.
        let (first, last) = (
            chunks().filter(|c| c.1.event_count > 0).map(|c| c.1.t_first).min().unwrap(),
            chunks().map(|c| c.1.t_last).max().unwrap(),
        );
        assert!(last - first < 60_000_000_000, "{script}: {first} to {last}");
        if !script.starts_with("timeout") {
            let line =
                trace.metadata().text("record.changed").unwrap_or_else(|| panic!("{script}: not stored"));
            let mut words = line.split('\t').map(|word| word.parse::<u64>());
            let (from, to) = (words.next().unwrap().unwrap(), words.next().unwrap().unwrap());
            assert!(
                0 < from && from <= to && to >= first && to <= last + 10_000_000_000,
                "{script}: {line}, {first} to {last}"
            );
        }
    }
    bench.assert_untouched();
}

/// A recording came to its end with our own exit code: 0, or 3 where it says that a busy machine lost events.
fn recorded(output: &Output) {
    let text = stderr(output);
    let is_lossy = text.contains("events were lost");
    assert_eq!(output.status.code(), Some(if is_lossy { 3 } else { 0 }), "{text}");
}

/// Number of CPUs of a list such as `0-3,6`.
fn cpus_of(list: &str) -> u64 {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        last.parse::<u64>().unwrap() - first.parse::<u64>().unwrap() + 1
    };
    list.trim().split(',').map(range).sum()
}

#[test]
fn files_are_not_overwritten_and_sizes_and_commands_are_heeded() {
    let Some(bench) = Bench::new("files") else { return };
    let output = bench.record(&["-d", "200ms", "-b", "1M"]);
    recorded(&output);
    let again = bench.record(&["-d", "200ms"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("already exists"), "{}", stderr(&again));
    fs::write(bench.path("out.kmt.part"), "left").unwrap();
    fs::remove_file(bench.path("out.kmt")).unwrap();
    let left = bench.record(&["-d", "200ms"]);
    assert!(
        stderr(&left).contains("interrupted recording") && stderr(&left).contains("out.whole.kmt` saves"),
        "{}",
        stderr(&left)
    );
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
    let trace = Trace::open(&bytes).unwrap();
    for name in ["slabinfo", "meminfo", "zoneinfo", "vmstat"] {
        let attached = trace.metadata().attachments.iter();
        let snapshots = attached.filter(|a| a.name == name && a.times.is_some());
        assert!((1..=4).contains(&snapshots.count()), "{name} every 200 ms of 700");
    }
    assert_ne!(trace.metadata().text("recorder.snapshots_ns"), Some("0"));
    // Buffers of 1 MiB, rounded up to sub-buffers by some kernels.
    let cpus = trace.metadata().text("cpus.online").map_or(0, cpus_of);
    let buffers_kb: u64 = trace.metadata().text("record.buffers_kb").unwrap().parse().unwrap();
    assert!((cpus * 1_024..=cpus * 1_152).contains(&buffers_kb), "{buffers_kb} KiB on {cpus} CPUs");
    bench.assert_untouched();
}

#[test]
fn a_command_is_recorded_several_times() {
    let Some(bench) = Bench::new("repeat") else { return };
    let count = format!("echo >> {}", bench.path("count").display());
    let output = bench.record(&["-b", "4M", "--repeat", "3", "--", "sh", "-c", &count]);
    recorded(&output);
    let paths = ["out-1.kmt", "out-2.kmt", "out-3.kmt"].map(|name| bench.path(name));
    paths.iter().for_each(|path| assert!(readable(path) > 0, "{}", path.display()));
    assert_eq!(fs::read_to_string(bench.path("count")).unwrap().len(), 3);
    let [first, second, third] = paths.map(|path| path.display().to_string());
    let next = format!("kmt-analyze diff --repeat-before {second} --repeat-before {third} {first} OTHER.kmt");
    assert!(stderr(&output).contains(&next), "{}", stderr(&output));
    bench.assert_untouched();
}

#[test]
fn a_signal_ends_all_repeated_recordings() {
    let Some(bench) = Bench::new("repeat-signal") else { return };
    let endless = bench.endless("sleep 0.1");
    let child = bench.start(&["-b", "4M", "--repeat", "3", "--", "sh", "-c", &endless]);
    let start = Instant::now();
    while !bench.path("out-1.kmt.part").exists() && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    signal("TERM", child.id());
    let output = child.wait_with_output().unwrap();
    recorded(&output);
    let _ = fs::remove_file(bench.path("endless"));
    assert!(stderr(&output).contains("stopped: 0 of 3 recordings are complete"), "{}", stderr(&output));
    assert!(readable(&bench.path("out-1.kmt")) > 0 && !bench.path("out-2.kmt").exists());
    bench.assert_untouched();
}

/// The files of a recording: each can be read alone, and no event is between two of them or in both.
#[test]
fn a_recording_in_files_is_the_recording() {
    let Some(bench) = Bench::new("rotate") else { return };
    for mode in [&[][..], &["--raw"]] {
        let load = until_begun(&bench.path("out-3.kmt"), &load(1));
        let args = [mode, &["-b", "32M", "--rotate", "1s", "--", "sh", "-c", &load]].concat();
        let output = bench.record(&args);
        recorded(&output);
        let files = rotated(&bench);
        assert!(files.len() >= 3, "{files:?}: {}", stderr(&output));
        let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
        let (mut events, mut contents) = (0, Vec::new());
        for (index, path) in files.iter().enumerate() {
            assert_eq!(assert_accounted(path), 0, "{}", path.display());
            let bytes = fs::read(path).unwrap();
            let trace = Trace::open(&bytes).unwrap();
            assert_eq!(trace.metadata().text(Join::PART_KEY), Some(&*(index + 1).to_string()));
            // A kernel may have no modules.
            let has_modules = fs::read("/proc/modules").is_ok_and(|text| !text.is_empty());
            let modules = has_modules.then_some("modules");
            for file in ["slabinfo.before", "slabinfo.after", "event_conditions"].into_iter().chain(modules) {
                assert!(trace.metadata().attachment(file).is_some(), "{file} in {}", path.display());
            }
            let (sites, nameless) = unnamed(&trace, 0);
            assert!(sites > 0 && nameless * 100 < sites, "{nameless} of {sites} in {}", path.display());
            for (cpu, stream) in trace.streams() {
                assert_eq!((stream.events_missing, stream.chunks_missing), (0, 0));
                let full = || stream.chunks.iter().filter(|(_, info)| info.event_count > 0);
                let (Some((_, first)), Some((_, last))) = (full().next(), full().next_back()) else {
                    continue;
                };
                let before = ends.insert(*cpu, last.t_last);
                assert!(before.is_none_or(|before| before <= first.t_first), "CPU {cpu} steps back");
            }
            events += readable(path);
            contents.push(bytes);
        }
        let mut join = Join::new(Limits::default());
        contents.iter().for_each(|bytes| join.add(bytes).unwrap());
        let mut whole = Vec::new();
        while let Some(bytes) = join.next_bytes().unwrap() {
            whole.extend(bytes);
        }
        fs::write(bench.path("whole.kmt"), whole).unwrap();
        assert_eq!(
            (readable(&bench.path("whole.kmt")), assert_accounted(&bench.path("whole.kmt"))),
            (events, 0)
        );
        files.iter().for_each(|path| fs::remove_file(path).unwrap());
        bench.assert_untouched();
    }
}

/// A shell command that repeats another one until a file begins, however slow the machine is, but a minute at most.
fn until_begun(file: &Path, command: &str) -> String {
    format!(
        "until=$(($(date +%s) + 60)); while set -- {}*; [ ! -e \"$1\" ] && [ $(date +%s) -lt $until ]; do {command}; sleep 0.1; done",
        file.display()
    )
}

/// Files `out-N.kmt` in their order.
fn rotated(bench: &Bench) -> Vec<PathBuf> {
    let names = fs::read_dir(&bench.folder).unwrap().flatten();
    let number = |name: &str| name.strip_prefix("out-")?.strip_suffix(".kmt")?.parse::<u64>().ok();
    let numbers = names.filter_map(|entry| number(entry.file_name().to_str()?));
    let numbers: BTreeSet<u64> = numbers.collect();
    numbers.into_iter().map(|number| bench.path(&format!("out-{number}.kmt"))).collect()
}

/// Each loss is in one file, and all of them are what the kernel counted; the newest files are kept.
#[test]
fn losses_of_a_recording_in_files_are_counted_once() {
    let Some(bench) = Bench::new("rotate-losses") else { return };
    let read = load(3);
    let pause = format!("kill -STOP $PPID; {read}; kill -CONT $PPID; sleep 0.7");
    let unread = format!("n=0; while [ $n -lt 5 ]; do {pause}; n=$((n+1)); done");
    let output = bench.record(&["-b", "64K", "--rotate", "1s", "--", "sh", "-c", &unread]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let (mut counted, mut marked, mut is_exact) = (0, 0, true);
    for path in rotated(&bench) {
        counted += assert_accounted(&path);
        let bytes = fs::read(&path).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        for (_, info) in trace.streams().values().flat_map(|stream| &stream.chunks) {
            marked += info.loss.counted;
            is_exact &= !info.loss.uncounted;
        }
    }
    assert!(counted > 0 && marked <= counted && (marked == counted || !is_exact), "{marked} of {counted}");
    let text = stderr(&output);
    let total = text.lines().find_map(|line| line.strip_prefix("warning: events were lost: "));
    let total = total.and_then(|line| line.split(' ').next()).unwrap().replace(',', "");
    assert_eq!(total, counted.to_string(), "{text}");
    bench.assert_untouched();
}

#[test]
fn the_newest_files_of_a_recording_are_kept() {
    let Some(bench) = Bench::new("rotate-newest") else { return };
    let third = until_begun(&bench.path("out-3.kmt"), "true");
    let output = bench.record(&["-b", "4M", "--rotate", "1s", "--max-files", "2", "--", "sh", "-c", &third]);
    recorded(&output);
    let files = rotated(&bench);
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(stderr(&output).contains("out-1.kmt: --max-files") && !files.contains(&bench.path("out-1.kmt")));
    let last: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    assert!(stderr(&output).ends_with(&format!("kmt-analyze {}\n", last.join(" "))), "{}", stderr(&output));
    files.iter().for_each(|path| assert!(readable(path) > 0));
    bench.assert_untouched();
}

/// Where the disk has no room for another file, the current one ends it: no file is cut, and none has no event.
#[test]
fn a_full_disk_ends_a_recording_in_files_with_whole_files() {
    let Some(bench) = Bench::new("rotate-full") else { return };
    // A file lasts a second at least, in which a fast machine writes 16 MiB.
    let mount = ["-t", "tmpfs", "-o", "size=64m", "none"];
    assert!(Command::new("mount").args(mount).arg(&bench.folder).status().unwrap().success());
    let load = bench.endless(&load(1));
    let output = bench.record(&["-b", "4M", "--rotate", "3M", "--", "sh", "-c", &load]);
    let _ = fs::remove_file(bench.path("endless"));
    let files = rotated(&bench);
    let names = fs::read_dir(&bench.folder).unwrap().flatten().map(|entry| entry.path());
    let parts: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|end| end == "part")).collect();
    let events: Vec<u64> = files.iter().map(|path| readable(path)).collect();
    // A buffer of 4 MiB loses events at this load: all are counted.
    files.iter().rev().skip(1).for_each(|path| _ = assert_accounted(path));
    let finished: Vec<bool> =
        files.iter().map(|path| Trace::open(&fs::read(path).unwrap()).unwrap().is_finished()).collect();
    let _ = Command::new("umount").arg("-l").arg(&bench.folder).status();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("the file system of the output is full"), "{text}");
    assert!(parts.is_empty() && files.len() >= 2, "{files:?} {parts:?}: {text}");
    assert!(events.iter().all(|&events| events > 0), "{events:?}: {text}");
    assert!(finished.iter().all(|&is| is), "{finished:?}: {text}");
    bench.assert_untouched();
}

/// A file has at most the bytes that --max-size allows, and nearly as many; what it has no room for is counted.
#[test]
fn max_size_is_the_size_of_the_file() {
    let Some(bench) = Bench::new("sizes") else { return };
    for (text, max) in [("400K", 400 << 10), ("9M", 9 << 20)] {
        let load = bench.endless(&load(1));
        let output = bench.record(&["--force", "--max-size", text, "--", "sh", "-c", &load]);
        let _ = fs::remove_file(bench.path("endless"));
        recorded(&output);
        assert!(stderr(&output).contains("stopped at --max-size"), "{}", stderr(&output));
        let bytes = fs::read(bench.path("out.kmt")).unwrap();
        let len = bytes.len() as u64;
        assert!(len <= max && len + (192 << 10) > max, "{len} bytes for {text}");
        let trace = Trace::open(&bytes).unwrap();
        assert!(trace.is_finished() && trace.damages().is_empty());
        assert!(trace.event_count() > 1_000 && trace.metadata().attachment("slabinfo.after").is_some());
    }
    bench.assert_untouched();
}

/// A recording of few events is small, and has the names of their functions.
#[test]
fn few_events_make_a_small_file() {
    let Some(bench) = Bench::new("few") else { return };
    let quiet = "kmem:kmalloc if bytes_req == 77777";
    let output = bench.record(&["-d", "300ms", "-b", "1M", "--no-task-events", "-e", quiet]);
    recorded(&output);
    let few = fs::metadata(bench.path("out.kmt")).unwrap().len();
    assert!(few <= 64 << 10, "{few} bytes");
    // The default events: how many there are is up to the machine. Without the kernel's configuration.
    let output = bench.record(&["--force", "-d", "1500ms", "-b", "4M"]);
    recorded(&output);
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert!(
        trace.metadata().attachment("config.gz").is_none() && trace.metadata().attachment("config").is_none()
    );
    let said = stderr(&output);
    let of_file = |key: &str| trace.metadata().text(key).and_then(|text| text.parse::<u64>().ok());
    assert_eq!(of_file("recorder.events"), Some(trace.event_count()));
    let (cpu, length) = (of_file("recorder.cpu_ns").unwrap(), of_file("recorder.length_ns").unwrap());
    assert!(cpu > 0 && cpu < length && length >= 1_500_000_000, "{cpu} of {length}");
    assert!(said.contains("cost of recording: ") && said.contains("% of one CPU"), "{said}");
    let output = bench.record(&["--force", "-d", "1500ms", "-b", "4M", "--kernel-config"]);
    recorded(&output);
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let has_config = ["config", "config.gz"].iter().any(|name| trace.metadata().attachment(name).is_some());
    let is_known = kmt_capture::record::kernel_config().is_some() || Path::new("/proc/config.gz").exists();
    assert_eq!(has_config, is_known);
    let output = bench.record(&[
        "--force",
        "-d",
        "1500ms",
        "-b",
        "4M",
        "-e",
        "kmem:kmalloc",
        "--",
        "sh",
        "-c",
        &load(1),
    ]);
    recorded(&output);
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let table = trace.symbols().unwrap();
    assert!(table.len() < 20_000 && table.core_range().0.is_some(), "{} symbols", table.len());
    let (mut named, mut events) = (0, 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).unwrap();
            let Some(site) = event.uint_with(Role::CALL_SITE) else { continue };
            events += 1;
            named += u64::from(table.resolve(site).is_some());
        }
    }
    assert!(events > 10 && named == events, "{named} of {events} call sites have names");
    bench.assert_untouched();
}

#[test]
fn the_status_of_a_command_is_told_and_kept() {
    let Some(bench) = Bench::new("status") else { return };
    for (script, told, status) in [
        ("exit 7", "sh exited with 7", 7),
        ("exit 0", "sh exited with 0", 0),
        ("kill -9 $$", "sh was ended by signal 9", 137),
    ] {
        for asked in [false, true] {
            let args: &[&str] = if asked { &["--exit-status"] } else { &[] };
            let command = ["--force", "-b", "16M", "-e", "kmem:kfree", "--", "sh", "-c", script];
            let output = bench.record(&[args, &command].concat());
            let code = output.status.code().unwrap();
            let is_lossy = stderr(&output).contains("events were lost");
            assert_eq!(
                code,
                if is_lossy {
                    3
                } else if asked {
                    status
                } else {
                    0
                },
                "{}",
                stderr(&output)
            );
            assert!(stderr(&output).contains(told), "{}", stderr(&output));
            let bytes = fs::read(bench.path("out.kmt")).unwrap();
            let trace = Trace::open(&bytes).unwrap();
            assert_eq!(trace.metadata().text("record.command_outcome"), Some(told));
            assert_eq!(trace.metadata().text("record.command_status"), Some(&*status.to_string()));
        }
    }
    // A failed command is reported with --quiet, too.
    let failed = bench.record(&["--force", "-q", "--", "false"]);
    assert!(stderr(&failed).contains("false exited with 1"), "{}", stderr(&failed));
    let done = bench.record(&["--force", "-q", "-b", "16M", "--", "true"]);
    assert_eq!(stderr(&done), "");
    // One that outlives the recording is ended, with what it has started; its status is not that of the recording.
    let pids = bench.path("pids");
    // Its output is not that of the recorder, which is read to its end.
    let child = format!("sh -c 'echo $$ >> {}; exec sleep 66'", pids.display());
    let script = format!("exec > /dev/null 2>&1; echo $$ > {}; {child}; true", pids.display());
    let arguments = |option: &'static [&'static str]| {
        [option, &["--force", "--exit-status", "-b", "16M", "-d", "300ms", "--", "sh", "-c"]].concat()
    };
    let is_running = || {
        let pids = fs::read_to_string(&pids).unwrap();
        assert_eq!(pids.lines().count(), 2, "{pids}");
        let state = |pid: &str| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        pids.lines().filter(|pid| state(pid).contains(") S") || state(pid).contains(") R")).count()
    };
    let output = bench.record(&[arguments(&[]), vec![&script]].concat());
    recorded(&output);
    assert!(
        stderr(&output).contains("was ended by signal 2 at the end of the recording"),
        "{}",
        stderr(&output)
    );
    assert_eq!(is_running(), 0);
    let status = |name: &str| {
        let bytes = fs::read(bench.path(name)).unwrap();
        Trace::open(&bytes).unwrap().metadata().text("record.command_status").map(str::to_owned)
    };
    assert_eq!(status("out.kmt").as_deref(), Some("130"));
    // Unless it is to run on.
    let output = bench.record(&[arguments(&["--keep-running"]), vec![&script]].concat());
    recorded(&output);
    assert!(stderr(&output).contains("is still running"), "{}", stderr(&output));
    assert_eq!((is_running(), status("out.kmt")), (2, None));
    for pid in fs::read_to_string(&pids).unwrap().lines() {
        let _ = std::process::Command::new("kill").arg(pid).status();
    }
    // Ctrl-C is for both.
    let mut both = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    both.args(["record", "--force", "--exit-status", "-b", "16M", "-e", "kmem:kfree", "-o"]);
    both.arg(bench.path("out.kmt")).args(["--", "sleep", "60"]).process_group(0).stderr(Stdio::piped());
    let both = both.spawn().unwrap();
    recording(both.id());
    std::thread::sleep(Duration::from_millis(300));
    let group = Command::new("kill").args(["-s", "INT", "--", &format!("-{}", both.id())]).status().unwrap();
    assert!(group.success());
    let output = both.wait_with_output().unwrap();
    assert!(stderr(&output).contains("sleep was ended by signal 2"), "{}", stderr(&output));
    assert!(matches!(output.status.code(), Some(130 | 3)), "{}", stderr(&output));
    // The recorder's own codes are before the command's.
    let failed = bench.record(&["--exit-status", "--", "sh", "-c", "exit 7"]);
    assert_eq!(failed.status.code(), Some(1), "{}", stderr(&failed));
    let usage = bench.record(&["--force", "--exit-status", "-d", "1s"]);
    assert_eq!(usage.status.code(), Some(2), "{}", stderr(&usage));
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
    let trace = Trace::open(&bytes).unwrap();
    let (mut allocations, mut others_frees) = (0, 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
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

/// A process whose threads have no consecutive numbers: their filter is longer than the kernel takes.
#[test]
fn a_process_of_many_threads_is_recorded() {
    let Some(bench) = Bench::new("many") else { return };
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut threads = Vec::new();
    for _ in 0..300 {
        let stop = stop.clone();
        threads.push(std::thread::spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = fs::metadata("/proc/self/maps");
                std::thread::sleep(Duration::from_millis(50));
            }
        }));
        // Takes the number of the next thread.
        Command::new("true").status().unwrap();
    }
    let pid = std::process::id().to_string();
    let output = bench.record(&["--pid", &pid, "-d", "1s", "-b", "16M", "--stack", "kmem:kmalloc"]);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut ours: BTreeSet<i32> = fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().parse().unwrap())
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    recorded(&output);
    let said = stderr(&output);
    assert!(said.contains("the recorder leaves out the allocations of other tasks"), "{said}");
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    // Threads of other tests come and go.
    let own = std::process::id() as i32;
    ours.extend(trace.metadata().tasks.iter().filter(|task| task.tgid == own).map(|task| task.pid));
    let filtered: u64 = trace.metadata().text("recorder.filtered_events").unwrap().parse().unwrap();
    let (mut allocations, mut others_frees, mut merge) = (0, 0, trace.merge());
    let mut tasks = BTreeSet::new();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            match event.class().name.as_str() {
                "kmalloc" | "kmem_cache_alloc" | "mm_page_alloc" => {
                    assert!(ours.contains(&event.pid()), "{} of {}", event.pid(), ours.len());
                    allocations += 1;
                    tasks.insert(event.pid());
                }
                "kfree" | "kmem_cache_free" => others_frees += u64::from(!ours.contains(&event.pid())),
                _ => {}
            }
        }
    }
    assert!(tasks.len() > 250 && allocations > 300, "{allocations} allocations of {} tasks", tasks.len());
    assert!(others_frees > 0 && filtered > 0, "{others_frees} frees by others, {filtered} left out");
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
    let trace = Trace::open(&bytes).unwrap();
    let (mut by_thread, mut by_others) = (0, 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
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
        .args(["record", "--symbols", "all", "-o", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let pid = child.id().to_string();
    signal("INT", child.id());
    std::thread::sleep(Duration::from_millis(800));
    assert!(child.try_wait().unwrap().is_none(), "once is not to give up");
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
    assert!(text.contains("does not read") && text.contains("again to give up"), "{text}");
    bench.assert_untouched();
}

/// An instance that a test has made as a user would; removed at the end.
struct Found(PathBuf);

impl Found {
    fn new() -> Self {
        let dir = Path::new(TRACING).join("instances").join(format!("found-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let found = Self(dir);
        found.set("tracing_on", "0");
        found.set("trace_clock", "mono");
        found.set("buffer_size_kb", "32768");
        found.set("events/kmem/kmalloc/filter", "bytes_req > 16");
        ["kmem/kmalloc", "kmem/kfree", "task/task_rename"].iter().for_each(|event| found.enable(event, "1"));
        found
    }

    fn name(&self) -> &str {
        self.0.file_name().unwrap().to_str().unwrap()
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap_or_else(|error| panic!("{file}: {error}"));
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap()
    }

    fn enable(&self, event: &str, value: &str) {
        self.set(&format!("events/{event}/enable"), value);
    }

    /// Its settings, and the events that are enabled.
    fn settings(&self) -> Vec<String> {
        [
            "tracing_on",
            "trace_clock",
            "buffer_size_kb",
            "set_event",
            "trace_options",
            "events/kmem/kmalloc/filter",
        ]
        .map(|file| self.read(file))
        .to_vec()
    }

    /// CPU, time in microseconds and name of each event, as the kernel prints them, in the order of each CPU.
    fn printed(&self) -> Vec<(u32, u64, String)> {
        let text = self.read("trace");
        let event = |line: &str| {
            let (cpu, rest) = line.split_once(" [")?.1.split_once("] ")?;
            let mut words = rest.split_ascii_whitespace().skip(1);
            let (seconds, us) = words.next()?.trim_end_matches(':').split_once('.')?;
            let time = seconds.parse::<u64>().ok()? * 1_000_000 + us.parse::<u64>().ok()?;
            Some((cpu.parse::<u32>().ok()?, time, words.next()?.trim_end_matches(':').to_owned()))
        };
        // Lines that are not events: comments, and `CPU:0 [LOST 12 EVENTS]`.
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("CPU:"));
        let mut events: Vec<_> = lines.map(|line| event(line).unwrap_or_else(|| panic!("{line}"))).collect();
        events.sort_by_key(|(cpu, ..)| *cpu);
        events
    }

    /// Events in its buffers, by the kernel's counters.
    fn entries(&self) -> u64 {
        let cpus = fs::read_dir(self.0.join("per_cpu")).unwrap().flatten();
        let stats = cpus.map(|cpu| fs::read_to_string(cpu.path().join("stats")).unwrap());
        let entries =
            |text: String| text.lines().find_map(|l| l.strip_prefix("entries: ")?.parse::<u64>().ok());
        stats.filter_map(entries).sum()
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        for (file, value) in [("tracing_on", "0"), ("events/enable", "0")] {
            let _ = fs::write(self.0.join(file), value);
        }
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            fs::remove_dir(&self.0).is_ok()
        });
        assert!(gone || std::thread::panicking());
    }
}

/// CPU, time in microseconds and name of each event of a file, in the order of each CPU.
fn events_of(path: &Path) -> Vec<(u32, u64, String)> {
    let bytes = fs::read(path).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let mut events = Vec::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        events.extend(
            run.events().map(|event| (event.cpu(), (event.time() + 500) / 1_000, event.class().name.clone())),
        );
    }
    events.sort_by_key(|(cpu, ..)| *cpu);
    events
}

#[test]
fn a_buffer_that_records_already_is_adopted_and_left_as_it_was() {
    let Some(bench) = Bench::new("adopt") else { return };
    let found = Found::new();
    let work = || Command::new("sh").args(["-c", &load(1)]).status().unwrap();
    found.set("tracing_on", "1");
    work();
    // Its events are in the buffer, and it is off when the buffer is adopted.
    found.enable("kmem/kmem_cache_alloc", "1");
    work();
    found.enable("kmem/kmem_cache_alloc", "0");
    found.set("tracing_on", "0");
    let (entries, printed, settings) = (found.entries(), found.printed(), found.settings());
    assert!(entries > 1_000 && printed.len() as u64 == entries, "{entries}, {} printed", printed.len());
    let output = bench.record(&["--adopt", found.name()]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(
        told.contains(&format!("has {} events in its buffers", kmt_common::text::grouped(entries))),
        "{told}"
    );
    let file = bench.path("out.kmt");
    assert!(events_of(&file) == printed, "{} of {entries} events", events_of(&file).len());
    assert!(printed.iter().any(|(.., name)| name == "kmem_cache_alloc"));
    assert_eq!(assert_accounted(&file), 0);
    assert_eq!(found.settings(), settings);
    let bytes = fs::read(&file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert_eq!(trace.metadata().text("record.adopted"), Some(found.name()));
    let conditions = trace.metadata().attachment("event_conditions").unwrap();
    let conditions = String::from_utf8_lossy(conditions);
    assert!(conditions.contains("kmem:kmalloc filter=bytes_req > 16\n"), "{conditions}");
    assert!(!conditions.contains("kmem_cache_alloc"), "{conditions}");

    // Live: what is in it, and what comes until the end. Tracing continues behind it.
    found.set("tracing_on", "1");
    let settings = found.settings();
    work();
    let entries = found.entries();
    for more in [&["-d", "0"][..], &["--", "sh", "-c", &load(1)]] {
        let output = bench.record(&[&["--force", "--adopt", found.name()], more].concat());
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{more:?}: {told}");
        assert_eq!(assert_accounted(&file), 0);
        assert!(events_of(&file).len() as u64 >= entries.min(1_000), "{more:?}: {told}");
        assert_eq!(found.settings(), settings);
        work();
        assert!(found.entries() > 0, "it still records");
    }
    drop(found);
    bench.assert_untouched();
}

#[test]
fn what_is_overwritten_before_an_adoption_is_by_design() {
    let Some(bench) = Bench::new("adopt-ring") else { return };
    let found = Found::new();
    found.set("buffer_size_kb", "64");
    found.set("tracing_on", "1");
    Command::new("sh").args(["-c", &load(2)]).status().unwrap();
    found.set("tracing_on", "0");
    let printed = found.printed();
    let output = bench.record(&["--adopt", found.name()]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("events were overwritten before the recording began"), "{told}");
    assert!(events_of(&bench.path("out.kmt")) == printed, "{told}");
    drop(found);
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
    recorded(&child.wait_with_output().unwrap());
    bench.assert_untouched();
}

#[test]
fn check_tells_facts_and_remedies() {
    let Some(bench) = Bench::new("check") else { return };
    let run = |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_kmt-capture")).args(args).output().unwrap();
    let text = run(&["check", "--list"]);
    assert_eq!(text.status.code(), Some(0), "{}", stderr(&text));
    let text = String::from_utf8(text.stdout).unwrap();
    let verdict = String::from_utf8(run(&["check"]).stdout).unwrap();
    assert!(text.starts_with("This system can record everything"), "{text}");
    assert!(verdict.lines().next() == text.lines().next() && verdict.contains("check --list"), "{verdict}");
    assert!(verdict.lines().all(|line| !line.starts_with("ok ")), "{verdict}");
    let instance = format!("other-{}", std::process::id());
    for fact in ["tracefs", "kmem: slab: all 4", "sub-buffers", "symbols", "memory", "disk", &instance] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
    let json = String::from_utf8(run(&["check", "--json"]).stdout).unwrap();
    assert!(json.starts_with("{\"facts\":[{\"name\":\"kernel\"") && json.ends_with("]}\n"), "{json}");
    let [states, remedies] = ["\"state\":", "\"remedy\":"].map(|key| json.matches(key).count());
    assert!(states > 0 && states == remedies, "{json}");
    // Counted events have names.
    assert!(json.contains("\"names\":[\"kmem:kmalloc\",\"kmem:kfree\""), "{json}");
    assert!(text.contains("kmem: kmalloc, kfree, kmem_cache_alloc,"), "{text}");
    let bad = run(&["check", "--tracefs", "/proc"]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stdout).contains("BAD      tracefs"));
    bench.assert_untouched();
}

/// Active inodes of /proc by a text of slabinfo.
fn proc_inodes(slabinfo: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(slabinfo).into_owned();
    let line = text.lines().find(|line| line.starts_with("proc_inode_cache ")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Waits until no program makes many inodes of /proc: some look at each process that starts. Ten seconds at most.
fn wait_for_quiet_proc() {
    let count = || proc_inodes(&fs::read("/proc/slabinfo").unwrap());
    let mut last = count();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_secs(1));
        let now = count();
        if now.abs_diff(last) < 50 {
            return;
        }
        last = now;
    }
}

/// What the recorder itself reads of processes is in no count of the kernel: these begin behind it. Another program may read
/// the same folders meanwhile, so that one of ten recordings decides.
#[test]
fn counts_of_the_kernel_begin_behind_the_reads_of_the_recorder() {
    let Some(bench) = Bench::new("counts") else { return };
    if !Path::new("/proc/slabinfo").exists() {
        return;
    }
    let mut grown = Vec::new();
    for _ in 0..10 {
        // The recorder has not read their folders in /proc yet.
        let start = |_| Command::new("sleep").arg("30").stdout(Stdio::null()).spawn().unwrap();
        let mut sleepers: Vec<Child> = (0..400).map(start).collect();
        wait_for_quiet_proc();
        let output = bench.record(&["--force", "-d", "200ms"]);
        for sleeper in &mut sleepers {
            let _ = sleeper.kill();
            let _ = sleeper.wait();
        }
        recorded(&output);
        let bytes = fs::read(bench.path("out.kmt")).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        let active = |name: &str| proc_inodes(trace.metadata().attachment(name).unwrap());
        let [before, after] = ["slabinfo.before", "slabinfo.after"].map(active);
        grown.push(after.saturating_sub(before));
        if grown.last().is_some_and(|inodes| *inodes < 400) {
            return;
        }
    }
    panic!("inodes of /proc: {grown:?}");
}

#[test]
fn what_the_snippet_saves_is_converted() {
    let Some(bench) = Bench::new("snippet") else { return };
    let script = Command::new(env!("CARGO_BIN_EXE_kmt-capture")).arg("snippet").output().unwrap().stdout;
    fs::write(bench.path("snippet.sh"), script).unwrap();
    let saved = bench.path("saved");
    // 20,000 events at a time, so that a script that has to wait for a CPU loses none: 64 MiB hold a million.
    let work = bench.endless(&format!("{}; sleep 0.2", load(1)));
    let mut load = Command::new("sh").args(["-c", &work]).spawn().unwrap();
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
    assert!(stderr(&output).contains("lost 0 events on "), "{}", stderr(&output));
    bench.assert_untouched();
    let converted = Command::new(env!("CARGO_BIN_EXE_kmt-capture"))
        .args(["convert", "-o"])
        .arg(bench.path("out.kmt"))
        .arg(&saved)
        .output()
        .unwrap();
    assert_eq!(converted.status.code(), Some(0), "{}", stderr(&converted));
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert!(trace.event_count() > 10_000 && trace.symbols().is_some());
    for (cpu, counters) in &trace.metadata().counters {
        let events = trace.streams().get(cpu).map_or(0, |s| s.event_count());
        assert_eq!(Some(events), counters.before.unwrap().entries, "CPU {cpu}");
        let after = counters.after.map_or(Some(0), |after| after.entries);
        assert_eq!(after, Some(0), "CPU {cpu}");
    }
    assert_eq!(trace.metadata().clock.as_ref().unwrap().name, "mono");
    // The state after the trace says when it was read, and that was at once.
    let last =
        trace.streams().values().filter_map(|s| s.chunks.last()).map(|(_, info)| info.t_last).max().unwrap();
    let snapshots = trace.metadata().attachments.iter().filter(|a| a.name == "slabinfo");
    let times: Vec<(u64, u64)> = snapshots.filter_map(|a| a.times).collect();
    let [(from, to)] = times[..] else { panic!("{times:?}") };
    assert!(from + 1_000 >= last && to >= from && from < last + 1_000_000_000, "{times:?}, {last}");
}

/// A watch that has written its state and records ends by a signal: with its recorder, its state, and tracefs as it was.
#[test]
fn a_watch_ends_in_order_by_a_signal() {
    let Some(bench) = Bench::new("watch") else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    command.args(["watch", "--every", "1s", "--state"]).arg(bench.path("state"));
    let child = command.arg("-o").arg(bench.path("leak.kmt")).stderr(Stdio::piped()).spawn().unwrap();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    let start = Instant::now();
    let wait = |path: &Path| {
        while !path.exists() && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(path.exists(), "{}", path.display());
    };
    wait(&bench.path("state"));
    signal("-USR1");
    wait(&bench.path("leak-1.kmt.part"));
    fs::remove_file(bench.path("state")).unwrap();
    signal("-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(bench.path("state").exists());
    readable(&bench.path("leak-1.kmt"));
    bench.assert_untouched();
}
