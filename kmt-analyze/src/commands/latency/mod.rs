//! `latency`: how long tasks waited for memory, what for, and which allocation had to wait.

mod intervals;
mod machine;
mod tables;

use std::collections::BTreeMap;

use kmt_format::kernel::ClockUnit;
use kmt_format::schema::EventClass;
use serde_json::Map;

use super::parts::{Labels, Page, Report, Subject};
use super::trust::recorded_class;
use crate::collect::histogram::Histogram;
use crate::collect::stalls::{Delayed, Stall, TaskStalls};
use crate::collect::{Sinks, Stalls};
use crate::commands::basis::Input;
use crate::commands::stated::Keys;
use crate::pass;

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

    fn rests_on(&self) -> Input {
        Input::Stalls
    }

    fn keys(&self) -> Keys {
        Keys::Tasks
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
    memcg: bool,
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
            memcg: has("mm_vmscan_memcg_"),
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
            (self.memcg, "reclaim for memory cgroups (vmscan:mm_vmscan_memcg_reclaim_begin and _end)"),
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
            Stall::Kswapd(Some(node)) => format!("kswapd of node {node} awake"),
            Stall::Kswapd(None) => "kswapd awake".to_owned(),
            Stall::Shrinker(None, _) => "shrinkers, not told apart".to_owned(),
            Stall::Shrinker(Some(function), shrinker) => {
                let name = self.labels.function(function);
                // The functions of several shrinkers may be the same; addresses are not for reports.
                let alike: Vec<Option<u64>> = self.alike(function);
                match alike.iter().position(|&s| s == shrinker) {
                    Some(place) if alike.len() > 1 => format!("shrinker {name} #{}", place + 1),
                    _ => format!("shrinker {name}"),
                }
            }
            Stall::Function(function) => format!("function {}", self.labels.function(function)),
        }
    }

    /// Shrinkers of that function, in the order of their addresses.
    fn alike(&self, function: u64) -> Vec<Option<u64>> {
        let mut out: Vec<Option<u64>> = self
            .stalls
            .kinds
            .keys()
            .filter_map(|s| match *s {
                Stall::Shrinker(f, shrinker) if f == Some(function) => Some(shrinker),
                _ => None,
            })
            .collect();
        out.dedup();
        out
    }

    /// Which of several shrinkers with the same function it is.
    fn shrinker_number(&self, stall: Stall) -> Option<usize> {
        match stall {
            Stall::Shrinker(Some(function), shrinker) => {
                self.alike(function).iter().position(|&s| s == shrinker).map(|p| p + 1)
            }
            _ => None,
        }
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
            if let Stall::Shrinker(Some(function), _) = stall {
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

    fn tasks(&self) -> Vec<(i32, &TaskStalls)> {
        let mut rows: Vec<_> = self.stalls.tasks.iter().map(|(pid, t)| (*pid, t)).collect();
        rows.sort_by_key(|(pid, t)| (std::cmp::Reverse(t.waited_time), *pid));
        rows
    }
}
