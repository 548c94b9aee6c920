//! A second ledger: slow, obvious, and written from the rules alone. It shares no code with the program.
//!
//! The program decides when the next event on an address comes; this one has all events of an address before it, and
//! looks ahead.

mod pages;
mod target;

pub use target::Target;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pages::{pages, slabs};
use serde_json::Value;

/// One event, as `dump --format jsonl` tells it.
#[derive(Debug, Clone)]
pub struct Event {
    pub time: u64,
    pub cpu: u64,
    pub pid: i64,
    pub what: What,
}

#[derive(Debug, Clone)]
pub enum What {
    Alloc {
        kmalloc: bool,
        site: u64,
        ptr: u64,
        req: u64,
        alloc: u64,
    },
    Free {
        kfree: bool,
        ptr: u64,
    },
    /// Handed over, to be freed after a grace period; in older kernels by the offset of its rcu_head.
    Rcu {
        ptr: u64,
        by_offset: bool,
    },
    PageAlloc {
        pfn: u64,
        order: u64,
        movable: bool,
    },
    PageFree {
        pfn: u64,
        order: u64,
    },
}

/// Reads the lines of a dump.
pub fn events(dump: &str) -> Vec<Event> {
    dump.lines().filter_map(|line| event(&serde_json::from_str(line).unwrap())).collect()
}

/// Reads a line; `None`: the ledger does not need this event.
pub fn event(line: &Value) -> Option<Event> {
    let fields = &line["fields"];
    let number = |name: &str| match &fields[name] {
        Value::String(hex) => u64::from_str_radix(hex.trim_start_matches("0x"), 16).unwrap(),
        value => value.as_u64().unwrap_or(0),
    };
    let what = match line["event"].as_str()? {
        name @ ("kmem:kmalloc"
        | "kmem:kmalloc_node"
        | "kmem:kmem_cache_alloc"
        | "kmem:kmem_cache_alloc_node") => What::Alloc {
            kmalloc: name.starts_with("kmem:kmalloc"),
            site: number("call_site"),
            ptr: number("ptr"),
            req: number("bytes_req"),
            alloc: number("bytes_alloc"),
        },
        name @ ("kmem:kfree" | "kmem:kmem_cache_free") => {
            What::Free { kfree: name == "kmem:kfree", ptr: number("ptr") }
        }
        "kmt:kvfree_call_rcu" => {
            let (head, object) = (number("head"), number("object"));
            let by_offset = object < 4096;
            What::Rcu { ptr: if by_offset { head - object } else { object }, by_offset }
        }
        "kmem:mm_page_alloc" => What::PageAlloc {
            pfn: number("pfn"),
            order: number("order"),
            movable: fields["migratetype"].as_i64() == Some(1),
        },
        "kmem:mm_page_free" => What::PageFree { pfn: number("pfn"), order: number("order") },
        _ => return None,
    };
    let (time, cpu) = (line["ts"].as_u64()?, line["cpu"].as_u64()?);
    Some(Event { time, cpu, pid: line["pid"].as_i64()?, what })
}

/// What the ledger comes to: numbers by name, and the lifetimes of freed objects by call site and interface.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub numbers: BTreeMap<String, u64>,
    pub lifetimes: BTreeMap<(u64, bool), Vec<u64>>,
    /// How lives of a call site and interface ended, and how many go on, by size class of kmalloc.
    pub ends: BTreeMap<(u64, bool, u64), Ends>,
    /// All lives by call site and interface.
    pub lives: BTreeMap<(u64, bool), Vec<Lived>>,
    /// All lives of pages by the number of the event that allocated them.
    pub pages: Vec<(usize, Lived)>,
}

/// A life of an object, or of pages that were allocated and ended together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lived {
    pub born: u64,
    pub pid: i64,
    /// Objects or pages.
    pub count: u64,
    /// Bytes of all of them, and those that were requested.
    pub bytes: u64,
    pub bytes_req: u64,
    /// Time of the end, and true if an event says so; `None`: still allocated.
    pub end: Option<(u64, bool)>,
    /// Something was lost meanwhile.
    pub uncertain: bool,
    /// Still allocated, and a slab of the allocator.
    pub is_slab: bool,
}

/// How lives ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub by_event: u64,
    /// Without one, and nothing else may have been the reason.
    pub without: u64,
    pub live: u64,
    /// Of those that ended by an event: handed over in the last 15 seconds, so that they may still be there.
    pub waiting: u64,
}

impl std::ops::AddAssign for Ends {
    fn add_assign(&mut self, other: Self) {
        self.by_event += other.by_event;
        self.without += other.without;
        self.live += other.live;
        self.waiting += other.waiting;
    }
}

