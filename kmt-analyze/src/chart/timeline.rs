//! Live memory over time: a line each, and hatching where events are missing.
//!
//! Lines are the rows of the report `timeline`; the scale is that of the highest step. Lines differ by dashes as well
//! as by colour. Names stand at the ends of their lines, moved apart where they would overlap. `chart/balance` uses the
//! same axes for its bands.

use super::frame::{self, Frame, HEAD, MARGIN, WIDTH};
use super::svg::{Anchor, Svg, cut, html_text};
use crate::reports::timeline::{LineRow, TimelineRow};
use crate::sort_rows::SortRows;

pub(super) const LEFT: f64 = 84.0;
pub(super) const RIGHT: f64 = 216.0;
pub(super) const PLOT: f64 = 320.0;
/// Dashes tell lines apart where colours do not.
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];
/// Classes of colours.
const COLOURS: usize = 8;

/// Places of times and sizes.
pub(super) struct Scale {
    pub times: (f64, f64),
    pub bytes: (f64, f64),
}

impl Scale {
    pub fn x(&self, time: f64) -> f64 {
        let (first, last) = self.times;
        LEFT + (WIDTH - LEFT - RIGHT) * (time - first) / (last - first).max(1.0)
    }

    pub fn y(&self, bytes: f64) -> f64 {
        let (least, most) = self.bytes;
        HEAD + PLOT - PLOT * (bytes - least) / (most - least).max(1.0)
    }
}

/// The picture of a timeline.
pub fn draw(timeline: &TimelineRow, frame: &Frame) -> String {
    let bytes = || timeline.lines.iter().flat_map(|line| &line.bytes_live).copied();
    let (least, most) = (bytes().min().unwrap_or(0).min(0), bytes().max().unwrap_or(0).max(1));
    let (first, last) = (timeline.start, timeline.end_of(timeline.steps.saturating_sub(1)));
    let scale = Scale { times: (first as f64, last as f64), bytes: (least as f64, most as f64) };
    let mut svg = Svg::default();
    let title = "Live memory over time";
    frame.head(&mut svg, title);
    grid(&mut svg, &scale, (least, most), (first, last), frame);
    losses(&mut svg, &scale, timeline);
    for (number, line) in timeline.lines.iter().enumerate() {
        curve(&mut svg, &scale, timeline, number, line);
    }
    let end = |line: &LineRow| scale.y(line.bytes_live.last().copied().unwrap_or(0) as f64);
    let label =
        |(number, line): (usize, &LineRow)| (end(line), format!("c{}", number % COLOURS), line.name.clone());
    names(&mut svg, timeline.lines.iter().enumerate().map(label).collect());
    let is_lossy = timeline.lost_percent.iter().flatten().any(|&share| share > 0.0);
    let mut y = HEAD + PLOT + 48.0;
    if is_lossy {
        svg.rect((MARGIN, y), (24.0, 12.0), "lost", "");
        svg.text((MARGIN + 30.0, y + 10.0), "muted", Anchor::Start, "events are missing");
        y += 20.0;
    }
    let end = frame.foot(&mut svg, y);
    let about = format!(
        "Bytes allocated during the recording and live at the end of each of {} steps",
        timeline.steps
    );
    svg.finish(WIDTH, end + MARGIN, title, &about)
}

/// Numbers at both axes, with their lines.
pub(super) fn grid(
    svg: &mut Svg,
    scale: &Scale,
    (least, most): (i64, i64),
    (first, last): (u64, u64),
    frame: &Frame,
) {
    let right = WIDTH - RIGHT;
    for (bytes, text) in frame::axis_sizes(least, most) {
        let y = scale.y(bytes);
        svg.line((LEFT, y), (right, y), if bytes == 0.0 { "axis" } else { "grid" });
        svg.text((LEFT - 8.0, y + 4.0), "muted", Anchor::End, &text);
    }
    let (ticks, name) = frame::axis_times(first, last, frame.start, frame.unit);
    for (time, text) in ticks {
        let x = scale.x(time);
        svg.line((x, HEAD + PLOT), (x, HEAD + PLOT + 5.0), "axis");
        svg.text((x, HEAD + PLOT + 18.0), "muted", Anchor::Middle, &text);
    }
    svg.text(((LEFT + right) / 2.0, HEAD + PLOT + 36.0), "muted", Anchor::Middle, name);
}

/// Steps in which events are missing.
fn losses(svg: &mut Svg, scale: &Scale, timeline: &TimelineRow) {
    for (step, share) in timeline.lost_percent.iter().enumerate() {
        let title = match share {
            Some(share) if *share > 0.0 => format!("{share:.1} % of this time is not recorded"),
            _ => continue,
        };
        let from = scale.x(timeline.start_of(step) as f64);
        let to = scale.x(timeline.end_of(step) as f64);
        svg.rect((from, HEAD), ((to - from).max(1.0), PLOT), "lost", &title);
    }
}

/// A line of steps; its numbers are with it.
fn curve(svg: &mut Svg, scale: &Scale, timeline: &TimelineRow, number: usize, line: &LineRow) {
    let mut path = format!("M{:.1} {:.1}", scale.x(timeline.start as f64), scale.y(0.0));
    for (time, bytes) in timeline.points(line) {
        path += &format!("L{:.1} {:.1}", scale.x(time as f64), scale.y(bytes as f64));
    }
    let values: Vec<String> = line.bytes_live.iter().map(i64::to_string).collect();
    let dashes = DASHES[number / COLOURS % DASHES.len()];
    svg.add(format_args!(
        "<path d=\"{path}\" class=\"line c{}\" style=\"fill:none\" stroke-dasharray=\"{dashes}\" data-name=\"{}\" data-values=\"{}\"><title>{}</title></path>\n",
        number % COLOURS,
        html_text(&line.name),
        values.join(" "),
        html_text(&line.name)
    ));
}

/// Names beside the end of the plot, with their height there and their colour, moved apart.
pub(super) fn names(svg: &mut Svg, mut labels: Vec<(f64, String, String)>) {
    labels.sort_rows_by(|a, b| a.0.total_cmp(&b.0));
    // From the top down, each at least a line of text below the one before; then up again from the bottom.
    let mut least = HEAD;
    for label in &mut labels {
        label.0 = label.0.max(least);
        least = label.0 + 15.0;
    }
    let mut most = HEAD + PLOT;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(most);
        most = label.0 - 15.0;
    }
    let x = WIDTH - RIGHT + 8.0;
    for (y, class, name) in labels {
        svg.rect((x, y - 4.0), (10.0, 4.0), &class, &name);
        svg.text((x + 15.0, y + 2.0), "", Anchor::Start, &cut(&name, 28));
    }
}
