//! How full slab pages are, and whose survivors hold those that are nearly empty.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Part, Traced};
use crate::collect::occupancy::OccupancySums;
use crate::collect::occupancy::{Holds, Pins, SPARSE, SlabPage, Turnover};
use crate::pass::coverage::{Coverage, Seen};
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, percent, time};
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::sums::more;

/// Sums of the slabs of one cache.
#[derive(Debug, Clone, Copy, Default)]
struct Cache {
    turnover: Turnover,
    /// Slabs of the trace that are there at the end.
    slabs: u64,
    held: u64,
    live: u64,
    empty: u64,
    sparse: u64,
    objects: u64,
    /// Frames that are older than the trace and hold objects of it.
    old_frames: u64,
    old_live: u64,
}

/// Bytes that a call site has to pin to be named for it, and the slabs that they must be of.
const PINNED_BYTES_MIN: f64 = 65_536.0;
const PINNED_SLABS_MIN: f64 = 16.0;

pub(super) fn of(view: &Traced<'_, '_, '_>, occupancy: &OccupancySums) -> Part {
    let hashed = view.context.session.no_addresses();
    let Some(map) = view.result.direct_map.filter(|_| hashed.is_none()) else {
        let why = hashed.unwrap_or(
            "page frames could not be placed in memory (it takes page events, and five votes that agree)",
        );
        return Part {
            json: json!({"refused": why}),
            text: format!("BETWEEN OBJECTS: how full slab pages are is not known: {why}\n"),
        };
    };
    if let Some(why) = Basis::of(view.context.session, view.result).lacks(Input::SlabLives) {
        return Part {
            text: format!("BETWEEN OBJECTS: how full slab pages are is not known: {why}\n"),
            json: json!({"refused": why}),
        };
    }
    let page_size = view.result.page_size.0;
    let mut caches: BTreeMap<&str, Cache> = BTreeMap::new();
    let mut fill = [0u64; 6];
    for page in &occupancy.pages {
        let Holds::Site(site) = page.holds else { continue };
        let cache = caches.entry(view.cache(site)).or_default();
        if page.is_old {
            cache.old_frames += 1;
            cache.old_live = cache.old_live.saturating_add(page.live_bytes);
            continue;
        }
        let bytes = page_size << page.order;
        cache.slabs += 1;
        cache.held = cache.held.saturating_add(bytes);
        cache.live = cache.live.saturating_add(page.live_bytes);
        cache.objects += u64::from(page.live);
        cache.empty += u64::from(page.live == 0);
        cache.sparse += u64::from(is_sparse(page));
        if let Some(slot) = fill.get_mut(filling(page, bytes)) {
            *slot += 1;
        }
    }
    for (site, turnover) in (0u32..).zip(&occupancy.turnover) {
        if *turnover != Turnover::default() {
            caches.entry(view.cache(site)).or_default().turnover += turnover;
        }
    }
    for (site, turnover) in (0u32..).zip(&occupancy.turnover_by_free) {
        if *turnover != Turnover::default() {
            let name = free_cache(view, site);
            caches.entry(name).or_default().turnover += turnover;
        }
    }
    let mut rows: Vec<(&str, Cache)> = caches.into_iter().collect();
    rows.sort_by(|a, b| {
        (b.1.held - b.1.live.min(b.1.held), a.0).cmp(&(a.1.held - a.1.live.min(a.1.held), b.0))
    });
    let mut pins: Vec<(u32, &Pins)> = (0..).zip(&occupancy.pins).filter(|(_, p)| p.objects > 0).collect();
    pins.sort_by(|a, b| {
        b.1.sparse_bytes()
            .total_cmp(&a.1.sparse_bytes())
            .then(b.1.pinned_bytes().total_cmp(&a.1.pinned_bytes()))
            .then(a.0.cmp(&b.0))
    });
    let steps = steps(occupancy);
    let coverage = view.coverage();
    let json = json!({
        "direct_map_votes_percent": map.share_percent(),
        "caches": rows.iter().map(|(name, c)| cache_json(view, name, c, coverage.get(name))).collect::<Vec<_>>(),
        "slabs_by_filling": json!({
            "empty": fill[0], "to_25_percent": fill[1], "to_50_percent": fill[2], "to_75_percent": fill[3],
            "below_100_percent": fill[4], "full": fill[5],
        }),
        "over_time": steps.iter().map(|(t, held, live)| json!({"time": t, "bytes_held": held, "bytes_live": live})).collect::<Vec<_>>(),
        "pinned_by_total": pins.len(),
        "pinned_by": pins.iter().take(view.context.limit).map(|(caller, p)| pin_json(view, *caller, p)).collect::<Vec<_>>(),
    });
    let text =
        Text { view, rows: &rows, fill: &fill, pins: &pins, steps: &steps, coverage: &coverage }.page();
    Part { json, text }
}

