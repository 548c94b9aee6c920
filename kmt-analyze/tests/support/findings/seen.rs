//! One pass over the lines of a dump: no line is kept.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::super::model::{self, Event, What};

/// Pages of one kind: order and flags as text, and migrate type.
pub type PageKind = (String, i64);

/// Sums over the events of a file.
#[derive(Default)]
pub struct Seen {
    /// Times of the first and of the last event.
    pub span: Option<(u64, u64)>,
    /// Functions of call sites.
    pub functions: HashMap<u64, String>,
    /// Sum and longest of the waits of each task.
    pub waited: HashMap<i64, (u64, u64)>,
    /// Page allocations by flags, as text and as a number, and by task: those that failed, and all.
    pub pages: HashMap<(String, u64, i64), (u64, u64)>,
    /// Slab allocations without an address.
    pub slab_failures: u64,
    /// Kind of the pages of an event, by the number of the event in the model.
    pub kinds: HashMap<usize, PageKind>,
    /// Call stacks of page allocations, likewise.
    pub stacks: HashMap<usize, Vec<u64>>,
    /// Caches that events name.
    pub caches: HashSet<String>,
    /// Sizes of objects of caches that were allocated.
    pub sizes: HashSet<u64>,
    /// Allocations and frees of objects of caches.
    pub cache_events: [u64; 2],
    begun: HashMap<(i64, &'static str), u64>,
    compacts: HashSet<i64>,
    last_page: HashMap<(u64, i64), (u64, usize)>,
}

/// Kinds of waits: their events without `_begin` and `_end`.
const WAITS: [&str; 5] = [
    "vmscan:mm_vmscan_direct_reclaim",
    "vmscan:mm_vmscan_memcg_reclaim",
    "vmscan:mm_vmscan_memcg_softlimit_reclaim",
    "vmscan:mm_vmscan_node_reclaim",
    "compaction:mm_compaction",
];

pub fn hex(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

impl Seen {
    /// Reads a file; the events are those of the model.
    pub fn read(file: &Path, no_frame: u64) -> (Self, Vec<Event>) {
        let mut dump = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"))
            .args(["dump", "--format", "jsonl"])
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (mut seen, mut events) = (Self::default(), Vec::new());
        for line in BufReader::new(dump.stdout.take().unwrap()).lines() {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let event = model::event(&line);
            seen.line(&line, event.as_ref(), no_frame, events.len());
            events.extend(event);
        }
        // 3: events were lost while recording.
        assert!(matches!(dump.wait().unwrap().code(), Some(0 | 3)), "{}", file.display());
        (seen, events)
    }

    fn line(&mut self, line: &Value, event: Option<&Event>, no_frame: u64, number: usize) {
        let (pid, time) = (line["pid"].as_i64().unwrap(), line["ts"].as_u64().unwrap());
        let span = self.span.get_or_insert((time, time));
        *span = (span.0.min(time), span.1.max(time));
        let (name, fields) = (line["event"].as_str().unwrap(), &line["fields"]);
        self.wait(name, pid, time);
        match name {
            "kmem:mm_page_alloc" => self.page(line, no_frame, number),
            "ftrace:kernel_stack" => self.stack(line),
            "kmem:kmem_cache_alloc" | "kmem:kmem_cache_alloc_node" => self.cache(fields, false),
            "kmem:kmem_cache_free" => self.cache(fields, true),
            _ => {}
        }
        if let Some(&Event { what: What::Alloc { ptr, site, .. }, .. }) = event {
            self.slab_failures += u64::from(ptr == 0);
            let symbol = || fields["call_site_text"].as_str().unwrap().split('+').next().unwrap().to_owned();
            self.functions.entry(site).or_insert_with(symbol);
        }
    }

    /// True if both allocations and frees of caches were recorded.
    pub fn has_cache_events(&self) -> bool {
        self.cache_events.iter().all(|events| *events > 0)
    }

    fn cache(&mut self, fields: &Value, is_free: bool) {
        self.cache_events[usize::from(is_free)] += 1;
        self.caches.extend(fields["name"].as_str().map(str::to_owned));
        self.sizes.extend(fields["bytes_alloc"].as_u64());
    }

    fn page(&mut self, line: &Value, no_frame: u64, number: usize) {
        let fields = &line["fields"];
        let flags = fields["gfp_flags_text"].as_str().unwrap();
        let has_failed = fields["pfn"].as_u64() == Some(no_frame);
        let by = (flags.to_owned(), fields["gfp_flags"].as_u64().unwrap(), line["pid"].as_i64().unwrap());
        let sums = self.pages.entry(by).or_default();
        *sums = (sums.0 + u64::from(has_failed), sums.1 + 1);
        let kind = (format!("order {}, {flags}", fields["order"]), fields["migratetype"].as_i64().unwrap());
        self.kinds.insert(number, kind);
        let by = (line["cpu"].as_u64().unwrap(), line["pid"].as_i64().unwrap());
        self.last_page.insert(by, (line["ts"].as_u64().unwrap(), number));
    }

    fn stack(&mut self, line: &Value) {
        let by = (line["cpu"].as_u64().unwrap(), line["pid"].as_i64().unwrap());
        let Some(&(time, number)) = self.last_page.get(&by) else { return };
        if line["of"]["event"] == "kmem:mm_page_alloc" && line["of"]["ts"] == time {
            let frames = line["fields"]["caller"].as_array().unwrap();
            self.stacks.insert(number, frames.iter().map(hex).collect());
        }
    }

    fn wait(&mut self, name: &str, pid: i64, time: u64) {
        // Compaction is a wait where the task asked for it.
        if name == "compaction:mm_compaction_try_to_compact_pages" {
            self.compacts.insert(pid);
        }
        for kind in WAITS {
            if kind.starts_with("compaction") && !self.compacts.contains(&pid) {
                continue;
            }
            if name.strip_prefix(kind) == Some("_begin") {
                self.begun.insert((pid, kind), time);
            } else if name.strip_prefix(kind) == Some("_end") {
                let Some(begin) = self.begun.remove(&(pid, kind)) else { continue };
                let sum = self.waited.entry(pid).or_default();
                *sum = (sum.0 + time - begin, sum.1.max(time - begin));
            }
        }
    }
}
