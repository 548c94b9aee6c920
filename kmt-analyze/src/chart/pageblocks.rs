//! A map of pageblocks: which hold pages of the recording, and of which migrate types.

use super::frame::{Frame, HEAD, MARGIN, WIDTH};
use super::svg::{Anchor, Svg};
use crate::html::html_text;
use crate::render::words::counted;
use crate::reports::fragmentation::{BlockRow, Pageblocks};

const SIDE: f64 = 14.0;
const GAP: f64 = 2.0;
/// Blocks that are drawn.
pub const BLOCKS_MAX: usize = 6_000;
/// Classes of colours, and the one of blocks with several types.
const COLOURS: usize = 6;
const MIXED: &str = "c7";

/// The picture of the blocks, by address; blocks without pages of the recording are left out.
pub fn draw(blocks: &Pageblocks, frame: &Frame) -> String {
    let title = "Pageblocks with pages of the recording";
    let mut svg = Svg::default();
    frame.head(&mut svg, title);
    let types: Vec<&str> = blocks.by_migratetype.iter().map(|row| row.migratetype.as_str()).collect();
    let per_row = ((WIDTH - 2.0 * MARGIN) / (SIDE + GAP)) as usize;
    let mut index = 0;
    let mut last: Option<u64> = None;
    for block in blocks.blocks.iter().take(BLOCKS_MAX) {
        // Nothing is drawn where blocks are missing.
        index += usize::from(last.is_some_and(|last| last + 1 < block.block));
        last = Some(block.block);
        let (x, y) = ((index % per_row) as f64, (index / per_row) as f64);
        square(&mut svg, (MARGIN + x * (SIDE + GAP), HEAD + y * (SIDE + GAP)), block, &types);
        index += 1;
    }
    let rows = index.div_ceil(per_row.max(1));
    let mut y = HEAD + rows as f64 * (SIDE + GAP) + 12.0;
    let mut x = MARGIN;
    let mixed = ("several types", MIXED.to_owned());
    let named = types.iter().enumerate().map(|(number, name)| (*name, colour(number)));
    for (name, class) in named.chain([mixed]) {
        svg.rect((x, y), (12.0, 12.0), &class, "");
        svg.text((x + 18.0, y + 10.0), "muted", Anchor::Start, name);
        x += 130.0;
    }
    y += 28.0;
    let mut lines = vec![format!(
        "{}; {} with several types; a gap stands for blocks without pages of the recording.",
        counted(blocks.blocks_with_live_pages as u64, "block", "blocks"),
        blocks.blocks_mixed
    )];
    let more = blocks.blocks.len().saturating_sub(BLOCKS_MAX);
    if more > 0 {
        lines.push(format!("{} are not drawn.", counted(more as u64, "block", "blocks")));
    }
    for line in lines {
        svg.text((MARGIN, y + 6.0), "muted", Anchor::Start, &line);
        y += 18.0;
    }
    let end = frame.foot(&mut svg, y);
    svg.finish(WIDTH, end + MARGIN, title, "A square for each pageblock, in the order of their addresses")
}

fn square(svg: &mut Svg, at: (f64, f64), block: &BlockRow, types: &[&str]) {
    let pages: Vec<String> =
        block.pages.iter().map(|(name, pages)| format!("{pages} {}", name.to_lowercase())).collect();
    let class = match block.pages.as_slice() {
        [(name, _)] => colour(types.iter().position(|other| other == name).unwrap_or(0)),
        _ => MIXED.to_owned(),
    };
    svg.add(format_args!(
        "<g data-block=\"{}\" data-pages=\"{}\">",
        block.block,
        html_text(&pages.join(", "))
    ));
    svg.rect(at, (SIDE, SIDE), &class, &format!("block {}: {} pages", block.block, pages.join(", ")));
    svg.add(format_args!("</g>\n"));
}

fn colour(number: usize) -> String {
    format!("c{}", number % COLOURS)
}