/// The cache that frees at a site tell.
fn free_cache<'v>(view: &Traced<'v, '_, '_>, site: u32) -> &'v str {
    let result: &'v crate::pass::Analysis = view.result;
    let free = result.interner.frees.get(site);
    let name = free.and_then(|f| f.cache).map(|c| result.interner.name(c));
    name.and_then(|n| std::str::from_utf8(n).ok()).unwrap_or("? (kfree of older objects)")
}

fn is_sparse(page: &SlabPage) -> bool {
    page.live > 0 && page.live_bytes <= page.peak_bytes / SPARSE
}

/// Which sixth: empty, three quarters, not quite full, full; full is what the slab has held at most, since its room for
/// objects is not known.
fn filling(page: &SlabPage, bytes: u64) -> usize {
    if page.live == 0 {
        return 0;
    }
    let free = bytes.saturating_sub(page.live_bytes);
    let object = page.live_bytes / u64::from(page.live.max(1));
    if free < object { 5 } else { 1 + (page.live_bytes / (bytes / 4).max(1)).min(3) as usize }
}

/// Time, bytes held and bytes live at the end of each step.
fn steps(occupancy: &OccupancySums) -> Vec<(u64, u64, u64)> {
    let (start, step) = (occupancy.start, occupancy.step);
    let (mut held, mut live) = (0i64, 0i64);
    (1..)
        .zip(&occupancy.steps)
        .map(|(number, change)| {
            held = held.saturating_add(change.held);
            live = live.saturating_add(change.live);
            (start.saturating_add(step.saturating_mul(number)), held.max(0) as u64, live.max(0) as u64)
        })
        .collect()
}

fn cache_json(view: &Traced<'_, '_, '_>, name: &str, c: &Cache, coverage: Option<&(Coverage, u64)>) -> Value {
    let (seen, waiting) =
        coverage.map_or((Seen::Unknown, 0), |(coverage, waiting)| (coverage.seen(), *waiting));
    let least = if seen == Seen::All { c.live } else { 0 };
    json!({
        "cache": name,
        "frees_seen": seen.name(),
        "bytes_live_range": view.certain.as_ref().map(|_| [least, c.live.saturating_add(waiting)]),
        "slabs": c.slabs,
        "slabs_empty": c.empty,
        "slabs_sparse": c.sparse,
        "bytes_held": c.held,
        "bytes_live": c.live,
        "objects": c.objects,
        "slabs_born": c.turnover.slabs_born,
        "pages_born": c.turnover.frames_born,
        "slabs_died": c.turnover.slabs_died,
        "pages_died": c.turnover.frames_died,
        "older_slabs_died": c.turnover.old_slabs_died,
        "older_pages_died": c.turnover.old_frames_died,
        "older_pages_in_use": c.old_frames,
        "older_pages_bytes_live": c.old_live,
    })
}

fn is_named(pins: &Pins) -> bool {
    pins.sparse_bytes() >= PINNED_BYTES_MIN && pins.sparse_slabs() >= PINNED_SLABS_MIN
}

fn pin_json(view: &Traced<'_, '_, '_>, caller: u32, p: &Pins) -> Value {
    let (api, address, name) = view.labels.caller(view.result, caller);
    json!({
        "api": api.name(),
        "call_site": json::address(address),
        "symbol": name,
        "objects": p.objects,
        "bytes": p.bytes,
        "pinned_bytes": p.pinned_bytes().round() as u64,
        "pinned_sparse_bytes": p.sparse_bytes().round() as u64,
        "sparse_slabs": p.sparse_slabs(),
        "sparse_objects": p.sparse_objects,
        "sparse_age_mean": p.sparse_age.checked_div(p.sparse_objects.into()).map(|a| a as u64),
        "is_pinner": is_named(p),
    })
}

struct Text<'t, 'v, 's, 'd> {
    view: &'t Traced<'v, 's, 'd>,
    rows: &'t [(&'t str, Cache)],
    fill: &'t [u64; 6],
    pins: &'t [(u32, &'t Pins)],
    steps: &'t [(u64, u64, u64)],
    coverage: &'t BTreeMap<&'t str, (Coverage, u64)>,
}

