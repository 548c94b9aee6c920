//! Perfetto: counters of live bytes, slices of stalls, and events.
//!
//! Counters are rows of the report `timeline`, slices are intervals of the collector `Stalls`, and events are rows of
//! `tabular/event`, written as ftrace events of Perfetto (`proto`). Times are those of the trace clock. Perfetto's
//! trace processor and its viewer read the file.

use std::collections::{BTreeSet, HashMap};

use prost::Message as _;

use kmt_common::tell;

use super::output::Export;
use super::proto::perfetto::{
    CounterDescriptor, DebugAnnotation, FtraceEvent, FtraceEventBundle, GenericField, GenericFtraceEvent,
    ProcessDescriptor, ProcessTree, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent, TreeThread,
};
use super::tabular::{ExportCell, event};
use super::{ExportOptions, report_trust};
use crate::collect::stalls::{Interval, Stall, StallSums};
use crate::collect::{Collectors, Stalls};
use crate::failure::{Outcome, Result};
use crate::pass::selection::Selection;
use crate::pass::{self, Request};
use crate::render::words::escaped;
use crate::reports::common::labels::Labels;
use crate::reports::common::{Context, ReportContext};
use crate::reports::latency::compactors;
use crate::reports::report::Report as _;
use crate::reports::timeline::{TimelineKey, TimelineReport, TimelineRow};
use crate::sort_rows::SortRows;
use crate::trace::faults::Faults;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// All packets have one writer.
const SEQUENCE: u32 = 1;
/// Number of time steps of counters.
const STEPS: usize = 1000;
/// Events of one packet.
const BUNDLE: usize = 512;
/// Parent tracks of counters.
const GROUPS: [(TimelineKey, u64, &str); 3] = [
    (TimelineKey::Kind, 1, "kernel memory: live bytes"),
    (TimelineKey::Cache, 2, "kernel memory: live bytes by cache"),
    (TimelineKey::CallSite, 3, "kernel memory: live bytes by call site"),
];
/// First number of other tracks.
const COUNTERS: u64 = 1 << 20;
const THREADS: u64 = 1 << 32;

/// Writes a trace: counters and stalls are of one pass, events of another.
pub fn run(session: &Session<'_>, options: &ExportOptions) -> Result<Outcome> {
    let mut trace = Trace { out: Export::open_binary(&options.target(), &session.env)? };
    trace.tasks(session, options.selection.span(session).1)?;
    let context = Context { session, selection: &options.selection, limit: usize::MAX };
    let mut collectors = Collectors::default();
    let report = |by| TimelineReport { by, steps: STEPS, lines: options.counters_max() };
    // The keys of all groups are of sites: lines are made from one table of their live bytes.
    let timeline = report(GROUPS[0].0).collect(&context, &mut collectors);
    let stalls = collectors.add(Stalls { threshold: Some(0), compactors: compactors(session) });
    let needs = TimelineReport::NEEDS;
    let mut result = pass::run(session, &Request::new(&options.selection, &collectors).with(needs));
    for (by, uuid, name) in GROUPS {
        trace.group(uuid, name)?;
        let report = report(by);
        let rows = report.compute(&ReportContext::new(&context, &result), &timeline);
        report.note(&rows.timeline).into_iter().for_each(|note| tell!("note: {note}"));
        trace.counters(&rows.timeline, uuid)?;
    }
    trace.stalls(session, &options.selection, result.get(stalls))?;
    report_trust(session, &options.selection, &result);
    let mut faults = std::mem::take(&mut result.faults);
    if options.events {
        faults.join(trace.events(session, options)?);
    }
    trace.out.finish()?;
    Ok(outcome(session, &faults))
}

struct Trace {
    out: Export,
}

impl Trace {
    fn packet(&mut self, packet: TracePacket) -> Result<()> {
        /// Field 1 of `Trace`, with a length.
        const PACKET: u8 = 1 << 3 | 2;
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        let mut bytes = vec![PACKET];
        bytes.extend_from_slice(&packet.encode_length_delimited_to_vec());
        self.out.write(&bytes).map(|_| ())
    }

    fn track(&mut self, track: TrackDescriptor) -> Result<()> {
        self.packet(TracePacket { track_descriptor: Some(track), ..TracePacket::default() })
    }

