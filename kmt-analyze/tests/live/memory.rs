//! Leaks, pinned slabs and growth that were made on the running kernel, and workloads of the same shape without them.
//! Needs root and tracefs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::alone::Alone;
use crate::support::files::{Scratch, json, run, stdout};
use kmt_capture::record::{self, Options};
use kmt_format::read::Trace;
use serde_json::Value;

/// Until an instance of our own process is recording: how long a recording takes to begin depends on the machine.
fn wait_for_recording() {
    let own = format!("/kmt-{}-", std::process::id());
    let is_set = |path: &Path, file: &str| fs::read_to_string(path.join(file)).is_ok_and(|v| v.trim() != "0");
    let is_on = || {
        let places = ["/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"];
        let instances = places.into_iter().filter_map(|p| fs::read_dir(p).ok()).flatten().flatten();
        let mut ours = instances.map(|e| e.path()).filter(|p| p.to_string_lossy().contains(&own));
        // A new instance is on before the recorder turns it off, chooses events, and turns it on: in this order.
        ours.any(|p| is_set(&p, "events/enable") && is_set(&p, "tracing_on"))
    };
    let start = Instant::now();
    while !is_on() {
        assert!(start.elapsed() < Duration::from_secs(60), "no instance {own}* records");
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(200));
}

/// A file that is there while work goes on.
struct Working(PathBuf);

impl Drop for Working {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Name of the task that works.
pub const WORKER: &str = "kmt-worker";

/// Records while `work` runs on a thread of its own; what it returns is kept until the recording is over.
pub fn record<K: Send>(path: &Path, length: Duration, work: impl FnOnce() -> K + Send) {
    record_as(Options { duration: Some(length), ..options(path) }, work);
}

/// Records all of `work`.
fn record_whole(path: &Path, work: impl FnOnce() + Send) {
    let flag = path.with_extension("working");
    fs::write(&flag, "").unwrap();
    let working = Working(flag.clone());
    let script = format!("while [ -e {} ]; do sleep 0.1; done", flag.display());
    let command = ["sh", "-c", &script].map(OsString::from).to_vec();
    record_as(Options { command, ..options(path) }, || {
        let _working = working;
        work();
    });
}

/// Enough for a recorder that does not run for a second, on a machine that others use, too.
fn buffer_size() -> u64 {
    let cpus = thread::available_parallelism().map_or(1, usize::from) as u64;
    ((256 << 20) / cpus).clamp(16 << 20, 128 << 20)
}

pub fn options(path: &Path) -> Options {
    Options {
        output: Some(path.to_owned()),
        buffer_size: Some(buffer_size()),
        task_events: true,
        quiet: true,
        force: true,
        ..Options::default()
    }
}

pub fn record_as<K: Send>(options: Options, work: impl FnOnce() -> K + Send) {
    thread::scope(|scope| {
        let named = thread::Builder::new().name(WORKER.to_owned());
        let working = named
            .spawn_scoped(scope, || {
                wait_for_recording();
                work()
            })
            .unwrap();
        record::record(&options).unwrap();
        drop(working.join().unwrap());
    });
}

/// Calls `each` `count` times in equal steps of `length`.
pub fn paced(count: u32, length: Duration, mut each: impl FnMut(u32)) {
    let start = Instant::now();
    for number in 0..count {
        each(number);
        let due = start + length * (number + 1) / count;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Sockets that are closed at once, but for one pair in `keep`.
fn sockets(length: Duration, keep: Option<u32>) -> Vec<(UnixStream, UnixStream)> {
    let mut kept = Vec::new();
    paced(7_000, length, |number| {
        let pair = UnixStream::pair().unwrap();
        if keep.is_some_and(|k| number % k == 0) {
            kept.push(pair);
        }
    });
    kept
}

fn rows<'r>(report: &'r Value, verdict: &str) -> Vec<&'r Value> {
    let rows = report["leaks"]["callers"].as_array().unwrap();
    rows.iter().filter(|r| r["verdict"] == verdict).collect()
}

#[test]
#[ignore = "what else the machine does decides, too: .ci/nightly runs it, up to three times"]
fn a_leak_is_found_first_and_nothing_where_there_is_none() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    let length = Duration::from_millis(3_500);
    let leaky = scratch.0.join("leak.kmt");
    record(&leaky, Duration::from_millis(2_500), || sockets(length, Some(20)));
    let report = json(&["leaks", "--json"], &leaky);
    let growing = rows(&report, "grows");
    let first = growing.first().unwrap_or_else(|| panic!("no leak found: {report:#}"));
    let name = first["symbol"].as_str().unwrap();
    let own = ["sk_prot_alloc", "sock_alloc_inode", "alloc_empty_file", "__alloc_file"];
    assert!(own.iter().any(|o| name.starts_with(o)), "{name} is not of the sockets");
    // One finding for inode, dentry, file and socket, and who made them; without what others left there.
    let theirs = json(&["leaks", "--json", "--comm", WORKER], &leaky);
    let family = &theirs["leaks"]["families"][0];
    assert!(family["call_sites"].as_u64().unwrap() >= 4, "{theirs:#}");
    let of_theirs =
        |cache: &str| theirs["leaks"]["callers"].as_array().unwrap().iter().find(|r| r["cache"] == cache);
    let dentry = of_theirs("dentry").unwrap_or_else(|| panic!("{theirs:#}"));
    assert_eq!(dentry["family"], 0, "what the sockets pin is theirs: {theirs:#}");
    assert!(dentry["holders"][0]["task"].as_str().unwrap().starts_with(WORKER), "{}", dentry["holders"]);
    // One pair in twenty stays, of two sockets each.
    let (old, births) =
        (first["old_survivors"].as_u64().unwrap(), first["allocations_of_that_age"].as_u64().unwrap());
    assert!(old * 100 >= births * 4 && old * 100 <= births * 6, "{old} of {births}");
    let leaked = first["old_bytes"].as_u64().unwrap();

