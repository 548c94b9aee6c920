//! `anomalies`: which repeated frees without an allocation event may be double frees, on traces made for it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use kmt_format::raw::ChunkKind;
use kmt_format::read::Trace as Reader;
use serde_json::Value;

use crate::model::Crafted;
use crate::support::files::{Scratch, at, convert, json, run, stdout};
use crate::support::model::{Event, What};

/// Text of a trace; each event is 10 us after the one before.
struct Trace {
    text: String,
    time: u64,
}

impl Trace {
    /// With one object of each interface, so that all events occur.
    fn new() -> Self {
        let mut trace = Self { text: String::new(), time: 1_000_000 };
        trace.alloc(800).kfree("turnover", 800);
        trace.event(&format!(
            "kmem_cache_alloc: call_site=maker+0x20/0x40 ptr={:016x} bytes_req=64 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1 accounted=false",
            address(801)
        ));
        trace.cache_free("turnover", "a_cache", 801);
        trace
    }

    fn event(&mut self, text: &str) -> &mut Self {
        self.time += 10;
        let (seconds, rest) = (self.time / 1_000_000, self.time % 1_000_000);
        writeln!(self.text, "            task-77     [000] .....     {seconds}.{rest:06}: {text}").unwrap();
        self
    }

    fn alloc(&mut self, object: u64) -> &mut Self {
        self.event(&format!(
            "kmalloc: call_site=maker+0x10/0x40 ptr={:016x} bytes_req=64 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1 accounted=false",
            address(object)
        ))
    }

    fn kfree(&mut self, site: &str, object: u64) -> &mut Self {
        self.event(&format!("kfree: call_site={site}+0x1/0x20 ptr={:016x}", address(object)))
    }

    fn cache_free(&mut self, site: &str, cache: &str, object: u64) -> &mut Self {
        let ptr = address(object);
        self.event(&format!("kmem_cache_free: call_site={site}+0x1/0x20 ptr={ptr:016x} name={cache}"))
    }

    /// Page of an object.
    fn page(&mut self, event: &str, object: u64) -> &mut Self {
        let pfn = (address(object) - BASE) >> 12;
        let rest = if event == "mm_page_alloc" { " migratetype=0 gfp_flags=GFP_KERNEL" } else { "" };
        self.event(&format!("{event}: page=0000000012345678 pfn={pfn:#x} order=0{rest}"))
    }

    /// Slab pages whose first object follows: they show the base of the direct map.
    fn direct_map(&mut self) -> &mut Self {
        for object in 900..906 {
            self.page("mm_page_alloc", object).alloc(object);
        }
        self
    }

    fn converted(&self, scratch: &Scratch) -> PathBuf {
        let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
        fs::write(&input, &self.text).unwrap();
        let _ = fs::remove_file(&output);
        convert(&input, &output, None).unwrap();
        output
    }

    /// The kind of repeated frees, and the screen.
    fn found(&self) -> (Value, String) {
        let scratch = Scratch::new();
        let file = self.converted(&scratch);
        let report = json(&["anomalies", "--json"], &file);
        let kinds = at(&report, "/anomalies").as_array().unwrap();
        let kind = kinds.iter().find(|kind| kind["kind"] == "freed_again_or_born_unseen").unwrap();
        (kind.clone(), stdout(&run(&["anomalies", "--wide"], &file)))
    }

    /// Number of repeated frees, and of those that may be double frees.
    fn counts(&self) -> [u64; 2] {
        let (kind, screen) = self.found();
        let counts = ["/count", "/suspect"].map(|key| at(&kind, key).as_u64().unwrap());
        assert_eq!(screen.contains("possible double free)"), counts[1] > 0, "{screen}");
        counts
    }
}

const BASE: u64 = 0xffff_8881_0000_0000;

/// Objects have a page each.
fn address(object: u64) -> u64 {
    BASE + (object << 12)
}

/// 14 objects of one slab, each freed three times, without one allocation.
fn unseen_task() -> Trace {
    let mut trace = Trace::new();
    for _ in 0..3 {
        for object in 0..14 {
            trace.kfree("release_data", object);
        }
    }
    trace
}

#[test]
fn frees_of_a_task_without_events_are_no_double_frees() {
    let (kind, screen) = unseen_task().found();
    assert_eq!((at(&kind, "/count").as_u64(), at(&kind, "/suspect").as_u64()), (Some(28), Some(0)));
    assert!(screen.starts_with("No sign of a kernel bug."), "{screen}");
    let verdict = "frees again without an allocation event     28  allocated without an event";
    assert!(screen.contains(verdict), "{screen}");
    let detail = at(&kind, "/rows/0/detail").as_str().unwrap();
    assert!(detail.starts_with("28 after a free without a traced allocation"), "{detail}");
}

