//! Events as rows, with a mark at events that a later event reports again.
//!
//! A large kmalloc counts once, at the second event, as in reports (R4 of the ledger). That an event is followed by another one
//! is known behind it only, so events are read once before they are written.

use std::collections::HashMap;

use kmt_format::kernel::FieldKind;
use kmt_format::print::EventText;
use kmt_format::read::{DuplicateKmallocs, Event, Merge, Trace};
use kmt_format::schema::{Meaning, Role};

use super::{ColumnKind, ExportCell};
use crate::failure::{Failure, Result};
use crate::pass::progress::ByTime;
use crate::pass::selection::Selection;
use crate::render::head;
use crate::render::words::escaped;
use crate::trace::faults::Faults;
use crate::trace::names::cache_name;
use crate::trace::session::Session;

/// Columns of events: fields by role, then the whole event in the kernel's format, and whether a later event reports the same
/// allocation again.
pub const EVENT: [(&str, ColumnKind); 19] = [
    ("ts", ColumnKind::Uint),
    ("cpu", ColumnKind::Uint),
    ("pid", ColumnKind::Int),
    ("comm", ColumnKind::Text),
    ("event", ColumnKind::Text),
    ("ptr", ColumnKind::Address),
    ("call_site", ColumnKind::Address),
    ("call_site_text", ColumnKind::Text),
    ("bytes_req", ColumnKind::Uint),
    ("bytes_alloc", ColumnKind::Uint),
    ("gfp_flags", ColumnKind::Uint),
    ("node", ColumnKind::Int),
    ("cache", ColumnKind::Text),
    ("accounted", ColumnKind::Bool),
    ("pfn", ColumnKind::Uint),
    ("page_order", ColumnKind::Uint),
    ("migratetype", ColumnKind::Int),
    ("text", ColumnKind::Text),
    ("is_duplicate", ColumnKind::Bool),
];

/// Calls `see` with each selected event as a row of [`EVENT`], until it returns false. Conditions are about
/// allocations, so events are selected by time, CPU, task and name only.
pub fn each(
    session: &Session<'_>,
    selection: &Selection,
    see: &mut dyn FnMut(Vec<ExportCell>) -> Result<bool>,
) -> Result<Faults> {
    let is_of_allocations = selection.at.is_some() || selection.without_recorder || selection.children;
    if selection.conditions().next().is_some() || is_of_allocations {
        return Err(Failure::new(
            "--where, --at, --children and --without-recorder select allocations, not events",
        )
        .hint("select events by --time, --cpu, --pid and --comm, or leave --events out"));
    }
    let trace = session.trace;
    let symbols = session.symbolizer();
    let env = symbols.env();
    let texts: HashMap<usize, EventText> =
        trace.schema().classes().map(|(index, class)| (index, EventText::new(class, env))).collect();
    let names = session.names();
    let start = session.first_time().unwrap_or(0);
    let window = selection.time.as_ref().map(|range| range.resolve(&session.clock(), start)).transpose()?;
    let progress = ByTime::of(session, window);
    let mut is_empty = true;
    // The events of a pair are less than a millisecond apart, and the window may begin or end between them.
    let apart_max = trace.metadata().clock.as_ref().map_or(1_000_000, |clock| clock.millisecond().0);
    let around =
        window.map(|(first, last)| (first.saturating_sub(apart_max), last.saturating_add(apart_max)));
    let mut firsts = FirstEvents::within(trace, around);
    let mut merge = merge_within(trace, around);
    while let Some(run) = merge.next_run() {
        let is_selected = selection.cpus.is_empty() || selection.cpus.contains(&run.cpu);
        if let Some(event) = run.events().next() {
            progress.at(event.time());
        }
        for event in run.events() {
            let is_duplicate = firsts.is_next();
            let is_inside = window.is_none_or(|(first, last)| (first..=last).contains(&event.time()));
            if !is_selected || !is_inside {
                continue;
            }
            let pid = event.pid();
            let comm = names.shown_at(pid, event.time());
            if !selection.is_of_any_task() && !selection.is_task(pid, comm) {
                continue;
            }
            let mut text = Vec::new();
            if let Some(rendered) = texts.get(&event.class_index()) {
                rendered.write_fields(&mut text, &event, env);
            }
            is_empty = false;
            let mut row = row(&event, escaped(comm), escaped(&text), &|address| symbols.kept(address));
            row.push(ExportCell::Bool(is_duplicate));
            if !see(row)? {
                return Ok(merge.damages().into());
            }
        }
    }
    let faults = merge.damages().into();
    if is_empty && trace.event_count() > 0 {
        head::report_no_event(session);
    }
    Ok(faults)
}