impl Ends {
    /// Which frees have events: all but fewer than one in a thousand, some, none; unknown where no life ended, or so few
    /// that they say nothing of ten times as many that seem live.
    pub fn class(&self) -> &'static str {
        let ends = self.by_event + self.without;
        match self {
            _ if ends == 0 => "unknown",
            _ if self.by_event == 0 => "none",
            _ if self.without == 0 && ends * 10 < self.live => "unknown",
            _ if self.without * 1000 < ends => "all",
            _ => "partly",
        }
    }

    /// What is live for certain, as far as the call site in this size class alone tells.
    pub fn least(&self) -> u64 {
        if self.class() == "all" && self.by_event + self.without >= 100 { self.live } else { 0 }
    }
}

impl Ledger {
    fn add(&mut self, section: &str, kmalloc: bool, name: &str, number: u64) {
        let part = if kmalloc { "kmalloc" } else { "cache" };
        for key in [format!("{section}.{name}"), format!("{section}.{part}.{name}")] {
            *self.numbers.entry(key).or_default() += number;
        }
    }

    fn lived(&mut self, life: &Life, end: Option<(u64, bool)>, uncertain: bool) {
        let Life { born, pid, alloc: bytes, req: bytes_req, .. } = *life;
        let lived = Lived { born, pid, count: 1, bytes, bytes_req, end, uncertain, is_slab: false };
        self.lives.entry((life.site, life.kmalloc)).or_default().push(lived);
    }

    fn count(&mut self, name: &str, number: u64) {
        *self.numbers.entry(name.to_owned()).or_default() += number;
    }
}

const LOW: u64 = (1 << 56) - 1;
const MS: u64 = 1_000_000;

/// R8, votes CPU by CPU.
fn base(events: &[Event], target: &Target) -> Option<u64> {
    let mut votes: HashMap<u64, u64> = HashMap::new();
    let cpus: BTreeSet<u64> = events.iter().map(|e| e.cpu).collect();
    for cpu in cpus {
        let mut waiting: Vec<(u64, u64, i64)> = Vec::new();
        for e in events.iter().filter(|e| e.cpu == cpu) {
            match e.what {
                What::PageAlloc { pfn, order, movable: false } if pfn != target.no_frame => {
                    waiting = vec![(pfn, order, e.pid)];
                }
                What::Alloc { ptr, .. } => {
                    for (pfn, order, pid) in waiting.drain(..) {
                        let block = target.page_size << order;
                        let base = (ptr / block * block).wrapping_sub(pfn * target.page_size) & LOW;
                        if ptr != 0 && pid == e.pid && base % (2 << 20) == 0 {
                            *votes.entry(base).or_default() += 1;
                        }
                    }
                }
                What::Free { .. } => waiting.clear(),
                _ => {}
            }
        }
    }
    let all: u64 = votes.values().sum();
    let (&base, &most) = votes.iter().max_by_key(|v| v.1)?;
    let second = votes.iter().filter(|v| *v.0 != base).map(|v| *v.1).max().unwrap_or(0);
    let leads = most >= 5 && most >= 4 * second;
    (leads || all >= 5 && most * 2 > all).then_some(base)
}

/// What happens at one address, in order: events on it, and page events under it.
#[derive(Clone, Copy)]
enum At {
    Event(usize),
    Page(usize),
}

#[derive(Clone, Copy)]
struct Life {
    born: u64,
    reported: u64,
    cpu: u64,
    pid: i64,
    kmalloc: bool,
    site: u64,
    req: u64,
    alloc: u64,
}

impl Life {
    fn class(&self) -> (u64, bool, u64) {
        (self.site, self.kmalloc, if self.kmalloc { self.alloc } else { 0 })
    }
}

