//! The exact ledger against a second one that was written from the rules alone, on real captures and on random events.
//!
//! With KMT_CAPTURES=DIR also on every capture and .kmt file in that directory.

use std::fs;
use std::path::Path;

use crate::support::files::{Scratch, data, json, run, stdout};
use crate::support::model::{self, Ends, Event, Ledger, Target, What};
use kmt_format::kernel::ByteOrder;
use kmt_format::write::{Writer, WriterOptions};

/// Both ledgers have to agree in every number that both have.
fn check(name: &str, file: &Path) {
    let info = json(&["info", "--json"], file);
    let target = Target::of(&info);
    let model = model::run(&model::events(&stdout(&run(&["dump", "--format", "jsonl"], file))), &target);
    let mut compared = 0;
    for threads in ["1", "3"] {
        let summary = json(&["summary", "--json", "--threads", threads], file);
        for section in ["slab", "slab.kmalloc", "slab.cache", "slab.raw", "pages"] {
            let mut part = &summary;
            section.split('.').for_each(|key| part = &part[key]);
            for (key, value) in part.as_object().into_iter().flatten() {
                let expected = model.numbers.get(&format!("{section}.{key}"));
                if let (Some(number), Some(expected)) = (value.as_u64(), expected) {
                    assert_eq!(number, *expected, "{name}: {section}.{key}");
                    compared += 1;
                }
            }
        }
    }
    let has_slab = model.numbers.contains_key("slab.raw.alloc_events");
    assert!(compared > 60 || !has_slab, "{name}: {compared} numbers compared");
    lifetimes(name, file, &model);
    classes(name, file, &model, target.spans.is_empty());
}

