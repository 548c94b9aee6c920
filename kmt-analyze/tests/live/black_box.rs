//! The black box for as long as it runs at night: many waits, kills at any moment, its cost while it waits, a limit of memory,
//! and a recording in many files. Needs root and tracefs, and kmt-capture beside this program.
//!
//! `KMT_BLACK_BOX_RUNS` is the number of waits, 100 without it: as many kills for lack of memory, half as many kills of the
//! recorder, a fifth as many files, and 1.2 s of idle time for each.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kmt_format::read::Trace;

use crate::support::alone::{Alone, TRACING};
use crate::support::cgroup::Cgroup;
use crate::support::files::{Scratch, at, stderr};
use crate::support::skip::{Lack, skip};

/// Files that are kept.
const FILES_MAX: usize = 5;
/// Growth of a recorder's resident memory that is noise: pages of its program, which are loaded on first use.
const RSS_NOISE_KIB: u64 = 512;
/// Time in which tracefs is as it was after a kill.
const RESTORED: Duration = Duration::from_secs(1);
/// Processor time of a recorder that waits, in seconds a minute.
const IDLE_MAX: f64 = 0.01;
/// Time from which the condition is seen to the end of reading the state of the machine.
const STATE_MAX: Duration = Duration::from_millis(100);

fn runs() -> u64 {
    std::env::var("KMT_BLACK_BOX_RUNS").map_or(100, |text| text.parse().expect("KMT_BLACK_BOX_RUNS"))
}

/// The right to record, a folder, and the program.
struct Bench {
    scratch: Scratch,
    program: PathBuf,
    _alone: Alone,
}

impl Bench {
    /// `None`, counted as a skip, where nothing can be recorded.
    fn new() -> Option<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_kmt-analyze")).with_file_name("kmt-capture");
        if !program.is_file() {
            skip(Lack::Program, "kmt-capture was not built beside kmt-analyze");
            return None;
        }
        let alone = Alone::or_skip()?;
        Some(Self { scratch: Scratch::new(), program, _alone: alone })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.0.join(name)
    }

    fn messages(&self) -> String {
        fs::read_to_string(self.path("messages")).unwrap_or_default()
    }

    /// Starts `record -o FOLDER/out.kmt` with these arguments.
    fn start(&self, args: &[&str]) -> Recorder {
        self.spawn(Command::new(&self.program), args)
    }

    fn spawn(&self, mut command: Command, args: &[&str]) -> Recorder {
        command.args(["record", "-o"]).arg(self.path("out.kmt")).args(args);
        let messages = File::create(self.path("messages")).unwrap();
        Recorder(command.stderr(messages).stdout(Stdio::null()).spawn().unwrap())
    }

    /// One kill for lack of memory in a group, while the recorder waits for the time of this number: the file, and when it happened.
    fn kill_in(&self, group: &Cgroup, recorder: &mut Recorder, round: usize) -> (PathBuf, Moment) {
        assert!(group.kill_one(), "round {round}");
        self.waits(recorder, round + 1);
        let file = self.path(&format!("out-{round}.kmt"));
        assert_sound(&file);
        let moment = Moment::of(&file);
        // Events that another CPU was writing come after the mark.
        assert!(moment.end <= moment.mark + 1_000_000, "round {round}: {} ns", moment.end - moment.mark);
        (file, moment)
    }

    /// The same as `start` in a cgroup.
    fn start_in(&self, group: &Cgroup, args: &[&str]) -> Recorder {
        let mut command = Command::new("sh");
        let script = format!("{}exec \"$@\"", group.enter());
        command.args(["-c", &script, "sh"]).arg(&self.program);
        self.spawn(command, args)
    }

    /// Waits until the recorder waits for the time of this number.
    fn waits(&self, recorder: &mut Recorder, number: usize) {
        let begun = || self.messages().matches("recording ").count() >= number;
        let holds = until(|| begun() || recorder.0.try_wait().unwrap().is_some());
        assert!(holds && begun(), "wait {number}: {}", self.messages());
    }

    /// Files whose names end so.
    fn files(&self, end: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.scratch.0).unwrap().flatten().map(|entry| entry.path());
        entries.filter(|path| path.to_string_lossy().ends_with(end)).collect()
    }
}

/// A recorder, which is killed if a test fails.
struct Recorder(Child);

