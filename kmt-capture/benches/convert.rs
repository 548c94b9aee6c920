//! Cost of a conversion, start to end, by format of the input.
//!
//!     KMT_BENCH_INPUTS=raw/:trace.dat:perf.data:trace.txt cargo bench -p kmt-capture --bench convert
//!
//! Each input is converted ten times and the best time counts; one core works. Without inputs the captures of kmt-format's
//! tests are taken, which are too small to say much. For perf.data, `perf script` runs beside it where perf is there.
//! Results go to benches/record/.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kmt_capture::convert::{Options, convert};
use kmt_format::Compression;
use kmt_format::read::Trace;

fn main() {
    let output = std::env::temp_dir().join(format!("kmt-bench-{}.kmt", std::process::id()));
    println!("| input | events | ms | ns an event | events/s |\n|---|---|---|---|---|");
    for input in inputs() {
        let options = Options {
            input: input.clone(),
            output: output.clone(),
            force: true,
            compression: Compression::None,
            verbatim: false,
            quiet: true,
            symbols: kmt_capture::record::Symbols::Used,
            instance: None,
            boot: None,
            survivors: None,
            limits: kmt_capture::convert::Limits::default(),
        };
        let best = (0..10).map(|_| timed(|| drop(convert(&options)))).min().unwrap_or_default();
        let Ok(file) = std::fs::read(&output) else { continue };
        let events = Trace::open(&file).map_or(0, |t| t.event_count());
        row(&input.display().to_string(), events, best);
        let is_perf = std::fs::read(&input).is_ok_and(|b| b.starts_with(b"PERFILE2"));
        if is_perf {
            let script = || {
                let mut perf = Command::new("perf");
                perf.arg("script").arg("-i").arg(&input).stdout(Stdio::null()).stderr(Stdio::null());
                drop(perf.status());
            };
            row("  perf script", events, timed(script));
        }
    }
    let _ = std::fs::remove_file(output);
}

fn inputs() -> Vec<PathBuf> {
    if let Some(paths) = std::env::var_os("KMT_BENCH_INPUTS") {
        return std::env::split_paths(&paths).collect();
    }
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmt-format/tests/data/x86_64-6.1");
    vec![data.clone(), data.join("trace.txt")]
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn row(name: &str, events: u64, time: Duration) {
    let ns = time.as_nanos() as f64 / events.max(1) as f64;
    println!("| {name} | {events} | {:.1} | {ns:.1} | {:.0} |", time.as_secs_f64() * 1e3, 1e9 / ns);
}
