//! The table of caches against /proc/slabinfo.

use super::rows::{SlabInfoCache, SlabInfoRows};
use crate::render::table::{Align, table};
use crate::render::text::{count, time};
use crate::reports::common::View;
use crate::reports::common::cells::known;
use crate::reports::common::shown::more;
use Align::{Left, Right};

/// The table, and the meaning of its columns.
pub fn of(rows: &SlabInfoRows, view: &View) -> String {
    let rows = &rows.slabinfo;
    let columns = [
        ("cache", Left),
        ("live by events", Right),
        ("at least", Right),
        ("at most", Right),
        ("active, slabinfo", Right),
        ("most over at once", Right),
    ];
    let cells: Vec<Vec<String>> = rows.caches.iter().map(|cache| cells(cache, view)).collect();
    let found = match rows.caches_contradicted {
        0 => "slabinfo contradicts no cache: nowhere more objects seem live than it calls active\n\n"
            .to_owned(),
        contradicted => format!(
            "{} of {} caches are contradicted: more objects seem live than slabinfo calls active, so frees had no event\n\n",
            count(contradicted as u64),
            count(rows.caches_total as u64)
        ),
    };
    format!(
        "{found}{}{}\nat the end, and where /proc/slabinfo was read meanwhile ({} times): live by events is what was born in the trace and is not known to be over; active counts older objects, too, and those that wait in per-CPU slabs and sheaves (?: slabinfo does not name the cache)\n",
        table(&columns, &cells),
        more(rows.caches.len(), rows.caches_total, "caches"),
        rows.times.len().saturating_sub(1),
    )
}

/// A cache at the last snapshot.
fn cells(cache: &SlabInfoCache, view: &View) -> Vec<String> {
    let live = cache.live.last().copied().unwrap_or(0);
    let (least, most) = cache.live_range.last().copied().unwrap_or((0, None));
    let active = cache.active.last().copied().flatten();
    let over = cache
        .most_over
        .map_or(String::new(), |(over, at)| format!("{} at {}", count(over), time(at, view.unit)));
    vec![cache.name.clone(), count(live), count(least), known(most), known(active), over]
}
