//! What a report's selection is, what it leaves, and what would match where it leaves nothing.

use std::collections::BTreeSet;

use kmt_format::read::Trace;
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::pass;
use crate::pass::selection::Selection;
use crate::pass::sum_of;
use crate::pass::term::Key;
use crate::render::text::{count, escaped, span, time};
use crate::stream::Api;
use crate::trace::session::Session;
use crate::trace::session::task_names;

/// Which conditions a report can heed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Of tasks and CPUs alone.
    Tasks,
    /// Of slab objects too.
    Slab,
    /// Of pages too.
    Pages,
    /// All.
    All,
}

impl Keys {
    fn has(self, key: Key) -> bool {
        match key {
            Key::Pid | Key::Comm | Key::Cpu => true,
            Key::Event | Key::Gfp => self != Self::Tasks,
            Key::Node | Key::CallSite | Key::Cache | Key::BytesReq | Key::BytesAlloc | Key::Lifetime => {
                matches!(self, Self::Slab | Self::All)
            }
            Key::Order | Key::Migratetype => matches!(self, Self::Pages | Self::All),
        }
    }

    fn names(self) -> &'static str {
        match self {
            Self::Tasks => "pid, comm, cpu",
            Self::Slab => {
                "pid, comm, cpu, event, node, call_site, cache, bytes_req, bytes_alloc or size, lifetime, gfp"
            }
            Self::Pages => "pid, comm, cpu, event, gfp, order, migratetype",
            Self::All => "all of them",
        }
    }
}

impl Selection {
    /// Whether it can be heeded: a window that lies in the trace, and conditions that the report knows.
    pub fn check(&self, session: &Session<'_>, title: &str, keys: Keys) -> Result<()> {
        if let Some(term) = self.terms.iter().find(|t| !keys.has(t.key)) {
            return Err(Failure::new(format!("{title} cannot select by `{term}`"))
                .hint(format!("its keys are {}", keys.names())));
        }
        let Some((first, last)) = self.filter(session).window else { return Ok(()) };
        let (Some(start), Some(end)) = (session.first_time(), session.last_time()) else { return Ok(()) };
        let unit = session.unit();
        let given = self.at.as_ref().map(ToString::to_string).or(self.time.as_ref().map(ToString::to_string));
        let given = given.unwrap_or_default();
        let valid = format!(
            "the trace goes from {} to {}, which is +0..+{}",
            time(start, unit),
            time(end, unit),
            span(end.saturating_sub(start), unit).trim_end_matches(" s")
        );
        if first > last {
            return Err(Failure::new(format!("the window {given} ends before it begins")).hint(valid));
        }
        if last < start || first > end {
            return Err(Failure::new(format!("{given} lies outside the trace")).hint(valid));
        }
        Ok(())
    }

    /// Whether anything but everything is selected.
    pub fn is_active(&self) -> bool {
        self.time.is_some()
            || self.at.is_some()
            || !self.pids.is_empty()
            || !self.comms.is_empty()
            || !self.cpus.is_empty()
            || !self.terms.is_empty()
            || self.without_recorder
    }

    /// As it would be given on the command line.
    fn options(&self) -> Vec<String> {
        let mut out = Vec::new();
        out.extend(self.time.iter().map(|t| format!("--time {t}")));
        out.extend(
            self.at.iter().map(|t| format!("--at {}", t.to_string().split("..").next().unwrap_or_default())),
        );
        out.extend(self.pids.iter().map(|p| format!("--pid {p}")));
        out.extend(self.comms.iter().map(|c| format!("--comm {}", escaped(c.as_bytes()))));
        out.extend(self.cpus.iter().map(|c| format!("--cpu {c}")));
        out.extend(self.terms.iter().map(|t| format!("--where {}", escaped(t.to_string().as_bytes()))));
        out.extend(self.without_recorder.then(|| "--without-recorder".to_owned()));
        out
    }
}

/// A selection and what it leaves.
#[derive(Debug)]
pub struct Stated {
    options: Vec<String>,
    /// Events of the window, on the CPUs that are selected.
    events: u64,
    events_all: u64,
    cpus: usize,
    length: String,
    window: (u64, u64),
    slab_allocs: u64,
    page_allocs: u64,
    /// Whether a condition is about lifetimes.
    by_lifetime: bool,
    /// Whether anything at all of the ledger counts.
    is_empty: bool,
    /// What would match each condition.
    candidates: Vec<String>,
}

impl Stated {
    /// Of a selection; `None` where everything is selected.
    pub fn of(session: &Session<'_>, selection: &Selection, result: &pass::Analysis) -> Option<Self> {
        if !selection.is_active() {
            return None;
        }
        let window = selection.filter(session).window.unwrap_or((0, u64::MAX));
        let is_on = |cpu: &u32| selection.cpus.is_empty() || selection.cpus.contains(cpu);
        let (first, last) = selection.span(session);
        let raw = result.balance.raw;
        let frames = &result.balance.frames;
        let totals = sum_of(result, None);
        let live_frames: u64 = frames.sites.iter().map(|f| f.frames_live).sum();
        let is_empty = raw.alloc_events + raw.free_events + totals.live + live_frames == 0
            && frames.counts.raw_alloc_events + frames.counts.raw_free_events == 0;
        Some(Self {
            options: selection.options(),
            events: events_between(session.trace, window, is_on),
            events_all: session.trace.event_count(),
            cpus: session.losses.cpus.iter().filter(|c| is_on(&c.cpu)).count(),
            length: span(last.saturating_sub(first), session.unit()),
            window: (first, last),
            slab_allocs: raw.alloc_events,
            page_allocs: frames.counts.raw_alloc_events,
            by_lifetime: selection.terms.iter().any(|t| t.key == Key::Lifetime),
            is_empty,
            candidates: if is_empty { candidates(session, selection, result) } else { Vec::new() },
        })
    }

