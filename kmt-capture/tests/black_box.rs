//! `record --ring` on the running kernel: needs root and tracefs.

mod support;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use kmt_format::read::Trace;
use support::alone::{Alone, TRACING};
use support::cgroup::Cgroup;

/// One ring at a time, in a folder of its own.
struct Bench {
    folder: PathBuf,
    _alone: Alone,
}

impl Bench {
    fn new(name: &str) -> Option<Self> {
        let alone = Alone::or_skip()?;
        let folder = std::env::temp_dir().join(format!("kmt-ring-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Some(Self { folder, _alone: alone })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Messages of the recorder so far.
    fn messages(&self) -> String {
        fs::read_to_string(self.path("messages")).unwrap_or_default()
    }

    /// Starts `record --ring 1M` with these arguments and the output `FOLDER/out.kmt`; returns when it waits.
    fn start(&self, args: &[&str]) -> Child {
        self.start_to(&self.path("out.kmt"), args)
    }

    fn start_to(&self, output: &Path, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
        command.args(["record", "--ring", "1M", "-o"]).arg(output).args(args);
        let messages = File::create(self.path("messages")).unwrap();
        let mut child = command.stderr(messages).stdout(Stdio::null()).spawn().unwrap();
        let is_waiting =
            until(|| self.messages().contains("recording ") || child.try_wait().unwrap().is_some());
        assert!(is_waiting, "{}", self.messages());
        std::thread::sleep(Duration::from_millis(300));
        child
    }

    fn ends(&self, child: &mut Child) -> Option<i32> {
        if !until(|| child.try_wait().unwrap().is_some()) {
            signal("INT", child.id());
            child.wait().unwrap();
            panic!("still waiting: {}", self.messages());
        }
        assert!(!is_recording(child.id()), "its instance is left");
        child.wait().unwrap().code()
    }

    fn refused(&self, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
        command.args(["record", "--ring", "1M", "-o"]).arg(self.path("out.kmt")).args(args);
        let Output { status, stderr, .. } = command.output().unwrap();
        let said = String::from_utf8_lossy(&stderr).into_owned();
        assert_eq!(status.code(), Some(1), "{args:?}: {said}");
        assert_eq!(fs::read_dir(&self.folder).unwrap().count(), 0, "{args:?}");
        said
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// True as soon as a condition holds; false after ten seconds.
fn until(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

fn is_recording(recorder: u32) -> bool {
    let names = fs::read_dir(Path::new(TRACING).join("instances")).unwrap().flatten();
    names
        .filter_map(|e| e.file_name().into_string().ok())
        .any(|name| name.starts_with(&format!("kmt-{recorder}-")))
}

/// Reads files: more events than the ring holds.
fn load() {
    let script = "find /usr/lib /etc -type f 2> /dev/null | head -600 | xargs cat > /dev/null 2>&1";
    Command::new("sh").args(["-c", script]).status().unwrap();
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

fn text(trace: &Trace<'_>, key: &str) -> String {
    trace.metadata().text(key).unwrap_or_default().to_owned()
}

/// Each CPU was overwritten before its first event and nowhere else, and the counts are those of the kernel.
fn assert_only_overwritten(trace: &Trace<'_>) -> u64 {
    let mut overwritten = 0;
    for (cpu, stream) in trace.streams() {
        let overrun = trace.metadata().counters[cpu].after.unwrap().overrun.unwrap();
        for (at, (_, info)) in stream.chunks.iter().enumerate() {
            let is_first = at == 0 && overrun > 0;
            assert_eq!(info.loss.overwritten, is_first, "CPU {cpu}, chunk {at}: {:?}", info.loss);
            assert!(is_first || info.loss.is_none(), "CPU {cpu}, chunk {at}: {:?}", info.loss);
        }
        if overrun > 0 {
            let first = stream.chunks.first().unwrap().1.loss;
            assert!(first.counted == overrun || first.uncounted, "CPU {cpu}: {first:?}, overrun {overrun}");
            assert!(!first.damaged_input);
        }
        overwritten += overrun;
    }
    overwritten
}

#[test]
fn a_trigger_stops_the_ring_and_its_event_is_the_last() {
    let Some(bench) = Bench::new("trigger") else { return };
    for raw in [&[][..], &["--raw"]] {
        let name = format!("kmt{}", std::process::id() % 1_000_000);
        let condition = format!("task:task_rename if newcomm == \"{name}\"");
        let mut child = bench.start(&[&["--force", "--stop-when", &condition][..], raw].concat());
        load();
        assert!(child.try_wait().unwrap().is_none(), "{}", bench.messages());
        let rename = format!("printf {name} > /proc/self/comm");
        let start = Instant::now();
        Command::new("bash").args(["-c", &rename]).status().unwrap();
        // What comes after it is not in the file.
        load();
        assert_eq!(bench.ends(&mut child), Some(0), "{}", bench.messages());
        println!("{:?} from the event to the end of the recorder\n{}", start.elapsed(), bench.messages());
        let bytes = fs::read(bench.path("out.kmt")).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        assert!(trace.is_finished() && trace.damages().is_empty());
        assert!(assert_only_overwritten(&trace) > 0, "nothing was overwritten");
        let mut record = Vec::new();
        let mut found = None;
        let mut last_of_cpu = std::collections::BTreeMap::new();
        for event in trace.events().unwrap() {
            event.to_record(&mut record);
            if event.class().name == "task_rename" && record.windows(name.len()).any(|w| w == name.as_bytes())
            {
                found = Some((event.cpu(), event.time()));
            }
            last_of_cpu.insert(event.cpu(), event.time());
        }
        let (cpu, time) = found.expect("the event that stopped the ring is in the file");
        assert_eq!(last_of_cpu[&cpu], time, "it is the last of its CPU");
        // On another CPU one may have been on its way.
        assert!(last_of_cpu.values().all(|last| *last <= time + 1_000_000), "{last_of_cpu:?} {time}");
        assert_eq!(text(&trace, "record.stopped_by"), condition);
        assert_eq!(text(&trace, "record.stop_when"), condition);
        assert_eq!(text(&trace, "record.ring"), (1 << 20).to_string());
        let seen: u64 = text(&trace, "record.stop_seen").parse().unwrap();
        assert!((time..time + 500_000_000).contains(&seen), "seen {} ms later", (seen - time) / 1_000_000);
        for name in ["meminfo.after", "zoneinfo.after", "slabinfo.after", "processes.after"] {
            let file = trace.metadata().attachments.iter().find(|file| file.name == name);
            let (from, to) = file.and_then(|file| file.times).unwrap_or_else(|| panic!("{name} has no time"));
            // Times of the clock are to the microsecond.
            assert!(from + 1_000 >= seen && to < seen + 1_000_000_000, "{name}: {from}..{to}, seen {seen}");
        }
        assert!(
            trace.metadata().attachment("slabinfo.before").is_none(),
            "its time is not that of the window"
        );
    }
}

/// The script for targets without the program waits in the same way.
#[test]
fn the_shell_script_stops_at_an_event() {
    let Some(bench) = Bench::new("script") else { return };
    let script = Command::new(env!("CARGO_BIN_EXE_kmt-capture")).arg("snippet").output().unwrap().stdout;
    fs::write(bench.path("snippet.sh"), script).unwrap();
    let name = format!("kmt{}", std::process::id() % 1_000_000);
    let condition = format!("task/task_rename if newcomm == \"{name}\"");
    let messages = File::create(bench.path("messages")).unwrap();
    let mut script = Command::new("sh");
    script.arg(bench.path("snippet.sh")).arg(bench.path("saved")).arg("20");
    script.env("STOP", &condition).env("BUFKB", "512").stderr(messages).stdout(Stdio::null());
    let mut child = script.spawn().unwrap();
    assert!(until(|| bench.messages().contains("recording ")), "{}", bench.messages());
    std::thread::sleep(Duration::from_millis(300));
    load();
    Command::new("bash").args(["-c", &format!("printf {name} > /proc/self/comm")]).status().unwrap();
    load();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let status = child.try_wait().unwrap().unwrap_or_else(|| {
        signal("TERM", child.id());
        child.wait().unwrap()
    });
    assert_eq!(status.code(), Some(0), "{}", bench.messages());
    assert!(bench.messages().contains("lost 0 events on "), "{}", bench.messages());
    let mut convert = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    let converted =
        convert.args(["convert", "-o"]).arg(bench.path("out.kmt")).arg(bench.path("saved")).output();
    let Output { status, stderr, .. } = converted.unwrap();
    assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert_eq!(text(&trace, "record.stopped_by"), condition);
    let mut record = Vec::new();
    let (mut found, mut last) = (None, std::collections::BTreeMap::new());
    for event in trace.events().unwrap() {
        event.to_record(&mut record);
        if event.class().name == "task_rename" && record.windows(name.len()).any(|w| w == name.as_bytes()) {
            found = Some((event.cpu(), event.time()));
        }
        last.insert(event.cpu(), event.time());
    }
    let (cpu, time) = found.expect("the event that stopped it is in the file");
    assert_eq!(last[&cpu], time, "it is the last of its CPU");
    let mut first = trace.streams().values().filter_map(|stream| stream.chunks.first());
    assert!(first.any(|(_, info)| info.loss.overwritten), "nothing was overwritten");
}

/// Any write to tracefs makes the recorder read its settings again, those that its trigger has changed too.
#[test]
fn a_trigger_is_no_change_by_another_process() {
    let Some(bench) = Bench::new("others") else { return };
    let name = format!("kmt{}", std::process::id() % 1_000_000);
    let mut child = bench.start(&["--stop-when", &format!("task:task_rename if newcomm == \"{name}\"")]);
    let instances = fs::read_dir(Path::new(TRACING).join("instances")).unwrap().flatten();
    let own = format!("kmt-{}-", child.id());
    let instance = instances.map(|e| e.path()).find(|path| path.to_string_lossy().contains(&own)).unwrap();
    signal("STOP", child.id());
    Command::new("bash").args(["-c", &format!("printf {name} > /proc/self/comm")]).status().unwrap();
    assert_eq!(fs::read_to_string(instance.join("tracing_on")).unwrap(), "0\n");
    fs::write(instance.join("error_log"), "\n").unwrap();
    signal("CONT", child.id());
    assert_eq!(bench.ends(&mut child), Some(0), "{}", bench.messages());
    assert!(!bench.messages().contains("another process"), "{}", bench.messages());
}

#[test]
fn conditions_on_memory_stop_after_a_time() {
    let Some(bench) = Bench::new("memory") else { return };
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Shmem:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let condition = format!("Shmem>{}K", kib + (64 << 10));
    let mut child = bench.start(&["--stop-when", &condition, "--after", "400ms"]);
    let held = rustix::fs::memfd_create("kmt-test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let mut held = File::from(held);
    let start = Instant::now();
    (0..160).for_each(|_| held.write_all(&[1; 1 << 20]).unwrap());
    assert_eq!(bench.ends(&mut child), Some(0), "{}", bench.messages());
    assert!(start.elapsed() > Duration::from_millis(400));
    drop(held);
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert!(text(&trace, "record.stopped_by").starts_with("Shmem>"), "{}", text(&trace, "record.stopped_by"));
    assert_only_overwritten(&trace);
    // The state is that of the condition, not that of the end.
    let seen: u64 = text(&trace, "record.stop_seen").parse().unwrap();
    let end = trace.streams().values().flat_map(|s| &s.chunks).map(|(_, info)| info.t_last).max().unwrap();
    assert!(
        end >= seen + 300_000_000,
        "the condition was seen {} ms before the last event",
        (end - seen) / 1_000_000
    );
    let meminfo = trace.metadata().attachments.iter().find(|file| file.name == "meminfo.after").unwrap();
    let (_, read) = meminfo.times.unwrap();
    assert!(read < seen + 300_000_000, "read {} ms after the condition", (read - seen) / 1_000_000);
}

#[test]
fn a_kill_for_lack_of_memory_stops_the_ring() {
    let Some(bench) = Bench::new("oom") else { return };
    let Some(group) = Cgroup::new(30_000_000) else {
        support::skip::skip(support::skip::Lack::Machine, "no cgroup with a limit of memory can be made");
        return;
    };
    let mut child = bench.start(&["--stop-when", "oom", "--stop-when", "slab>900G"]);
    load();
    let killed = group.kill_one();
    let code = bench.ends(&mut child);
    assert_eq!(code, Some(0), "{}", bench.messages());
    assert!(killed);
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert_eq!(text(&trace, "record.stopped_by"), "oom");
    assert_only_overwritten(&trace);
    let last = trace.events().unwrap().filter(|event| event.class().name == "mark_victim").last();
    let last = last.expect("the victim's mark is in the file").time();
    let end = trace.streams().values().flat_map(|s| &s.chunks).map(|(_, info)| info.t_last).max().unwrap();
    assert!(end <= last + 1_000_000, "{} us after the mark", (end - last) / 1_000);
    if let Some(log) = trace.metadata().attachment("kmsg") {
        let log = String::from_utf8_lossy(log).into_owned();
        assert!(log.contains("Killed process "), "{log}");
    }
}

#[test]
fn pressure_of_a_cgroup_stops_the_ring() {
    let Some(bench) = Bench::new("pressure") else { return };
    let group = Cgroup::new(20_000_000);
    let Some((group, path)) = group.as_ref().and_then(|group| Some((group, group.with_pressure()?))) else {
        support::skip::skip(support::skip::Lack::Machine, "no cgroup with a limit and pressure can be made");
        return;
    };
    let name = path.file_name().unwrap().to_str().unwrap();
    let condition = format!("psi:some:10ms/2s:/{name}");
    let mut child = bench.start(&["--stop-when", &condition, "--after", "100ms"]);
    load();
    assert!(child.try_wait().unwrap().is_none(), "{}", bench.messages());
    // Files that do not fit: their pages are written and dropped again and again.
    let file = bench.path("large");
    let write = format!("exec dd if=/dev/zero of={} bs=1M count=200", file.display());
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(20) {
        group.run(&write);
    }
    assert_eq!(bench.ends(&mut child), Some(0), "{}", bench.messages());
    let bytes = fs::read(bench.path("out.kmt")).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert_eq!(text(&trace, "record.stopped_by"), condition);
    assert_only_overwritten(&trace);
    // Where the group of version 2 has no memory, that of version 1 has it.
    let memory = trace.metadata().attachment("cgroup_memory.after").map(String::from_utf8_lossy);
    assert!(memory.as_ref().is_some_and(|text| text.starts_with(&format!("cgroup /{name}\n"))), "{memory:?}");
    // A group that goes away ends no wait.
    let mut child = bench.start(&["--force", "--stop-when", "oom", "--stop-when", &condition]);
    fs::remove_dir(path).unwrap();
    assert!(until(|| bench.messages().contains("was removed")), "{}", bench.messages());
    assert!(child.try_wait().unwrap().is_none(), "{}", bench.messages());
    signal("USR1", child.id());
    assert_eq!(bench.ends(&mut child), Some(0), "{}", bench.messages());
}

#[test]
fn files_are_written_at_signals_again_and_again() {
    let Some(bench) = Bench::new("rearm") else { return };
    let mut child = bench.start(&["--stop-when", "oom", "--rearm", "--max-files", "2"]);
    for number in 1..=3 {
        let file = bench.path(&format!("out-{number}.kmt"));
        // One that comes between two waits has no effect.
        let written = until(|| {
            signal("USR1", child.id());
            std::thread::sleep(Duration::from_millis(300));
            file.exists()
        });
        assert!(written, "{}: {}", file.display(), bench.messages());
    }
    assert!(until(|| !bench.path("out-1.kmt").exists()), "{}", bench.messages());
    std::thread::sleep(Duration::from_millis(500));
    signal("INT", child.id());
    assert_eq!(bench.ends(&mut child), Some(0), "{}", bench.messages());
    let mut names: Vec<String> = fs::read_dir(&bench.folder)
        .unwrap()
        .flatten()
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    names.sort();
    let kept: Vec<&String> = names.iter().filter(|name| name.ends_with(".kmt")).collect();
    assert!(kept.len() == 2 && names.len() == 3, "{names:?}: {}", bench.messages());
    for name in kept {
        let bytes = fs::read(bench.path(name)).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        assert!(trace.is_finished());
        assert_eq!(text(&trace, "record.stopped_by"), "SIGUSR1");
    }
}

/// As with a disk that is full or read-only.
#[test]
fn a_recorder_waits_again_if_a_file_cannot_be_written() {
    let Some(bench) = Bench::new("unwritable") else { return };
    let (folder, away) = (bench.path("files"), bench.path("away"));
    let mut refused = bench.start_to(&folder.join("out.kmt"), &["--stop-when", "oom", "--rearm"]);
    assert_eq!(refused.wait().unwrap().code(), Some(1), "{}", bench.messages());
    fs::create_dir(&folder).unwrap();
    // Of a recorder that was killed while it wrote.
    fs::write(folder.join("out-1.kmt.part"), "").unwrap();
    let mut child = bench.start_to(&folder.join("out.kmt"), &["--stop-when", "oom", "--rearm"]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "files are created when a condition holds");
    fs::rename(&folder, &away).unwrap();
    signal("USR1", child.id());
    assert!(until(|| bench.messages().contains("no file was written")), "{}", bench.messages());
    fs::rename(&away, &folder).unwrap();
    assert!(until(|| bench.messages().matches("recording ").count() == 2), "{}", bench.messages());
    std::thread::sleep(Duration::from_millis(300));
    signal("USR1", child.id());
    let file = folder.join("out-2.kmt");
    assert!(until(|| file.exists()), "{}", bench.messages());
    signal("INT", child.id());
    assert_eq!(bench.ends(&mut child), Some(3), "{}", bench.messages());
    assert!(Trace::open(&fs::read(&file).unwrap()).unwrap().is_finished());
}

#[test]
fn the_recorder_is_kept_from_the_oom_killer_and_its_command_is_not() {
    let Some(bench) = Bench::new("score") else { return };
    let score = |pid: &str| fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
    let may_lower =
        Command::new("sh").args(["-c", "echo -1000 > /proc/self/oom_score_adj"]).status().unwrap();
    let expected = if may_lower.success() { "-1000\n".to_owned() } else { score("self") };
    let command = format!("cat /proc/self/oom_score_adj > {}; exec sleep 60", bench.path("score").display());
    let mut child = bench.start(&["--stop-when", "oom", "--", "sh", "-c", &command]);
    let pid = child.id().to_string();
    assert!(until(|| score(&pid) == expected), "{}", score(&pid));
    assert!(until(|| fs::read_to_string(bench.path("score")).is_ok_and(|text| text == score("self"))));
    signal("USR1", child.id());
    assert_eq!(bench.ends(&mut child), Some(0), "{}", bench.messages());
}

#[test]
fn what_cannot_be_watched_is_refused_at_once() {
    let Some(bench) = Bench::new("refused") else { return };
    for (condition, words) in [
        ("kmem:gone", "no event kmem:gone"),
        ("kmem:kmalloc if nothing > 1", "events/kmem/kmalloc/format has the fields"),
        ("MemAvailable<100000G", "it holds already"),
        ("Nothing<1M", "/proc/meminfo has no Nothing"),
        ("psi:some:100ms/2s:kmt-no-such-group", "cgroup of version 2"),
    ] {
        let said = bench.refused(&["--stop-when", condition]);
        assert!(said.contains(words) && said.contains("hint: "), "{condition}: {said}");
    }
}
