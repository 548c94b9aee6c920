//! Tables of slab pages.

use super::occupancy::{OccupancyTables, Occupied, OccupiedCache};
use super::pinned::{PINNED_BYTES_MIN, PINNED_SLABS_MIN};
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, percent, time};
use crate::reports::common::View;
use crate::reports::common::shown::more;
use Align::{Left, Right};

/// Caches that are shown at most.
const CACHES_MAX: usize = 15;
/// Call sites that are shown, also where fewer of them pin.
const PINS_MIN: usize = 5;

/// Sums, the course, caches, and call sites that pin.
pub fn of(rows: &OccupancyTables, view: &View) -> String {
    match rows {
        OccupancyTables::Refused { refused } => {
            format!("BETWEEN OBJECTS: how full slab pages are is not known: {refused}\n")
        }
        OccupancyTables::Found(rows) => {
            sums(rows, view) + &course(rows, view) + &caches(rows, view) + &pinners(rows, view)
        }
    }
}

/// Sums of all caches.
fn sums(rows: &Occupied, view: &View) -> String {
    let all = |of: fn(&OccupiedCache) -> u64| rows.caches.iter().map(of).fold(0, u64::saturating_add);
    let (held, live) = (all(|c| c.bytes_held), all(|c| c.bytes_live));
    let lossy = "events were lost: a slab whose allocation was lost counts as older, one whose free was lost as held, and so do objects\n\n";
    format!(
        "BETWEEN OBJECTS: slabs of the trace hold {} bytes at the end, {} of them in objects ({})\n{} slabs came and {} of them went; {} older ones went; {} older pages took objects, and how full they are is not known\n\n{}",
        count(held),
        count(live),
        percent(live, held),
        count(all(|c| c.slabs_born)),
        count(all(|c| c.slabs_died)),
        count(all(|c| c.older_slabs_died)),
        count(all(|c| c.older_pages_in_use)),
        if view.is_lossy { lossy } else { "" }
    )
}

/// Slabs over time, and by their filling at the end.
fn course(rows: &Occupied, view: &View) -> String {
    let steps = rows.over_time.iter().map(|step| {
        let in_use = percent(step.bytes_live, step.bytes_held);
        vec![time(step.time, view.unit), count(step.bytes_held), count(step.bytes_live), in_use]
    });
    let steps: Vec<Vec<String>> = steps.collect();
    let columns = [("until", Right), ("held", Right), ("live", Right), ("in use", Right)];
    let f = &rows.slabs_by_filling;
    let fillings = [
        ("empty", f.empty),
        ("to 25 %", f.to_25_percent),
        ("to 50 %", f.to_50_percent),
        ("to 75 %", f.to_75_percent),
        ("below full", f.below_100_percent),
        ("full", f.full),
    ];
    let fillings: Vec<String> =
        fillings.iter().map(|(name, number)| format!("{name} {}", count(*number))).collect();
    format!("{}\nslabs at the end: {}\n\n", table(&columns, &steps), fillings.join(", "))
}

/// Slabs by cache.
fn caches(rows: &Occupied, view: &View) -> String {
    let active: Vec<&OccupiedCache> =
        rows.caches.iter().filter(|c| c.slabs + c.slabs_born + c.older_slabs_died > 0).collect();
    let shown: Vec<&OccupiedCache> = active.iter().take(view.limit.min(CACHES_MAX)).copied().collect();
    let cells: Vec<Vec<String>> = shown
        .iter()
        .map(|c| {
            let turnover = [c.slabs_born, c.slabs_died, c.older_slabs_died, c.slabs];
            let mut cells = vec![c.cache.clone()];
            cells.extend(turnover.map(count));
            cells.extend([count(c.bytes_held), count(c.bytes_live), percent(c.bytes_live, c.bytes_held)]);
            cells.extend([c.slabs_empty, c.slabs_sparse].map(count));
            cells
        })
        .collect();
    let columns = [
        ("cache", Left),
        ("slabs born", Right),
        ("died", Right),
        ("older died", Right),
        ("at the end", Right),
        ("held", Right),
        ("live", Right),
        ("in use", Right),
        ("empty", Right),
        ("sparse", Right),
    ];
    table(&columns, &cells) + &more(shown.len(), active.len(), "caches") + &doubtful(&shown)
}

/// Caches that may have more room than it seems.
fn doubtful(caches: &[&OccupiedCache]) -> String {
    let names: Vec<&str> = caches
        .iter()
        .filter(|cache| matches!(cache.frees_seen, "partly" | "none"))
        .map(|cache| cache.cache.as_str())
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "frees have no event, or not all, of {}: live is an upper bound there, and slabs may be emptier\n",
        names.join(", ")
    )
}

/// Call sites whose survivors hold slabs that are nearly empty.
fn pinners(rows: &Occupied, view: &View) -> String {
    let heading = match rows.pinners {
        0 => "\nno call site pins slabs that are nearly empty\n".to_owned(),
        1 => "\none call site pins slabs that are nearly empty:\n".to_owned(),
        n => format!("\n{n} call sites pin slabs that are nearly empty:\n"),
    };
    let cells: Vec<Vec<String>> = rows
        .pinned_by
        .iter()
        .take(view.limit.min(rows.pinners.max(PINS_MIN)))
        .map(|row| {
            vec![
                row.symbol.clone(),
                if row.is_pinner { "pins".to_owned() } else { String::new() },
                count(row.sparse_objects),
                format!("{:.1}", row.sparse_slabs),
                count(row.pinned_sparse_bytes),
                row.sparse_age_mean.map_or(String::new(), |age| duration(age, view.unit)),
                count(row.objects),
                count(row.pinned_bytes),
            ]
        })
        .collect();
    let columns = [
        ("survivors of", Left),
        ("", Left),
        ("on sparse slabs", Right),
        ("slabs", Right),
        ("pinned there", Right),
        ("age", Right),
        ("on all", Right),
        ("unused there", Right),
    ];
    format!(
        "{heading}{}{}\nSparse: a quarter or less of what the slab once held is live. Each survivor is charged an equal share of what its slab leaves unused; a call site pins from {} bytes and {PINNED_SLABS_MIN} slabs on. Objects without a free event seem live until their address or page is used again, and the room of a slab counts as unused where objects are in it that have no allocation event.\n",
        table(&columns, &cells),
        more(cells.len(), rows.pinned_by_total, "call sites"),
        count(PINNED_BYTES_MIN as u64),
    )
}