    fn event(&mut self, time: u64, event: TrackEvent) -> Result<()> {
        self.packet(TracePacket { timestamp: Some(time), track_event: Some(event), ..TracePacket::default() })
    }

    fn group(&mut self, uuid: u64, name: &str) -> Result<()> {
        self.track(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            ..TrackDescriptor::default()
        })
    }

    /// Writes the tasks, with their names at a time: a track has one name.
    fn tasks(&mut self, session: &Session<'_>, time: u64) -> Result<()> {
        let tgids: std::collections::HashMap<i32, i32> =
            session.trace.metadata().tasks.iter().filter(|t| t.tgid > 0).map(|t| (t.pid, t.tgid)).collect();
        let threads: Vec<TreeThread> = session
            .names()
            .all_at(time)
            .into_iter()
            .map(|(pid, comm)| TreeThread {
                tid: Some(pid),
                name: Some(escaped(comm)),
                tgid: Some(tgids.get(&pid).copied().unwrap_or(pid)),
            })
            .collect();
        self.packet(TracePacket {
            timestamp: session.first_time(),
            process_tree: Some(ProcessTree { threads }),
            ..TracePacket::default()
        })
    }

    /// Writes one counter for each line of the timeline, at its changes.
    fn counters(&mut self, timeline: &TimelineRow, group: u64) -> Result<()> {
        for (number, line) in timeline.lines.iter().enumerate() {
            let uuid = COUNTERS * group + number as u64;
            self.track(TrackDescriptor {
                uuid: Some(uuid),
                name: Some(line.name.clone()),
                parent_uuid: Some(group),
                counter: Some(CounterDescriptor { unit: Some(3) }),
                ..TrackDescriptor::default()
            })?;
            let mut last = None;
            for (time, bytes) in timeline.points(line) {
                if last != Some(bytes) {
                    last = Some(bytes);
                    let event = TrackEvent {
                        kind: Some(4),
                        track_uuid: Some(uuid),
                        counter_value: Some(bytes),
                        ..TrackEvent::default()
                    };
                    self.event(time, event)?;
                }
            }
        }
        Ok(())
    }

    /// Writes slices on the tracks of tasks; those of kswapd also on its thread.
    fn stalls(&mut self, session: &Session<'_>, selection: &Selection, stalls: &StallSums) -> Result<()> {
        let labels = Labels::new(session);
        let shrinkers = stalls.shrinker_numbers();
        let mut intervals = stalls.intervals.clone();
        // Slices of a track must nest: of two with the same begin, the longer one is the outer.
        intervals.sort_rows_by_key(|i| (i.pid, i.begin, std::cmp::Reverse(i.end)));
        let pids: BTreeSet<i32> = intervals.iter().map(|i| i.pid).collect();
        let end = selection.span(session).1;
        for pid in pids {
            let name = escaped(session.names().shown_at(pid, end));
            let thread =
                ThreadDescriptor { pid: Some(pid), tid: Some(pid.into()), thread_name: Some(name.clone()) };
            self.track(TrackDescriptor {
                uuid: Some(thread_track(pid)),
                thread: Some(thread),
                ..TrackDescriptor::default()
            })?;
            self.track(TrackDescriptor {
                uuid: Some(thread_track(pid) + 1),
                process: Some(ProcessDescriptor { pid: Some(pid), process_name: Some(name) }),
                ..TrackDescriptor::default()
            })?;
        }
        let mut open: Vec<Interval> = Vec::new();
        for interval in &intervals {
            while open.last().is_some_and(|o| o.pid != interval.pid || o.end <= interval.begin) {
                if let Some(last) = open.pop() {
                    self.end(&last)?;
                }
            }
            let name = stall_name(interval.stall, &shrinkers, &labels);
            let length = interval.end.saturating_sub(interval.begin);
            let note = DebugAnnotation { name: Some("length".to_owned()), uint_value: Some(length) };
            let begin = TrackEvent {
                kind: Some(1),
                track_uuid: Some(thread_track(interval.pid)),
                name: Some(name),
                debug_annotations: vec![note],
                ..TrackEvent::default()
            };
            self.event(interval.begin, begin)?;
            // A slice that exceeds its outer one is cut.
            let end = open.last().map_or(interval.end, |o| interval.end.min(o.end));
            open.push(Interval { end, ..*interval });
        }
        while let Some(last) = open.pop() {
            self.end(&last)?;
        }
        if stalls.intervals_left_out > 0 {
            tell!("note: {} short stalls are left out", stalls.intervals_left_out);
        }
        Ok(())
    }

    fn end(&mut self, interval: &Interval) -> Result<()> {
        let uuid = Some(thread_track(interval.pid));
        self.event(interval.end, TrackEvent { kind: Some(2), track_uuid: uuid, ..TrackEvent::default() })
    }

    fn events(&mut self, session: &Session<'_>, options: &ExportOptions) -> Result<Faults> {
        let mut bundles: std::collections::BTreeMap<u32, Vec<FtraceEvent>> =
            std::collections::BTreeMap::new();
        let faults = event::each(session, &options.selection, &mut |row| {
            let (cpu, event) = ftrace_event(&row);
            let waiting = bundles.entry(cpu).or_default();
            waiting.push(event);
            if waiting.len() >= BUNDLE {
                let event = std::mem::take(waiting);
                self.bundle(cpu, event)?;
            }
            Ok(true)
        })?;
        for (cpu, event) in bundles {
            self.bundle(cpu, event)?;
        }
        Ok(faults)
    }

    fn bundle(&mut self, cpu: u32, event: Vec<FtraceEvent>) -> Result<()> {
        let bundle = FtraceEventBundle { cpu: Some(cpu), event };
        self.packet(TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() })
    }
}

