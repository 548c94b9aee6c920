//! Grids of counts: the more, the darker, on a logarithmic scale.
//!
//! Three pictures are made of them: waits for memory by time and length, lifetimes by size, and a map of pageblocks by migrate
//! type. Rows come from the reports `latency`, `lifetimes` and `fragmentation`.

use std::collections::BTreeSet;

use super::frame::{Frame, HEAD, MARGIN, WIDTH, wrapped};
use super::svg::{Anchor, Svg, html_text};
use crate::render::words::{count, counted, duration, size};
use crate::reports::fragmentation::{BlockRow, Pageblocks};
use crate::reports::latency::LatencyRows;
use crate::reports::lifetimes::LifetimeRows;
use crate::sort_rows::SortRows;
use crate::trace::losses::Losses;

const LEFT: f64 = 96.0;
const ROW: f64 = 22.0;
/// Shades of the style.
const SHADES: usize = 8;
/// Columns whose labels are written: more would overlap.
const LABELS: usize = 12;

/// A grid of counts.
pub struct Grid {
    /// Unit of the counts.
    pub title: &'static str,
    /// Names of the columns, from the left.
    pub columns: Vec<String>,
    /// Label below the columns.
    pub column_noun: &'static str,
    /// Names of the rows, from the top, and their counts by column.
    pub rows: Vec<(String, Vec<u64>)>,
    /// By column: events are missing.
    pub is_lossy: Vec<bool>,
    /// Unit of the counts, in the plural.
    pub noun: &'static str,
    /// Sentences below.
    pub notes: Vec<String>,
}

impl Grid {
    fn most(&self) -> u64 {
        self.rows.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or(0)
    }
}

/// The picture of a grid.
fn draw(grid: &Grid, frame: &Frame) -> String {
    let mut svg = Svg::default();
    frame.head(&mut svg, grid.title);
    let width = (WIDTH - LEFT - MARGIN) / grid.columns.len().max(1) as f64;
    let most = grid.most();
    let bottom = HEAD + ROW * grid.rows.len() as f64;
    for (column, _) in grid.is_lossy.iter().enumerate().filter(|(_, is_lossy)| **is_lossy) {
        let at = (LEFT + width * column as f64, HEAD);
        svg.rect(at, (width, bottom - HEAD), "lost", "events are missing");
    }
    for (number, (name, counts)) in grid.rows.iter().enumerate() {
        let y = HEAD + ROW * number as f64;
        svg.text((LEFT - 8.0, y + 15.0), "", Anchor::End, name);
        svg.add(format_args!("<g data-row=\"{}\">\n", html_text(name)));
        for (column, &number) in counts.iter().enumerate().filter(|(_, number)| **number > 0) {
            let x = LEFT + width * column as f64;
            cell(&mut svg, grid, (x, y), (width, number), shade(number, most), (name, column));
        }
        svg.add(format_args!("</g>\n"));
    }
    let every = grid.columns.len().div_ceil(LABELS).max(1);
    for (column, name) in grid.columns.iter().enumerate().step_by(every) {
        let x = LEFT + width * column as f64;
        svg.line((x, bottom), (x, bottom + 4.0), "axis");
        svg.text((x, bottom + 18.0), "muted", Anchor::Start, name);
    }
    svg.text(((LEFT + WIDTH - MARGIN) / 2.0, bottom + 36.0), "muted", Anchor::Middle, grid.column_noun);
    let mut y = legend(&mut svg, bottom + 48.0, most, grid.noun);
    if grid.is_lossy.contains(&true) {
        svg.rect((MARGIN, y), (24.0, 12.0), "lost", "");
        svg.text((MARGIN + 30.0, y + 10.0), "muted", Anchor::Start, "events are missing");
        y += 20.0;
    }
    for line in grid.notes.iter().flat_map(|note| wrapped(note)) {
        svg.text((MARGIN, y + 14.0), "muted", Anchor::Start, &line);
        y += 18.0;
    }
    let end = frame.foot(&mut svg, y + 8.0);
    svg.finish(WIDTH, end + MARGIN, grid.title, "A grid of counts; the more, the darker")
}

fn cell(
    svg: &mut Svg,
    grid: &Grid,
    (x, y): (f64, f64),
    (width, number): (f64, u64),
    shade: usize,
    (row, column): (&str, usize),
) {
    let name = grid.columns.get(column).map_or("", String::as_str);
    let title = format!("{} {}: {row}, {name}", count(number), grid.noun);
    svg.add(format_args!("<g data-column=\"{column}\" data-count=\"{number}\">"));
    svg.rect((x, y), (width, ROW), &format!("h{shade}"), &title);
    svg.add(format_args!("</g>\n"));
}

/// The shade of a count: the largest has the last.
fn shade(number: u64, most: u64) -> usize {
    let share = (number as f64).ln() / (most as f64).ln().max(1e-9);
    1 + ((SHADES - 1) as f64 * share.clamp(0.0, 1.0)) as usize
}

/// Shades with the least count of each; returns where the legend ends.
fn legend(svg: &mut Svg, y: f64, most: u64, noun: &str) -> f64 {
    let mut x = MARGIN;
    for step in 1..=SHADES {
        let least = (most as f64).powf((step - 1) as f64 / (SHADES - 1) as f64).ceil() as u64;
        svg.rect((x, y), (24.0, 12.0), &format!("h{step}"), "");
        svg.text((x + 30.0, y + 10.0), "muted", Anchor::Start, &format!("≥ {}", count(least)));
        x += 104.0;
    }
    svg.text((x, y + 10.0), "muted", Anchor::Start, noun);
    y + 24.0
}