/// Which call sites' frees have events, and between which numbers live objects lie.
fn classes(name: &str, file: &Path, model: &Ledger, is_whole: bool) {
    for row in json(&["callers", "--json"], file)["callers"].as_array().unwrap() {
        let site =
            u64::from_str_radix(row["call_site"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        let key = |size: u64| (site, row["api"] == "kmalloc", size);
        let mut ends = Ends::default();
        let mut least = 0;
        for (_, of_size) in model.ends.range(key(0)..=key(u64::MAX)) {
            ends += *of_size;
            least += of_size.least();
        }
        let Some(class) = row["frees_seen"].as_str() else { continue };
        assert_eq!(class, ends.class(), "{name}: {row}");
        let Some(range) = row["live_range"].as_array().filter(|_| is_whole) else { continue };
        let range = [0, 1].map(|at| range[at].as_u64().unwrap());
        let most = ends.live + ends.waiting;
        assert!(range[0] <= range[1] && range[1] <= most, "{name}: {row}");
        let is_bounded = range[1] < most;
        assert!(is_bounded || range[0] >= least, "{name}: at least {least}: {row}");
    }
}

fn lifetimes(name: &str, file: &Path, model: &Ledger) {
    let report = json(&["lifetimes", "--json"], file);
    let mut rows = 0;
    for row in report["lifetimes"].as_array().unwrap() {
        let site =
            u64::from_str_radix(row["call_site"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        let key = (site, row["api"] == "kmalloc");
        let mut lives = model.lifetimes.get(&key).cloned().unwrap_or_default();
        lives.sort_unstable();
        let found = &row["lifetime"];
        assert_eq!(found["n"].as_u64().unwrap(), lives.len() as u64, "{name}: {row}");
        assert_eq!(found["max"].as_u64(), lives.last().copied(), "{name}: {row}");
        for (percentile, per_mille) in [("p50", 500), ("p90", 900), ("p99", 990)] {
            let Some(exact) = lives.get((lives.len() * per_mille).div_ceil(1000).wrapping_sub(1)) else {
                continue;
            };
            let found = found[percentile].as_u64().unwrap();
            assert!(
                found.abs_diff(*exact) * 62 <= *exact,
                "{name}: {percentile} is {found}, not {exact}: {row}"
            );
        }
        rows += usize::from(!lives.is_empty());
    }
    assert_eq!(rows, model.lifetimes.len(), "{name}: every call site with frees has a row");
}

#[test]
fn real_captures() {
    let scratch = Scratch::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    check("the sample", &scratch.convert(&sample));
    for name in ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"] {
        check(name, &scratch.convert(&data(name)));
    }
    let Some(more) = std::env::var_os("KMT_CAPTURES") else { return };
    for entry in fs::read_dir(more).unwrap().map(|e| e.unwrap().path()) {
        let file = if entry.is_dir() { scratch.convert(&entry) } else { entry.clone() };
        check(&entry.display().to_string(), &file);
    }
}

/// Writes events as a kernel of 6.1 would.
pub struct Crafted {
    pub writer: Writer,
    /// Flags of page allocations.
    pub gfp: u64,
    ids: [u16; 7],
}

/// A probe, as `--kfree-rcu` makes it.
const PROBE: &str = "name: kvfree_call_rcu\nID: 1625\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:u64 head;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:u64 object;\toffset:24;\tsize:8;\tsigned:0;\n\
    \tfield:u64 call_site;\toffset:32;\tsize:8;\tsigned:0;\n\n\
    print fmt: \"(%lx) head=0x%Lx object=0x%Lx call_site=0x%Lx\", REC->__probe_ip, REC->head, REC->object, REC->call_site\n";

const EVENTS: [&str; 6] =
    ["kmalloc", "kfree", "kmem_cache_alloc", "kmem_cache_free", "mm_page_alloc", "mm_page_free"];

impl Crafted {
    pub fn new() -> Self {
        Self::with_formats("../docs/sample/x86_64-6.1")
    }

    /// With the formats of a capture; those of pages alone have the same fields in all of them.
    pub fn with_formats(capture: &str) -> Self {
        let mut writer =
            Writer::new(WriterOptions::new(ByteOrder::Little, 8).page_size(4096).trace_uuid([7; 16]))
                .unwrap();
        let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join(capture).join("tracefs/events/kmem");
        let ids = EVENTS.map(|name| {
            let text = fs::read_to_string(formats.join(name).join("format")).unwrap();
            writer.add_format("kmem", &text).unwrap()
        });
        let probe = writer.add_format("kmt", PROBE).unwrap();
        let ids = std::array::from_fn(|number| ids.get(number).copied().unwrap_or(probe));
        Self { writer, gfp: 0xcc0, ids }
    }

    /// The kernel's release, on which it depends whether frees may be late.
    pub fn release(&mut self, release: &str) {
        self.writer.add_metadata(&[("kernel.release", release.as_bytes())]).unwrap();
    }

    /// Fields follow each other as in these kernels' formats.
    pub fn event(&mut self, e: &Event) {
        let (number, words): (usize, Vec<u64>) = match e.what {
            What::Alloc { kmalloc, site, ptr, req, alloc } => {
                (if kmalloc { 0 } else { 2 }, vec![site, ptr, req, alloc, 0xcc0, u64::from(u32::MAX)])
            }
            What::Free { kfree: true, ptr } => (1, vec![0x99, ptr]),
            What::Free { kfree: false, ptr } => (3, vec![0x98, ptr, 8 << 16 | 28]),
            What::Rcu { ptr, by_offset: true } => (6, vec![0x97, ptr + 16, 16, 0x96]),
            What::Rcu { ptr, by_offset: false } => (6, vec![0x97, ptr + 16, ptr, 0x96]),
            What::PageAlloc { pfn, order, movable } => (4, vec![pfn, order, self.gfp, u64::from(movable)]),
            What::PageFree { pfn, order } => (5, vec![pfn, order]),
        };
        let mut record = Vec::new();
        record.extend(self.ids[number].to_le_bytes());
        record.extend([0, 0]);
        record.extend((e.pid as u32).to_le_bytes());
        words.iter().for_each(|w| record.extend(w.to_le_bytes()));
        if let What::Free { kfree: false, .. } = e.what {
            record.truncate(28);
            record.extend(*b"cache_a\0");
        }
        self.writer.add_event(e.cpu as u32, e.time, &record).unwrap();
    }

    /// A kmem_cache_free that names this cache.
    pub fn freed_from(&mut self, time: u64, ptr: u64, cache: &[u8]) {
        let mut record = self.ids[3].to_le_bytes().to_vec();
        record.extend([0, 0, 1, 0, 0, 0]);
        [0x98, ptr].iter().for_each(|word| record.extend(word.to_le_bytes()));
        record.extend(((cache.len() as u32 + 1) << 16 | 28).to_le_bytes());
        record.extend(cache);
        record.push(0);
        self.writer.add_event(0, time, &record).unwrap();
    }
}

/// SplitMix64.
pub fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub const BASE: u64 = 0xffff_8880_0000_0000;

/// Random events on few addresses, so that every rule is met often: near and far in time, tagged, failed, large.
pub fn random(seed: u64) -> Vec<Event> {
    let seed_has_rcu = seed % 3 == 0;
    let mut seed = seed;
    let mut time = 1_000_000;
    let mut events = Vec::new();
    // What makes the direct map known.
    for i in 0..6u64 {
        for what in [
            What::PageAlloc { pfn: 900 + i, order: 0, movable: false },
            What::Alloc { kmalloc: false, site: 5, ptr: BASE + ((900 + i) << 12), req: 64, alloc: 64 },
        ] {
            time += 10;
            events.push(Event { time, cpu: 0, pid: 1, what });
        }
    }
    for _ in 0..3_000 {
        let r = next(&mut seed);
        // Mostly within a millisecond, sometimes beyond, sometimes at the same time.
        time += match r % 8 {
            0 => 0,
            1 => 700_000,
            2 => 1_000_000,
            3 => 1_000_001,
            _ => r >> 8 & 0xffff,
        };
        let (cpu, pid) = (r >> 24 & 1, 7 + (r >> 25 & 1) as i64);
        let large = r >> 26 & 3 == 0;
        let place = r >> 28;
        let address = if large {
            BASE + (64 << 12) + ((place % 3) << 14)
        } else {
            BASE + (16 << 12) + place % 40 * 0x180
        };
        let tag = if r >> 40 & 7 == 0 { 0x5b << 56 } else { 0xff << 56 };
        let ptr = match r >> 44 & 31 {
            0 => 0,
            1 => 16,
            _ => address & !(0xff << 56) | tag,
        };
        let kfree = r >> 50 & 1 == 0;
        let pfn = if large { 64 + place % 12 } else { 16 + place % 4 };
        let what = match r >> 52 & 15 {
            0..=6 if ptr == 16 => What::Free { kfree, ptr },
            0..=6 if large => {
                What::Alloc { kmalloc: true, site: 20 + (r >> 56 & 1), ptr, req: 16_000, alloc: 16_384 }
            }
            0..=6 => What::Alloc { kmalloc: kfree, site: 30 + (r >> 56 & 1), ptr, req: 300, alloc: 384 },
            7 if ptr > 16 && seed_has_rcu => What::Rcu { ptr, by_offset: kfree },
            7..=12 => What::Free { kfree, ptr },
            13 => What::PageFree { pfn, order: r >> 57 & 1 },
            14 if r >> 58 & 15 == 0 => What::PageAlloc { pfn: u64::MAX, order: 2, movable: false },
            _ => What::PageAlloc { pfn, order: r >> 57 & 1, movable: true },
        };
        events.push(Event { time, cpu, pid, what });
    }
    events
}

#[test]
fn random_events() {
    let scratch = Scratch::new();
    for seed in 0..40 {
        let mut crafted = Crafted::new();
        // Of the rest the release is not known.
        match seed % 4 {
            0 => crafted.release("5.18.19"),
            1 => crafted.release("6.18.0-rc1"),
            _ => {}
        }
        random(seed).iter().for_each(|e| crafted.event(e));
        let file = scratch.0.join("random.kmt");
        fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
        check(&format!("seed {seed}"), &file);
    }
}
