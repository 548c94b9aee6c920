//! For machines.

use serde_json::{Map, Value, json};

use super::Traced;
use crate::collect::amount::Amount;
use crate::collect::histogram::Histogram;
use crate::collect::stalls::{ByOrder, Delayed, Stall, TaskStalls, Waits};
use crate::pass::filter::Names;
use crate::pass::names::TraceNames;
use crate::render::json;
use crate::render::text::escaped;

impl Traced<'_, '_, '_> {
    pub(super) fn json(&self, threshold: Option<u64>) -> Value {
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
            self.delayed().iter().take(self.context.limit).map(|d| self.delayed_json(d)).collect();
        let tasks: Vec<Value> =
            self.tasks().iter().take(self.context.limit).map(|(pid, t)| self.task_json(*pid, t)).collect();
        json!({
            "kinds": kinds,
            "shrinker_functions": functions,
            "delayed_allocations_total": self.delayed().len(),
            "delayed_allocations": delayed,
            "tasks_total": self.tasks().len(),
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
                out.insert("function".into(), json!(function.map(|f| self.labels.function(f))));
                out.insert("shrinker".into(), json!(self.shrinker_number(stall)));
                out.insert(
                    "objects_freed".into(),
                    json!(self.stalls.shrunk.get(&stall).and_then(Amount::known)),
                );
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
        tasks.sort_by_key(|((_, pid), sums)| (std::cmp::Reverse(sums.total), *pid));
        let tasks: Vec<Value> = tasks
            .iter()
            .map(|((_, pid), Waits { count, total, max })| {
                json!({"pid": pid, "task": self.labels.task(*pid), "count": count, "total": total, "max": max})
            })
            .collect();
        out.insert("tasks".into(), tasks.into());
        out.into()
    }

    fn delayed_json(&self, (delayed, Waits { count, total, max }): &(Delayed, Waits)) -> Value {
        let names = TraceNames::new(self.context.session);
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
            "count": count,
            "total": total,
            "max": max,
        })
    }

    fn task_json(&self, pid: i32, t: &TaskStalls) -> Value {
        let r = &self.recorded;
        json!({
            "pid": pid,
            "task": self.labels.task(pid),
            "direct_reclaims": known_json(r.direct, t.direct.values().sum::<u64>()),
            "direct_reclaims_by_order": by_order_json(&t.direct),
            "direct_reclaim_time": known_json(r.direct, t.direct_time),
            "direct_reclaimed": known_json(r.direct, t.direct_reclaimed.known()),
            "memcg_reclaims": known_json(r.memcg, t.memcg),
            "memcg_reclaim_time": known_json(r.memcg, t.memcg_time),
            "waited_time": known_json(r.direct || r.memcg || r.compaction, t.waited_time),
            "kswapd_woken": known_json(r.wakeups, t.wakeups.values().sum::<u64>()),
            "kswapd_woken_by_order": by_order_json(&t.wakeups),
            "pages_scanned": known_json(r.scanned, t.scanned.all.known()),
            "pages_scanned_file": known_json(r.scanned, t.scanned.parts[0].known()),
            "pages_scanned_anon": known_json(r.scanned, t.scanned.parts[1].known()),
            "pages_reclaimed": known_json(r.reclaimed, t.reclaimed.all.known()),
            "pages_reclaimed_file": known_json(r.reclaimed, t.reclaimed.parts[0].known()),
            "pages_reclaimed_anon": known_json(r.reclaimed, t.reclaimed.parts[1].known()),
            "pages_written_sync": known_json(r.written, t.written.parts[0].known()),
            "pages_written_async": known_json(r.written, t.written.parts[1].known()),
            "kswapd_wakes": known_json(r.kswapd, t.wakes.values().sum::<u64>()),
            "kswapd_wakes_by_order": by_order_json(&t.wakes),
            "kswapd_rewakes": known_json(r.kswapd, t.rewakes.values().sum::<u64>()),
            "kswapd_rewakes_by_order": by_order_json(&t.rewakes),
        })
    }
}

/// A number, if its events were recorded and told it.
fn known_json(is_recorded: bool, number: impl Into<Option<u64>>) -> Value {
    json!(number.into().filter(|_| is_recorded))
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

fn by_order_json(counts: &ByOrder) -> Value {
    counts.iter().map(|(order, number)| json!({"order": order, "count": number})).collect()
}