    let clean = scratch.0.join("clean.kmt");
    record(&clean, Duration::from_millis(2_500), || sockets(length, None));
    let report = json(&["leaks", "--json"], &clean);
    for row in rows(&report, "grows") {
        let name = row["symbol"].as_str().unwrap();
        assert!(!own.iter().any(|o| name.starts_with(o)), "{row:#}");
        // Something else may grow on a machine in use; next to the leak it is nothing.
        assert!(row["old_bytes"].as_u64().unwrap() * 20 < leaked, "{row:#}");
    }
    let short = json(&["leaks", "--json", "--time", "+0..+0.5"], &clean);
    assert!(short["leaks"]["refused"].as_str().unwrap().contains("too short"), "{short:#}");
}

#[test]
fn a_cache_that_fills_is_called_warming() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    let (path, names) = (scratch.0.join("warm.kmt"), scratch.0.clone());
    let (made, task) = (AtomicU32::new(0), AtomicU32::new(0));
    record(&path, Duration::from_millis(2_500), || {
        // Names that are not there, new ones in the first third of the time only: the kernel remembers each.
        let start = Instant::now();
        task.store(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), Relaxed);
        paced(9_000, Duration::from_millis(3_000), |number| {
            let is_new = start.elapsed() < Duration::from_millis(1_000);
            let name =
                if is_new { made.swap(number + 1, Relaxed) } else { number % made.load(Relaxed).max(1) };
            let _ = fs::metadata(names.join(format!("none-{name}")));
        });
    });
    // Other tasks' names, and how long they are kept, are not its business.
    let pid = task.load(Relaxed).to_string();
    let report = json(&["leaks", "--json", "--pid", &pid], &path);
    let dentries = |r: &&&Value| r["symbol"].as_str().unwrap().starts_with("__d_alloc");
    let warming = rows(&report, "warming");
    let found = warming.iter().find(dentries).unwrap_or_else(|| panic!("{report:#}"));
    // The recording may begin a little later than they are made.
    let (survivors, made) = (found["survivors"].as_u64().unwrap(), u64::from(made.load(Relaxed)));
    assert!(made > 500 && survivors * 3 > made * 2, "{survivors} of {made}: {found:#}");
}

/// Files that are made at once and then removed, but for one in `keep`.
pub fn files(dir: &Path, count: u32, keep: Option<u32>) {
    fs::create_dir_all(dir).unwrap();
    for number in 0..count {
        fs::write(dir.join(number.to_string()), b"").unwrap();
    }
    for number in 0..count {
        if keep.is_none_or(|k| number % k != 0) {
            fs::remove_file(dir.join(number.to_string())).unwrap();
        }
    }
}