impl Text<'_, '_, '_, '_> {
    fn page(&self) -> String {
        use Align::Right;
        let (mut all, mut out) = (Cache::default(), String::new());
        for (_, c) in self.rows {
            all.slabs = all.slabs.saturating_add(c.slabs);
            all.held = all.held.saturating_add(c.held);
            all.live = all.live.saturating_add(c.live);
            all.old_frames = all.old_frames.saturating_add(c.old_frames);
            all.turnover += &c.turnover;
        }
        out.push_str(&format!(
            "BETWEEN OBJECTS: slabs of the trace hold {} bytes at the end, {} of them in objects ({})\n",
            count(all.held),
            count(all.live),
            percent(all.live, all.held)
        ));
        out.push_str(&format!(
            "{} slabs came and {} of them went; {} older ones went; {} older pages took objects, and how full they are is not known\n\n",
            count(all.turnover.slabs_born),
            count(all.turnover.slabs_died),
            count(all.turnover.old_slabs_died),
            count(all.old_frames)
        ));
        if self.view.context.session.losses.any() {
            out.push_str("events were lost: a slab whose allocation was lost counts as older, one whose free was lost as held, and so do objects\n\n");
        }
        let unit = self.view.context.session.unit();
        let rows: Vec<Vec<String>> = self
            .steps
            .iter()
            .map(|(t, held, live)| vec![time(*t, unit), count(*held), count(*live), percent(*live, *held)])
            .collect();
        out.push_str(&table(&[("until", Right), ("held", Right), ("live", Right), ("in use", Right)], &rows));
        let names = ["empty", "to 25 %", "to 50 %", "to 75 %", "below full", "full"];
        let parts: Vec<String> =
            names.iter().zip(self.fill).map(|(name, number)| format!("{name} {}", count(*number))).collect();
        out.push_str(&format!("\nslabs at the end: {}\n\n", parts.join(", ")));
        out.push_str(&self.caches());
        out.push_str(&self.pinners());
        out
    }

    fn caches(&self) -> String {
        use Align::{Left, Right};
        let rows: Vec<&(&str, Cache)> = self
            .rows
            .iter()
            .filter(|(_, c)| c.slabs + c.turnover.slabs_born + c.turnover.old_slabs_died > 0)
            .collect();
        let shown = self.view.context.limit.min(15).min(rows.len());
        let cells: Vec<Vec<String>> = rows
            .iter()
            .take(shown)
            .map(|(name, c)| {
                vec![
                    (*name).to_owned(),
                    count(c.turnover.slabs_born),
                    count(c.turnover.slabs_died),
                    count(c.turnover.old_slabs_died),
                    count(c.slabs),
                    count(c.held),
                    count(c.live),
                    percent(c.live, c.held),
                    count(c.empty),
                    count(c.sparse),
                ]
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
        let shown_rows = rows.iter().take(shown);
        table(&columns, &cells)
            + &more(shown, rows.len(), "caches")
            + &self.doubtful(shown_rows.map(|row| row.0))
    }

    /// Which of the caches may have more room than it seems.
    fn doubtful<'n>(&self, names: impl Iterator<Item = &'n str>) -> String {
        let has_unseen = |name: &&str| {
            let seen = self.coverage.get(name).map(|(coverage, _)| coverage.seen());
            matches!(seen, Some(Seen::Partly | Seen::Nothing))
        };
        let names: Vec<&str> = names.filter(has_unseen).collect();
        if names.is_empty() {
            return String::new();
        }
        format!(
            "frees have no event, or not all, of {}: live is an upper bound there, and slabs may be emptier\n",
            names.join(", ")
        )
    }

    fn pinners(&self) -> String {
        use Align::{Left, Right};
        let (view, unit) = (self.view, self.view.context.session.unit());
        let named = self.pins.iter().filter(|(_, p)| is_named(p)).count();
        let mut out = match named {
            0 => "\nno call site pins slabs that are nearly empty\n".to_owned(),
            1 => "\none call site pins slabs that are nearly empty:\n".to_owned(),
            n => format!("\n{n} call sites pin slabs that are nearly empty:\n"),
        };
        let shown = view.context.limit.min(named.max(5)).min(self.pins.len());
        let cells: Vec<Vec<String>> = self
            .pins
            .iter()
            .take(shown)
            .map(|(caller, p)| {
                let age = p.sparse_age.checked_div(p.sparse_objects.into());
                vec![
                    view.labels.caller(view.result, *caller).2,
                    if is_named(p) { "pins".to_owned() } else { String::new() },
                    count(p.sparse_objects),
                    format!("{:.1}", p.sparse_slabs()),
                    count(p.sparse_bytes().round() as u64),
                    age.map_or(String::new(), |a| duration(a as u64, unit)),
                    count(p.objects),
                    count(p.pinned_bytes().round() as u64),
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
        out.push_str(&table(&columns, &cells));
        out.push_str(&more(shown, self.pins.len(), "call sites"));
        out.push_str(&format!(
            "\nSparse: a quarter or less of what the slab once held is live. Each survivor is charged an equal share of what its slab leaves unused; a call site pins from {} bytes and {} slabs on. Objects without a free event seem live until their address or page is used again, and the room of a slab counts as unused where objects are in it that have no allocation event.\n",
            count(PINNED_BYTES_MIN as u64),
            PINNED_SLABS_MIN
        ));
        out
    }
}