/// Columns of time.
const COLUMNS: u64 = 48;
/// Largest number of kinds that are named below.
const KINDS: usize = 6;

/// The picture of all stalls from `first` to `last`.
pub fn latency(rows: &LatencyRows, (first, last): (u64, u64), losses: &Losses, frame: &Frame) -> String {
    let intervals = &rows.latency.intervals;
    let step = (last.saturating_sub(first) / COLUMNS + 1).max(1);
    let digits: BTreeSet<u32> = intervals.iter().map(|interval| log2(interval.length)).collect();
    let (low, high) = (digits.first().copied().unwrap_or(0), digits.last().copied().unwrap_or(0));
    let mut counts = vec![vec![0u64; COLUMNS as usize]; (high - low + 1) as usize];
    for interval in intervals {
        let row = (high - log2(interval.length)) as usize;
        let column = (interval.begin.saturating_sub(first) / step).min(COLUMNS - 1) as usize;
        if let Some(cell) = counts.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell += 1;
        }
    }
    let from = |digits: u32| if digits == 0 { 0 } else { 1u64 << (digits - 1) };
    let name = |row: usize| format!("≥ {}", duration(from(high - row as u32), frame.unit));
    let since = first.saturating_sub(frame.start);
    let mut notes: Vec<String> = Vec::new();
    let kinds = rows.latency.kinds.iter().take(KINDS);
    let kinds: Vec<String> =
        kinds.map(|kind| format!("{} {}", count(kind.lengths.count), kind.name)).collect();
    notes.push(format!("Stalls: {}.", kinds.join(", ")));
    if rows.latency.intervals_left_out > 0 {
        notes.push(format!("{} more stalls are not drawn.", count(rows.latency.intervals_left_out)));
    }
    let edge = |column: u64| first.saturating_add(step.saturating_mul(column));
    let is_lossy = |column| losses.missing_share(edge(column), edge(column + 1)) != Some(0.0);
    let grid = Grid {
        title: "Waits for memory: when they began, and how long they were",
        columns: (0..COLUMNS).map(|column| duration(since + column * step, frame.unit)).collect(),
        column_noun: "begin, since the first event",
        rows: counts.into_iter().enumerate().map(|(row, counts)| (name(row), counts)).collect(),
        is_lossy: (0..COLUMNS).map(is_lossy).collect(),
        noun: "stalls",
        notes,
    };
    draw(&grid, frame)
}

fn log2(length: u64) -> u32 {
    u64::BITS - length.leading_zeros()
}

/// The picture of lifetimes grouped by size.
pub fn lifetimes(rows: &LifetimeRows, frame: &Frame) -> String {
    let groups = rows.groups.as_ref();
    let mut sizes: Vec<(u64, [u64; 65])> = Vec::new();
    for group in groups.iter().flat_map(|table| &table.groups) {
        let mut counts = [0u64; 65];
        for [low, _, number] in &group.row.lifetime.histogram {
            // Buckets are finer than powers of two, and end at them.
            counts[digits(*low)] += number;
        }
        sizes.push((group.number("size").unwrap_or(0), counts));
    }
    sizes.sort_rows_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let used = |at: &usize| sizes.iter().any(|(_, counts)| counts[*at] > 0);
    let (first, last) = ((0..65).find(used).unwrap_or(0), (0..65).rev().find(used).unwrap_or(0));
    let from = |digits: usize| if digits == 0 { 0 } else { 1u64 << (digits - 1) };
    let total = groups.map_or(0, |table| table.groups_total);
    let mut notes = Vec::new();
    if rows.shown.censored > 0 {
        notes.push(format!(
            "{} objects are still allocated: they are not in the grid.",
            count(rows.shown.censored)
        ));
    }
    if total > sizes.len() {
        notes.push(format!("{} sizes with fewer objects are not drawn.", total - sizes.len()));
    }
    let grid = Grid {
        title: "Lifetimes of freed objects, by size",
        columns: (first..=last).map(|at| duration(from(at), frame.unit)).collect(),
        column_noun: "lifetime: at least",
        rows: sizes
            .iter()
            .map(|(bytes, counts)| (size(*bytes), counts.get(first..=last).unwrap_or_default().to_vec()))
            .collect(),
        is_lossy: Vec::new(),
        noun: "objects freed",
        notes,
    };
    draw(&grid, frame)
}

/// Number of binary digits.
fn digits(length: u64) -> usize {
    (u64::BITS - length.leading_zeros()) as usize
}

const SIDE: f64 = 14.0;
const GAP: f64 = 2.0;
/// Blocks that are drawn.
pub const BLOCKS_MAX: usize = 6_000;
/// Classes of colours, and the one of blocks with several types.
const COLOURS: usize = 6;
const MIXED: &str = "c7";

/// The picture of the blocks, by address; blocks without pages of the recording are left out.
pub fn pageblocks(sums: &Pageblocks, blocks: &[BlockRow], frame: &Frame) -> String {
    let title = "Pageblocks with pages of the recording";
    let mut svg = Svg::default();
    frame.head(&mut svg, title);
    let types: Vec<&str> = sums.by_migratetype.iter().map(|row| row.migratetype.as_str()).collect();
    let per_row = ((WIDTH - 2.0 * MARGIN) / (SIDE + GAP)) as usize;
    let mut index = 0;
    let mut last: Option<u64> = None;
    for block in blocks.iter().take(BLOCKS_MAX) {
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
        counted(sums.blocks_with_live_pages as u64, "block", "blocks"),
        sums.blocks_mixed
    )];
    let more = blocks.len().saturating_sub(BLOCKS_MAX);
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
