//! `slabinfo BEFORE AFTER`: two copies of /proc/slabinfo, without a trace.
//!
//! Bug reports often have such copies. Caches that changed become rows and a screen. /proc/slabinfo has pages of slabs without their
//! size: it follows from the objects that fit into them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::env::Env;
use crate::export;
use crate::failure::{Failure, Outcome, Result};
use crate::render::look::Look;
use crate::render::out::{Schema, print, print_rows};
use crate::render::screen::{Cell, Column, Screen, Table, page};
use crate::render::words::counted;
use crate::reports::balance::SLAB_RECORD;
use crate::reports::common::cells::difference;
use crate::reports::info::{CacheChange, cache_changes};
use crate::reports::output::Output;
use crate::trace::slabinfo::{self, SlabCaches, SlabInfoLine};

/// Largest copy in bytes: a line has about 150 bytes, and a kernel some thousand caches.
const FILE_LEN_MAX: u64 = 64 << 20;

/// Beginnings of a copy; the first line may be missing.
const STARTS: [&[u8]; 2] = [b"slabinfo - version", b"# name "];

/// Columns of the rows as a table.
const COLUMNS: [&str; 8] = [
    "cache",
    "active_before",
    "active_after",
    "active_change",
    "active_estimated",
    "bytes_before",
    "bytes_after",
    "bytes_change",
];

/// Changes between two copies of /proc/slabinfo.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabCopiesRows {
    /// Size of a page in bytes: the smallest by which the objects of each slab fit into its pages.
    pub page_size: u64,
    /// Bytes of the slabs of all caches in the first copy.
    pub bytes_before: u64,
    /// Bytes of the slabs of all caches in the second copy.
    pub bytes_after: u64,
    /// Bytes in the second copy less those in the first.
    pub bytes_change: i64,
    /// Caches whose slabs grew, in bytes.
    pub grown: usize,
    /// Caches whose slabs shrank.
    pub shrunk: usize,
    /// Number of caches that changed.
    pub caches_total: usize,
    /// Caches that changed, the largest change of bytes first.
    pub caches: Vec<CacheChange>,
}

/// True if two files are given, and one of them is a copy of /proc/slabinfo.
pub fn are_copies(files: &[PathBuf], env: &Env) -> bool {
    files.len() == 2 && files.iter().any(|path| is_copy(path, env))
}

fn is_copy(path: &Path, env: &Env) -> bool {
    let is_start = |bytes: &[u8]| STARTS.iter().any(|start| bytes.starts_with(start));
    if let Some(bytes) = env.files.get(path) {
        return is_start(&bytes);
    }
    let mut start = Vec::new();
    path.is_file()
        && File::open(path).is_ok_and(|file| file.take(32).read_to_end(&mut start).is_ok())
        && is_start(&start)
}

/// Prints the changes from the first copy to the second, as CSV if `csv` is true.
pub fn run(files: &[PathBuf], csv: bool, output: &Output, env: &Env) -> Result<Outcome> {
    let [before, after] = files else {
        return Err(Failure::new("slabinfo compares two copies of /proc/slabinfo").usage());
    };
    let rows = compute(&read(before, env)?, &read(after, env)?, output.rows());
    if csv {
        export::csv_of_rows(env, "slabinfo", &rows, ("caches", &COLUMNS))?;
    } else if output.json {
        print_rows(env, Schema::first("slabinfo-copies"), &rows, output.limit)?;
    } else {
        let text = page(&screen(&rows, &output.show.look), &[], &[], &output.show.look);
        print(env, output.show.pager, text.as_bytes())?;
    }
    Ok(Outcome::Done)
}

/// Caches of a copy.
fn read(path: &Path, env: &Env) -> Result<SlabCaches> {
    let bytes = match env.files.get(path) {
        Some(bytes) => bytes,
        None => {
            let mut bytes = Vec::new();
            let file = File::open(path).map_err(|e| Failure::io("opening", path, &e))?;
            let read = file.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes);
            read.map_err(|e| Failure::io("reading", path, &e))?;
            bytes
        }
    };
    let refused = |reason: &str| {
        Failure::new(format!("{}: {reason}", path.display())).hint(
            "kmt-analyze slabinfo BEFORE AFTER compares two copies of /proc/slabinfo; a recording has its own",
        )
    };
    if bytes.len() as u64 > FILE_LEN_MAX {
        return Err(refused("larger than 64 MiB"));
    }
    let caches = slabinfo::parse(&bytes);
    if caches.is_empty() { Err(refused("no caches of slabinfo version 2.1")) } else { Ok(caches) }
}

