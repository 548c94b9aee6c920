//! Size classes of kmalloc: bytes requested and bytes wasted.

use super::axis;
use super::frame::{Frame, HEAD, MARGIN, WIDTH};
use super::svg::{Anchor, Svg};
use crate::render::words::{counted, size};
use crate::reports::sizes::{SizeRow, SizeRows};

const LEFT: f64 = 84.0;
const RIGHT: f64 = 180.0;
const ROW: f64 = 24.0;
const BAR: f64 = 16.0;

/// The picture of the size classes, the smallest first.
pub fn draw(rows: &SizeRows, frame: &Frame) -> String {
    let title = "Kmalloc size classes: requested and wasted";
    let mut svg = Svg::default();
    frame.head(&mut svg, title);
    let mut classes: Vec<&SizeRow> = rows.sizes.iter().collect();
    classes.sort_by_key(|row| row.size_class);
    let allocated = |row: &SizeRow| row.sums.bytes_alloc.unwrap_or(0);
    let most = classes.iter().map(|row| allocated(row)).max().unwrap_or(0).max(1);
    let per_byte = (WIDTH - LEFT - RIGHT) / most as f64;
    let bottom = HEAD + ROW * classes.len() as f64;
    for (bytes, text) in axis::sizes(0, i64::try_from(most).unwrap_or(i64::MAX)) {
        let x = LEFT + bytes * per_byte;
        svg.line((x, HEAD), (x, bottom), "grid");
        svg.text((x, bottom + 16.0), "muted", Anchor::Middle, &text);
    }
    for (number, row) in classes.iter().enumerate() {
        bar(&mut svg, HEAD + ROW * number as f64, per_byte, row);
    }
    let y = bottom + 32.0;
    svg.text(
        ((LEFT + WIDTH - RIGHT) / 2.0, y),
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
fn bar(svg: &mut Svg, y: f64, per_byte: f64, row: &SizeRow) {
    let (allocated, requested) = (row.sums.bytes_alloc.unwrap_or(0), row.sums.bytes_req.unwrap_or(0));
    let wasted = row.sums.bytes_wasted.unwrap_or(0);
    svg.text((LEFT - 8.0, y + 13.0), "", Anchor::End, &size(row.size_class));
    svg.add(format_args!(
        "<g data-class=\"{}\" data-requested=\"{requested}\" data-allocated=\"{allocated}\">\n",
        row.size_class
    ));
    // Of some allocations no event has the size.
    let (first, second) = (allocated.saturating_sub(wasted) as f64 * per_byte, wasted as f64 * per_byte);
    svg.rect((LEFT, y), (first, BAR), "c0", &format!("requested: {}", size(requested)));
    svg.rect((LEFT + first, y), (second, BAR), "c1", &format!("wasted: {}", size(wasted)));
    let share = row
        .sums
        .internal_fragmentation_percent
        .map_or(String::new(), |share| format!(", {share:.1}% wasted"));
    let text = format!("{}{share}", size(allocated));
    svg.text((LEFT + first + second + 8.0, y + 13.0), "muted", Anchor::Start, &text);
    svg.add(format_args!("</g>\n"));
}