/// Numbers of shrinkers that share a function.
type Shrinkers = HashMap<Stall, (usize, usize)>;

fn thread_track(pid: i32) -> u64 {
    THREADS + u64::from(pid as u32) * 2
}

fn stall_name(stall: Stall, shrinkers: &Shrinkers, labels: &Labels<'_, '_>) -> String {
    match stall {
        Stall::Direct => "direct reclaim".to_owned(),
        Stall::Memcg => "memory cgroup reclaim".to_owned(),
        Stall::SoftLimit => "soft limit reclaim".to_owned(),
        Stall::Node => "node reclaim".to_owned(),
        Stall::DirectCompaction => "direct compaction".to_owned(),
        Stall::Compaction => "compaction".to_owned(),
        Stall::Kswapd(node) => node.map_or("kswapd".to_owned(), |node| format!("kswapd of node {node}")),
        Stall::Shrinker(Some(function), _) => {
            let several = shrinkers.get(&stall).filter(|(_, of)| *of > 1);
            let number = several.map_or(String::new(), |(number, _)| format!(" #{number}"));
            format!("shrinker {}{number}", labels.function(function))
        }
        Stall::Shrinker(None, _) => "a shrinker".to_owned(),
        Stall::Function(function) => labels.function(function),
    }
}

/// A row of events as ftrace's own event.
fn ftrace_event(row: &[ExportCell]) -> (u32, FtraceEvent) {
    let (mut time, mut cpu, mut pid, mut name) = (None, 0, None, None);
    let mut fields = Vec::new();
    for ((column, _), cell) in event::EVENT.iter().zip(row) {
        let field = GenericField { name: Some((*column).to_owned()), ..GenericField::default() };
        match (*column, cell) {
            ("ts", ExportCell::Uint(ts)) => time = Some(*ts),
            ("cpu", ExportCell::Uint(number)) => cpu = *number as u32,
            ("pid", ExportCell::Int(number)) => pid = Some(*number as u32),
            ("event", ExportCell::Text(text)) => name = Some(text.clone()),
            ("comm", _) | (_, ExportCell::Null) | ("is_duplicate", ExportCell::Bool(false)) => {}
            (_, ExportCell::Text(text)) => {
                fields.push(GenericField { str_value: Some(text.clone()), ..field })
            }
            (_, ExportCell::Int(number)) => fields.push(GenericField { int_value: Some(*number), ..field }),
            (_, ExportCell::Bool(truth)) => {
                fields.push(GenericField { uint_value: Some((*truth).into()), ..field })
            }
            (_, ExportCell::Uint(number) | ExportCell::Address(number)) => {
                fields.push(GenericField { uint_value: Some(*number), ..field });
            }
        }
    }
    let generic = GenericFtraceEvent { event_name: name, field: fields };
    (cpu, FtraceEvent { timestamp: time, pid, generic: Some(generic) })
}