fn compute(before: &SlabCaches, after: &SlabCaches, rows_max: usize) -> SlabCopiesRows {
    let page_size = page_size(before.values().chain(after.values()));
    let bytes = |caches: &SlabCaches| {
        let of = |cache: &SlabInfoLine| {
            cache.num_slabs.saturating_mul(cache.pagesperslab).saturating_mul(page_size)
        };
        caches.values().map(of).fold(0, u64::saturating_add)
    };
    let (bytes_before, bytes_after) = (bytes(before), bytes(after));
    let mut caches = cache_changes(before, after, page_size);
    let number = |is_it: fn(i64) -> bool| caches.iter().filter(|cache| is_it(cache.bytes_change)).count();
    let (grown, shrunk) = (number(|change| change > 0), number(|change| change < 0));
    let caches_total = caches.len();
    caches.truncate(rows_max);
    SlabCopiesRows {
        page_size,
        bytes_before,
        bytes_after,
        bytes_change: difference(bytes_before, bytes_after),
        grown,
        shrunk,
        caches_total,
        caches,
    }
}

/// The smallest page from 4 KiB to 256 KiB whose slabs have room for their objects.
fn page_size<'c>(caches: impl Iterator<Item = &'c SlabInfoLine> + Clone) -> u64 {
    let fits = |size: u64| {
        caches.clone().all(|cache| {
            let objects = u128::from(cache.objperslab) * u128::from(cache.objsize);
            cache.pagesperslab == 0 || objects <= u128::from(cache.pagesperslab) * u128::from(size)
        })
    };
    (12..=18).map(|bit| 1 << bit).find(|size| fits(*size)).unwrap_or(4096)
}

/// Slab memory and its change, the cache that changed most, and the table.
fn screen(rows: &SlabCopiesRows, look: &Look) -> Screen {
    let mut screen = Screen::new(answer(rows, look));
    let about = |is_about: bool, cell: Cell| if is_about { Cell::About(Box::new(cell)) } else { cell };
    let mut table = Table::of_rows("", &rows.caches)
        .of("cache", "caches", rows.caches_total)
        .column(Column::name("cache"), |cache| Cell::text(&cache.cache))
        .column(Column::number("objects before").leaves(3), |cache| {
            about(cache.active_estimated, Cell::Count(cache.active_before))
        })
        .column(Column::number("objects after").leaves(2), |cache| {
            about(cache.active_estimated, Cell::Count(cache.active_after))
        })
        .column(Column::number("objects change"), |cache| {
            about(cache.active_estimated, Cell::Change(cache.active_change))
        })
        .column(Column::number("before").leaves(1), |cache| Cell::Bytes(cache.bytes_before))
        .column(Column::number("after"), |cache| Cell::Bytes(cache.bytes_after))
        .column(Column::number("change"), |cache| Cell::BytesChange(cache.bytes_change));
    if rows.caches.iter().any(|cache| cache.active_estimated) {
        table = table.explain(
            "objects change",
            "~ in objects: an estimate of the kernel, for caches with more than 10,000 slabs (since 6.10).",
        );
    }
    screen.table(table);
    if rows.page_size != 4096 {
        let size = Cell::Bytes(rows.page_size).shown(look);
        screen.note(format!("Pages have {size}: the objects of the slabs fit into no smaller ones."));
    }
    if rows.grown > 0 {
        screen.lines("Recording that shows who allocates", vec![SLAB_RECORD.to_owned()]);
    }
    screen
}

fn answer(rows: &SlabCopiesRows, look: &Look) -> String {
    let bytes = |bytes: u64| Cell::Bytes(bytes).shown(look);
    let end = bytes(rows.bytes_after);
    let by = bytes(rows.bytes_change.unsigned_abs());
    let moved = match rows.bytes_change {
        0 => format!("Slabs did not change: {end}"),
        1.. => format!("Slabs grew by {by} to {end}"),
        _ => format!("Slabs shrank by {by} to {end}"),
    };
    let Some(first) = rows.caches.first() else {
        return format!("{moved}. No cache changed.");
    };
    let objects = counted(first.active_change.unsigned_abs(), "object", "objects");
    let sign = if first.active_change < 0 { "-" } else { "+" };
    format!(
        "{moved}; {} grew and {} shrank. The largest change is that of {} ({}, {sign}{objects}).",
        counted(rows.grown as u64, "cache", "caches"),
        rows.shrunk,
        first.cache,
        Cell::BytesChange(first.bytes_change).shown(look)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_size_has_room_for_the_objects() {
        let size = |[objsize, objperslab, pagesperslab]: [u64; 3]| {
            let line =
                format!("x 1 1 {objsize} {objperslab} {pagesperslab} : tunables 0 0 0 : slabdata 1 1 0\n");
            page_size(slabinfo::parse(line.as_bytes()).values())
        };
        assert_eq!(size([192, 21, 1]), 4096);
        assert_eq!(size([192, 85, 1]), 16_384);
        assert_eq!(size([192, 341, 1]), 65_536);
        assert_eq!(size([8192, 4, 8]), 4096);
        // No slab at all, and numbers that no kernel prints.
        assert_eq!(size([192, 0, 0]), 4096);
        assert_eq!(size([u64::MAX, u64::MAX, 1]), 4096);
    }
}