impl Recorder {
    fn signal(&self, name: &str) {
        let killed = Command::new("kill").args(["-s", name, &self.0.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    fn rss_kib(&self) -> u64 {
        self.status_kib("VmRSS")
    }

    /// A number of /proc/PID/status in KiB.
    fn status_kib(&self, key: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Processor time of its only thread so far. The kernel counts it in nanoseconds.
    fn processor_time(&self) -> Duration {
        let schedstat = fs::read_to_string(format!("/proc/{}/schedstat", self.0.id())).unwrap();
        Duration::from_nanos(schedstat.split(' ').next().unwrap().parse().unwrap())
    }

    fn has_instance(&self) -> bool {
        let own = format!("kmt-{}-", self.0.id());
        instances().iter().any(|name| name.starts_with(&own))
    }

    fn ends(&mut self, bench: &Bench) -> Option<i32> {
        assert!(until(|| self.0.try_wait().unwrap().is_some()), "it does not end: {}", bench.messages());
        self.0.wait().unwrap().code()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Files that are read until it is dropped.
struct Load(Child);

impl Load {
    fn start() -> Self {
        let script = "while :; do find /usr/lib /etc -type f 2> /dev/null | head -300 | xargs cat > /dev/null 2>&1; done";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Also processes that the shell started.
        let _ = Command::new("kill").args(["-s", "KILL", "--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

/// True as soon as a condition holds; false after twenty seconds.
fn until(mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

fn instances() -> Vec<String> {
    let entries = fs::read_dir(Path::new(TRACING).join("instances")).unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Settings of the top level of tracefs.
fn settings() -> BTreeMap<PathBuf, String> {
    let top = Path::new(TRACING);
    let mut files: Vec<PathBuf> =
        ["tracing_on", "trace_clock", "current_tracer", "set_event", "buffer_size_kb"]
            .map(|name| top.join(name))
            .to_vec();
    files.extend(["saved_cmdlines_size", "kprobe_events", "set_event_pid"].map(|name| top.join(name)));
    for system in ["kmem", "oom", "task", "vmscan"] {
        let events = fs::read_dir(top.join("events").join(system)).into_iter().flatten().flatten();
        let events: Vec<PathBuf> = events.map(|event| event.path()).collect();
        files.extend(
            events.iter().flat_map(|event| ["enable", "filter", "trigger"].map(|name| event.join(name))),
        );
    }
    let read = |path: PathBuf| Some((path.clone(), fs::read_to_string(path).ok()?));
    files.into_iter().filter_map(read).collect()
}

fn analyze(args: &[&str], files: &[PathBuf]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).args(args).args(files).output().unwrap()
}

fn assert_sound(path: &Path) {
    let output = analyze(&["verify"], &[path.to_owned()]);
    assert_eq!(output.status.code(), Some(0), "{}: {}", path.display(), stderr(&output));
}

/// Numbers that differ from run to run.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

#[test]
#[ignore = "a hundred waits: .ci/nightly runs it"]
fn many_waits_leave_no_instance_no_file_and_no_memory() {
    let Some(bench) = Bench::new() else { return };
    let most = FILES_MAX.to_string();
    let mut recorder = bench.start(&["--ring", "1M", "--stop-when", "oom", "--rearm", "--max-files", &most]);
    let _load = Load::start();
    let rounds = usize::try_from(runs()).unwrap();
    let mut rss = Vec::new();
    for round in 1..=rounds {
        bench.waits(&mut recorder, round);
        rss.push(recorder.rss_kib());
        let own = format!("kmt-{}-", recorder.0.id());
        assert!(instances().iter().filter(|name| name.starts_with(&own)).count() <= 1);
        let file = bench.path(&format!("out-{round}.kmt"));
        // A signal between two waits has no effect.
        let written = until(|| {
            recorder.signal("USR1");
            (0..60).any(|_| {
                thread::sleep(Duration::from_millis(5));
                file.exists()
            })
        });
        assert!(written, "round {round}: {}", bench.messages());
        let kept = bench.files(".kmt").len();
        assert!(kept <= FILES_MAX + 1, "round {round}: {kept} files");
    }
    bench.waits(&mut recorder, rounds + 1);
    recorder.signal("INT");
    assert_eq!(recorder.ends(&bench), Some(0), "{}", bench.messages());
    assert!(!recorder.has_instance());
    let files = bench.files(".kmt");
    assert_eq!(files.len(), FILES_MAX.min(rounds), "{files:?}");
    files.iter().for_each(|path| assert_sound(path));
    assert!(bench.files(".part").is_empty());
    // The first waits load pages of the program.
    let (first, last) = (&rss[rss.len() / 4..rss.len() / 2], &rss[rss.len() * 3 / 4..]);
    let (before, after) = (first.iter().max().unwrap(), last.iter().min().unwrap());
    println!("{rounds} waits, resident while it waits: {} KiB at first, {before} KiB, {after} KiB", rss[0]);
    assert!(*after <= before + RSS_NOISE_KIB, "it grows: {rss:?}");
}

/// Times of a kill, from the file that it ended.
struct Moment {
    /// Time of the victim's mark.
    mark: u64,
    /// Last time of an event.
    end: u64,
    /// Time at which the recorder saw that the ring was stopped, and at which the last part of the state was read.
    seen: u64,
    state_read: u64,
}

impl Moment {
    fn of(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        let metadata = trace.metadata();
        assert_eq!(metadata.text("record.stopped_by"), Some("oom"), "{}", path.display());
        let marks = trace.events().unwrap().filter(|event| event.class().name == "mark_victim");
        let mark = marks.last().expect("the victim's mark is in the file").time();
        let ends = trace.streams().values().flat_map(|stream| &stream.chunks).map(|(_, info)| info.t_last);
        let state = metadata.attachments.iter().filter(|file| file.name.ends_with(".after"));
        Self {
            mark,
            end: ends.max().unwrap(),
            seen: metadata.text("record.stop_seen").unwrap().parse().unwrap(),
            state_read: state.filter_map(|file| file.times).map(|(_, read)| read).max().unwrap(),
        }
    }
}

#[test]
#[ignore = "a hundred kills for lack of memory: .ci/nightly runs it"]
fn each_kill_for_lack_of_memory_is_the_end_of_a_file() {
    let Some(bench) = Bench::new() else { return };
    let Some(group) = Cgroup::new(30_000_000) else {
        return skip(Lack::Machine, "no cgroup with a limit of memory can be made");
    };
    let most = FILES_MAX.to_string();
    let mut recorder = bench.start(&["--ring", "4M", "--stop-when", "oom", "--rearm", "--max-files", &most]);
    let _load = Load::start();
    let rounds = usize::try_from(runs()).unwrap();
    let (mut seen, mut read, mut rss) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        bench.waits(&mut recorder, round);
        rss.push(recorder.rss_kib());
        thread::sleep(Duration::from_millis(100));
        let (_, moment) = bench.kill_in(&group, &mut recorder, round);
        seen.push((moment.seen - moment.mark) / 1_000_000);
        read.push(moment.state_read.saturating_sub(moment.seen) / 1_000_000);
    }
    recorder.signal("INT");
    assert_eq!(recorder.ends(&bench), Some(0), "{}", bench.messages());
    assert!(!recorder.has_instance());
    assert_eq!(bench.files(".kmt").len(), FILES_MAX.min(rounds));
    let middle_and_most = |mut of: Vec<u64>| {
        of.sort_unstable();
        (of[of.len() / 2], of[of.len() - 1])
    };
    let ((seen, seen_max), (read, read_max)) = (middle_and_most(seen), middle_and_most(read));
    println!(
        "{rounds} kills: seen after {seen} ms ({seen_max} at most), state read after {read} ms more ({read_max} at most); resident {} to {} KiB",
        rss[0],
        rss.iter().max().unwrap()
    );
    assert!(u128::from(read_max) <= STATE_MAX.as_millis(), "{read_max} ms");
}

#[test]
#[ignore = "fifty kills: .ci/nightly runs it"]
fn a_kill_at_any_moment_leaves_tracefs_as_it_was_and_sound_files() {
    let Some(bench) = Bench::new() else { return };
    let before = (instances(), settings());
    let seed = u64::from(std::process::id());
    let mut state = seed | 1 << 40;
    let _load = Load::start();
    let (mut longest, mut complete, mut parts) = (Duration::ZERO, 0, 0);
    for run in 0..runs() / 2 {
        let mut recorder = bench.start(&["--ring", "4M", "--stop-when", "oom", "--rearm"]);
        if run % 2 == 0 {
            // While it begins, or waits.
            thread::sleep(Duration::from_millis(random(&mut state, 800)));
        } else {
            // While it writes, or begins again.
            bench.waits(&mut recorder, 1);
            thread::sleep(Duration::from_millis(200));
            recorder.signal("USR1");
            thread::sleep(Duration::from_millis(random(&mut state, 250)));
        }
        recorder.0.kill().unwrap();
        recorder.0.wait().unwrap();
        let start = Instant::now();
        assert!(until(|| !recorder.has_instance() && settings() == before.1), "run {run}, seed {seed}");
        longest = longest.max(start.elapsed());
        for path in bench.files(".kmt") {
            assert_sound(&path);
            complete += 1;
            fs::remove_file(path).unwrap();
        }
        for path in bench.files(".part") {
            let whole = bench.path("whole.recovered");
            // A file with less than its head has nothing to recover.
            if fs::metadata(&path).unwrap().len() >= 192 {
                let output = analyze(
                    &["recover", "--force", "-o", whole.to_str().unwrap()],
                    std::slice::from_ref(&path),
                );
                assert!(matches!(output.status.code(), Some(0 | 3)), "run {run}: {}", stderr(&output));
                assert_sound(&whole);
                parts += 1;
            }
            fs::remove_file(path).unwrap();
        }
    }
    println!(
        "tracefs was as before after {} ms at most; {complete} files, {parts} parts",
        longest.as_millis()
    );
    assert!(longest <= RESTORED, "{longest:?}, seed {seed}");
    let left: Vec<String> = instances().into_iter().filter(|name| !before.0.contains(name)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(complete + parts > 0, "no kill came after the begin of a file");
}

#[test]
#[ignore = "two minutes: .ci/nightly runs it"]
fn a_wait_costs_almost_no_processor_time() {
    let Some(bench) = Bench::new() else { return };
    let mut recorder = bench.start(&["--ring", "4M", "--stop-when", "oom"]);
    bench.waits(&mut recorder, 1);
    let _load = Load::start();
    thread::sleep(Duration::from_secs(1));
    let (before, start) = (recorder.processor_time(), Instant::now());
    thread::sleep(Duration::from_millis(1_200 * runs()));
    let (used, minutes) = (recorder.processor_time() - before, start.elapsed().as_secs_f64() / 60.0);
    let threads = fs::read_dir(format!("/proc/{}/task", recorder.0.id())).unwrap().count();
    recorder.signal("INT");
    assert_eq!(recorder.ends(&bench), Some(0), "{}", bench.messages());
    let seconds = used.as_secs_f64();
    println!("{seconds:.4} s in {minutes:.1} minutes, {:.4} s a minute", seconds / minutes);
    assert_eq!(threads, 1);
    assert!(seconds <= IDLE_MAX * minutes, "{seconds:.4} s in {minutes:.1} minutes");
}

#[test]
#[ignore = "a machine that is loaded for seconds: .ci/nightly runs it"]
fn a_limit_of_8_mib_holds_while_it_waits_and_writes() {
    let Some(bench) = Bench::new() else { return };
    let (Some(small), Some(group)) = (Cgroup::new(8 << 20), Cgroup::new(30_000_000)) else {
        return skip(Lack::Machine, "no cgroup with a limit of memory can be made");
    };
    let mut recorder =
        bench.start_in(&small, &["--ring", "64M", "--stop-when", "oom", "--rearm", "--max-files", "3"]);
    let _load = Load::start();
    for round in 1..=3 {
        bench.waits(&mut recorder, round);
        thread::sleep(Duration::from_secs(6));
        let waiting = small.peak();
        let (file, _) = bench.kill_in(&group, &mut recorder, round);
        println!(
            "file of {} KiB; most bytes of the cgroup before {waiting}, after {}; resident at most {} KiB",
            fs::metadata(&file).unwrap().len() >> 10,
            small.peak(),
            recorder.status_kib("VmHWM")
        );
    }
    recorder.signal("INT");
    assert_eq!(recorder.ends(&bench), Some(0), "{}", bench.messages());
}

#[test]
#[ignore = "twenty files: .ci/nightly runs it"]
fn many_files_have_what_the_kernel_counted() {
    let Some(bench) = Bench::new() else { return };
    let number = usize::try_from(runs() / 5).unwrap().max(2);
    let mut recorder = bench.start(&["-b", "32M", "--rotate", "1s"]);
    bench.waits(&mut recorder, 1);
    let load = Load::start();
    let has_all = (0..number * 20).any(|_| {
        thread::sleep(Duration::from_millis(500));
        bench.files(".kmt").len() >= number
    });
    assert!(has_all, "{} files: {}", bench.files(".kmt").len(), bench.messages());
    drop(load);
    recorder.signal("INT");
    assert!(matches!(recorder.ends(&bench), Some(0 | 3)), "{}", bench.messages());
    let files = bench.files(".kmt");
    let (mut events, mut lost, mut read) = (0, 0, 0);
    for path in &files {
        assert_sound(path);
        let bytes = fs::read(path).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        for (cpu, counters) in &trace.metadata().counters {
            let after = counters.after.unwrap();
            let in_file = trace.streams().get(cpu).map_or(0, |stream| stream.event_count());
            assert_eq!(Some(in_file), after.read, "CPU {cpu} in {}", path.display());
            events += in_file;
            lost += after.lost_events().unwrap();
            read += after.read.unwrap();
        }
    }
    let output = analyze(&["summary", "--json"], &files);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(at(&summary, "/trace/events").as_u64(), Some(events));
    println!("{} files: {events} events, {lost} lost, {read} read from the kernel", files.len());
    let total =
        format!("{}, {} lost", kmt_common::text::count(events, "event"), kmt_common::text::grouped(lost));
    assert!(bench.messages().contains(&total), "not {total}: {}", bench.messages());
    assert!(files.len() > number && events > 10_000, "{} files, {events} events", files.len());
}