#[test]
fn a_double_free_beside_them_is_found() {
    let mut trace = unseen_task();
    trace.alloc(50).kfree("broken_driver", 50).kfree("broken_driver", 50);
    assert_eq!(trace.counts(), [29, 1]);
    let (kind, screen) = trace.found();
    // The site that may have a bug is first, though it has fewer.
    assert!(at(&kind, "/rows/0/freed_by/symbol").as_str().unwrap().starts_with("broken_driver"), "{kind:#}");
    assert_eq!([0, 1].map(|row| at(&kind, &format!("/rows/{row}/suspect")).as_u64()), [Some(1), Some(0)]);
    let answer =
        "1 free again without an allocation event (possible double free), 1 of them by broken_driver.";
    assert!(screen.starts_with(answer), "{screen}");
    assert!(screen.contains("     29  possible double free: 1\n"), "{screen}");
    let first = at(&kind, "/rows/0/first/ptr").as_str().unwrap();
    assert_eq!(first, format!("{:#x}", address(50)));
    assert!(screen.contains(&format!("The first possible double free is that of {:x}, at ", address(50))));
    assert!(kind["rows"][1].get("first").is_none(), "its frees have another cause");
}

/// A site that may have a bug is shown, however many others there are.
#[test]
fn a_double_free_is_not_cut_off_by_the_limit_of_rows() {
    let mut trace = Trace::new();
    trace.alloc(50).kfree("broken_driver", 50).kfree("broken_driver", 50);
    for site in 0..25 {
        for _ in 0..3 {
            for object in 0..2 {
                trace.kfree(&format!("release_{site}"), 1_000 + site * 2 + object);
            }
        }
    }
    let (kind, screen) = trace.found();
    assert_eq!((at(&kind, "/rows_total").as_u64(), at(&kind, "/suspect").as_u64()), (Some(26), Some(1)));
    assert!(screen.lines().take(3).any(|line| line.contains("broken_driver")), "{screen}");
}

#[test]
fn unseen_allocations_explain_as_many_frees_as_they_show() {
    // Three frees after matched ones, two after unmatched ones: two of the three are explained.
    let mut trace = Trace::new();
    for object in 0..3 {
        trace.alloc(object).kfree("site", object).kfree("site", object);
    }
    trace.kfree("site", 9).kfree("site", 9).kfree("site", 9);
    assert_eq!(trace.counts(), [5, 1]);
    // The same at different sites: the one explains nothing of the other.
    let mut trace = Trace::new();
    for object in 0..3 {
        trace.alloc(object).kfree("site", object).kfree("site", object);
    }
    trace.kfree("other", 9).kfree("other", 9).kfree("other", 9);
    assert_eq!(trace.counts(), [5, 3]);
}

#[test]
fn a_page_that_was_allocated_since_proves_an_unseen_allocation() {
    let mut trace = Trace::new();
    trace.direct_map();
    trace.alloc(20).kfree("site", 20).kfree("site", 20);
    assert_eq!(trace.counts(), [1, 1], "without a proof");
    trace.page("mm_page_alloc", 30).kfree("site", 30);
    assert_eq!(trace.counts(), [1, 0], "first free on a page of the trace");

    let mut trace = Trace::new();
    trace.direct_map();
    trace.alloc(20).kfree("site", 20).kfree("site", 20);
    trace.alloc(30).kfree("site", 30).page("mm_page_free", 30).page("mm_page_alloc", 30).kfree("site", 30);
    assert_eq!(trace.counts(), [1, 0], "another free on a page that was allocated since");
}

#[test]
fn frees_that_nothing_explains_may_be_double_frees() {
    let mut trace = Trace::new();
    for object in 0..5 {
        trace.alloc(object).cache_free("site", "driver_cache", object).cache_free(
            "site",
            "driver_cache",
            object,
        );
    }
    assert_eq!(trace.counts(), [5, 5]);
    // An object older than the trace.
    let mut trace = Trace::new();
    trace.kfree("site", 1).kfree("site", 1);
    assert_eq!(trace.counts(), [1, 1]);
}