/// Inodes in use, of all file systems.
fn inodes() -> i64 {
    let caches = slabinfo(&fs::read("/proc/slabinfo").unwrap());
    caches.iter().filter(|(name, _)| name.contains("inode_cache")).map(|(_, (active, _))| active).sum()
}

#[test]
#[ignore = "what else the machine does decides, too: .ci/nightly runs it, up to three times"]
fn pinned_slabs_are_found_with_who_pins_them() {
    let Some(_alone) = Alone::or_skip() else { return };
    let shm = Path::new("/dev/shm");
    let scratch = Scratch::new();
    let dir = if shm.is_dir() { shm.join(scratch.0.file_name().unwrap()) } else { scratch.0.join("files") };
    let pinned = |name: &str, keep| {
        let path = scratch.0.join(name);
        record_whole(&path, || {
            let before = inodes();
            files(&dir, 12_000, keep);
            // Inodes are freed after a grace period, which takes seconds where callbacks are lazy (CONFIG_RCU_LAZY).
            let start = Instant::now();
            while inodes() > before + 1_500 && start.elapsed() < Duration::from_secs(15) {
                thread::sleep(Duration::from_millis(100));
            }
            thread::sleep(Duration::from_millis(500));
        });
        let report = json(&["fragmentation", "--json"], &path);
        let _ = fs::remove_dir_all(&dir);
        // The next snapshot is not to fall into a grace period.
        thread::sleep(Duration::from_secs(1));
        let pins = report["fragmentation"]["occupancy"]["pinned_by"].clone();
        assert!(
            pins.is_array(),
            "{}: {:#}",
            stdout(&run(&["info"], &path)),
            report["fragmentation"]["occupancy"]
        );
        (path, pins)
    };
    let (path, pins) = pinned("pin.kmt", Some(40));
    let first = &pins[0];
    assert_eq!(first["is_pinner"], true, "{pins:#}");
    assert!(first["symbol"].as_str().unwrap().contains("inode"), "{pins:#}");
    // 300 files are left; each holds a slab of its own, nearly.
    assert!(first["sparse_slabs"].as_f64().unwrap() > 200.0, "{pins:#}");
    agrees_with_slabinfo(&path, 512);
    let (path, pins) = pinned("unpinned.kmt", None);
    let pinners: Vec<&Value> = pins.as_array().unwrap().iter().filter(|p| p["is_pinner"] == true).collect();
    assert!(pinners.is_empty(), "{pinners:#?}");
    agrees_with_slabinfo(&path, 512);
}