/// Runs the rules.
pub fn run(events: &[Event], target: &Target) -> Ledger {
    let base = base(events, target);
    let mut ledger = Ledger::default();
    let allocated = pages(events, target, &mut ledger);
    slabs(events, base, target, &mut ledger);
    let frame_of = |ptr: u64| base.map(|b| ((ptr & LOW).wrapping_sub(b) & LOW) / target.page_size);
    // Addresses, and which of them lie on a frame.
    let mut at: BTreeMap<u64, Vec<At>> = BTreeMap::new();
    let mut on_frame: HashMap<u64, BTreeSet<u64>> = HashMap::new();
    for e in events {
        if let What::Alloc { ptr, .. } | What::Free { ptr, .. } = e.what {
            if let Some(frame) = frame_of(ptr) {
                on_frame.entry(frame).or_default().insert(ptr & LOW);
            }
        }
    }
    for (index, e) in events.iter().enumerate() {
        match e.what {
            What::Alloc { ptr, kmalloc, req, alloc, .. } => {
                ledger.count("slab.raw.alloc_events", 1);
                ledger.count("slab.raw.bytes_req", req);
                ledger.count("slab.raw.bytes_alloc", alloc);
                if ptr & LOW == 0 {
                    ledger.add("slab", kmalloc, "alloc_failures", 1);
                } else {
                    at.entry(ptr & LOW).or_default().push(At::Event(index));
                }
            }
            What::Free { ptr, kfree } => {
                ledger.count("slab.raw.free_events", 1);
                match ptr & LOW {
                    0 => ledger.add("slab", kfree, "null_frees", 1),
                    1..=16 => ledger.add("slab", kfree, "zero_size_frees", 1),
                    low => at.entry(low).or_default().push(At::Event(index)),
                }
            }
            What::Rcu { ptr, .. } => at.entry(ptr & LOW).or_default().push(At::Event(index)),
            What::PageAlloc { pfn, order, .. } | What::PageFree { pfn, order } => {
                let failed = matches!(e.what, What::PageAlloc { .. }) && pfn == target.no_frame;
                for frame in (0..1u64 << order).filter(|_| !failed).map(|i| pfn + i) {
                    for address in on_frame.get(&frame).into_iter().flatten() {
                        at.entry(*address).or_default().push(At::Page(index));
                    }
                }
            }
        }
    }
    for (address, timeline) in at {
        let known_frame = |index: usize| {
            frame_of(address).is_some_and(|f| {
                let changes = allocated.get(&f).map(Vec::as_slice).unwrap_or_default();
                changes.iter().rev().find(|c| c.0 < index).is_some_and(|c| c.1)
            })
        };
        address_ledger(events, &timeline, target, known_frame, &mut ledger);
    }
    ledger
}

