//! A grid of counts: the more, the darker, on a logarithmic scale.

use super::frame::{Frame, HEAD, MARGIN, WIDTH, wrapped};
use super::svg::{Anchor, Svg};
use crate::html::html_text;
use crate::render::words::count;

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
pub fn draw(grid: &Grid, frame: &Frame) -> String {
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
