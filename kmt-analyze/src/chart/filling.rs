//! How full slab pages are: a bar for each cache.

use super::axis;
use super::frame::{Frame, HEAD, MARGIN, WIDTH};
use super::svg::{Anchor, Svg, cut};
use crate::html::html_text;
use crate::render::words::{count, counted, size};
use crate::reports::fragmentation::{Occupied, OccupiedCache};

const LEFT: f64 = 200.0;
const RIGHT: f64 = 230.0;
const ROW: f64 = 22.0;
const BAR: f64 = 15.0;
/// Caches that are drawn.
const CACHES: usize = 30;
/// Characters of a name.
const NAME: usize = 28;

/// The picture of the slabs that the trace allocated and that are left.
pub fn draw(occupied: &Occupied, frame: &Frame) -> String {
    let title = "Slab pages of the recording at its end: used and unused";
    let mut svg = Svg::default();
    frame.head(&mut svg, title);
    let mut caches: Vec<&OccupiedCache> =
        occupied.caches.iter().filter(|cache| cache.bytes_held > 0).collect();
    caches.sort_by(|a, b| (b.bytes_held, &a.cache).cmp(&(a.bytes_held, &b.cache)));
    let more = caches.len().saturating_sub(CACHES);
    caches.truncate(CACHES);
    let most = caches.iter().map(|cache| cache.bytes_held).max().unwrap_or(0).max(1);
    let per_byte = (WIDTH - LEFT - RIGHT) / most as f64;
    let bottom = HEAD + ROW * caches.len() as f64;
    for (bytes, text) in axis::sizes(0, i64::try_from(most).unwrap_or(i64::MAX)) {
        let x = LEFT + bytes * per_byte;
        svg.line((x, HEAD), (x, bottom), "grid");
        svg.text((x, bottom + 16.0), "muted", Anchor::Middle, &text);
    }
    for (number, cache) in caches.iter().enumerate() {
        bar(&mut svg, HEAD + ROW * number as f64, per_byte, cache);
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
fn bar(svg: &mut Svg, y: f64, per_byte: f64, cache: &OccupiedCache) {
    let used = cache.bytes_live.min(cache.bytes_held);
    let unused = cache.bytes_held - used;
    svg.text((LEFT - 8.0, y + 12.0), "", Anchor::End, &cut(&cache.cache, NAME));
    svg.add(format_args!(
        "<g data-name=\"{}\" data-held=\"{}\" data-live=\"{}\">\n",
        html_text(&cache.cache),
        cache.bytes_held,
        cache.bytes_live
    ));
    let (first, second) = (used as f64 * per_byte, unused as f64 * per_byte);
    svg.rect((LEFT, y), (first, BAR), "c0", &format!("objects: {}", size(used)));
    svg.rect((LEFT + first, y), (second, BAR), "c1", &format!("unused: {}", size(unused)));
    let text = format!(
        "{} in {}, {:.0} % used",
        size(cache.bytes_held),
        counted(cache.slabs, "slab", "slabs"),
        100.0 * used as f64 / cache.bytes_held.max(1) as f64
    );
    svg.text((LEFT + first + second + 8.0, y + 12.0), "muted", Anchor::Start, &text);
    svg.add(format_args!("</g>\n"));
}
