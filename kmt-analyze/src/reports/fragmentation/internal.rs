//! Bytes handed out beyond those asked for: kmalloc's size classes, whole pages for large requests, and the caches' own
//! rounding, which is charged to the cache and not to who allocates from it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Part, Traced, on_average};
use crate::collect::occupancy::OccupancySums;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::basis::Basis;
use crate::reports::common::known::{Known, cell};
use crate::reports::common::sums::more;
use crate::stream::Api;

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    alloc: u64,
    req: u64,
    live: u64,
    req_live: u64,
    /// Of what is live, what is for certain; `None` where events were lost.
    least: Option<u64>,
    /// Bytes of objects that wait for a grace period: they may still be held.
    waiting: u64,
    byte_time: u128,
    waste_time: u128,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.alloc = self.alloc.saturating_add(other.alloc);
        self.req = self.req.saturating_add(other.req);
        self.live = self.live.saturating_add(other.live);
        self.req_live = self.req_live.saturating_add(other.req_live);
        self.least = self.least.zip(other.least).map(|(a, b)| a.saturating_add(b));
        self.waiting = self.waiting.saturating_add(other.waiting);
        self.byte_time = self.byte_time.saturating_add(other.byte_time);
        self.waste_time = self.waste_time.saturating_add(other.waste_time);
    }

    fn wasted(&self) -> u64 {
        self.alloc.saturating_sub(self.req)
    }

    fn wasted_live(&self) -> u64 {
        self.live.saturating_sub(self.req_live)
    }

    /// `null` where no allocation of the kind was recorded.
    fn json(&self, known: Known) -> Value {
        if !known.allocs {
            return Value::Null;
        }
        let lives = |value: Value| if known.lives { value } else { Value::Null };
        json!({
            "bytes_alloc": self.alloc,
            "bytes_wasted": self.wasted(),
            "bytes_live": lives(json!(self.live)),
            "bytes_live_range": lives(json!(self.least.map(|least| [least, self.live.saturating_add(self.waiting)]))),
            "bytes_wasted_live": lives(json!(self.wasted_live())),
            "byte_time": lives(json!(self.byte_time.to_string())),
            "byte_time_wasted": lives(json!(self.waste_time.to_string())),
            "percent_of_alloc": share(self.wasted().into(), self.alloc.into()),
            "percent_of_live": lives(json!(share(self.wasted_live().into(), self.live.into()))),
            "percent_of_byte_time": lives(json!(share(self.waste_time, self.byte_time))),
        })
    }

    fn cells(&self, name: String, length: u64, known: Known) -> Vec<String> {
        let percent = |part: u128, whole: u128| format!("{:.1}%", share(part, whole));
        let allocs = [count(self.wasted()), percent(self.wasted().into(), self.alloc.into())];
        let lives = [
            count(self.wasted_live()),
            percent(self.wasted_live().into(), self.live.into()),
            on_average(self.waste_time, length),
            percent(self.waste_time, self.byte_time),
        ];
        let allocs = allocs.map(|text| cell(known.allocs, text));
        let lives = lives.map(|text| cell(known.lives, text));
        std::iter::once(name).chain(allocs).chain(lives).collect()
    }
}

fn share(part: u128, whole: u128) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

