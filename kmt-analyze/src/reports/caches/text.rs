//! The screen of caches.

use kmt_format::schema::{Meaning, Role};

use super::Caches;
use super::rows::{AllCaches, CacheRow, CacheRows, names};
use crate::render::head::{self, some_values};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{self, escaped, listed};
use crate::reports::common::cells::{LIVE_RANGE, live_range, live_range_cells, slab_cells, slab_columns};
use crate::reports::common::lead::{Nouns, lead};
use crate::reports::common::{ReportContext, View};
use crate::trace::aliases::Aliases;
use crate::trace::names::is_of_pages;
use crate::trace::session::Session;

const NOUNS: Nouns = Nouns { one: "cache", several: "caches" };

/// The largest caches, and the meaning of their names.
pub fn screen(report: &Caches, context: &ReportContext<'_, '_>, rows: &CacheRows, view: &View) -> Screen {
    let (sort, filter) = (report.rows.sort.first().copied(), report.cache.as_deref());
    let total = rows.caches_total;
    let names = if total == 0 && filter.is_some() { names(context) } else { Vec::new() };
    if !names.is_empty() {
        return head::nothing(vec![format!("caches: {}", some_values(names))]);
    }
    let all = AllCaches::of(context, filter);
    let largest = rows.caches.first().map(name);
    let first = largest.as_deref().zip(rows.caches.first().map(|row| &row.sums));
    let mut screen = Screen::new(lead(sort, total as u64, NOUNS, &all.sums, first, view));
    let is_lossy = view.is_lossy;
    screen.table(
        Table::of_rows("", &rows.caches)
            .of("cache", "caches", total)
            .column(Column::name("cache"), |row| Cell::text(name(row)))
            .column(Column::number("size").leaves(5), |row| Cell::text(size(row)))
            .columns(slab_columns(sort, is_lossy), |r| slab_cells(&r.sums, r.estimated.as_ref(), is_lossy))
            .columns(live_range(all.has_doubts), |r| {
                live_range_cells(all.has_doubts, &r.live_range, r.sums.live)
            })
            .explain(LIVE_RANGE[0].heading, context.live_bounds().legend()),
    );
    for sentence in other_names(rows, context.session) {
        screen.note(sentence);
    }
    screen.note(of_pages(rows, context.analysis.page_size.0).unwrap_or_default());
    if all.has_nameless {
        let reason = why_nameless(context.session);
        screen.note(format!("?: the cache of these objects is unknown: {reason}."));
    }
    screen.next("callers --sort live", "call sites that hold the memory");
    screen.next("sizes", "sizes that kmalloc rounds up");
    screen
}

/// Name of a cache on one line.
fn name(row: &CacheRow) -> String {
    escaped(row.cache.as_bytes())
}

/// Why a name of kmalloc is not in /proc/slabinfo.
fn of_pages(rows: &CacheRows, page_size: u64) -> Option<String> {
    let is_it = |row: &&CacheRow| row.kind == "kmalloc" && is_of_pages(row.object_size_min, page_size);
    let first = rows.caches.iter().find(is_it)?;
    Some(format!(
        "{}: kmalloc takes whole pages for more than {} (SLUB has no cache of this size).",
        name(first),
        words::size(page_size.saturating_mul(2))
    ))
}

/// Size of an object, or the range of sizes.
fn size(row: &CacheRow) -> String {
    let (low, high) = (row.object_size_min, row.object_size_max);
    if low == high { low.to_string() } else { format!("{low}-{high}") }
}

/// Why no event names the cache of some objects.
fn why_nameless(session: &Session<'_>) -> &'static str {
    let mut frees =
        session.trace.schema().classes().filter(|(_, class)| class.meaning == Meaning::CACHE_FREE);
    match frees.any(|(_, class)| class.field_with(Role::CACHE_NAME).is_some()) {
        true => {
            "no object of their call sites was freed in the trace, and the event of a free names the cache"
        }
        false => "kernels before 5.12 name it in no event",
    }
}

/// Other caches of a name.
fn other_names(rows: &CacheRows, session: &Session<'_>) -> Vec<String> {
    if !Aliases::of(session.trace.metadata()).is_recorded() {
        return vec![
            "A name may stand for several caches: SLUB merges caches of like size and events name the first; the file does not list the others."
                .to_owned(),
        ];
    }
    let named = rows.caches.iter().filter_map(|row| {
        let names = row.aliases.as_ref().filter(|names| !names.is_empty())?;
        let names: Vec<String> = names.iter().map(|name| escaped(name.as_bytes())).collect();
        Some(format!("{} also stands for {}.", name(row), listed(&names)))
    });
    named.collect()
}
