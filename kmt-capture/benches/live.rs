//! Cost of recording, beside copying the same raw sub-buffers to disk undecoded. Needs root and tracefs.
//!
//!     cargo bench -p kmt-capture --bench live [-- SECONDS]
//!
//! Each way runs alone under the same load. CPU time is that of the recording process, of which the kernel keeps count;
//! start and end (symbols, snapshots) are left out. Results go to benches/record/.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use kmt_format::kernel::CpuStats;
use kmt_format::read::Trace;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

const LOAD: &str = "while :; do find /usr/lib /usr/share -type f 2> /dev/null | head -20000 | xargs cat > /dev/null 2>&1; done";

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, mode, folder, seconds] = args.as_slice() {
        if mode.starts_with("copy-") {
            return copy(mode, Path::new(folder), seconds.parse().unwrap());
        }
    }
    if !Path::new("/sys/kernel/tracing/trace_clock").exists() {
        println!("skipped: there is no tracefs");
        return;
    }
    let seconds = args.iter().filter_map(|a| a.parse::<u64>().ok()).next().unwrap_or(10);
    let folder = std::env::temp_dir().join(format!("kmt-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    println!(
        "| way | events | CPU ns an event | bytes an event | lost | RSS peak KiB |\n|---|---|---|---|---|---|"
    );
    for mode in ["copy-read", "copy-splice"] {
        report(mode, loaded(|| copied(mode, &folder, seconds)));
    }
    let ways: [&[&str]; 5] =
        [&[], &["--compress", "lz4"], &["--raw"], &["-p", "slab"], &["-p", "slab", "--survivors"]];
    for args in ways {
        let name = [&["record"], args].concat().join(" ");
        report(&name, loaded(|| recorded(args, &folder, seconds)));
    }
    fs::remove_dir_all(folder).unwrap();
}

struct Cost {
    events: u64,
    cpu_ns: u64,
    bytes: u64,
    lost: u64,
    rss_kib: u64,
}

fn report(name: &str, cost: Cost) {
    let Cost { events, cpu_ns, bytes, lost, rss_kib } = cost;
    let of = |number: u64| number as f64 / events.max(1) as f64;
    println!("| {name} | {events} | {:.1} | {:.2} | {lost} | {rss_kib} |", of(cpu_ns), of(bytes));
}

/// Runs something under load on every CPU.
fn loaded(run: impl FnOnce() -> Cost) -> Cost {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut loads: Vec<Child> =
        (0..cpus).map(|_| Command::new("setsid").args(["sh", "-c", LOAD]).spawn().unwrap()).collect();
    std::thread::sleep(Duration::from_secs(1));
    let cost = run();
    for load in &mut loads {
        let _ = Command::new("pkill").args(["-s", &load.id().to_string()]).status();
        let _ = load.wait();
    }
    cost
}

fn recorded(args: &[&str], folder: &Path, seconds: u64) -> Cost {
    let path = folder.join("out.kmt");
    let status = Command::new(env!("CARGO_BIN_EXE_kmt-capture"))
        .args(["record", "--force", "-q", "--no-task-events", "-b", "64M", "-d", &seconds.to_string(), "-o"])
        .arg(&path)
        .args(args)
        .status()
        .unwrap();
    assert!(matches!(status.code(), Some(0 | 3)), "{status}");
    let bytes = fs::read(&path).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let metadata = trace.metadata();
    let number = |key: &str| metadata.text(key).unwrap().parse::<u64>().unwrap();
    let folds = trace.folds();
    let folded: u64 = folds.iter().map(|(_, info)| info.events).sum();
    Cost {
        events: trace.event_count() + folded,
        cpu_ns: number("recorder.cpu_ns"),
        // Sums are no events: there the whole file counts.
        bytes: if folds.is_empty() { metadata.trailer.unwrap().event_bytes } else { bytes.len() as u64 },
        lost: metadata.counters.values().filter_map(|c| c.after?.lost_events()).sum(),
        rss_kib: number("recorder.rss_peak_kib"),
    }
}

/// The same events by a process of ours that copies sub-buffers: this program again.
fn copied(mode: &str, folder: &Path, seconds: u64) -> Cost {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).arg(mode).arg(folder).arg(seconds.to_string()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let [events, cpu_ns, bytes, lost, rss_kib] = numbers.try_into().unwrap();
    Cost { events, cpu_ns, bytes, lost, rss_kib }
}

fn copy(mode: &str, folder: &Path, seconds: u64) {
    let instance = PathBuf::from(format!("/sys/kernel/tracing/instances/kmt-bench-{}", std::process::id()));
    fs::create_dir(&instance).unwrap();
    let write = |name: &str, value: &str| fs::write(instance.join(name), value).unwrap();
    write("tracing_on", "0");
    write("trace_clock", "mono");
    write("buffer_size_kb", "65536");
    write("buffer_percent", "25");
    for event in fs::read_dir(instance.join("events/kmem")).unwrap().flatten() {
        if event.path().is_dir() && event.file_name() != "rss_stat" {
            fs::write(event.path().join("enable"), "1").unwrap();
        }
    }
    let cpus = fs::read_dir(instance.join("per_cpu")).unwrap().count();
    let mut rings: Vec<(File, File)> = (0..cpus)
        .map(|cpu| {
            let raw = instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            let ring = OpenOptions::new().read(true).custom_flags(flags).open(raw).unwrap();
            (ring, File::create(folder.join(format!("cpu{cpu}.raw"))).unwrap())
        })
        .collect();
    let (from, to) = pipe_with(PipeFlags::NONBLOCK).unwrap();
    let mut buffer = vec![0; 4096];
    let mut bytes = 0;
    let before = cpu_ns();
    write("tracing_on", "1");
    let start = Instant::now();
    while start.elapsed().as_secs() < seconds {
        std::thread::sleep(Duration::from_millis(50));
        for (ring, out) in &mut rings {
            if mode == "copy-splice" {
                // Whole sub-buffers only, moved without a copy into the pipe, and copied into the page cache by it.
                while let Ok(len @ 1..) = splice(&*ring, None, &to, None, 65_536, SpliceFlags::NONBLOCK) {
                    let mut left = len;
                    while left > 0 {
                        left -= splice(&from, None, &*out, None, left, SpliceFlags::MOVE).unwrap();
                    }
                    bytes += len as u64;
                }
                continue;
            }
            while let Ok(len @ 1..) = ring.read(&mut buffer) {
                out.write_all(&buffer[..len]).unwrap();
                bytes += len as u64;
            }
        }
    }
    let cpu_ns = cpu_ns() - before;
    write("tracing_on", "0");
    let stats = |cpu: usize| {
        CpuStats::parse(&fs::read_to_string(instance.join(format!("per_cpu/cpu{cpu}/stats"))).unwrap())
            .unwrap()
    };
    let read: u64 = (0..cpus).map(|cpu| stats(cpu).read.unwrap()).sum();
    let lost: u64 = (0..cpus).filter_map(|cpu| stats(cpu).lost_events()).sum();
    drop(rings);
    write("events/enable", "0");
    let _ = fs::remove_dir(&instance);
    println!("{read} {cpu_ns} {bytes} {lost} {}", rss_peak_kib());
}

fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn rss_peak_kib() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.split_ascii_whitespace().next().unwrap().parse().unwrap()
}
