//! `slabinfo`: what lives by events beside what the kernel's own counts allow, cache by cache.

use serde_json::{Value, json};

use crate::collect::Collectors;
use crate::collect::Handle;
use crate::collect::Moments;
use crate::pass;
use crate::pass::Analysis;
use crate::pass::caches::CacheKey;
use crate::pass::caches::name_of;
use crate::pass::coverage::course::{At, Course, courses, times};
use crate::pass::selection::Selection;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, time};
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::live_bounds::LiveBounds;
use crate::reports::common::sums::{more, shown};
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Page, Report};
use crate::trace::snapshots::{Snapshot, snapshots};

/// The report.
#[derive(Debug)]
pub struct SlabInfo;

fn read(context: &Context<'_, '_>) -> Vec<Snapshot> {
    let session = context.session;
    snapshots(session.trace.metadata(), session.last_time().unwrap_or(0))
}

impl Report for SlabInfo {
    type Options = NoOptions;
    type Handles = Handle<Moments>;
    type Rows = Page;

    const NAME: &'static str = "slabinfo";
    const KEY: &'static str = "slabinfo";
    const TITLE: &'static str = "slabinfo";
    const ABOUT: &'static str = "What seems live beside what /proc/slabinfo says: where frees have no event";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn refuses(&self, context: &Context<'_, '_>, result: &pass::Analysis) -> Option<String> {
        let has_none = || {
            "the file has no /proc/slabinfo; kmt-capture record keeps it, and a directory to convert may have slabinfo.after"
                .to_owned()
        };
        let is_part = || "slabinfo counts to the end of the trace: leave --time and --at out".to_owned();
        let basis = Basis::of(context.session, result).lacks(self.rests_on());
        basis
            .or_else(|| read(context).is_empty().then(has_none))
            .or_else(|| (context.selection.time.is_some() || context.selection.at.is_some()).then(is_part))
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Moments { times: times(&read(context)) })
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let snapshots = read(context);
        let bounds = LiveBounds::of(context, result).bounds;
        let mut rows: Vec<(String, Course)> = courses(result, &bounds, result.get(*handles), &snapshots)
            .into_iter()
            .map(|course| (name_of(&course.key, result), course))
            .collect();
        // What seems live and is not comes first.
        let worst = |course: &Course| course.at.iter().map(over).max();
        rows.sort_by(|a, b| {
            let last = |course: &Course| course.at.last().map(|at| at.live);
            (worst(&b.1), last(&b.1)).cmp(&(worst(&a.1), last(&a.1))).then_with(|| a.0.cmp(&b.0))
        });
        let shown = shown(Some(context.limit), rows.len());
        Page::of(
            |out| {
                out.insert(
                    "slabinfo".into(),
                    json!({
                        "times": snapshots.iter().map(|s| s.to).collect::<Vec<_>>(),
                        "read_for": snapshots.iter().map(|s| s.to - s.from).collect::<Vec<_>>(),
                        "caches_total": rows.len(),
                        "caches_contradicted": rows.iter().filter(|(_, c)| c.is_contradicted()).count(),
                        "caches": rows.iter().take(shown).map(row_json).collect::<Vec<_>>(),
                    }),
                );
            },
            || page(context, &rows, &snapshots, shown),
        )
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

/// How many more seem live than can be.
fn over(at: &At) -> u64 {
    at.most.map_or(0, |most| at.live.saturating_sub(most))
}

fn row_json((name, course): &(String, Course)) -> Value {
    let all = |of: fn(&At) -> Value| course.at.iter().map(of).collect::<Vec<_>>();
    let exact = match &course.key {
        CacheKey::Named(exact) => json::text(exact),
        _ => name.as_str().into(),
    };
    json!({
        "cache": exact,
        "live": all(|at| at.live.into()),
        "live_range": all(|at| json!([at.least, at.most])),
        "active": all(|at| at.active.into()),
        "is_contradicted": course.is_contradicted(),
    })
}

fn page(
    context: &Context<'_, '_>,
    rows: &[(String, Course)],
    snapshots: &[Snapshot],
    shown: usize,
) -> String {
    use Align::{Left, Right};
    let columns = [
        ("cache", Left),
        ("live by events", Right),
        ("at least", Right),
        ("at most", Right),
        ("active, slabinfo", Right),
        ("most over at once", Right),
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|(name, course)| {
            let last = course.at.last().copied().unwrap_or_default();
            let over = course.at.iter().zip(snapshots).map(|(at, s)| (over(at), s.to));
            let over = over.max_by_key(|(over, _)| *over).filter(|(over, _)| *over > 0);
            let over = over.map_or(String::new(), |(over, at)| {
                format!("{} at {}", count(over), time(at, context.session.unit()))
            });
            let active = last.active.map_or("?".to_owned(), count);
            let most = last.most.map_or("?".to_owned(), count);
            vec![name.clone(), count(last.live), count(last.least), most, active, over]
        })
        .collect();
    let contradicted = rows.iter().filter(|(_, course)| course.is_contradicted()).count();
    let found = if contradicted == 0 {
        "slabinfo contradicts no cache: nowhere more objects seem live than it calls active\n\n".to_owned()
    } else {
        format!(
            "{} of {} caches are contradicted: more objects seem live than slabinfo calls active, so frees had no event\n\n",
            count(contradicted as u64),
            count(rows.len() as u64)
        )
    };
    format!(
        "{found}{}{}\nat the end, and where /proc/slabinfo was read meanwhile ({} times): live by events is what was born in the trace and is not known to be over; active counts older objects, too, and those that wait in per-CPU slabs and sheaves (?: slabinfo does not name the cache)\n",
        table(&columns, &cells),
        more(shown, rows.len(), "caches"),
        snapshots.len().saturating_sub(1),
    )
}
