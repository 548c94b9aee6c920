//! Recording for a growth: events, filters of the kernel, stacks, and the time that a verdict needs.
//!
//! Frees are filtered by the name of their cache at most: any other may end the life of an object, and an allocation without
//! its free would seem a leak.

use std::path::Path;

use kmt_common::text::escaped;
use kmt_common::watch::{Finding, Kind};

use crate::tracefs::{Event, TraceDir};

/// Objects that a recording should have, of those that grow.
const OBJECTS: f64 = 200.0;
/// Shortest and longest recording in seconds.
const SECONDS: (u64, u64) = (60, 1800);

/// Events that the running kernel has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Available {
    /// kmem_cache_alloc and kmem_cache_free have the name of the cache.
    pub cache_names: bool,
    /// Events of percpu.
    pub percpu: bool,
    /// Events of vmalloc.
    pub vmalloc: bool,
}

impl Available {
    /// Those of a tracefs.
    pub fn of(top: &TraceDir) -> Self {
        let has = |system: &str, name: &str| top.has(&Event::new(system, name).file("enable"));
        let has_name = |name: &str| {
            top.read(&Event::new("kmem", name).file("format")).is_some_and(|text| text.contains(" name;"))
        };
        Self {
            cache_names: has_name("kmem_cache_alloc") && has_name("kmem_cache_free"),
            percpu: has("percpu", "percpu_alloc_percpu"),
            vmalloc: has("vmalloc", "alloc_vmap_area"),
        }
    }
}

/// A recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Events, with filters.
    events: Vec<String>,
    /// Events whose stacks are recorded, with filters.
    stacks: Vec<String>,
    /// Length of the recording.
    pub seconds: u64,
    /// True if a signal asks for it, and no growth.
    pub is_asked: bool,
    /// Name of what grows.
    pub what: String,
    /// The growth in words, for the file.
    pub finding: String,
    /// The report of `kmt-analyze` that shows who allocates it, with options.
    pub report: &'static str,
}

/// Report on slab objects and pages.
const LEAKS: &str = "leaks";
const CACHE_FREE: &str = "kmem:kmem_cache_free";
/// Frees of slab objects, and the pages that end their lives.
const SLAB_FREES: [&str; 4] = ["kmem:kfree", CACHE_FREE, "kmem:mm_page_alloc", "kmem:mm_page_free"];
/// Pages that the kernel uses itself are not movable (MIGRATE_MOVABLE, include/linux/mmzone.h).
const KERNEL_PAGES: &str = "kmem:mm_page_alloc if migratetype != 1";

impl Plan {
    /// The recording for a growth.
    pub fn of(finding: &Finding, has: Available) -> Self {
        let report = match finding.kind {
            Kind::Percpu if has.percpu => "percpu --sort live",
            Kind::Vmalloc | Kind::KernelStacks if has.vmalloc => "vmalloc --sort live",
            _ => LEAKS,
        };
        Self { what: name(finding.kind, &finding.name), report, ..Self::of_kind(finding, has) }
    }

    fn of_kind(finding: &Finding, has: Available) -> Self {
        let size = f64::from(finding.object_size.max(1));
        let (allocations, frees, size): (Vec<String>, &[&str], f64) = match finding.kind {
            Kind::Cache => return Self::of_cache(finding, has, size),
            Kind::SlabUnreclaimable => {
                (vec!["kmem:kmalloc*".to_owned(), "kmem:kmem_cache_alloc*".to_owned()], &SLAB_FREES, 16384.0)
            }
            Kind::Percpu if has.percpu => {
                (vec!["percpu:percpu_alloc_percpu".to_owned()], &["percpu:percpu_free_percpu"], 64.0)
            }
            Kind::Vmalloc | Kind::KernelStacks if has.vmalloc => (
                vec!["vmalloc:alloc_vmap_area".to_owned(), KERNEL_PAGES.to_owned()],
                &["vmalloc:free_vmap_area_noflush", "kmem:mm_page_free"],
                16384.0,
            ),
            // Pages of page tables have order 0.
            Kind::PageTables => {
                (vec![format!("{KERNEL_PAGES} && order == 0")], &["kmem:mm_page_free"], 4096.0)
            }
            _ => (vec![KERNEL_PAGES.to_owned()], &["kmem:mm_page_free"], 4096.0),
        };
        let frees = frees.iter().map(|free| (*free).to_owned()).collect();
        Self::with(allocations, frees, seconds(size, finding.growth.bytes_per_second))
    }

