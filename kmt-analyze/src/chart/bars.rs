//! Pictures with a bar for each row: how full slab pages are, by cache; bytes requested and wasted, by size class of kmalloc.
//!
//! Rows come from the reports `fragmentation` and `sizes`.

use super::frame::{self, Frame, HEAD, MARGIN, WIDTH};
use super::svg::{Anchor, Svg, cut, html_text};
use crate::render::words::{count, counted, size};
use crate::reports::fragmentation::{Occupied, OccupiedCache};
use crate::reports::sizes::{SizeRow, SizeRows};
use crate::sort_rows::SortRows;

const FILLING_LEFT: f64 = 200.0;
const FILLING_RIGHT: f64 = 230.0;
const FILLING_ROW: f64 = 22.0;
const FILLING_BAR: f64 = 15.0;
/// Caches that are drawn.
const CACHES: usize = 30;
/// Columns of a name.
const NAME: usize = 28;

/// The picture of the slabs that the trace allocated and that are left.
pub fn filling(occupied: &Occupied, frame: &Frame) -> String {
    let title = "Slab pages of the recording at its end: used and unused";
    let mut svg = Svg::default();
    frame.head(&mut svg, title);
    let mut caches: Vec<&OccupiedCache> =
        occupied.caches.iter().filter(|cache| cache.bytes_held > 0).collect();
    caches.sort_rows_by(|a, b| (b.bytes_held, &a.cache).cmp(&(a.bytes_held, &b.cache)));
    let more = caches.len().saturating_sub(CACHES);
    caches.truncate(CACHES);
    let most = caches.iter().map(|cache| cache.bytes_held).max().unwrap_or(0).max(1);
    let per_byte = (WIDTH - FILLING_LEFT - FILLING_RIGHT) / most as f64;
    let bottom = HEAD + FILLING_ROW * caches.len() as f64;
    for (bytes, text) in frame::axis_sizes(0, i64::try_from(most).unwrap_or(i64::MAX)) {
        let x = FILLING_LEFT + bytes * per_byte;
        svg.line((x, HEAD), (x, bottom), "grid");
        svg.text((x, bottom + 16.0), "muted", Anchor::Middle, &text);
    }
    for (number, cache) in caches.iter().enumerate() {
        filled_bar(&mut svg, HEAD + FILLING_ROW * number as f64, per_byte, cache);
    }
    let mut y = bottom + 34.0;
    for (x, class, text) in
        [(MARGIN, "c0", "objects of the recording"), (MARGIN + 220.0, "c1", "unused, or older objects")]
    {
        svg.rect((x, y), (24.0, 12.0), class, "");
        svg.text((x + 30.0, y + 10.0), "muted", Anchor::Start, text);
    }
    y += 28.0;
    let filling = &occupied.slabs_by_filling;
    let parts = [
        ("empty", filling.empty),
        ("up to 25 %", filling.to_25_percent),
        ("up to 50 %", filling.to_50_percent),
        ("up to 75 %", filling.to_75_percent),
        ("below 100 %", filling.below_100_percent),
        ("full", filling.full),
    ];
    let parts: Vec<String> = parts.iter().map(|(name, slabs)| format!("{name} {}", count(*slabs))).collect();
    let mut lines = vec![format!("Slabs by filling: {}.", parts.join(", "))];
    if more > 0 {
        lines.push(format!("{} with less memory are not drawn.", counted(more as u64, "cache", "caches")));
    }
    for line in lines {
        svg.text((MARGIN, y + 6.0), "muted", Anchor::Start, &line);
        y += 18.0;
    }
    let end = frame.foot(&mut svg, y);
    svg.finish(WIDTH, end + MARGIN, title, "A bar for each cache; its second part is unused")
}

/// One cache.
fn filled_bar(svg: &mut Svg, y: f64, per_byte: f64, cache: &OccupiedCache) {
    let used = cache.bytes_live.min(cache.bytes_held);
    let unused = cache.bytes_held - used;
    svg.text((FILLING_LEFT - 8.0, y + 12.0), "", Anchor::End, &cut(&cache.cache, NAME));
    svg.add(format_args!(
        "<g data-name=\"{}\" data-held=\"{}\" data-live=\"{}\">\n",
        html_text(&cache.cache),
        cache.bytes_held,
        cache.bytes_live
    ));
    let (first, second) = (used as f64 * per_byte, unused as f64 * per_byte);
    svg.rect((FILLING_LEFT, y), (first, FILLING_BAR), "c0", &format!("objects: {}", size(used)));
    svg.rect((FILLING_LEFT + first, y), (second, FILLING_BAR), "c1", &format!("unused: {}", size(unused)));
    let text = format!(
        "{} in {}, {:.0} % used",
        size(cache.bytes_held),
        counted(cache.slabs, "slab", "slabs"),
        100.0 * used as f64 / cache.bytes_held.max(1) as f64
    );
    svg.text((FILLING_LEFT + first + second + 8.0, y + 12.0), "muted", Anchor::Start, &text);
    svg.add(format_args!("</g>\n"));
}

