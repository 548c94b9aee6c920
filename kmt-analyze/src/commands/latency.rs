//! `latency`: how long tasks waited for memory, what for, and which allocation had to wait.

use std::collections::BTreeMap;

use kmt_format::kernel::ClockUnit;
use kmt_format::read::Event;
use kmt_format::schema::EventClass;
use serde_json::{Map, Value, json};

use super::dump::Printer;
use super::names::TraceNames;
use super::parts::{Labels, Page, Report, Subject};
use super::trust::recorded_class;
use crate::analysis::filter::Names;
use crate::analysis::pass;
use crate::analysis::sinks::histogram::Histogram;
use crate::analysis::sinks::stalls::{Delayed, Interval, Stall, TaskStalls};
use crate::analysis::sinks::{Sinks, Stalls};
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, escaped, time};

/// The report.
#[derive(Debug, Default)]
pub struct Latency {
    /// Print intervals at least this long, with their events; in the clock's unit.
    pub threshold: Option<u64>,
}

impl Report for Latency {
    fn title(&self) -> &'static str {
        "latency"
    }

    fn want(&self, _: &Subject<'_, '_>, sinks: &mut Sinks) {
        sinks.stalls = Some(Stalls::new(self.threshold));
    }

    fn page(&self, subject: &Subject<'_, '_>, result: &mut pass::Result) -> Page {
        let mut stalls = result.balance.sinks.stalls.take().unwrap_or_default();
        let (unclosed, unanswered) = stalls.finish();
        let recorded = Recorded::of(subject, result);
        let view = View {
            subject,
            result,
            stalls,
            labels: Labels::new(subject.session),
            unclosed,
            unanswered,
            recorded,
        };
        let mut out = Map::new();
        out.insert("latency".into(), view.json(self.threshold));
        let text = if self.threshold.is_some() { view.long_ones() } else { view.text() };
        Page { json: out, text }
    }
}

/// Which events were recorded.
struct Recorded {
    direct: bool,
    compaction: bool,
    kswapd: bool,
    shrinkers: bool,
    scanned: bool,
    reclaimed: bool,
    written: bool,
    wakeups: bool,
    graph: bool,
}

impl Recorded {
    fn of(subject: &Subject<'_, '_>, result: &pass::Result) -> Self {
        // What was not seen and may have been recorded did not happen.
        let has = |start: &str| {
            let is_it = |class: &EventClass| class.name.starts_with(start);
            recorded_class(subject.session, result, is_it).unwrap_or(false)
        };
        Self {
            direct: has("mm_vmscan_direct_reclaim_begin"),
            compaction: has("mm_compaction_begin"),
            kswapd: has("mm_vmscan_kswapd_wake"),
            shrinkers: has("mm_shrink_slab_start"),
            scanned: has("mm_vmscan_lru_isolate"),
            reclaimed: has("mm_vmscan_lru_shrink_inactive"),
            written: has("mm_vmscan_write"),
            wakeups: has("mm_vmscan_wakeup_kswapd"),
            graph: has("funcgraph_exit"),
        }
    }

    fn missing(&self) -> Vec<&'static str> {
        let all = [
            (self.direct, "direct reclaim (vmscan:mm_vmscan_direct_reclaim_begin and _end)"),
            (self.compaction, "compaction (compaction:mm_compaction_begin and _end)"),
            (self.kswapd, "kswapd (vmscan:mm_vmscan_kswapd_wake and _sleep)"),
            (self.wakeups, "who woke kswapd (vmscan:mm_vmscan_wakeup_kswapd)"),
            (self.shrinkers, "shrinkers (vmscan:mm_shrink_slab_start and _end)"),
            (self.scanned, "pages scanned (vmscan:mm_vmscan_lru_isolate)"),
            (self.reclaimed, "pages reclaimed (vmscan:mm_vmscan_lru_shrink_inactive)"),
            (self.written, "pages written by reclaim (vmscan:mm_vmscan_write_folio)"),
            (self.graph, "functions (a function graph)"),
        ];
        all.into_iter().filter(|(has, _)| !has).map(|(_, name)| name).collect()
    }
}

/// A number, or that it was not recorded.
fn known(is_known: bool, text: String) -> String {
    if is_known { text } else { "?".to_owned() }
}

fn known_json(is_known: bool, number: u64) -> Value {
    if is_known { json!(number) } else { Value::Null }
}

struct View<'v, 's, 'd> {
    subject: &'v Subject<'s, 'd>,
    result: &'v pass::Result,
    stalls: Stalls,
    labels: Labels<'s, 'd>,
    unclosed: u64,
    unanswered: u64,
    recorded: Recorded,
}

