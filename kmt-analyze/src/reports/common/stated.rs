//! The selection of a report, and the amount of events that it leaves.
//!
//! Screens and JSON state it, so that a number is not read without its conditions. If a selection leaves nothing, values in the
//! trace that its conditions could match are listed.

use std::collections::BTreeSet;

use kmt_common::shell;
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::ledger::totals::OlderSums;
use crate::pass::condition::{Condition, Key};
use crate::pass::selection::Selection;
use crate::pass::sum_of;
use crate::render::head::{self, some_values};
use crate::render::screen::Screen;
use crate::render::words::{count, counted, escaped, shown, size, span, time};
use crate::reports::common::ReportContext;
use crate::stream::Api;
use crate::trace::busy_tasks;
use crate::trace::comms::has_starts;
use crate::trace::folded;
use crate::trace::names::{cache_name, task_in_message};
use crate::trace::session::Session;
use crate::trace::time_range::events_between;

/// Which conditions a report can heed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Of tasks and CPUs alone.
    Tasks,
    /// Of slab objects too.
    Slab,
    /// Of pages too.
    Pages,
    All,
}

impl Keys {
    fn has(self, key: Key) -> bool {
        match key {
            Key::Pid | Key::Comm | Key::Cgroup | Key::Cpu => true,
            Key::Event | Key::Gfp => self != Self::Tasks,
            Key::Node
            | Key::CallSite
            | Key::Module
            | Key::Dir
            | Key::File
            | Key::Cache
            | Key::BytesReq
            | Key::BytesAlloc
            | Key::Lifetime => {
                matches!(self, Self::Slab | Self::All)
            }
            Key::Order | Key::Migratetype | Key::Pfn => matches!(self, Self::Pages | Self::All),
        }
    }

    fn names(self) -> &'static str {
        match self {
            Self::Tasks => "pid, comm, cgroup, cpu",
            Self::Slab => {
                "pid, comm, cgroup, cpu, event, node, call_site, module, dir, file, cache, bytes_req, bytes_alloc or size, lifetime, gfp"
            }
            Self::Pages => "pid, comm, cgroup, cpu, event, gfp, order, migratetype, pfn",
            Self::All => "all of them",
        }
    }
}

