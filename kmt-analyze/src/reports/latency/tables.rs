//! For people: what took how long, which allocations waited, what tasks did.

use super::Traced;
use crate::collect::amount::Amount;
use crate::collect::stalls::ByOrder;
use crate::pass::filter::Names;
use crate::pass::names::TraceNames;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, escaped};
use crate::reports::common::sums::more;

impl Traced<'_, '_, '_> {
    pub(super) fn text(&self) -> String {
        use Align::{Left, Right};
        let unit = self.unit();
        let time = |t: Option<u64>| t.map_or(String::new(), |t| duration(t, unit));
        let rows: Vec<Vec<String>> = self
            .rows()
            .take(self.context.limit)
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
        let names = TraceNames::new(self.context.session);
        let interner = &self.result.interner;
        let unit = self.unit();
        let rows: Vec<Vec<String>> = all
            .iter()
            .take(self.context.limit)
            .map(|(delayed, waits)| {
                let pages = interner.pages.get(delayed.page_site).copied().unwrap_or_default();
                let slab = delayed.slab_site.and_then(|s| interner.sites.get(s));
                vec![
                    format!("order {}, {}", pages.order, names.migratetype(pages.migratetype)),
                    escaped(&names.gfp(interner, pages.gfp_flags)),
                    slab.map_or("-".to_owned(), |s| self.labels.symbol(s.call_site)),
                    if delayed.failed { "failed".to_owned() } else { String::new() },
                    self.name(delayed.stall),
                    count(waits.count),
                    duration(waits.total, unit),
                    duration(waits.max, unit),
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
            + &more(rows.len(), all.len(), "allocations")
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
        let shown = self.context.limit.min(all.len());
        let rows: Vec<Vec<String>> = all
            .iter()
            .take(shown)
            .map(|(pid, t)| {
                vec![
                    self.labels.task(*pid),
                    known(r.direct || r.memcg || r.compaction, duration(t.waited_time, unit)),
                    known(r.direct, orders(&t.direct)),
                    known(r.memcg, count(t.memcg)),
                    known(r.wakeups, orders(&t.wakeups)),
                    known(r.scanned, amount(t.scanned.all)),
                    known(r.reclaimed, amount(t.reclaimed.parts[0])),
                    known(r.reclaimed, amount(t.reclaimed.parts[1])),
                    known(r.written, amount(t.written.parts[0])),
                    known(r.written, amount(t.written.parts[1])),
                    known(r.kswapd, orders(&t.wakes)),
                    known(r.kswapd, orders(&t.rewakes)),
                ]
            })
            .collect();
        let columns = [
            ("task", Left),
            ("waited", Right),
            ("direct reclaims", Left),
            ("cgroup reclaims", Right),
            ("woke kswapd", Left),
            ("scanned", Right),
            ("file recl.", Right),
            ("anon recl.", Right),
            ("sync io", Right),
            ("async io", Right),
            ("kswapd wakes", Left),
            ("rewakes", Left),
        ];
        format!("\n{}{}\n", table(&columns, &rows), more(shown, all.len(), "tasks"))
    }
}

/// A number, or that it was not recorded.
fn known(is_known: bool, text: String) -> String {
    if is_known { text } else { "?".to_owned() }
}

/// A sum, or that events did not tell it.
fn amount(amount: Amount) -> String {
    amount.known().map_or("?".to_owned(), count)
}

/// `12 (order 0: 10, order 9: 2)`.
fn orders(counts: &ByOrder) -> String {
    let all: u64 = counts.values().sum();
    if all == 0 {
        return String::new();
    }
    let order = |order: &Option<u64>| order.map_or("?".to_owned(), |o| o.to_string());
    let parts: Vec<String> =
        counts.iter().map(|(o, number)| format!("{}: {}", order(o), count(*number))).collect();
    match counts.len() {
        1 if counts.contains_key(&Some(0)) => count(all),
        _ => format!("{} (order {})", count(all), parts.join(", ")),
    }
}