impl View<'_, '_, '_> {
    fn unit(&self) -> ClockUnit {
        self.subject.session.unit()
    }

    /// What it is, for people.
    fn name(&self, stall: Stall) -> String {
        match stall {
            Stall::Direct => "direct reclaim".to_owned(),
            Stall::Memcg => "memory cgroup reclaim".to_owned(),
            Stall::SoftLimit => "memory cgroup reclaim, soft limit".to_owned(),
            Stall::Node => "node reclaim".to_owned(),
            Stall::DirectCompaction => "direct compaction".to_owned(),
            Stall::Compaction => "compaction in the background".to_owned(),
            Stall::Kswapd(node) => format!("kswapd of node {node} awake"),
            Stall::Shrinker(function, shrinker) => {
                let name = self.labels.function(function);
                // The functions of several shrinkers may be the same; addresses are not for reports.
                let alike: Vec<u64> = self.alike(function);
                match alike.iter().position(|&s| s == shrinker) {
                    Some(place) if alike.len() > 1 => format!("shrinker {name} #{}", place + 1),
                    _ => format!("shrinker {name}"),
                }
            }
            Stall::Function(function) => format!("function {}", self.labels.function(function)),
        }
    }

    /// Shrinkers of that function, in the order of their addresses.
    fn alike(&self, function: u64) -> Vec<u64> {
        let mut out: Vec<u64> = self
            .stalls
            .kinds
            .keys()
            .filter_map(|s| match *s {
                Stall::Shrinker(f, shrinker) if f == function => Some(shrinker),
                _ => None,
            })
            .collect();
        out.dedup();
        out
    }

    /// Which of several shrinkers with the same function it is.
    fn shrinker_number(&self, stall: Stall) -> Option<usize> {
        match stall {
            Stall::Shrinker(function, shrinker) => {
                self.alike(function).iter().position(|&s| s == shrinker).map(|p| p + 1)
            }
            _ => None,
        }
    }

    fn json(&self, threshold: Option<u64>) -> Value {
        let kinds: Vec<Value> = self.rows().map(|(stall, lengths)| self.kind_json(stall, lengths)).collect();
        let functions: Vec<Value> = self
            .by_function()
            .iter()
            .map(|(function, lengths)| {
                let mut out = lengths_json(lengths);
                out.insert("function".into(), json!(self.labels.function(*function)));
                out.into()
            })
            .collect();
        let delayed: Vec<Value> =
            self.delayed().iter().take(self.subject.limit).map(|d| self.delayed_json(d)).collect();
        let tasks: Vec<Value> =
            self.tasks().iter().take(self.subject.limit).map(|(pid, t)| self.task_json(*pid, t)).collect();
        json!({
            "kinds": kinds,
            "shrinker_functions": functions,
            "delayed_allocations": delayed,
            "tasks": tasks,
            "not_recorded": self.recorded.missing(),
            "ends_without_begin": self.stalls.unopened,
            "begins_without_end": self.unclosed,
            "stalls_without_allocation": self.unanswered,
            "threshold": threshold,
            "intervals": self.stalls.intervals.iter().map(|i| json!({
                "kind": self.name(i.stall),
                "pid": i.pid,
                "cpu": i.cpu,
                "begin": i.begin,
                "end": i.end,
                "length": i.end.saturating_sub(i.begin),
            })).collect::<Vec<_>>(),
            "intervals_left_out": self.stalls.intervals_left_out,
        })
    }

    fn kind_json(&self, stall: Stall, lengths: &Histogram) -> Value {
        let mut out = lengths_json(lengths);
        out.insert("kind".into(), json!(kind(stall)));
        out.insert("name".into(), json!(self.name(stall)));
        match stall {
            Stall::Shrinker(function, _) => {
                out.insert("function".into(), json!(self.labels.function(function)));
                out.insert("shrinker".into(), json!(self.shrinker_number(stall)));
                out.insert("objects_freed".into(), json!(self.stalls.shrunk.get(&stall)));
            }
            Stall::Function(function) => {
                out.insert("function".into(), json!(self.labels.function(function)));
            }
            Stall::Kswapd(node) => {
                out.insert("node".into(), json!(node));
            }
            _ => {}
        }
        let mut tasks: Vec<_> = self.stalls.by_task.iter().filter(|((s, _), _)| *s == stall).collect();
        tasks.sort_by_key(|((_, pid), sums)| (std::cmp::Reverse(sums.1), *pid));
        let tasks: Vec<Value> = tasks
            .iter()
            .map(|((_, pid), (number, total, longest))| {
                json!({"pid": pid, "task": self.labels.task(*pid), "count": number, "total": total, "max": longest})
            })
            .collect();
        out.insert("tasks".into(), tasks.into());
        out.into()
    }

    fn rows(&self) -> impl Iterator<Item = (Stall, &Histogram)> {
        let mut rows: Vec<_> = self.stalls.kinds.iter().map(|(s, h)| (*s, h)).collect();
        // Shrinkers and functions by their time, the rest in its own order.
        rows.sort_by_key(|(stall, lengths)| {
            let group = match stall {
                Stall::Shrinker(..) => 1,
                Stall::Function(_) => 2,
                _ => 0,
            };
            (group, std::cmp::Reverse(if group == 0 { 0 } else { lengths.sum() }), *stall)
        });
        rows.into_iter()
    }

    /// Shrinkers by function alone, as tools have it that do not tell them apart.
    fn by_function(&self) -> BTreeMap<u64, Histogram> {
        let mut out: BTreeMap<u64, Histogram> = BTreeMap::new();
        for (stall, lengths) in &self.stalls.kinds {
            if let Stall::Shrinker(function, _) = stall {
                out.entry(*function).or_default().merge(lengths);
            }
        }
        out
    }

    fn delayed(&self) -> Vec<(Delayed, (u64, u64, u64))> {
        let mut rows: Vec<_> = self.stalls.delayed.iter().map(|(d, s)| (*d, *s)).collect();
        rows.sort_by_key(|(delayed, sums)| (std::cmp::Reverse(sums.1), *delayed));
        rows
    }

    fn delayed_json(&self, (delayed, (number, total, longest)): &(Delayed, (u64, u64, u64))) -> Value {
        let names = TraceNames::new(self.subject.session);
        let interner = &self.result.interner;
        let pages = interner.pages.get(delayed.page_site).copied().unwrap_or_default();
        let slab = delayed.slab_site.and_then(|s| interner.sites.get(s));
        json!({
            "kind": kind(delayed.stall),
            "order": pages.order,
            "migratetype": names.migratetype(pages.migratetype),
            "gfp_flags": pages.gfp_flags,
            "gfp_flags_text": escaped(&names.gfp(interner, pages.gfp_flags)),
            "call_site": slab.map(|s| json::address(s.call_site)),
            "symbol": slab.map(|s| self.labels.symbol(s.call_site)),
            "failed": delayed.failed,
            "count": number,
            "total": total,
            "max": longest,
        })
    }

    fn tasks(&self) -> Vec<(i32, &TaskStalls)> {
        let mut rows: Vec<_> = self.stalls.tasks.iter().map(|(pid, t)| (*pid, t)).collect();
        rows.sort_by_key(|(pid, t)| (std::cmp::Reverse(t.direct_time), *pid));
        rows
    }

    fn task_json(&self, pid: i32, t: &TaskStalls) -> Value {
        let r = &self.recorded;
        json!({
            "pid": pid,
            "task": self.labels.task(pid),
            "direct_reclaims": known_json(r.direct, t.direct.values().sum::<u64>()),
            "direct_reclaims_by_order": by_order_json(&t.direct),
            "direct_reclaim_time": known_json(r.direct, t.direct_time),
            "direct_reclaimed": known_json(r.direct, t.direct_reclaimed),
            "kswapd_woken": known_json(r.wakeups, t.wakeups.values().sum::<u64>()),
            "kswapd_woken_by_order": by_order_json(&t.wakeups),
            "pages_scanned": known_json(r.scanned, t.scanned.iter().sum::<u64>()),
            "pages_scanned_file": known_json(r.scanned, t.scanned[0]),
            "pages_scanned_anon": known_json(r.scanned, t.scanned[1]),
            "pages_reclaimed": known_json(r.reclaimed, t.reclaimed.iter().sum::<u64>()),
            "pages_reclaimed_file": known_json(r.reclaimed, t.reclaimed[0]),
            "pages_reclaimed_anon": known_json(r.reclaimed, t.reclaimed[1]),
            "pages_written_sync": known_json(r.written, t.written[0]),
            "pages_written_async": known_json(r.written, t.written[1]),
            "kswapd_wakes": known_json(r.kswapd, t.wakes.values().sum::<u64>()),
            "kswapd_wakes_by_order": by_order_json(&t.wakes),
            "kswapd_rewakes": known_json(r.kswapd, t.rewakes.values().sum::<u64>()),
            "kswapd_rewakes_by_order": by_order_json(&t.rewakes),
        })
    }

    fn text(&self) -> String {
        use Align::{Left, Right};
        let unit = self.unit();
        let time = |t: Option<u64>| t.map_or(String::new(), |t| duration(t, unit));
        let rows: Vec<Vec<String>> = self
            .rows()
            .take(self.subject.limit)
            .map(|(stall, h)| {
                vec![
                    self.name(stall),
                    count(h.count()),
                    time(Some(h.sum())),
                    time(h.quantile(500)),
                    time(h.quantile(900)),
                    time(h.quantile(990)),
                    time(h.max()),
                ]
            })
            .collect();
        let mut out = String::new();
        if rows.is_empty() {
            out.push_str("nothing waited, as far as was recorded\n");
        } else {
            let columns = [
                ("what", Left),
                ("count", Right),
                ("total", Right),
                ("p50", Right),
                ("p90", Right),
                ("p99", Right),
                ("max", Right),
            ];
            out.push_str(&table(&columns, &rows));
        }
        out.push_str(&self.delayed_text());
        out.push_str(&self.tasks_text());
        for missing in self.recorded.missing() {
            out.push_str(&format!("not recorded: {missing}\n"));
        }
        if self.stalls.unopened + self.unclosed > 0 {
            out.push_str(&format!(
                "{} ends had no beginning in the trace, {} beginnings no end: they are in no sum\n",
                count(self.stalls.unopened),
                count(self.unclosed)
            ));
        }
        out.push_str("Times are of the clock, sleep included. Reclaim holds shrinkers, and functions hold functions: rows are not to be added.\n");
        out
    }

    fn delayed_text(&self) -> String {
        use Align::{Left, Right};
        let all = self.delayed();
        if all.is_empty() {
            return String::new();
        }
        let names = TraceNames::new(self.subject.session);
        let interner = &self.result.interner;
        let unit = self.unit();
        let rows: Vec<Vec<String>> = all
            .iter()
            .take(self.subject.limit)
            .map(|(delayed, (number, total, longest))| {
                let pages = interner.pages.get(delayed.page_site).copied().unwrap_or_default();
                let slab = delayed.slab_site.and_then(|s| interner.sites.get(s));
                vec![
                    format!("order {}, {}", pages.order, names.migratetype(pages.migratetype)),
                    escaped(&names.gfp(interner, pages.gfp_flags)),
                    slab.map_or("-".to_owned(), |s| self.labels.symbol(s.call_site)),
                    if delayed.failed { "failed".to_owned() } else { String::new() },
                    self.name(delayed.stall),
                    count(*number),
                    duration(*total, unit),
                    duration(*longest, unit),
                ]
            })
            .collect();
        let columns = [
            ("allocation that waited", Left),
            ("gfp_flags", Left),
            ("for a slab object of", Left),
            ("", Left),
            ("waited for", Left),
            ("times", Right),
            ("total", Right),
            ("max", Right),
        ];
        format!("\n{}", table(&columns, &rows))
            + &super::report::more(rows.len(), all.len(), "allocations")
            + &match self.unanswered {
                0 => String::new(),
                left => {
                    format!("{} waits were followed by no allocation of the task in the trace\n", count(left))
                }
            }
    }

    fn tasks_text(&self) -> String {
        use Align::{Left, Right};
        let all = self.tasks();
        if all.is_empty() {
            return String::new();
        }
        let (unit, r) = (self.unit(), &self.recorded);
        let shown = self.subject.limit.min(all.len());
        let rows: Vec<Vec<String>> = all
            .iter()
            .take(shown)
            .map(|(pid, t)| {
                vec![
                    self.labels.task(*pid),
                    known(r.direct, orders(&t.direct)),
                    known(r.direct, duration(t.direct_time, unit)),
                    known(r.wakeups, orders(&t.wakeups)),
                    known(r.scanned, count(t.scanned.iter().sum())),
                    known(r.reclaimed, count(t.reclaimed[0])),
                    known(r.reclaimed, count(t.reclaimed[1])),
                    known(r.written, count(t.written[0])),
                    known(r.written, count(t.written[1])),
                    known(r.kswapd, orders(&t.wakes)),
                    known(r.kswapd, orders(&t.rewakes)),
                ]
            })
            .collect();
        let columns = [
            ("task", Left),
            ("direct reclaims", Left),
            ("stalled", Right),
            ("woke kswapd", Left),
            ("scanned", Right),
            ("file recl.", Right),
            ("anon recl.", Right),
            ("sync io", Right),
            ("async io", Right),
            ("kswapd wakes", Left),
            ("rewakes", Left),
        ];
        format!("\n{}{}\n", table(&columns, &rows), super::report::more(shown, all.len(), "tasks"))
    }

    /// Intervals beyond the threshold, the outermost of each task, with all of its events in them.
    fn long_ones(&self) -> String {
        let mut outer: Vec<Interval> = Vec::new();
        for &interval in &self.stalls.intervals {
            let is_inside = outer
                .iter()
                .rev()
                .any(|o| o.pid == interval.pid && o.begin <= interval.begin && interval.end <= o.end);
            if !is_inside {
                outer.push(interval);
            }
        }
        let unit = self.unit();
        let shown = self.subject.limit.min(outer.len());
        let mut out = format!(
            "{} intervals beyond the threshold, {} of them in no other one of their task\n",
            count(self.stalls.intervals.len() as u64 + self.stalls.intervals_left_out),
            count(outer.len() as u64)
        );
        if self.stalls.intervals_left_out > 0 {
            out.push_str(&format!(
                "{} shorter ones beyond it are left out\n",
                count(self.stalls.intervals_left_out)
            ));
        }
        let session = self.subject.session;
        let trace = session.trace;
        let mut printer = Printer::new(trace.schema(), trace.metadata(), session.print_env());
        for interval in outer.iter().take(shown) {
            out.push_str(&format!(
                "\n{}: {} of {}, from {} to {}\n",
                self.name(interval.stall),
                duration(interval.end.saturating_sub(interval.begin), unit),
                self.labels.task(interval.pid),
                time(interval.begin, unit),
                time(interval.end, unit),
            ));
            self.inside(interval, &mut printer, &mut out);
        }
        out.push_str(&super::report::more(shown, outer.len(), "intervals"));
        out
    }

    /// The events of the task in an interval; those that happen often are printed a few times and then counted.
    fn inside(&self, interval: &Interval, printer: &mut Printer<'_>, out: &mut String) {
        const EACH: u64 = 20;
        let trace = self.subject.session.trace;
        let mut merge = trace.merge_between(interval.begin, interval.end.saturating_add(slack(interval)));
        let mut seen: BTreeMap<usize, u64> = BTreeMap::new();
        while let Some(run) = merge.next_run() {
            for index in run.range {
                let Some(event) = Event::new(trace.schema(), run.chunk, index) else { continue };
                if event.pid() != interval.pid {
                    continue;
                }
                let number = seen.entry(event.class_index()).or_default();
                *number += 1;
                if *number <= EACH || event.class().name == "funcgraph_exit" {
                    out.push_str(&String::from_utf8_lossy(printer.kernel(&event)));
                }
            }
        }
        for (class, number) in seen {
            let Some(class) = trace.schema().class(class).filter(|c| c.name != "funcgraph_exit") else {
                continue;
            };
            if number > EACH {
                out.push_str(&format!(
                    "    ... {} more {}:{}\n",
                    count(number - EACH),
                    escaped(class.system.as_bytes()),
                    escaped(class.name.as_bytes())
                ));
            }
        }
    }
}

