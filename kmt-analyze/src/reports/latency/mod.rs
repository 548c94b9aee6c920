//! `latency`: how long tasks waited for memory, what for, and which allocation had to wait.

mod intervals;
mod machine;
mod tables;

use std::collections::BTreeMap;

use kmt_format::kernel::ClockUnit;
use kmt_format::schema::EventClass;
use serde_json::Map;

use crate::collect::Collectors;
use crate::collect::histogram::Histogram;
use crate::collect::stalls::{Delayed, Stall, StallSums, TaskStalls, Waits};
use crate::collect::{Handle, Stalls};
use crate::pass;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::pass::term::duration_of;
use crate::reports::common::basis::Input;
use crate::reports::common::labels::Labels;
use crate::reports::common::stated::Keys;
use crate::reports::common::trust::recorded_class;
use crate::reports::common::{Context, View};
use crate::reports::report::{Page, Report};

/// The report.
#[derive(Debug, Default)]
pub struct Latency {
    /// Print intervals at least this long, with their events; in the clock's unit.
    pub threshold: Option<u64>,
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Print only intervals at least this long, with the events of the task in them
    #[arg(long, value_name = "TIME", value_parser = duration_of)]
    threshold: Option<u64>,
}

impl Report for Latency {
    type Options = Options;
    type Handles = Handle<Stalls>;
    type Rows = Page;

    const NAME: &'static str = "latency";
    const KEY: &'static str = "latency";
    const TITLE: &'static str = "latency";
    const ABOUT: &'static str =
        "How long tasks waited for memory: reclaim, compaction, kswapd, shrinkers, traced functions";

    fn new(options: Options, _: &Selection) -> Self {
        Self { threshold: options.threshold }
    }

    fn usual() -> Option<Self> {
        Some(Self::default())
    }

    fn rests_on(&self) -> Input {
        Input::Stalls
    }

    fn keys(&self) -> Keys {
        Keys::Tasks
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Stalls { threshold: self.threshold })
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let stalls = result.get(*handles);
        let recorded = Recorded::of(context, result);
        let view = Traced {
            context,
            result,
            stalls,
            labels: Labels::new(context.session),
            unclosed: stalls.going_on,
            unanswered: stalls.without_allocation,
            recorded,
        };
        let mut out = Map::new();
        out.insert("latency".into(), view.json(self.threshold));
        let text = if self.threshold.is_some() { view.long_ones() } else { view.text() };
        Page { json: out, text }
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
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
    fn of(context: &Context<'_, '_>, result: &pass::Analysis) -> Self {
        // What was not seen and may have been recorded did not happen.
        let has = |start: &str| {
            let is_it = |class: &EventClass| class.name.starts_with(start);
            recorded_class(context.session, result, is_it).unwrap_or(false)
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

struct Traced<'v, 's, 'd> {
    context: &'v Context<'s, 'd>,
    result: &'v pass::Analysis,
    stalls: &'v StallSums,
    labels: Labels<'s, 'd>,
    unclosed: u64,
    unanswered: u64,
    recorded: Recorded,
}

impl Traced<'_, '_, '_> {
    fn unit(&self) -> ClockUnit {
        self.context.session.unit()
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

    fn delayed(&self) -> Vec<(Delayed, Waits)> {
        let mut rows: Vec<_> = self.stalls.delayed.iter().map(|(d, s)| (*d, *s)).collect();
        rows.sort_by_key(|(delayed, sums)| (std::cmp::Reverse(sums.total), *delayed));
        rows
    }

    fn tasks(&self) -> Vec<(i32, &TaskStalls)> {
        let mut rows: Vec<_> = self.stalls.tasks.iter().map(|(pid, t)| (*pid, t)).collect();
        rows.sort_by_key(|(pid, t)| (std::cmp::Reverse(t.waited_time), *pid));
        rows
    }
}