/// Columns of /proc/slabinfo: objects in use, pages of all slabs.
fn slabinfo(text: &[u8]) -> BTreeMap<String, (i64, i64)> {
    let text = String::from_utf8_lossy(text);
    let mut out: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for line in text.lines().filter(|l| !l.starts_with('#') && l.contains(" : slabdata ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let slabs: i64 = words[words.iter().position(|w| *w == "slabdata").unwrap() + 2].parse().unwrap();
        let number = |at: usize| words[at].parse::<i64>().unwrap();
        let sums = out.entry(family(words[0])).or_default();
        *sums = (sums.0 + number(1), sums.1 + slabs * number(5));
    }
    out
}

/// kmalloc has several caches of each size (kmalloc-cg, -rcl, -dma, -rnd), and events do not tell which.
fn family(name: &str) -> String {
    let Some(rest) = name.strip_prefix("kmalloc-") else { return name.to_owned() };
    let size = rest.rsplit('-').next().unwrap();
    match size.strip_suffix('k').and_then(|k| k.parse::<u64>().ok()) {
        Some(k) => format!("kmalloc-{}", k * 1024),
        None => format!("kmalloc-{size}"),
    }
}

/// Per cache: slab pages born less died are the change of num_slabs x pagesperslab, and live objects are at most
/// active_objs.
///
/// The tolerance: the snapshots are taken before the trace begins and after it ends, and reading them, starting the
/// recording and whatever else runs in between allocates, too; slabs of objects that are allocated in bulk only
/// (`kmem_cache_alloc_bulk` has no event) are not seen to be slabs; and caches that no event names are none of
/// slabinfo's. So a cache may be off by `slack` pages or a tenth of what came and went, and all caches together by a
/// quarter of that: 64 pages, 8 slabs of 8, for captures of a guest that did nothing else, 512 on a machine in use.
/// Objects without a free event seem live, so that only caches are held to be a lower bound
/// whose frees are seen.
fn agrees_with_slabinfo(path: &Path, slack: i64) -> (i64, i64) {
    let bytes = fs::read(path).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let snapshot = |name| slabinfo(trace.metadata().attachment(name).unwrap());
    let (before, after) = (snapshot("slabinfo.before"), snapshot("slabinfo.after"));
    let report = json(&["fragmentation", "--json"], path);
    let occupancy = &report["fragmentation"]["occupancy"];
    assert!(occupancy["direct_map_votes_percent"].as_f64().unwrap() > 50.0);
    let caches = json(&["caches", "--json"], path);
    let unseen: BTreeMap<&str, u64> = caches["caches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["cache"].as_str().unwrap(), c["freed_unseen"].as_u64().unwrap()))
        .collect();
    let (mut moved, mut apart) = (0, 0);
    for cache in occupancy["caches"].as_array().unwrap() {
        let name = cache["cache"].as_str().unwrap();
        let number = |key: &str| cache[key].as_i64().unwrap();
        let Some(&(active, pages)) = after.get(name) else { continue };
        let came = number("pages_born");
        let went = number("pages_died") + number("older_pages_died");
        let kernel = pages - before.get(name).map_or(0, |b| b.1);
        let off = (kernel - (came - went)).abs();
        assert!(
            off <= slack.max((came + went) / 10),
            "{name}: {came} - {went} pages, the kernel has {kernel}"
        );
        (moved, apart) = (moved + came + went, apart + off);
        if unseen.get(name) == Some(&0) {
            assert!(number("objects") <= active, "{name}: {} live, {active} active", number("objects"));
        }
    }
    println!("{}: {moved} slab pages came or went, {apart} of them not as slabinfo says", path.display());
    assert!(apart * 4 <= moved + 4 * slack, "{apart} of {moved}");
    (moved, apart)
}

/// Where the direct map begins is known: on s390x at 0, on 32-bit ARM its first frame (/proc/zoneinfo) is mapped at
/// PAGE_OFFSET, 0xc0000000, and on x86-64 it is somewhere at a multiple of 1 GiB (arch/x86/mm/kaslr.c).
fn direct_map_is_right(capture: &Path, file: &Path) {
    let trust = json(&["summary", "--json"], file)["trust"].clone();
    let base = trust["direct_map_base"].as_str().unwrap_or_else(|| panic!("{}: refused", capture.display()));
    let base = u64::from_str_radix(base.trim_start_matches("0x"), 16).unwrap();
    let zoneinfo = fs::read_to_string(capture.join("zoneinfo.before")).unwrap_or_default();
    let first =
        zoneinfo.lines().find_map(|l| l.trim().strip_prefix("start_pfn:")).map(|n| n.trim().parse::<u64>());
    match capture.file_name().unwrap().to_str().unwrap().split('-').next().unwrap() {
        "s390x" => assert_eq!(base, 0),
        "armhf" => assert_eq!(base + first.unwrap().unwrap() * 4096, 0xc000_0000),
        _ => assert!(base % (1 << 30) == 0 && base >> 56 == 0xff, "{}: {base:#x}", capture.display()),
    }
}

/// The same for captures that have both snapshots and lost nothing.
#[test]
#[ignore = "KMT_RAW_CAPTURES names a folder of captures"]
fn occupancy_agrees_with_slabinfo_of_captures() {
    let dir = std::env::var_os("KMT_RAW_CAPTURES").expect("KMT_RAW_CAPTURES names a folder of captures");
    let scratch = Scratch::new();
    let mut compared = 0;
    for capture in fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()) {
        if capture.join("tracefs").is_dir() {
            direct_map_is_right(&capture, &scratch.convert(&capture));
        }
        let is_whole = capture.join("slabinfo.before").exists() && !capture.join("tracefs-full").exists();
        // Between the end of that trace and its snapshot files were removed, and their buffer heads.
        if is_whole && !capture.ends_with("x86_64-6.1-graph") {
            agrees_with_slabinfo(&scratch.convert(&capture), 64);
            compared += 1;
        }
    }
    assert!(compared > 0, "{dir:?} has no capture with /proc/slabinfo");
}

#[test]
#[ignore = "what else the machine does decides, too: .ci/nightly runs it, up to three times"]
fn a_growth_of_five_percent_is_found_and_noise_is_not() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    let work = |name: &str, sockets: u32, keep: bool| {
        let path = scratch.0.join(name);
        let kept = Mutex::new(Vec::new());
        record_whole(&path, || {
            paced(400, Duration::from_millis(2_800), |step| {
                (0..50).for_each(|_| drop(fs::File::open("/dev/null").unwrap()));
                for number in step * sockets / 400..(step + 1) * sockets / 400 {
                    let pair = UnixStream::pair().unwrap();
                    if keep && number % 80 == 0 {
                        kept.lock().unwrap().push(pair);
                    }
                }
            });
        });
        path
    };
    let (a, same) = (work("a.kmt", 20_000, false), work("same.kmt", 20_000, false));
    let (more, again) = (work("more.kmt", 21_000, false), work("again.kmt", 21_000, false));
    let leak = work("leak.kmt", 20_000, true);
    let repeat_before = ["--repeat-before", same.to_str().unwrap()];
    // A virtual machine that is not given its CPUs for 50 ms at a time makes parts of one run differ by more than five
    // percent, in which case nothing can be told from one run; so runs are repeated.
    let repeat_both = [&repeat_before[..], &["--repeat-after", again.to_str().unwrap()]].concat();
    let diff = |other: &Path, extra: &[&str]| {
        // What else runs on the machine differs from run to run.
        let mut args = vec!["diff", "--json", "--comm", WORKER];
        args.extend(extra);
        args.push(a.to_str().unwrap());
        (json(&args, other)["diff"].clone(), run(&args, other).status.code())
    };
    let real = |report: &Value| -> Vec<(String, f64)> {
        let rows = report["rows"].as_array().unwrap().iter();
        let real = rows.filter(|r| r["bytes_alloc"]["is_real"] == true || r["bytes_live"]["is_real"] == true);
        let real = real.filter(|r| r["kind"] != "pages");
        real.map(|r| {
            let d = &r["bytes_alloc"];
            (
                r["name"].as_str().unwrap().to_owned(),
                d["change"].as_f64().unwrap() / d["before"].as_f64().unwrap(),
            )
        })
        .collect()
    };
    assert!(real(&diff(&same, &[]).0).is_empty(), "{:?}", real(&diff(&same, &[]).0));
    let found = real(&diff(&more, &repeat_both).0);
    assert!(
        found.iter().any(|(name, share)| name.starts_with("sk_prot_alloc") && (0.04..0.06).contains(share)),
        "{found:?}"
    );
    // Nothing else: each socket has an inode, a dentry, a file, and what security modules keep of them.
    let own = [
        "sk_prot_alloc",
        "sock_alloc_inode",
        "__d_alloc",
        "alloc_empty_file",
        "__alloc_file",
        "security_",
        "lsm_",
        "selinux_",
        "apparmor_",
        "alloc_slab_obj_exts",
    ];
    assert!(found.iter().all(|(name, _)| own.iter().any(|o| name.starts_with(o))), "{found:?}");
    // What stays is told, and fails a budget.
    let fails_over = |bytes| diff(&leak, &[&repeat_before[..], &["--fail-over", bytes]].concat());
    let (report, code) = fails_over("100000");
    assert!(report["live_growth_beyond_noise"].as_f64().unwrap() > 200_000.0, "{report:#}");
    assert_eq!(code, Some(1));
    assert_eq!(fails_over("100000000").1, Some(0));
    assert_eq!(diff(&same, &["--fail-over", "100000"]).1, Some(0));
    // Two windows of one file: the second half of the leak has what the first one left, and its own.
    let windows = ["diff", "--time", "+0..+1.7", "--against", "+1.7..+3.4", "--comm", WORKER];
    let text = stdout(&run(&windows, &leak));
    assert!(text.contains("sk_prot_alloc"), "{text}");
}