/// A function's exit is logged a little after the time that it tells.
fn slack(interval: &Interval) -> u64 {
    if matches!(interval.stall, Stall::Function(_)) { 20_000 } else { 0 }
}

/// What it is, for machines.
fn kind(stall: Stall) -> &'static str {
    match stall {
        Stall::Direct => "direct_reclaim",
        Stall::Memcg => "memcg_reclaim",
        Stall::SoftLimit => "memcg_softlimit_reclaim",
        Stall::Node => "node_reclaim",
        Stall::DirectCompaction => "direct_compaction",
        Stall::Compaction => "compaction",
        Stall::Kswapd(_) => "kswapd",
        Stall::Shrinker(..) => "shrinker",
        Stall::Function(_) => "function",
    }
}

fn lengths_json(lengths: &Histogram) -> Map<String, Value> {
    let value = json!({
        "count": lengths.count(),
        "total": lengths.sum(),
        "mean": lengths.mean(),
        "p50": lengths.quantile(500),
        "p90": lengths.quantile(900),
        "p99": lengths.quantile(990),
        "max": lengths.max(),
        "histogram": lengths.decades(),
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn by_order_json(counts: &BTreeMap<u64, u64>) -> Value {
    counts.iter().map(|(order, number)| json!({"order": order, "count": number})).collect()
}

/// `12 (order 0: 10, order 9: 2)`.
fn orders(counts: &BTreeMap<u64, u64>) -> String {
    let all: u64 = counts.values().sum();
    if all == 0 {
        return String::new();
    }
    let parts: Vec<String> =
        counts.iter().map(|(order, number)| format!("{order}: {}", count(*number))).collect();
    match counts.len() {
        1 if counts.contains_key(&0) => count(all),
        _ => format!("{} (order {})", count(all), parts.join(", ")),
    }
}