pub(super) fn of(view: &Traced<'_, '_, '_>, occupancy: &OccupancySums) -> Part {
    let result = view.result;
    let large = 2 * result.page_size.0;
    let empty = Sums { least: view.least(0, 0), ..Sums::default() };
    let mut kinds = [empty; 3];
    let mut callers: BTreeMap<u64, Sums> = BTreeMap::new();
    let mut caches: BTreeMap<&str, Sums> = BTreeMap::new();
    for (number, site) in (0u32..).zip(result.interner.sites.items()) {
        let held = occupancy.object_time.get(number as usize).copied().unwrap_or(0);
        let mut sums = Sums {
            byte_time: held.saturating_mul(site.bytes_alloc.into()),
            waste_time: held.saturating_mul(site.bytes_alloc.saturating_sub(site.bytes_req).into()),
            ..empty
        };
        for (_, totals) in result.balance.sites.get(number as usize).into_iter().flatten() {
            sums.alloc = sums.alloc.saturating_add(totals.bytes_alloc);
            sums.req = sums.req.saturating_add(totals.bytes_req);
            sums.live = sums.live.saturating_add(totals.bytes_live);
            sums.req_live = sums.req_live.saturating_add(totals.bytes_req_live);
            sums.waiting = sums.waiting.saturating_add(totals.bytes_waiting);
        }
        sums.least = view.least(number, sums.live);
        let kind = match site.api {
            Api::Kmalloc if site.bytes_alloc > large => 1,
            Api::Kmalloc => 0,
            Api::Cache => 2,
        };
        if let Some(kind) = kinds.get_mut(kind) {
            kind.add(&sums);
        }
        match site.api {
            Api::Kmalloc => callers.entry(site.call_site).or_insert(empty).add(&sums),
            Api::Cache => caches.entry(view.cache(number)).or_insert(empty).add(&sums),
        }
    }
    let (first, last) = view.context.selection.span(view.context.session);
    let length = last.saturating_sub(first);
    let mut callers: Vec<(u64, String, Sums)> = callers
        .into_iter()
        .filter(|(_, s)| s.wasted() > 0)
        .map(|(address, sums)| (address, view.labels.symbol(address), sums))
        .collect();
    callers.sort_by(|a, b| (b.2.waste_time, b.2.wasted(), &a.1).cmp(&(a.2.waste_time, a.2.wasted(), &b.1)));
    let mut caches: Vec<(&str, Sums)> = caches.into_iter().filter(|(_, s)| s.wasted() > 0).collect();
    caches.sort_by(|a, b| (b.1.waste_time, a.0).cmp(&(a.1.waste_time, b.0)));
    let limit = view.context.limit;
    let basis = Basis::of(view.context.session, result);
    let [kmalloc, cache] = Api::ALL.map(|api| Known::slab(&basis, Some(api)));
    let json = json!({
        "kmalloc": kinds[0].json(kmalloc),
        "kmalloc_large": kinds[1].json(kmalloc),
        "caches": kinds[2].json(cache),
        "kmalloc_callers_total": kmalloc.rows(callers.len()),
        "kmalloc_callers": callers.iter().take(limit).map(|(address, name, sums)| {
            let mut row = sums.json(kmalloc);
            if let Value::Object(row) = &mut row {
                row.insert("call_site".into(), json::address(*address));
                row.insert("symbol".into(), json!(name));
            }
            row
        }).collect::<Vec<_>>(),
        "cache_rounding_total": cache.rows(caches.len()),
        "cache_rounding": caches.iter().take(limit).map(|(name, sums)| {
            let mut row = sums.json(cache);
            if let Value::Object(row) = &mut row {
                row.insert("cache".into(), json!(name));
            }
            row
        }).collect::<Vec<_>>(),
    });
    Part { json, text: text(&kinds, &callers, &caches, (limit, length), (kmalloc, cache)) }
}

fn text(
    kinds: &[Sums; 3],
    callers: &[(u64, String, Sums)],
    caches: &[(&str, Sums)],
    (limit, length): (usize, u64),
    (kmalloc, cache): (Known, Known),
) -> String {
    use Align::{Left, Right};
    let columns = |first: &'static str| {
        [
            (first, Left),
            ("wasted in all", Right),
            ("", Right),
            ("wasted live", Right),
            ("", Right),
            ("wasted on average", Right),
            ("", Right),
        ]
    };
    let names = ["kmalloc, size classes", "kmalloc, whole pages", "caches' own rounding"];
    let rows: Vec<Vec<String>> = kinds
        .iter()
        .zip(names)
        .zip([kmalloc, kmalloc, cache])
        .map(|((sums, name), known)| sums.cells(name.to_owned(), length, known))
        .collect();
    let mut out = format!(
        "INSIDE OBJECTS: bytes handed out beyond those asked for\n{}",
        table(&columns("kind"), &rows)
    );
    let shown = limit.min(10).min(callers.len());
    if shown > 0 {
        let rows: Vec<Vec<String>> = callers
            .iter()
            .take(shown)
            .map(|(_, name, sums)| sums.cells(name.clone(), length, kmalloc))
            .collect();
        out.push_str(&format!(
            "\n{}{}",
            table(&columns("kmalloc by"), &rows),
            more(shown, callers.len(), "call sites")
        ));
    }
    let shown = limit.min(10).min(caches.len());
    if shown > 0 {
        let rows: Vec<Vec<String>> = caches
            .iter()
            .take(shown)
            .map(|(name, sums)| sums.cells((*name).to_owned(), length, cache))
            .collect();
        out.push_str(&format!(
            "\n{}{}",
            table(&columns("cache"), &rows),
            more(shown, caches.len(), "caches")
        ));
    }
    out
}
