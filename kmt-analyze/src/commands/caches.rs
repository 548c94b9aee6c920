//! `caches`: sums by cache and size class.

use serde_json::{Value, json};

use super::session::{Out, Session, print_json};
use super::selection::{Selection, analyse, sum_of};
use super::sorting::{SortKey, sort_rows};
use super::trust::{title, trust_lines};
use crate::analysis::caches::{CacheKey, CacheRow, by_cache};
use crate::analysis::totals::Totals;
use crate::failure::{Outcome, Result};
use crate::open::outcome;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};

/// What to print.
#[derive(Debug)]
pub struct Options {
    /// What is counted.
    pub selection: Selection,
    /// Rows sorted by these.
    pub sort: Vec<SortKey>,
    /// At most so many rows.
    pub limit: Option<usize>,
    /// Only caches whose name holds this.
    pub cache: Option<String>,
    /// As JSON.
    pub json: bool,
}

/// Prints the table.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let result = analyse(session, &options.selection);
    let large = 2 * result.page_size.0;
    let mut rows: Vec<(String, CacheRow)> = by_cache(&result)
        .into_iter()
        .filter(|row| row.totals != Totals::default())
        .map(|row| (name_of(&row.key, large), row))
        .filter(|(name, _)| options.cache.as_ref().is_none_or(|part| name.contains(part)))
        .collect();
    sort_rows(&mut rows, &options.sort, |(name, row)| (&row.totals, name));
    let shown = options.limit.unwrap_or(usize::MAX).min(rows.len());
    if options.json {
        let mut out = json::head(session.trace, &session.losses);
        out.insert("caches_total".into(), json!(rows.len()));
        out.insert("caches".into(), rows.iter().take(shown).map(|(name, row)| row_json(name, row)).collect());
        print_json(out)?;
    } else {
        let mut text = format!("{}\n", title(session));
        for line in trust_lines(session, &result, &sum_of(&result, None)) {
            text.push_str(&format!("{line}\n"));
        }
        text.push('\n');
        text.push_str(&page(&rows, shown));
        let mut out = Out::stdout();
        out.write(text.as_bytes())?;
        out.finish()?;
    }
    Ok(outcome(&session.path, session.trace, &result.damages, session.losses.any()))
}

/// `large`: beyond this many bytes kmalloc takes whole pages (KMALLOC_MAX_CACHE_SIZE, include/linux/slab.h, SLUB).
fn name_of(key: &CacheKey, large: u64) -> String {
    match key {
        CacheKey::Kmalloc(size) if *size > large => format!("kmalloc, {} byte pages", count(*size)),
        CacheKey::Kmalloc(size) => format!("kmalloc-{size}"),
        CacheKey::Named(name) => escaped(name),
        CacheKey::Nameless(req, _) => format!("? ({req} byte objects)"),
    }
}

fn row_json(name: &str, row: &CacheRow) -> Value {
    let mut out = json::row(&row.totals);
    let kind = match row.key {
        CacheKey::Kmalloc(_) => "kmalloc",
        CacheKey::Named(_) => "cache",
        CacheKey::Nameless(..) => "nameless",
    };
    let exact_name = match &row.key {
        CacheKey::Named(name) => json::text(name),
        _ => name.into(),
    };
    out.insert("cache".into(), exact_name);
    out.insert("kind".into(), kind.into());
    out.insert("object_size_min".into(), row.object_size.0.into());
    out.insert("object_size_max".into(), row.object_size.1.into());
    out.insert("alloc_events_inferred".into(), row.inferred.into());
    out.into()
}

fn page(rows: &[(String, CacheRow)], shown: usize) -> String {
    use Align::{Left, Right};
    let columns = [
        ("cache", Left),
        ("size", Right),
        ("allocs", Right),
        ("bytes_req", Right),
        ("bytes_alloc", Right),
        ("wasted", Right),
        ("frag", Right),
        ("freed", Right),
        ("unseen", Right),
        ("live", Right),
        ("bytes_live", Right),
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|(name, row)| {
            let t = &row.totals;
            let (low, high) = row.object_size;
            vec![
                name.clone(),
                if low == high { low.to_string() } else { format!("{low}-{high}") },
                count(t.alloc_events),
                count(t.bytes_req),
                count(t.bytes_alloc),
                count(t.bytes_wasted()),
                format!("{:.1}%", t.internal_fragmentation_percent()),
                count(t.bytes_freed),
                count(t.bytes_freed_unseen),
                count(t.live),
                count(t.bytes_live),
            ]
        })
        .collect();
    let mut out = table(&columns, &cells);
    if shown < rows.len() {
        out.push_str(&format!("... {} more caches\n", count((rows.len() - shown) as u64)));
    }
    out.push_str(
        "\nA name may stand for several caches: SLUB merges caches of like size, and the kernel names the first.\n",
    );
    if rows.iter().any(|(_, row)| matches!(row.key, CacheKey::Nameless(..))) {
        out.push_str(
            "?: no event tells the cache of these objects; the kernel names it in frees since 5.12 only.\n",
        );
    }
    out
}