impl Selection {
    /// True if it can be heeded: a window that is in the trace, and conditions that the report knows.
    pub fn check(&self, session: &Session<'_>, title: &str, keys: Keys) -> Result<()> {
        if let Some(term) = self.conditions().find(|t| !keys.has(t.key)) {
            return Err(Failure::new(format!("{title} cannot select by `{term}`"))
                .hint(format!("its keys are {}", keys.names())));
        }
        for term in self.conditions() {
            match term.key {
                Key::Dir => session.check_directories(&format!("`{term}`"))?,
                Key::File => session.check_source(&format!("`{term}`"))?,
                Key::Cgroup => session.check_cgroups(&format!("`{term}`"))?,
                _ => {}
            }
        }
        if self.children && self.is_of_any_task() {
            return Err(Failure::new("--children needs --pid or --comm"));
        }
        if self.children && !has_starts(session.trace) {
            return Err(Failure::new("--children needs the events of new tasks, which were not recorded")
                .hint(
                    "task:task_newtask: `kmt-capture record` records it unless --no-task-events is given",
                ));
        }
        self.terms_of(session)?;
        let Some((first, last)) = self.window(session)? else { return Ok(()) };
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

    /// True if not everything is selected.
    pub fn is_active(&self) -> bool {
        self.time.is_some()
            || self.at.is_some()
            || !self.pids.is_empty()
            || !self.comms.is_empty()
            || !self.cpus.is_empty()
            || self.conditions().next().is_some()
            || self.without_recorder
    }

    /// As it would be given on the command line, one option each, for people and machines.
    pub fn options(&self) -> Vec<String> {
        let option = |(name, value): (&str, Option<String>)| match value {
            Some(value) => format!("{name} {}", escaped(value.as_bytes())),
            None => name.to_owned(),
        };
        self.given().into_iter().map(option).collect()
    }

    /// One option each, quoted for a shell.
    pub fn shell_options(&self) -> Vec<String> {
        let option = |(name, value): (&str, Option<String>)| match value {
            Some(value) => shell::option(name, &value),
            None => name.to_owned(),
        };
        self.given().into_iter().map(option).collect()
    }

    /// Options that are given, with their values.
    pub fn given(&self) -> Vec<(&'static str, Option<String>)> {
        let option = |name: &'static str, value: &dyn ToString| (name, Some(value.to_string()));
        let mut out = Vec::new();
        out.extend(self.time.iter().map(|t| option("--time", t)));
        out.extend(
            self.at.iter().map(|t| option("--at", &t.to_string().split("..").next().unwrap_or_default())),
        );
        out.extend(self.pids.iter().map(|p| option("--pid", p)));
        out.extend(self.comms.iter().map(|c| option("--comm", c)));
        out.extend(self.children.then_some(("--children", None)));
        out.extend(self.cpus.iter().map(|c| option("--cpu", c)));
        out.extend(self.conditions().map(|t| option("--where", &t)));
        out.extend(self.without_recorder.then_some(("--without-recorder", None)));
        out
    }
}

/// A selection and what it leaves, for machines.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SelectionRow {
    /// Options, as they would be given on the command line.
    pub options: Vec<String>,
    /// Number of events of the window, on the CPUs that are selected.
    pub events: u64,
    /// Number of CPUs that are selected.
    pub cpus: usize,
    /// Start of the window, in the clock's unit.
    pub first: u64,
    /// End of the window, in the clock's unit.
    pub last: u64,
    /// Number of slab allocation events that match.
    pub slab_alloc_events: u64,
    /// Number of page allocation events that match.
    pub page_alloc_events: u64,
    /// True if no allocation, no free and nothing live matches.
    pub nothing_matches: bool,
    /// What was allocated in the trace before the window and was live in it; `null`: no window is selected.
    pub older: Option<OlderRow>,
}

/// Objects and pages that were allocated in the trace before the selected window and were live in it. `live` figures
/// include those still allocated at its end, except those of `leaks` and `lifetimes`: what these judge was allocated in
/// the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OlderRow {
    /// Slab objects.
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
    /// Slab objects that are live at the end of the window.
    pub objects_live: u64,
    /// Bytes of these.
    pub bytes_live: u64,
    /// Pages.
    pub pages: u64,
    /// Pages that are live at the end of the window.
    pub pages_live: u64,
}

impl OlderRow {
    /// Of a window; `None`: no window is selected.
    pub fn of(context: &ReportContext<'_, '_>) -> Option<Self> {
        let OlderSums { objects, bytes, objects_live, bytes_live, pages, pages_live } =
            context.analysis.balance.older;
        let row = Self { objects, bytes, objects_live, bytes_live, pages, pages_live };
        context.selection.has_window().then_some(row)
    }

    /// `Older than the selected time: 52,598 objects (19.1 MiB), 382 of them freed in it.` Where events were lost, a free
    /// event may be among them. `None`: nothing is older.
    fn sentence(&self, page_size: u64) -> Option<String> {
        let part = |number: u64, live: u64, bytes: u64, (one, several)| {
            let freed = count(number.saturating_sub(live));
            let all = counted(number, one, several);
            (number > 0).then(|| format!("{all} ({}), {freed} of them freed in it", size(bytes)))
        };
        let objects = part(self.objects, self.objects_live, self.bytes, ("object", "objects"));
        let bytes = self.pages.saturating_mul(page_size);
        let pages = part(self.pages, self.pages_live, bytes, ("page", "pages"));
        let parts: Vec<String> = objects.into_iter().chain(pages).collect();
        (!parts.is_empty()).then(|| {
            format!(
                "Older than the selected time: {}. Live figures include the others; lifetimes and growth are those of what was allocated in this time.",
                parts.join("; ")
            )
        })
    }
}