    fn with(allocations: Vec<String>, frees: Vec<String>, seconds: u64) -> Self {
        let events = allocations.iter().cloned().chain(frees).collect();
        Self {
            events,
            stacks: allocations,
            seconds,
            is_asked: false,
            what: String::new(),
            finding: String::new(),
            report: LEAKS,
        }
    }

    /// Allocations of one cache: by its name where events have it, else by size. Caches of kmalloc have several names
    /// (kmalloc-96, kmalloc-cg-96, msg_msg-96), events without them, and other caches may be merged with them.
    fn of_cache(finding: &Finding, has: Available, size: f64) -> Self {
        let (name, bytes) = (&finding.name, finding.object_size);
        let seconds = seconds(size, finding.growth.bytes_per_second);
        let frees = SLAB_FREES.map(str::to_owned).to_vec();
        if is_of_kmalloc(name) {
            let of_size = |event: &str| format!("kmem:{event}* if bytes_alloc == {bytes}");
            return Self::with(["kmalloc", "kmem_cache_alloc"].map(of_size).to_vec(), frees, seconds);
        }
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:.".contains(&byte));
        if !has.cache_names || !is_plain {
            let of_size = format!("kmem:kmem_cache_alloc* if bytes_alloc == {bytes}");
            return Self::with(vec![of_size], frees, seconds);
        }
        // An object of a cache may be freed by kfree, whose events have no name.
        let of_name = |event: &str| format!("kmem:{event} if name == \"{name}\"");
        let named = |free: String| if free == CACHE_FREE { of_name("kmem_cache_free") } else { free };
        Self::with(vec![of_name("kmem_cache_alloc*")], frees.into_iter().map(named).collect(), seconds)
    }

    /// The recording that SIGUSR1 asks for: all slab memory.
    pub fn all() -> Self {
        let allocations = ["kmem:kmalloc*", "kmem:kmem_cache_alloc*"].map(str::to_owned);
        let events = allocations.iter().cloned().chain(SLAB_FREES.map(str::to_owned));
        Self {
            events: events.collect(),
            stacks: allocations.to_vec(),
            seconds: SECONDS.0,
            is_asked: true,
            what: "slab memory".to_owned(),
            finding: "recorded by SIGUSR1\n".to_owned(),
            report: LEAKS,
        }
    }

    /// Arguments of `kmt-capture`.
    pub fn arguments(&self, output: &Path, max_size: u64, tracefs: Option<&Path>) -> Vec<std::ffi::OsString> {
        let mut out: Vec<std::ffi::OsString> =
            ["record", "--quiet", "--survivors", "-o"].map(Into::into).into();
        out.push(output.into());
        out.extend(["-d".into(), format!("{}s", self.seconds).into()]);
        out.extend(["--max-size".into(), max_size.to_string().into()]);
        self.events.iter().for_each(|event| out.extend(["-e".into(), event.into()]));
        self.stacks.iter().for_each(|event| out.extend(["--stack".into(), event.into()]));
        if let Some(tracefs) = tracefs {
            out.extend(["--tracefs".into(), tracefs.into()]);
        }
        out
    }
}

/// Name of what grows.
pub fn name(kind: Kind, cache: &str) -> String {
    match cache.is_empty() {
        true => kind.name().to_owned(),
        false => format!("{} {}", kind.name(), escaped(cache.as_bytes())),
    }
}