const WASTE_LEFT: f64 = 84.0;
const WASTE_RIGHT: f64 = 180.0;
const WASTE_ROW: f64 = 24.0;
const WASTE_BAR: f64 = 16.0;

/// The picture of the size classes, the smallest first.
pub fn waste(rows: &SizeRows, frame: &Frame) -> String {
    let title = "Kmalloc size classes: requested and wasted";
    let mut svg = Svg::default();
    frame.head(&mut svg, title);
    let mut classes: Vec<&SizeRow> = rows.sizes.iter().collect();
    classes.sort_rows_by_key(|row| row.size_class);
    let allocated = |row: &SizeRow| row.sums.bytes_alloc.unwrap_or(0);
    let most = classes.iter().map(|row| allocated(row)).max().unwrap_or(0).max(1);
    let per_byte = (WIDTH - WASTE_LEFT - WASTE_RIGHT) / most as f64;
    let bottom = HEAD + WASTE_ROW * classes.len() as f64;
    for (bytes, text) in frame::axis_sizes(0, i64::try_from(most).unwrap_or(i64::MAX)) {
        let x = WASTE_LEFT + bytes * per_byte;
        svg.line((x, HEAD), (x, bottom), "grid");
        svg.text((x, bottom + 16.0), "muted", Anchor::Middle, &text);
    }
    for (number, row) in classes.iter().enumerate() {
        wasted_bar(&mut svg, HEAD + WASTE_ROW * number as f64, per_byte, row);
    }
    let y = bottom + 32.0;
    svg.text(
        ((WASTE_LEFT + WIDTH - WASTE_RIGHT) / 2.0, y),
        "muted",
        Anchor::Middle,
        "bytes allocated during the recording, by size class",
    );
    svg.rect((MARGIN, y + 12.0), (24.0, 12.0), "c0", "");
    svg.text((MARGIN + 30.0, y + 22.0), "muted", Anchor::Start, "requested");
    svg.rect((MARGIN + 110.0, y + 12.0), (24.0, 12.0), "c1", "");
    svg.text((MARGIN + 140.0, y + 22.0), "muted", Anchor::Start, "wasted: allocated beyond the request");
    let more = rows.sizes_total.saturating_sub(classes.len());
    if more > 0 {
        let text =
            format!("{} with less memory are not drawn.", counted(more as u64, "size class", "size classes"));
        svg.text((MARGIN + 420.0, y + 22.0), "muted", Anchor::Start, &text);
    }
    let end = frame.foot(&mut svg, y + 32.0);
    svg.finish(WIDTH, end + MARGIN, title, "A bar for each size class; its second part is wasted")
}

/// One size class.
fn wasted_bar(svg: &mut Svg, y: f64, per_byte: f64, row: &SizeRow) {
    let (allocated, requested) = (row.sums.bytes_alloc.unwrap_or(0), row.sums.bytes_req.unwrap_or(0));
    let wasted = row.sums.bytes_wasted.unwrap_or(0);
    svg.text((WASTE_LEFT - 8.0, y + 13.0), "", Anchor::End, &size(row.size_class));
    svg.add(format_args!(
        "<g data-class=\"{}\" data-requested=\"{requested}\" data-allocated=\"{allocated}\">\n",
        row.size_class
    ));
    // Of some allocations no event has the size.
    let (first, second) = (allocated.saturating_sub(wasted) as f64 * per_byte, wasted as f64 * per_byte);
    svg.rect((WASTE_LEFT, y), (first, WASTE_BAR), "c0", &format!("requested: {}", size(requested)));
    svg.rect((WASTE_LEFT + first, y), (second, WASTE_BAR), "c1", &format!("wasted: {}", size(wasted)));
    let share = row
        .sums
        .internal_fragmentation_percent
        .map_or(String::new(), |share| format!(", {share:.1}% wasted"));
    let text = format!("{}{share}", size(allocated));
    svg.text((WASTE_LEFT + first + second + 8.0, y + 13.0), "muted", Anchor::Start, &text);
    svg.add(format_args!("</g>\n"));
}
