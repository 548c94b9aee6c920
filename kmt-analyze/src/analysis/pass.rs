//! One pass over the merged events, feeding the ledger.

use std::collections::HashMap;

use kmt_format::kernel::ClockUnit;
use kmt_format::read::{Damage, Event, EventChunk, Trace};
use kmt_format::schema::{Meaning, Place, Role, Transform};

use super::direct_map::{DirectMap, Election};
use super::ledger::{At, Balance, Ledger, Rules};
use super::losses::Losses;
use super::sites::{Kind, Sites};

/// Which events count. Filters select allocations; what was allocated is followed wherever it is freed.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Tasks, by thread id; empty: all.
    pub pids: Vec<i32>,
    /// Tasks, by name; empty: all.
    pub comms: Vec<Vec<u8>>,
    /// CPUs; empty: all.
    pub cpus: Vec<u32>,
    /// A task whose allocations are left out: the recorder.
    pub without: Option<i32>,
    /// First and last time in the clock's unit.
    pub window: Option<(u64, u64)>,
}

impl Filter {
    /// Whether nothing is left out by task or CPU.
    pub fn is_open(&self) -> bool {
        self.without.is_none() && self.pids.is_empty() && self.comms.is_empty() && self.cpus.is_empty()
    }
}

/// What a pass came to.
#[derive(Debug)]
pub struct Result {
    /// Sites.
    pub sites: Sites,
    /// Sums.
    pub balance: Balance,
    /// Where page frames are mapped, if it was learned.
    pub direct_map: Option<DirectMap>,
    /// Page size that the rules used, and whether it is only assumed.
    pub page_size: (u64, bool),
    /// One millisecond in the clock's unit, where that is only an assumption.
    pub late_bound_assumed: Option<u64>,
    /// Events of each class in the whole trace, also outside the window: what was recorded does not depend on it.
    pub class_events: Vec<u64>,
    /// Damaged chunks.
    pub damages: Vec<Damage>,
}

/// Runs the ledger over a trace.
pub fn run(trace: &Trace<'_>, losses: &Losses, filter: &Filter) -> Result {
    let page_size = trace.header().page_size.filter(|s| s.is_power_of_two());
    let (late_bound, assumed) = late_bound(trace);
    let mut sites = Sites::default();
    let direct_map = elect(trace, &mut sites, page_size.unwrap_or(4096));
    let rules = Rules {
        page_size: page_size.unwrap_or(4096),
        late_bound,
        direct_map,
        window: filter.window.unwrap_or((0, u64::MAX)),
    };
    let selector = Selector::new(trace, filter);
    let mut ledger = Ledger::new(rules, losses);
    let mut class_events = vec![0; trace.schema().class_count()];
    let mut views: HashMap<u32, View> = HashMap::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        let view = views.entry(run.cpu).or_default();
        view.enter(run.chunk_number, run.chunk);
        for index in run.range {
            let Some(seen) = view.see(trace, run.chunk, index, &mut sites) else { continue };
            let time = seen.time;
            if let Some(count) = class_events.get_mut(seen.class) {
                *count += 1;
            }
            let at = |view: &mut View| {
                let pid = view.pid(trace, run.chunk, index, seen.context);
                At { time, cpu: run.cpu, pid, selected: selector.selects(run.cpu, pid) }
            };
            match seen.kind {
                Kind::Alloc(site) => ledger.alloc(&sites, site, seen.value, at(view)),
                Kind::Free(api, cache) => ledger.free(&sites, api, cache, seen.value, at(view)),
                Kind::PageAlloc { order, .. } if !is_failed(seen.value, trace) => {
                    ledger.page_alloc(&sites, seen.value, order, time);
                }
                Kind::PageFree { order } => ledger.page_free(&sites, seen.value, order, time),
                Kind::PageAlloc { .. } | Kind::Other => {}
            }
        }
    }
    let damages = merge.damages().to_vec();
    let balance = ledger.finish(&sites);
    Result {
        sites,
        balance,
        direct_map,
        page_size: (rules.page_size, page_size.is_none()),
        late_bound_assumed: assumed.then_some(late_bound),
        class_events,
        damages,
    }
}

/// A page allocation that failed has all bits of the kernel's long set.
fn is_failed(pfn: u64, trace: &Trace<'_>) -> bool {
    pfn == u64::MAX >> (64 - 8 * trace.header().long_size as u32)
}

/// One millisecond in the clock's unit, and whether that is an assumption: cycle counters have no known rate.
fn late_bound(trace: &Trace<'_>) -> (u64, bool) {
    match &trace.metadata().clock {
        Some(clock) if clock.unit == ClockUnit::Ticks => {
            let bound = match clock.name.as_str() {
                "x86-tsc" => 3_000_000,
                "ppc-tb" => 512_000,
                // 2^-12 microseconds a tick (z/Architecture Principles of Operation, TOD clock).
                "s390-tod" => 4_096_000,
                "uptime" => 1,
                _ => 1_000,
            };
            (bound, clock.name != "s390-tod")
        }
        _ => (1_000_000, false),
    }
}