#[test]
fn caches_that_the_kernel_allocates_in_bulk_are_normal() {
    for cache in ["maple_node", "skbuff_head_cache", "io_kiocb", "io_buffer"] {
        let mut trace = Trace::new();
        for object in 0..5 {
            trace.alloc(object).cache_free("site", cache, object).cache_free("site", cache, object);
        }
        assert_eq!(trace.counts(), [5, 0], "{cache}");
        assert!(trace.found().1.contains("normal: allocated in bulk"), "{cache}");
    }
}

/// Events may be lost at once after the last event so far.
fn lost(trace: &mut Trace) {
    trace.text.push_str("CPU:0 [LOST 3 EVENTS]\n");
}

#[test]
fn an_allocation_may_be_lost_where_events_were_lost_before_the_free() {
    let mut trace = Trace::new();
    trace.alloc(1).kfree("site", 1);
    lost(&mut trace);
    trace.kfree("site", 1);
    let (kind, screen) = trace.found();
    assert_eq!((at(&kind, "/count"), at(&kind, "/suspect")), (&1.into(), &0.into()), "{kind:#}");
    let answer = "1 free again without an allocation event (lost event or double free), 1 of them by site.";
    assert!(screen.starts_with(answer), "{screen}");
    // Another one without a loss in between.
    trace.alloc(2).kfree("broken_driver", 2).kfree("broken_driver", 2);
    let (kind, screen) = trace.found();
    assert_eq!((at(&kind, "/count"), at(&kind, "/suspect")), (&2.into(), &1.into()), "{kind:#}");
    let answer =
        "1 free again without an allocation event (possible double free), 1 of them by broken_driver.";
    assert!(screen.starts_with(answer), "{screen}");
    // Nor does a loss before the object, or while it lived, explain its second free.
    let mut trace = Trace::new();
    lost(&mut trace);
    trace.alloc(1);
    lost(&mut trace);
    trace.kfree("site", 1).kfree("site", 1);
    assert_eq!(trace.counts(), [1, 1]);
}

/// Events of one CPU end before those of the other.
#[test]
fn an_allocation_may_be_behind_the_end_of_its_cpu() {
    let scratch = Scratch::new();
    let object = |number: u64| crate::model::BASE + (16 << 12) + number * 64;
    let mut crafted = Crafted::new();
    crafted.release("6.18.0");
    let mut time = 1_000_000_000;
    let mut event = |cpu, what| {
        time += 1_000_000;
        crafted.event(&Event { time, cpu, pid: 7, what });
    };
    let alloc = |number| What::Alloc { kmalloc: true, site: 5, ptr: object(number), req: 64, alloc: 64 };
    let free = |number| What::Free { kfree: true, ptr: object(number) };
    let cache = |number| What::Alloc { kmalloc: false, site: 6, ptr: object(number), req: 64, alloc: 64 };
    for (cpu, what) in [(0, cache(9)), (1, What::Free { kfree: false, ptr: object(9) })] {
        event(cpu, what);
    }
    // A double free while both CPUs have events.
    [alloc(1), free(1), free(1)].into_iter().for_each(|what| event(0, what));
    event(1, alloc(2));
    [free(2), free(2)].into_iter().for_each(|what| event(0, what));
    let bytes = crafted.writer.finish().unwrap();
    let suspect = |bytes: &[u8], name: &str| {
        let file = scratch.0.join(name);
        fs::write(&file, bytes).unwrap();
        let report = json(&["anomalies", "--json"], &file);
        let kinds = at(&report, "/anomalies").as_array().unwrap();
        let kind = kinds.iter().find(|kind| kind["kind"] == "freed_again_or_born_unseen").unwrap();
        ["/count", "/suspect"].map(|key| at(kind, key).as_u64().unwrap())
    };
    assert_eq!(suspect(&bytes, "whole.kmt"), [2, 2]);
    // Cut behind the last events.
    let trace = Reader::open(&bytes).unwrap();
    let last = trace.chunks().filter(|chunk| chunk.kind == ChunkKind::EVENTS).last().unwrap();
    let end = last.offset as usize + last.total_len as usize;
    assert_eq!(suspect(&bytes[..end], "part.kmt.part"), [2, 1]);
}

#[test]
fn counts_of_sites_add_up() {
    let scratch = Scratch::new();
    let sample = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    let report = json(&["anomalies", "--json"], &scratch.convert(&sample));
    for kind in at(&report, "/anomalies").as_array().unwrap() {
        let rows = at(kind, "/rows").as_array().unwrap();
        for key in ["/count", "/suspect"] {
            let sum: u64 = rows.iter().map(|row| at(row, key).as_u64().unwrap()).sum();
            assert_eq!(at(kind, key).as_u64(), Some(sum), "{kind:#}");
        }
    }
}