    /// The line above a report.
    pub fn text(&self) -> String {
        let lifetimes = if self.by_lifetime {
            "lifetimes of objects freed unseen are upper bounds: such objects count by them\n"
        } else {
            ""
        };
        format!(
            "selected: {}: {} of {} events in {} on {} CPUs; {} slab and {} page allocations match\n{lifetimes}",
            self.options.join(" "),
            count(self.events),
            count(self.events_all),
            self.length,
            self.cpus,
            count(self.slab_allocs),
            count(self.page_allocs),
        )
    }

    /// The same for machines.
    pub fn json(&self) -> Value {
        json!({
            "options": self.options,
            "events": self.events,
            "cpus": self.cpus,
            "first": self.window.0,
            "last": self.window.1,
            "slab_alloc_events": self.slab_allocs,
            "page_alloc_events": self.page_allocs,
            "nothing_matches": self.is_empty,
        })
    }

    /// What to print where nothing is left.
    pub fn nothing(&self, keys: Keys) -> Option<String> {
        (self.is_empty && keys != Keys::Tasks).then(|| {
            let mut out = "nothing matches\n".to_owned();
            self.candidates.iter().for_each(|line| out.push_str(&format!("{line}\n")));
            out
        })
    }
}

/// Events of a selection's window, on its CPUs.
pub fn events_of(session: &Session<'_>, selection: &Selection) -> u64 {
    let window = selection.filter(session).window.unwrap_or((0, u64::MAX));
    events_between(session.trace, window, |cpu| selection.cpus.is_empty() || selection.cpus.contains(cpu))
}

/// Events from one time to another on some CPUs: whole chunks are counted by their heads.
fn events_between(trace: &Trace<'_>, (first, last): (u64, u64), is_on: impl Fn(&u32) -> bool) -> u64 {
    let mut events = 0;
    for (_, stream) in trace.streams().iter().filter(|(cpu, _)| is_on(cpu)) {
        for (at, info) in &stream.chunks {
            if info.event_count == 0 || info.t_last < first || info.t_first > last {
                continue;
            }
            if info.t_first >= first && info.t_last <= last {
                events += u64::from(info.event_count);
                continue;
            }
            let Ok(chunk) = trace.read(at) else { continue };
            let end = last.checked_add(1).map_or(chunk.records().len(), |end| chunk.first_at_or_after(end));
            events += end.saturating_sub(chunk.first_at_or_after(first)) as u64;
        }
    }
    events
}

/// For each kind of condition what the trace has.
fn candidates(session: &Session<'_>, selection: &Selection, result: &pass::Analysis) -> Vec<String> {
    let has = |key| selection.terms.iter().any(|t| t.key == key);
    let interner = &result.interner;
    let mut out = Vec::new();
    let names = task_names(session);
    let pids: BTreeSet<i32> = interner.origins.items().iter().map(|o| o.pid).collect();
    if !selection.pids.is_empty() || !selection.comms.is_empty() || has(Key::Pid) || has(Key::Comm) {
        let tasks = pids
            .iter()
            .map(|pid| format!("{}-{pid}", names.get(pid).map_or("<...>".to_owned(), |name| escaped(name))));
        out.push(format!("tasks: {}", some(tasks.collect())));
    }
    if !selection.cpus.is_empty() || has(Key::Cpu) {
        let cpus = session.losses.cpus.iter().map(|c| c.cpu.to_string());
        out.push(format!("CPUs: {}", some(cpus.collect())));
    }
    if has(Key::Cache) {
        let mut caches: BTreeSet<String> = interner.names.items().iter().map(|n| escaped(n)).collect();
        let sizes = interner.sites.items().iter().filter(|s| s.api == Api::Kmalloc).map(|s| s.bytes_alloc);
        caches.extend(sizes.collect::<BTreeSet<u64>>().iter().map(|&size| result.size_classes.name(size)));
        out.push(format!("caches: {}", some(caches.into_iter().collect())));
    }
    if has(Key::Event) {
        let classes = session.trace.schema().classes();
        let seen = classes.filter(|(i, _)| result.classes_seen.get(*i).copied().unwrap_or(false));
        let events: Vec<String> =
            seen.map(|(_, c)| escaped(format!("{}:{}", c.system, c.name).as_bytes())).collect();
        out.push(format!("events: {}", some(events)));
    }
    let sizes: Vec<u64> = interner.sites.items().iter().map(|s| s.bytes_alloc).collect();
    if let (true, Some(low), Some(high)) =
        (has(Key::BytesAlloc) || has(Key::BytesReq), sizes.iter().min(), sizes.iter().max())
    {
        out.push(format!("sizes: {} to {} bytes", count(*low), count(*high)));
    }
    if has(Key::CallSite) {
        out.push("call sites: `callers` lists them".to_owned());
    }
    let is_narrow = selection.time.is_some() || selection.at.is_some();
    if let (true, Some(start), Some(end)) = (is_narrow, session.first_time(), session.last_time()) {
        let unit = session.unit();
        out.push(format!("times: {} to {}", time(start, unit), time(end, unit)));
    }
    out
}

/// Some of many.
fn some(all: Vec<String>) -> String {
    const SHOWN: usize = 12;
    let more = all.len().saturating_sub(SHOWN);
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown}, and {more} more") } else { shown }
}