/// One address.
fn address_ledger(
    events: &[Event],
    timeline: &[At],
    target: &Target,
    known_frame: impl Fn(usize) -> bool,
    ledger: &mut Ledger,
) {
    let crosses = |from: u64, to: u64| target.spans.iter().any(|s| s.0 <= to && s.1 >= from);
    let mut live: Option<Life> = None;
    // A life that ended unseen at a page event, until the next event on the address decides.
    let mut page_gone: Option<(Life, u64)> = None;
    let mut seen_before = false;
    // Handed over, and not allocated again since: its free may have an event of its own.
    let mut given_up = false;
    let mut late: Option<usize> = None;
    let freed = |ledger: &mut Ledger, life: &Life, free: &Event, end: u64, is_late: bool| {
        let kfree = match free.what {
            What::Free { kfree, .. } => kfree,
            _ => life.kmalloc,
        };
        ledger.add("slab", life.kmalloc, "frees_matched", 1);
        ledger.add("slab", life.kmalloc, "bytes_freed", life.alloc);
        ledger.add("slab", life.kmalloc, "cross_cpu_frees", u64::from(free.cpu != life.cpu));
        ledger.add("slab", life.kmalloc, "mixed_api_frees", u64::from(kfree != life.kmalloc));
        ledger.add("slab", life.kmalloc, "late_frees", u64::from(is_late));
        ledger.add("slab", life.kmalloc, "uncertain", u64::from(crosses(life.born, end)));
        ledger.lifetimes.entry((life.site, life.kmalloc)).or_default().push(end - life.born);
        ledger.ends.entry(life.class()).or_default().by_event += 1;
        ledger.lived(life, Some((end, true)), crosses(life.born, end));
    };
    let unseen = |ledger: &mut Ledger, life: &Life, end: u64, ambiguous: bool| {
        ledger.add("slab", life.kmalloc, "freed_unseen", 1);
        ledger.add("slab", life.kmalloc, "bytes_freed_unseen", life.alloc);
        let uncertain = ambiguous || crosses(life.born, end);
        ledger.add("slab", life.kmalloc, "uncertain", u64::from(uncertain));
        ledger.ends.entry(life.class()).or_default().without += u64::from(!uncertain);
        ledger.lived(life, Some((end, false)), uncertain);
    };
    for (place, step) in timeline.iter().enumerate() {
        let index = match *step {
            At::Event(index) => index,
            At::Page(index) => {
                if let Some(life) = live.take() {
                    page_gone = Some((life, events[index].time));
                }
                continue;
            }
        };
        let e = &events[index];
        match e.what {
            What::Rcu { .. } => {
                let Some(life) = live.take() else { continue };
                freed(ledger, &life, e, e.time, false);
                let last = events.last().map_or(0, |e| e.time);
                let ends = ledger.ends.entry(life.class()).or_default();
                ends.waiting += u64::from(last - e.time <= 15_000 * MS);
                given_up = true;
            }
            What::Alloc { kmalloc, site, req, alloc, .. } => {
                given_up = false;
                if let Some((life, end)) = page_gone.take() {
                    unseen(ledger, &life, end, false);
                }
                let is_double = live.is_some_and(|l| {
                    l.kmalloc
                        && kmalloc
                        && l.site != site
                        && (l.cpu, l.pid, l.req, l.alloc) == (e.cpu, e.pid, req, alloc)
                        && alloc > 2 * target.page_size
                        && e.time - l.reported <= MS
                });
                if let Some(life) = live.as_mut().filter(|_| is_double) {
                    ledger.add("slab", true, "double_reports", 1);
                    (life.reported, life.site) = (e.time, site);
                    seen_before = true;
                    continue;
                }
                ledger.add("slab", kmalloc, "alloc_events", 1);
                ledger.add("slab", kmalloc, "bytes_req", req);
                ledger.add("slab", kmalloc, "bytes_alloc", alloc);
                let new = Life {
                    born: e.time,
                    reported: e.time,
                    cpu: e.cpu,
                    pid: e.pid,
                    kmalloc,
                    site,
                    req,
                    alloc,
                };
                if let Some(old) = live.replace(new) {
                    match free_behind(events, timeline, place, &new, target) {
                        Behind::Late(free) => {
                            freed(ledger, &old, &events[free], e.time, true);
                            late = Some(free);
                        }
                        Behind::Ambiguous => unseen(ledger, &old, e.time, true),
                        Behind::Nothing => unseen(ledger, &old, e.time, false),
                    }
                }
            }
            What::Free { kfree, .. } if late == Some(index) => {
                let _ = kfree;
                late = None;
            }
            What::Free { kfree, .. } => {
                if let Some(life) = live.take() {
                    freed(ledger, &life, e, e.time, false);
                } else if std::mem::take(&mut given_up) {
                    // That of the object that was handed over.
                } else if let Some((life, end)) =
                    page_gone.take_if(|p| target.late_frees && !kfree && e.time - p.1 <= MS)
                {
                    freed(ledger, &life, e, end, true);
                } else {
                    if let Some((life, end)) = page_gone.take() {
                        unseen(ledger, &life, end, false);
                    }
                    let untraced = seen_before || known_frame(index);
                    let name = if untraced { "frees_untraced_birth" } else { "frees_allocated_before" };
                    ledger.add("slab", kfree, name, 1);
                }
            }
            _ => {}
        }
        seen_before = true;
    }
    if let Some((life, end)) = page_gone {
        unseen(ledger, &life, end, false);
    }
    if let Some(life) = live {
        ledger.add("slab", life.kmalloc, "live", 1);
        ledger.ends.entry(life.class()).or_default().live += 1;
        ledger.add("slab", life.kmalloc, "bytes_live", life.alloc);
        ledger.add("slab", life.kmalloc, "bytes_wasted_live", life.alloc.saturating_sub(life.req));
        let uncertain = crosses(life.born, u64::MAX);
        ledger.lived(&life, None, uncertain);
        ledger.add("slab", life.kmalloc, "uncertain", u64::from(uncertain));
        ledger.add("slab", life.kmalloc, "bytes_live_uncertain", if uncertain { life.alloc } else { 0 });
    }
}

enum Behind {
    /// The free of that index is the old life's, logged late.
    Late(usize),
    /// It may be.
    Ambiguous,
    Nothing,
}

/// R6: what the next events behind the allocation at `place` say of the life that it replaced.
fn free_behind(events: &[Event], timeline: &[At], place: usize, new: &Life, target: &Target) -> Behind {
    let (mut first, mut reported) = (None, new.reported);
    for step in &timeline[place + 1..] {
        let index = match *step {
            // Its page went first: the new life has its own rule then.
            At::Page(_) if first.is_none() => return Behind::Nothing,
            At::Page(_) => continue,
            At::Event(index) => index,
        };
        let e = &events[index];
        match (first, &e.what) {
            (None, What::Free { kfree: false, .. }) if target.late_frees && e.time - new.born <= MS => {
                first = Some(index);
            }
            // A second report is part of the allocation.
            (None, What::Alloc { kmalloc: true, req, alloc, .. })
                if new.kmalloc
                    && (new.cpu, new.pid, new.req, new.alloc) == (e.cpu, e.pid, *req, *alloc)
                    && *alloc > 2 * target.page_size
                    && e.time - reported <= MS =>
            {
                reported = e.time;
            }
            (None, _) => return Behind::Nothing,
            (Some(first), What::Free { .. } | What::Rcu { .. }) => return Behind::Late(first),
            (Some(_), _) => return Behind::Ambiguous,
        }
    }
    if first.is_some() { Behind::Ambiguous } else { Behind::Nothing }
}