/// All but the last column.
fn row(event: &Event<'_>, comm: String, text: String, symbol: &dyn Fn(u64) -> String) -> Vec<ExportCell> {
    let class = event.class();
    let is_number = |role| {
        let field = class.field_with(role).and_then(|f| event.class().fields.get(f));
        field.is_some_and(|f| f.kind == FieldKind::Scalar)
    };
    let number = |role| event.uint_with(role).filter(|_| is_number(role));
    let uint = |role| number(role).map_or(ExportCell::Null, ExportCell::Uint);
    let int = |role| number(role).map_or(ExportCell::Null, |n| ExportCell::Int((n as i32).into()));
    let address = |role| number(role).map_or(ExportCell::Null, ExportCell::Address);
    let cache = class.field_with(Role::CACHE_NAME).and_then(|f| event.text(f));
    vec![
        ExportCell::Uint(event.time()),
        ExportCell::Uint(event.cpu().into()),
        ExportCell::Int(event.pid().into()),
        ExportCell::Text(comm),
        ExportCell::Text(format!("{}:{}", escaped(class.system.as_bytes()), escaped(class.name.as_bytes()))),
        address(Role::PTR),
        address(Role::CALL_SITE),
        number(Role::CALL_SITE).map_or(ExportCell::Null, |a| ExportCell::Text(symbol(a))),
        uint(Role::BYTES_REQ),
        uint(Role::BYTES_ALLOC),
        uint(Role::GFP_FLAGS),
        int(Role::NODE),
        cache.map_or(ExportCell::Null, |name| ExportCell::Text(cache_name(name))),
        number(Role::ACCOUNTED).map_or(ExportCell::Null, |n| ExportCell::Bool(n != 0)),
        uint(Role::PFN),
        uint(Role::ORDER),
        int(Role::MIGRATETYPE),
        ExportCell::Text(text),
    ]
}

/// Events of a window, or all.
fn merge_within<'t, 'd>(trace: &'t Trace<'d>, window: Option<(u64, u64)>) -> Merge<'t, 'd> {
    match window {
        Some((first, last)) => trace.merge_between(first, last),
        None => trace.merge(),
    }
}

/// First events of the pairs in a part of a trace.
#[derive(Debug, Default)]
pub struct FirstEvents {
    /// Numbers of these events in the order of events, ascending.
    numbers: Vec<u64>,
    /// Number of them until now.
    passed: usize,
    /// Number of events until now.
    events: u64,
}

impl FirstEvents {
    /// Finds those in a window.
    pub fn within(trace: &Trace<'_>, window: Option<(u64, u64)>) -> Self {
        if trace.schema().classes().all(|(_, class)| class.meaning != Meaning::KMALLOC) {
            return Self::default();
        }
        let mut duplicates = DuplicateKmallocs::new(trace);
        let (mut numbers, mut number) = (Vec::new(), 0);
        let mut merge = merge_within(trace, window);
        while let Some(run) = merge.next_run() {
            for event in run.events() {
                numbers.extend(duplicates.see(&event, number));
                number += 1;
            }
        }
        numbers.sort_unstable();
        Self { numbers, ..Self::default() }
    }

    /// True if the next event is one of them. To be called for each event of the same window, in order.
    pub fn is_next(&mut self) -> bool {
        let is_first = self.numbers.get(self.passed) == Some(&self.events);
        self.passed += usize::from(is_first);
        self.events += 1;
        is_first
    }
}
