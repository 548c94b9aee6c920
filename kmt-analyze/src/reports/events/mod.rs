//! `events`: counts and rates of all events, by event, process and CPU.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use crate::collect::Collectors;
use crate::ledger::Select;
use crate::limits::ROWS_MAX;
use crate::pass::Analysis;
use crate::pass::filter::Selector;
use crate::pass::names::TraceNames;
use crate::pass::selection::Selection;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped, percent};
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::sums::more;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Page, Report};
use crate::trace::session::task_names;
use kmt_format::kernel::ClockUnit;

type Counts = BTreeMap<(u32, i32, u32), u64>;

/// The report.
#[derive(Debug)]
pub struct Events;

impl Report for Events {
    type Options = NoOptions;
    type Handles = ();
    type Rows = Page;

    const NAME: &'static str = "events";
    const KEY: &'static str = "events";
    const TITLE: &'static str = "events";
    const ABOUT: &'static str = "Counts and rates of all events, by event, process and CPU";
    const ACCOUNTS: bool = false;

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::Nothing
    }

    fn keys(&self) -> Keys {
        Keys::Tasks
    }

    fn needs_event_counts(&self) -> bool {
        true
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, _: &Self::Handles) -> Page {
        let (session, selection, result) = (context.session, context.selection, result);
        let limit = Some(context.limit);

        let filter = selection.filter(session);
        let texts = TraceNames::new(session);
        let selector = Selector::new(session.trace, &filter, &texts, HashMap::new(), result.names.as_ref());
        // By class, task, CPU.
        let mut counts = Counts::new();
        for &(class, origin, number) in &result.event_counts {
            let Some(origin) = result.interner.origins.get(origin) else { continue };
            if selector.origin(*origin) {
                *counts.entry((class, origin.pid, origin.cpu)).or_default() += number;
            }
        }
        let (first, last) = selection.span(session);
        let seconds = match session.unit() {
            ClockUnit::Nanoseconds => Some(last.saturating_sub(first) as f64 / 1e9).filter(|s| *s > 0.0),
            ClockUnit::Ticks => None,
        };
        let names = task_names(session);
        let event = |&(class, ..): &(u32, i32, u32)| {
            let class = session.trace.schema().class(class as usize);
            class.map_or("?".to_owned(), |c| format!("{}:{}", c.system, c.name))
        };
        let task = |&(_, pid, _): &(u32, i32, u32)| {
            let name = names.get(&pid).map_or("<...>".to_owned(), |n| escaped(n));
            format!("{name}-{pid}")
        };
        let all: u64 = counts.values().sum();
        Page::of(
            |out| {
                let rate = |n: u64| seconds.map(|s| n as f64 / s);
                let cells = counts.iter().map(|(key, &n)| {
                    json!({
                        "event": event(key),
                        "pid": key.1,
                        "comm": names.get(&key.1).map(|c| json::text(c)),
                        "cpu": key.2,
                        "events": n,
                        "events_per_second": rate(n),
                    })
                });
                let totals = sum_by(&counts, event);
                let total =
                    |(name, n): (String, u64)| (name, json!({"events": n, "events_per_second": rate(n)}));
                out.insert("events_total".into(), json!(all));
                out.insert(
                    "events".into(),
                    Value::Object(totals.into_iter().map(total).collect::<Map<_, _>>()),
                );
                out.insert("cells_total".into(), json!(counts.len()));
                out.insert("cells".into(), cells.take(context.limit.max(ROWS_MAX)).collect());
            },
            || {
                let mut out = rows("event", sum_by(&counts, event), all, seconds, limit);
                out.push('\n');
                out.push_str(&rows("task", sum_by(&counts, task), all, seconds, limit));
                out.push('\n');
                out.push_str(&rows("CPU", sum_by(&counts, |k| format!("{:3}", k.2)), all, seconds, limit));
                out
            },
        )
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

fn sum_by(counts: &Counts, name: impl Fn(&(u32, i32, u32)) -> String) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (key, count) in counts {
        *sums.entry(name(key)).or_insert(0) += count;
    }
    sums
}

fn rows(
    what: &str,
    sums: BTreeMap<String, u64>,
    all: u64,
    seconds: Option<f64>,
    limit: Option<usize>,
) -> String {
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let shown = crate::reports::common::sums::shown(limit, sums.len());
    let columns = [
        (what, Align::Left),
        ("events", Align::Right),
        ("share", Align::Right),
        ("per second", Align::Right),
    ];
    let rate = |n: u64| seconds.map_or("?".to_owned(), |s| count((n as f64 / s).round() as u64));
    let cells: Vec<Vec<String>> = sums
        .iter()
        .take(shown)
        .map(|(name, n)| vec![escaped(name.as_bytes()), count(*n), percent(*n, all), rate(*n)])
        .collect();
    table(&columns, &cells) + &more(shown, sums.len(), "rows")
}