/// Learns the direct map, CPU by CPU; order across CPUs does not matter for it.
fn elect(trace: &Trace<'_>, sites: &mut Sites, page_size: u64) -> Option<DirectMap> {
    let has = |meaning| trace.schema().classes().any(|(_, c)| c.meaning == meaning);
    if !has(Meaning::PAGE_ALLOC) {
        return None;
    }
    let mut election = Election::new(page_size.trailing_zeros());
    let mut view = View::default();
    let mut chunk_number = 0;
    for stream in trace.streams().values() {
        election.next_cpu();
        for (chunk, _) in &stream.chunks {
            // Damage is told by the pass itself.
            let Ok(chunk) = trace.read(chunk) else { continue };
            chunk_number += 1;
            view.enter(chunk_number, &chunk);
            for index in 0..chunk.records().len() {
                let Some(seen) = view.see(trace, &chunk, index, sites) else { continue };
                match seen.kind {
                    Kind::PageAlloc { order, movable: false } if !is_failed(seen.value, trace) => {
                        election.page_alloc(seen.value, order, view.pid(trace, &chunk, index, seen.context));
                    }
                    Kind::Alloc(_) => {
                        let ptr = seen.value;
                        let pid = view.pid(trace, &chunk, index, seen.context);
                        election.slab_event(Some(ptr).filter(|&p| p != 0), pid);
                    }
                    Kind::Free(..) => election.slab_event(None, 0),
                    _ => {}
                }
            }
        }
    }
    election.result()
}

/// What the descriptors and contexts of a CPU's current chunk mean, worked out once each.
#[derive(Debug, Default)]
struct View {
    chunk_number: u64,
    kinds: Vec<Option<Known>>,
    pids: Vec<Option<i32>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    kind: Kind,
    class: usize,
    /// The value word is the field that the kind is about.
    in_value: bool,
}

struct Seen {
    kind: Kind,
    class: usize,
    /// Address or page frame.
    value: u64,
    time: u64,
    context: u16,
}

impl View {
    fn enter(&mut self, chunk_number: u64, chunk: &EventChunk<'_>) {
        if self.chunk_number != chunk_number {
            self.chunk_number = chunk_number;
            self.kinds.clear();
            self.kinds.resize(chunk.descriptor_count(), None);
            self.pids.clear();
        }
    }

    #[inline]
    fn see(
        &mut self,
        trace: &Trace<'_>,
        chunk: &EventChunk<'_>,
        index: usize,
        sites: &mut Sites,
    ) -> Option<Seen> {
        let record = chunk.records().get(index)?;
        let descriptor = usize::from(record.descriptor);
        if let Some(Some(known)) = self.kinds.get(descriptor).copied() {
            let time = chunk.time(index)?;
            if known.in_value || known.kind == Kind::Other {
                let Known { kind, class, .. } = known;
                return Some(Seen { kind, class, value: record.value, time, context: record.context });
            }
        }
        let event = Event::new(trace.schema(), chunk, index)?;
        let kind = sites.kind_of(&event);
        let role = match kind {
            Kind::Alloc(_) | Kind::Free(..) => Role::PTR,
            _ => Role::PFN,
        };
        let class = event.class_index();
        let shape = trace.schema().shape(chunk.shape_of(descriptor)?)?;
        let slot = event.class().field_with(role).and_then(|f| shape.slots.get(f));
        let in_value = shape.payload_len == 0
            && slot
                .is_some_and(|s| s.place == Place::Value && s.offset == 0 && s.transform == Transform::None);
        if shape.payload_len == 0 || kind == Kind::Other {
            if let Some(known) = self.kinds.get_mut(descriptor) {
                *known = Some(Known { kind, class, in_value });
            }
        }
        let value = event.uint_with(role).unwrap_or(0);
        Some(Seen { kind, class, value, time: event.time(), context: record.context })
    }

    #[inline]
    fn pid(&mut self, trace: &Trace<'_>, chunk: &EventChunk<'_>, index: usize, context: u16) -> i32 {
        let context = usize::from(context);
        if let Some(Some(pid)) = self.pids.get(context) {
            return *pid;
        }
        let pid = Event::new(trace.schema(), chunk, index).map_or(0, |e| e.pid());
        if self.pids.len() <= context {
            self.pids.resize(context + 1, None);
        }
        if let Some(slot) = self.pids.get_mut(context) {
            *slot = Some(pid);
        }
        pid
    }
}

/// Filters by task and CPU, names resolved to tasks once.
struct Selector {
    open: bool,
    pids: Option<std::collections::HashSet<i32>>,
    cpus: Vec<u32>,
    without: Option<i32>,
}

impl Selector {
    fn new(trace: &Trace<'_>, filter: &Filter) -> Self {
        let named = trace
            .metadata()
            .tasks
            .iter()
            .filter(|t| filter.comms.iter().any(|c| c.as_slice() == t.comm.as_ref()));
        let by_task = !filter.pids.is_empty() || !filter.comms.is_empty();
        let pids = by_task.then(|| filter.pids.iter().copied().chain(named.map(|t| t.pid)).collect());
        Self { open: filter.is_open(), pids, cpus: filter.cpus.clone(), without: filter.without }
    }

    #[inline]
    fn selects(&self, cpu: u32, pid: i32) -> bool {
        self.open
            || (self.without != Some(pid)
                && self.pids.as_ref().is_none_or(|p| p.contains(&pid))
                && (self.cpus.is_empty() || self.cpus.contains(&cpu)))
    }
}