/// A selection and what it leaves.
#[derive(Debug)]
pub struct Stated {
    /// For machines.
    pub row: SelectionRow,
    events_all: u64,
    length: String,
    /// Slab objects and pages that were live at the moment, where one is selected.
    live_then: Option<(u64, u64)>,
    /// True if a condition is about lifetimes.
    by_lifetime: bool,
    /// True if times are moved to those of intervals of sums.
    is_of_intervals: bool,
    page_size: u64,
    /// Values that would match, where nothing does.
    candidates: Vec<String>,
}

impl Stated {
    /// Of a selection; `None` where everything is selected.
    pub fn of(context: &ReportContext<'_, '_>) -> Option<Self> {
        let (session, selection, result) = (context.session, context.selection, context.analysis);
        if !selection.is_active() {
            return None;
        }
        let window = selection.bounds(session);
        let is_on = |cpu: &u32| selection.cpus.is_empty() || selection.cpus.contains(cpu);
        let (first, last) = selection.span(session);
        let raw = result.balance.raw;
        let frames = &result.balance.frames;
        let totals = sum_of(result, None);
        let live_frames: u64 = frames.sites.iter().map(|f| f.frames_live).sum();
        let is_empty = raw.alloc_events + raw.free_events + totals.live + live_frames == 0
            && frames.counts.raw_alloc_events + frames.counts.raw_free_events == 0;
        Some(Self {
            row: SelectionRow {
                options: selection.options(),
                events: events_between(session.trace, window, is_on)
                    .saturating_add(folded::events_within(session.trace, window)),
                cpus: session.losses.cpus.iter().filter(|c| is_on(&c.cpu)).count(),
                first,
                last,
                slab_alloc_events: raw.alloc_events,
                page_alloc_events: frames.counts.raw_alloc_events,
                nothing_matches: is_empty,
                older: OlderRow::of(context),
            },
            page_size: result.page_size.0,
            events_all: folded::all_events(session.trace),
            live_then: selection.at.is_some().then_some((totals.live, live_frames)),
            length: span(last.saturating_sub(first), session.unit()),
            is_of_intervals: session.trace.header().folded
                && (selection.has_window() || selection.at.is_some()),
            by_lifetime: selection.conditions().any(|t| t.key == Key::Lifetime),
            candidates: if is_empty { candidates(context) } else { Vec::new() },
        })
    }

    /// The selection in words.
    pub fn lines(&self) -> Vec<String> {
        let row = &self.row;
        let moved = "Times are moved to the begin and end of intervals of sums.";
        let moved = self.is_of_intervals.then(|| moved.to_owned());
        if let Some((objects, pages)) = self.live_then {
            let live = format!(
                "Selected by {}: {} and {} that were allocated then, from {} events on {}.",
                row.options.join(" "),
                counted(objects, "slab object", "slab objects"),
                counted(pages, "page", "pages"),
                count(self.events_all),
                counted(row.cpus as u64, "CPU", "CPUs"),
            );
            return std::iter::once(live).chain(moved).collect();
        }
        let mut lines = vec![format!(
            "Selected by {}: {} of {} events in {} on {}; {} and {} match.",
            row.options.join(" "),
            count(row.events),
            count(self.events_all),
            self.length,
            counted(row.cpus as u64, "CPU", "CPUs"),
            counted(row.slab_alloc_events, "slab allocation", "slab allocations"),
            counted(row.page_alloc_events, "page allocation", "page allocations"),
        )];
        lines.extend(moved);
        lines.extend(row.older.and_then(|older| older.sentence(self.page_size)));
        if self.by_lifetime {
            lines.push("Lifetimes that ended by an implied free are upper bounds.".to_owned());
        }
        lines
    }

    /// The screen where nothing is left.
    pub fn nothing(&self, keys: Keys) -> Option<Screen> {
        (self.row.nothing_matches && keys != Keys::Tasks).then(|| head::nothing(self.candidates.clone()))
    }

    /// Reports on standard error, beside data, that nothing matches.
    pub fn report_nothing(&self) {
        if self.row.nothing_matches {
            head::report_nothing(&self.candidates);
        }
    }
}

