//! What reports cost, the whole process counted: wall and CPU time an event, and memory.
//!
//! `KMT_BENCH_TRACES=a.kmt:b.kmt cargo bench -p kmt-analyze` runs them on those files, page cache warm; without it on
//! the sample in docs/, which is too small to say much. Results with machine and commit are kept in benches/record/.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const RUNS: u32 = 5;

/// Reports, and the options that they run with.
const REPORTS: [&[&str]; 13] = [
    &["summary"],
    &["summary", "--threads", "1"],
    &["callers"],
    &["lifetimes"],
    &["lifetimes", "--threads", "1"],
    &["tasks"],
    &["peak"],
    &["leaks"],
    &["fragmentation"],
    &["latency"],
    &["what-if"],
    &["all"],
    &["summary", "--compat", "trace-cmd-mem"],
];

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` does not, and measures nothing.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    for file in traces() {
        let events = event_count(&file);
        println!("{}: {events} events", file.display());
        println!("{:<40} {:>10} {:>10} {:>10}", "report", "wall ns/ev", "CPU ns/ev", "peak MiB");
        for report in REPORTS {
            measure(&file, report, events);
        }
    }
}

fn traces() -> Vec<PathBuf> {
    if let Some(files) = std::env::var_os("KMT_BENCH_TRACES") {
        return std::env::split_paths(&files).collect();
    }
    let output = std::env::temp_dir().join(format!("kmt-bench-{}.kmt", std::process::id()));
    let options = kmt_capture::convert::Options {
        input: Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1"),
        output: output.clone(),
        force: true,
        compression: kmt_format::Compression::None,
        symbols: kmt_capture::record::Symbols::Used,
        verbatim: false,
        quiet: true,
        instance: None,
        boot: None,
        survivors: None,
        limits: kmt_capture::convert::Limits::default(),
    };
    kmt_capture::convert::convert(&options).expect("the sample can be converted");
    vec![output]
}

fn event_count(file: &Path) -> u64 {
    let output = program(&["info", "--json"], file).output().expect("kmt-analyze runs");
    let info: Value = serde_json::from_slice(&output.stdout).expect("info prints JSON");
    info["trace"]["events"].as_u64().expect("info counts events")
}

fn program(args: &[&str], file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
    command.args(args).arg(file).stderr(Stdio::null());
    command
}

fn measure(file: &Path, report: &[&str], events: u64) {
    // Once to warm the cache.
    let mut walls = Vec::new();
    let mut peak_kib = run(file, report);
    let before = children_cpu();
    for _ in 0..RUNS {
        let start = Instant::now();
        peak_kib = peak_kib.max(run(file, report));
        walls.push(start.elapsed());
    }
    let cpu = (children_cpu() - before) / RUNS;
    walls.sort_unstable();
    let each = |time: Duration| time.as_nanos() as f64 / events.max(1) as f64;
    let name = report.join(" ");
    let (wall, cpu, peak) = (each(walls[walls.len() / 2]), each(cpu), peak_kib as f64 / 1024.0);
    println!("{name:<40} {wall:>10.1} {cpu:>10.1} {peak:>10.0}");
}

/// Runs a report; returns its largest resident set in KiB, as far as looking once a millisecond finds it.
fn run(file: &Path, report: &[&str]) -> u64 {
    let mut child = program(report, file).stdout(Stdio::null()).spawn().expect("kmt-analyze runs");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        if child.try_wait().expect("kmt-analyze can be waited for").is_some() {
            return peak;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// CPU time of all children that have ended: fields 16 and 17 of /proc/self/stat, in hundredths of a second.
fn children_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
