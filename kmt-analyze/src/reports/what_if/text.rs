//! Tables of layouts and requests.

use super::rows::{WhatIfRows, WhatIfTable};
use crate::render::table::{Align, table};
use crate::render::text::{count, percent};
use Align::{Left, Right};

/// Call sites that are named.
const NAMED: usize = 12;

/// Both tables, and the model behind them.
pub fn of(rows: &WhatIfRows) -> String {
    let rows = &rows.what_if;
    let mut out = layouts(rows) + &requests(rows);
    for (title, sites) in [("long-lived", &rows.long_lived_call_sites), ("apart", &rows.call_sites_apart)] {
        out.push_str(&call_sites(title, sites.as_deref().unwrap_or_default()));
    }
    out.push_str("\nPlayed: each object goes to the fullest slab of its class, a class keeps 5 empty slabs, and only objects born in the trace are there. It compares layouts with each other; per-CPU slabs, nodes and memory cgroups, which split slabs further, are not in it.\n");
    out
}

/// Layouts against the kernel's own.
fn layouts(rows: &WhatIfTable) -> String {
    let (own_average, own_max) =
        rows.layouts.first().map_or((0, 0), |own| (own.slab_bytes_on_average, own.slab_bytes_max));
    let saved = |own: u64, other: u64| match own.checked_sub(other) {
        Some(less) => format!("-{} ({})", count(less), percent(less, own)),
        None => format!("+{} ({})", count(other - own), percent(other - own, own)),
    };
    let cells: Vec<Vec<String>> = (0..)
        .zip(&rows.layouts)
        .map(|(number, layout)| {
            let [mean_saved, max_saved] = match number {
                0 => [String::new(), String::new()],
                _ => {
                    [saved(own_average, layout.slab_bytes_on_average), saved(own_max, layout.slab_bytes_max)]
                }
            };
            vec![
                layout.name.clone(),
                count(layout.bytes_wasted),
                count(layout.bytes_live_max),
                count(layout.slab_bytes_on_average),
                mean_saved,
                count(layout.slab_bytes_max),
                max_saved,
                count(layout.slab_bytes_at_end),
            ]
        })
        .collect();
    let columns = [
        ("size classes of kmalloc", Left),
        ("wasted in objects", Right),
        ("in objects, most", Right),
        ("slabs on average", Right),
        ("saved", Right),
        ("slabs, most", Right),
        ("saved", Right),
        ("slabs at the end", Right),
    ];
    table(&columns, &cells)
}

/// Requests that waste most.
fn requests(rows: &WhatIfTable) -> String {
    if rows.worst_requests.is_empty() {
        return String::new();
    }
    let cells: Vec<Vec<String>> = rows
        .worst_requests
        .iter()
        .map(|request| {
            [request.bytes_req, request.bytes_alloc, request.alloc_events, request.bytes_wasted_on_average]
                .map(count)
                .to_vec()
        })
        .collect();
    let columns = [("asked for", Right), ("class", Right), ("allocs", Right), ("wasted on average", Right)];
    format!("\nrequests that waste most\n{}", table(&columns, &cells))
}

/// Some call sites by name.
fn call_sites(title: &str, sites: &[String]) -> String {
    if sites.is_empty() {
        return String::new();
    }
    let named: Vec<&str> = sites.iter().take(NAMED).map(String::as_str).collect();
    let more = match sites.len() - named.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("\n{title}: {}{more}\n", named.join(", "))
}