/// Events of a selection's window, on its CPUs.
pub fn events_of(session: &Session<'_>, selection: &Selection) -> u64 {
    let window = selection.bounds(session);
    events_between(session.trace, window, |cpu| selection.cpus.is_empty() || selection.cpus.contains(cpu))
}

/// Names that the conditions on a key compare.
fn texts_of(selection: &Selection, key: Key) -> impl Iterator<Item = &str> {
    selection.conditions().filter(move |condition| condition.key == key).flat_map(Condition::texts)
}

/// The condition that finds a text within names, where it is in one of them: `=` compares whole names.
fn parts<'g>(key: &str, given: impl IntoIterator<Item = &'g str>, names: &[String]) -> Option<String> {
    let is_part = |text: &&str| names.iter().any(|name| name.contains(text));
    let part = given.into_iter().find(is_part)?;
    let condition = shell::word(format!("{key}~{}", regex::escape(part)));
    Some(format!("names with {} in them: --where {condition}", escaped(part.as_bytes())))
}

/// Values in the trace for each kind of condition that is selected by.
fn candidates(context: &ReportContext<'_, '_>) -> Vec<String> {
    let (session, selection, result) = (context.session, context.selection, context.analysis);
    let has = |key| selection.conditions().any(|t| t.key == key);
    let interner = &result.interner;
    let mut out = Vec::new();
    let pids: BTreeSet<i32> = interner.origins.items().iter().map(|o| o.pid).collect();
    if !selection.pids.is_empty() || !selection.comms.is_empty() || has(Key::Pid) || has(Key::Comm) {
        let names = session.names();
        let mut pids: Vec<i32> = pids.into_iter().collect();
        busy_tasks::sort(&mut pids, &busy_tasks::events(session.trace), names);
        let tasks = pids.iter().map(|&pid| task_in_message(names.shown_at(pid, u64::MAX), pid));
        let tasks: Vec<String> = tasks.collect();
        let given = selection.comms.iter().map(String::as_str).chain(texts_of(selection, Key::Comm));
        // Without the number of the thread.
        let comms = tasks.iter().filter_map(|task| Some(task.rsplit_once('-')?.0.to_owned()));
        out.extend(parts("comm", given, &comms.collect::<Vec<_>>()));
        out.push(format!("tasks: {}", some_values(tasks)));
    }
    if !selection.cpus.is_empty() || has(Key::Cpu) {
        let cpus = session.losses.cpus.iter().map(|c| c.cpu.to_string());
        out.push(format!("CPUs: {}", some_values(cpus.collect())));
    }
    if has(Key::Cgroup) {
        let cgroups = session.cgroups();
        let paths = interner.origins.items().iter().filter_map(|o| cgroups.path(o.pid, o.cgroup));
        let paths: BTreeSet<String> = paths.map(shown).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        out.extend(parts("cgroup", texts_of(selection, Key::Cgroup), &paths));
        out.push(format!("cgroups: {}", some_values(paths)));
    }
    if has(Key::Cache) {
        let mut caches: BTreeSet<String> = interner.names.items().iter().map(|n| cache_name(n)).collect();
        let sizes = interner.sites.items().iter().filter(|s| s.api == Api::Kmalloc).map(|s| s.bytes_alloc);
        caches.extend(sizes.collect::<BTreeSet<u64>>().iter().map(|&size| result.size_classes.name(size)));
        let caches: Vec<String> = caches.into_iter().collect();
        out.extend(parts("cache", texts_of(selection, Key::Cache), &caches));
        out.push(format!("caches: {}", some_values(caches)));
    }
    if has(Key::Event) {
        let classes = session.trace.schema().classes();
        let seen = classes.filter(|(i, _)| result.classes_seen.get(*i).copied().unwrap_or(false));
        let events: Vec<String> =
            seen.map(|(_, c)| shown(format!("{}:{}", c.system, c.name).as_bytes())).collect();
        out.push(format!("events: {}", some_values(events)));
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