/// True for a cache of kmalloc: its name has `kmalloc`, or ends in a size class (`msg_msg-96`, `memdup_user-8k`).
fn is_of_kmalloc(name: &str) -> bool {
    let class = name.rsplit_once('-').map_or("", |(_, class)| class);
    let digits = class.trim_end_matches(['k', 'M']);
    name.contains("kmalloc-") || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Time for [`OBJECTS`] objects of a size, at a rate.
fn seconds(size: f64, bytes_per_second: f64) -> u64 {
    let needed = OBJECTS * size / bytes_per_second.max(1.0);
    (needed.ceil() as u64).clamp(SECONDS.0, SECONDS.1)
}

#[cfg(test)]
mod tests {
    use kmt_common::watch::{Sample, Value, Watcher};

    use super::*;

    const ALL: Available = Available { cache_names: true, percpu: true, vmalloc: true };

    /// Growth of a series by 8 KiB/s.
    fn finding(kind: Kind, name: &'static str) -> Finding {
        let mut watcher = Watcher::default();
        let samples = (0..400u32).map(|step| {
            let value = Value { kind, name, kib: 10_000 + 80 * i64::from(step), object_size: 96 };
            Sample { time: 3600 + 10 * u64::from(step), memory_kib: 1 << 20, values: vec![value] }
        });
        let mut found = samples.flat_map(|sample| watcher.take(&sample, |_| true));
        found.next().unwrap()
    }

    #[test]
    fn filters_narrow_allocations_and_no_frees() {
        let events = |kind, name, has| Plan::of(&finding(kind, name), has).events;
        let filp = events(Kind::Cache, "filp", ALL);
        let of_filp = ["kmem:kmem_cache_alloc* if name == \"filp\"", "kmem:kfree"];
        assert_eq!(filp[..2], of_filp);
        assert_eq!(filp[2], "kmem:kmem_cache_free if name == \"filp\"");
        let old = Available { cache_names: false, ..ALL };
        assert_eq!(events(Kind::Cache, "filp", old)[0], "kmem:kmem_cache_alloc* if bytes_alloc == 96");
        assert_eq!(events(Kind::Cache, "filp", old)[2], "kmem:kmem_cache_free");
        assert_eq!(events(Kind::Cache, "a\"b", ALL)[0], "kmem:kmem_cache_alloc* if bytes_alloc == 96");
        for name in ["kmalloc-cg-96", "dma-kmalloc-96", "msg_msg-96"] {
            let events = events(Kind::Cache, name, ALL);
            let both = ["kmem:kmalloc* if bytes_alloc == 96", "kmem:kmem_cache_alloc* if bytes_alloc == 96"];
            assert_eq!(events[..2], both, "{name}");
        }
        let tables = events(Kind::PageTables, "", ALL);
        assert_eq!(tables[0], "kmem:mm_page_alloc if migratetype != 1 && order == 0");
        assert_eq!(events(Kind::Percpu, "", ALL)[0], "percpu:percpu_alloc_percpu");
        let bare = Available { percpu: false, vmalloc: false, ..ALL };
        for kind in [Kind::Percpu, Kind::Vmalloc, Kind::NoAccount] {
            assert_eq!(events(kind, "", bare), [KERNEL_PAGES, "kmem:mm_page_free"], "{kind:?}");
        }
        for (kind, has) in [
            (Kind::Cache, old),
            (Kind::SlabUnreclaimable, ALL),
            (Kind::Vmalloc, ALL),
            (Kind::KernelStacks, ALL),
        ] {
            let frees: Vec<_> =
                events(kind, "x", has).into_iter().filter(|event| event.contains("free")).collect();
            assert!(!frees.is_empty() && frees.iter().all(|event| !event.contains(" if ")), "{frees:?}");
        }
    }

    #[test]
    fn each_kind_has_the_report_that_shows_who_allocates_it() {
        let report = |kind, name, has| Plan::of(&finding(kind, name), has).report;
        assert_eq!(report(Kind::Vmalloc, "", ALL), "vmalloc --sort live");
        assert_eq!(report(Kind::KernelStacks, "", ALL), "vmalloc --sort live");
        assert_eq!(report(Kind::Percpu, "", ALL), "percpu --sort live");
        let bare = Available { percpu: false, vmalloc: false, ..ALL };
        for kind in [Kind::Percpu, Kind::Vmalloc, Kind::NoAccount, Kind::PageTables] {
            assert_eq!(report(kind, "", bare), "leaks", "{kind:?}: pages");
        }
        let plan = Plan::of(&finding(Kind::Cache, "filp"), ALL);
        assert_eq!((plan.report, plan.what.as_str(), plan.is_asked), ("leaks", "slab cache filp", false));
    }

    #[test]
    fn length_follows_the_rate() {
        assert_eq!(seconds(64.0, 4096.0), 60);
        assert_eq!(seconds(4096.0, 4096.0), 200);
        assert_eq!(seconds(16384.0, 1024.0), 1800);
    }

    #[test]
    fn arguments_are_those_of_record() {
        let line = Plan::all().arguments(Path::new("a-1.kmt"), 4096, Some(Path::new("/t")));
        let line: Vec<_> = line.iter().filter_map(|word| word.to_str()).collect();
        let begin =
            ["record", "--quiet", "--survivors", "-o", "a-1.kmt", "-d", "60s", "--max-size", "4096", "-e"];
        assert!(line.starts_with(&begin), "{line:?}");
        assert!(line.ends_with(&["--stack", "kmem:kmem_cache_alloc*", "--tracefs", "/t"]), "{line:?}");
    }
}
