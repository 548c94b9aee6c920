//! `peak`: when most slab bytes were live, how many, and whose.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::collect::Collectors;
use crate::collect::Handle;
use crate::collect::Peak;
use crate::failure::{Failure, Result};
use crate::pass;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped, percent, span, time};
use crate::reports::common::basis::{Basis, Input, too_lossy};
use crate::reports::common::live_bounds::LiveBounds;
use crate::reports::common::sums::{more, shown};
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Page, Report};
use crate::stream::Api;

struct Row {
    address: u64,
    api: Api,
    name: String,
    bytes: u64,
    objects: u64,
    /// Those of them that are known to be live then, since frees of their kind have events.
    certain: (u64, u64),
    /// More of it may wait for a grace period; how much at the peak is known of all together only.
    has_waiting: bool,
}

/// With more than this lost the peak is none.
const LOST_PERCENT_MAX: f64 = 1.0;

/// The report.
#[derive(Debug)]
pub struct PeakReport;

impl Report for PeakReport {
    type Options = NoOptions;
    type Handles = Handle<Peak>;
    type Rows = Page;

    const NAME: &'static str = "peak";
    const KEY: &'static str = "peak";
    const TITLE: &'static str = "peak";
    const ABOUT: &'static str = "When most slab bytes were live, and whose they were";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        if context.selection.filter(context.session).is_about_lifetimes() {
            return Err(Failure::new(
                "peak cannot select by lifetime: what is live at an instant has none yet",
            )
            .hint("timeline can: it adds lives up when they are over"));
        }
        Ok(())
    }

    fn refuses(&self, context: &Context<'_, '_>, result: &pass::Analysis) -> Option<String> {
        let basis = Basis::of(context.session, result).lacks(self.rests_on());
        basis.or_else(|| {
            too_lossy(
                context.session,
                LOST_PERCENT_MAX,
                "the peak may lie where they were, or be made of frees that were; summary tells ranges",
            )
        })
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let window = context.selection.filter(context.session).window.unwrap_or((0, u64::MAX));
        collectors.add(Peak { window })
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let session = context.session;

        let env = session.print_env();
        // Where events were lost, more may have been live than seems so: there is no range then.
        let is_whole = !session.losses.any();
        let certain = LiveBounds::of(context, result).bounds.certain_sites();
        let mut sums: BTreeMap<(u64, Api), [u64; 5]> = BTreeMap::new();
        let peak = result.get(*handles);
        for (number, bytes, objects) in peak.sites() {
            let Some(site) = result.interner.sites.get(number) else { continue };
            let sum = sums.entry((site.call_site, site.api)).or_default();
            let is_certain = !is_whole || certain.get(number as usize).copied().unwrap_or(false);
            let of_certain = |n: u64| if is_certain { n } else { 0 };
            let waits = u64::from(peak.has_waiting(number));
            let new = [bytes, objects, of_certain(bytes), of_certain(objects), waits];
            sum.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
        }
        let named = |((address, api), [bytes, objects, certain_bytes, certain_objects, waits]): (
            (u64, Api),
            [u64; 5],
        )| {
            Row {
                address,
                api,
                name: escaped(&env.symbol_with_offset(address)),
                bytes,
                objects,
                certain: (certain_bytes, certain_objects),
                has_waiting: waits > 0,
            }
        };
        let mut rows: Vec<Row> = sums.into_iter().filter(|(_, s)| s[1] > 0).map(named).collect();
        rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        let highest = peak.highest.map(|(bytes, time)| (bytes.max(0) as u64, time));
        let objects: u64 = rows.iter().map(|r| r.objects).sum();
        let waiting = peak.waiting_at_peak;
        let waiting = (waiting.0.max(0) as u64, waiting.1.max(0) as u64);
        let least = rows.iter().fold((0, 0), |sum, r| (sum.0 + r.certain.0, sum.1 + r.certain.1));
        let shown = shown(Some(context.limit), rows.len());
        Page::of(
            |out| {
                let callers_total = rows.len();
                let rows = rows.iter().take(shown).map(|row| row_json(row, is_whole));
                out.insert(
                    "peak".into(),
                    json!({
                        "time": highest.map(|h| h.1),
                        "bytes_live": highest.map(|h| h.0),
                        "bytes_live_range": highest.filter(|_| is_whole).map(|h| [least.0, h.0 + waiting.0]),
                        "live": highest.map(|_| objects),
                        "live_range": highest.filter(|_| is_whole).map(|_| [least.1, objects + waiting.1]),
                        "callers_total": callers_total,
                        "callers": rows.collect::<Vec<_>>(),
                    }),
                );
            },
            || {
                let Some((bytes, at)) = highest else { return "no slab object was live\n".to_owned() };
                let start = session.first_time().unwrap_or(0);
                let mut out = format!(
                    "peak: {} bytes in {} objects at {}, {} after the start\n\n",
                    count(bytes),
                    count(objects),
                    time(at, session.unit()),
                    span(at.saturating_sub(start), session.unit()),
                );
                if least.1 < objects {
                    out.push_str(&format!(
                        "at least {} bytes in {} objects of it were live: of the others frees may have no event\n\n",
                        count(least.0),
                        count(least.1),
                    ));
                }
                out.push_str(&page(&rows, shown, bytes));
                out.push_str("\nOf objects born in the trace; what is older is in no number.\n");
                out
            },
        )
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

fn row_json(row: &Row, is_whole: bool) -> Value {
    let is_bounded = is_whole && !row.has_waiting;
    json!({
        "call_site": json::address(row.address),
        "symbol": row.name,
        "api": row.api.name(),
        "bytes_live": row.bytes,
        "bytes_live_range": is_bounded.then_some([row.certain.0, row.bytes]),
        "live": row.objects,
        "live_range": is_bounded.then_some([row.certain.1, row.objects]),
    })
}

fn page(rows: &[Row], shown: usize, all: u64) -> String {
    use Align::{Left, Right};
    let columns =
        [("call site", Left), ("of", Left), ("live", Right), ("bytes_live", Right), ("share", Right)];
    let is_doubtful = rows.iter().any(|r| r.certain.1 < r.objects);
    let columns: Vec<_> =
        columns.into_iter().chain(is_doubtful.then_some(("live at least", Right))).collect();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|r| {
            let cells = [
                r.name.clone(),
                r.api.name().to_owned(),
                count(r.objects),
                count(r.bytes),
                percent(r.bytes, all),
            ];
            cells.into_iter().chain(is_doubtful.then(|| count(r.certain.1))).collect()
        })
        .collect();
    table(&columns, &cells) + &more(shown, rows.len(), "call sites")
}
