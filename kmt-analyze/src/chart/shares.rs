//! Pictures of the source tree by memory: as rings and as nested rectangles.
//!
//! Rings have directories inside, files and functions outside, each as wide as its memory. Rectangles are as large as their
//! memory.

use std::f64::consts::{FRAC_PI_2, TAU};

use super::frame::{Frame, HEAD, MARGIN, WIDTH};
use super::svg::{Anchor, Svg, cut, html_text};
use super::tree::{Part, SourceNode, SourcePicture, legend};
use crate::render::screen::width_of;

const CENTRE: (f64, f64) = (330.0, HEAD + 318.0);
const OUTSIDE: f64 = 306.0;
const INSIDE: f64 = 62.0;
/// Width of a column of a label, and height of a line.
const CHAR: f64 = 6.2;
const RING_LINE: f64 = 12.5;
/// Columns of a label, at least.
const COLUMNS_MIN: usize = 3;

/// A ring: its level, and where it begins and ends, in turns.
#[derive(Clone, Copy)]
struct Arc {
    level: usize,
    from: f64,
    to: f64,
}

/// The picture of a tree.
pub fn ring(root: &SourceNode, picture: &SourcePicture, frame: &Frame) -> String {
    let mut svg = Svg::default();
    frame.head(&mut svg, &picture.title);
    let levels = levels(root).max(1);
    let ring = (OUTSIDE - INSIDE) / levels as f64;
    let whole = Arc { level: 0, from: 0.0, to: 1.0 };
    ring_parts(&mut svg, root, picture, (whole, ring), None);
    svg.text((CENTRE.0, CENTRE.1 - 4.0), "", Anchor::Middle, &cut(&root.name, 18));
    svg.text((CENTRE.0, CENTRE.1 + 14.0), "muted", Anchor::Middle, &picture.amount(root.weight));
    let end = legend(&mut svg, root, picture, (660.0, HEAD + 24.0));
    let end = frame.foot(&mut svg, end.max(CENTRE.1 + OUTSIDE + 16.0));
    svg.finish(
        WIDTH,
        end + MARGIN,
        &picture.title,
        "Rings of directories, files and functions, each as wide as its memory",
    )
}

fn levels(node: &SourceNode) -> usize {
    node.below.iter().map(|part| 1 + levels(part)).max().unwrap_or(0)
}

/// Draws the parts of a node outside its own ring. `colour`: that of the directory at the innermost ring.
fn ring_parts(
    svg: &mut Svg,
    node: &SourceNode,
    picture: &SourcePicture,
    (arc, ring): (Arc, f64),
    colour: Option<usize>,
) {
    let mut from = arc.from;
    for (number, part) in node.below.iter().enumerate() {
        let to = from + (arc.to - arc.from) * part.weight as f64 / node.weight.max(1) as f64;
        let own = Arc { level: arc.level + 1, from, to };
        let colour = colour.unwrap_or(number);
        let shape = Part {
            node: part,
            colour,
            level: own.level,
            path: outline(own, ring),
            label: label(own, ring, &part.name),
        };
        picture.part(svg, &shape);
        ring_parts(svg, part, picture, (own, ring), Some(colour));
        from = to;
    }
}

fn point(radius: f64, turn: f64) -> (f64, f64) {
    let angle = turn * TAU - FRAC_PI_2;
    (CENTRE.0 + radius * angle.cos(), CENTRE.1 + radius * angle.sin())
}

fn radii(arc: Arc, ring: f64) -> (f64, f64) {
    let inner = INSIDE + ring * (arc.level - 1) as f64;
    (inner, inner + ring)
}

/// The path of an arc; a whole ring is two halves.
fn outline(arc: Arc, ring: f64) -> String {
    let (inner, outer) = radii(arc, ring);
    if arc.to - arc.from > 0.999 {
        let half = |from, to| outline(Arc { from, to, ..arc }, ring);
        return half(arc.from, arc.from + 0.5) + &half(arc.from + 0.5, arc.from + 0.998);
    }
    let large = u8::from(arc.to - arc.from > 0.5);
    let [a, b, c, d] =
        [point(inner, arc.from), point(outer, arc.from), point(outer, arc.to), point(inner, arc.to)];
    format!(
        "M{:.1} {:.1}L{:.1} {:.1}A{outer:.1} {outer:.1} 0 {large} 1 {:.1} {:.1}L{:.1} {:.1}A{inner:.1} {inner:.1} 0 {large} 0 {:.1} {:.1}Z",
        a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1, a.0, a.1
    )
}

/// A label within its arc: along the ring if it fits there, else across; none if it would be too short to read.
fn label(arc: Arc, ring: f64, name: &str) -> Option<String> {
    let (inner, outer) = radii(arc, ring);
    let (middle, turn) = ((inner + outer) / 2.0, (arc.from + arc.to) / 2.0);
    let along = (arc.to - arc.from) * TAU * middle - 8.0;
    let width = width_of(name) as f64 * CHAR;
    let bulge = middle * (1.0 - (width / 2.0 / middle).min(FRAC_PI_2).cos());
    let degrees = turn * 360.0;
    let (text, rotation) = if width <= along && bulge * 2.0 + RING_LINE <= ring {
        // The lower half would stand on its head.
        let flip = if (0.25..0.75).contains(&turn) { 180.0 } else { 0.0 };
        (name.to_owned(), degrees + flip)
    } else if (arc.to - arc.from) * TAU * inner >= RING_LINE {
        let columns = ((ring - 6.0) / CHAR) as usize;
        let flip = if turn > 0.5 { 90.0 } else { -90.0 };
        (Some(cut(name, columns)).filter(|_| columns >= COLUMNS_MIN)?, degrees + flip)
    } else {
        return None;
    };
    let (x, y) = point(middle, turn);
    let text = html_text(&text);
    Some(format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" dy=\"4\" text-anchor=\"middle\" transform=\"rotate({rotation:.1} {x:.1} {y:.1})\">{text}</text>"
    ))
}

const HEIGHT: f64 = 560.0;
/// Height of the line with the name of a part.
const MAP_LINE: f64 = 15.0;
const GAP: f64 = 1.5;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// The picture of a tree.
pub fn treemap(root: &SourceNode, picture: &SourcePicture, frame: &Frame) -> String {
    let mut svg = Svg::default();
    frame.head(&mut svg, &picture.title);
    let area = Area { x: MARGIN, y: HEAD, width: 640.0, height: HEIGHT };
    map_parts(&mut svg, root, picture, area, (1, None));
    let end = legend(&mut svg, root, picture, (area.x + area.width + 14.0, HEAD + 12.0));
    let end = frame.foot(&mut svg, end.max(HEAD + HEIGHT + 12.0));
    svg.finish(
        WIDTH,
        end + MARGIN,
        &picture.title,
        "Rectangles of directories, files and functions, each as large as its memory",
    )
}

/// Draws the parts of a node within an area.
fn map_parts(
    svg: &mut Svg,
    node: &SourceNode,
    picture: &SourcePicture,
    area: Area,
    (level, colour): (usize, Option<usize>),
) {
    let weights: Vec<u64> = node.below.iter().map(|part| part.weight).collect();
    for (number, (part, own)) in node.below.iter().zip(areas(&weights, area)).enumerate() {
        if own.width < 2.0 || own.height < 2.0 {
            continue;
        }
        let colour = colour.unwrap_or(number);
        let path =
            format!("M{:.1} {:.1}h{:.1}v{:.1}h-{:.1}Z", own.x, own.y, own.width, own.height, own.width);
        let columns = ((own.width - 6.0) / CHAR).max(0.0) as usize;
        let has_label = columns >= 3 && own.height >= MAP_LINE;
        let label = has_label.then(|| {
            format!(
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                own.x + 3.0,
                own.y + 11.5,
                html_text(&cut(&part.name, columns))
            )
        });
        picture.part(svg, &Part { node: part, colour, level, path, label });
        let head = if has_label { MAP_LINE } else { GAP };
        let inner = Area {
            x: own.x + GAP,
            y: own.y + head,
            width: own.width - 2.0 * GAP,
            height: own.height - head - GAP,
        };
        if inner.width > 4.0 && inner.height > 4.0 {
            map_parts(svg, part, picture, inner, (level + 1, Some(colour)));
        }
    }
}

/// Areas of sorted weights, nearly square ones. Source: Bruls, Huizing and van Wijk, "Squarified Treemaps", 2000.
fn areas(weights: &[u64], mut area: Area) -> Vec<Area> {
    let mut left: f64 = weights.iter().map(|weight| *weight as f64).sum();
    let mut out = Vec::with_capacity(weights.len());
    let mut rest = weights;
    while !rest.is_empty() && left > 0.0 {
        let side = area.width.min(area.height);
        let scale = area.width * area.height / left;
        let mut taken = 1;
        while taken < rest.len() && worst(&rest[..=taken], side, scale) <= worst(&rest[..taken], side, scale)
        {
            taken += 1;
        }
        let (row, after) = rest.split_at(taken);
        let sum: f64 = row.iter().map(|weight| *weight as f64).sum();
        let depth = if side > 0.0 { sum * scale / side } else { 0.0 };
        let is_tall = area.width >= area.height;
        let mut at = 0.0;
        for weight in row {
            let length = side * *weight as f64 / sum.max(1.0);
            out.push(if is_tall {
                Area { x: area.x, y: area.y + at, width: depth, height: length }
            } else {
                Area { x: area.x + at, y: area.y, width: length, height: depth }
            });
            at += length;
        }
        if is_tall {
            (area.x, area.width) = (area.x + depth, (area.width - depth).max(0.0));
        } else {
            (area.y, area.height) = (area.y + depth, (area.height - depth).max(0.0));
        }
        left -= sum;
        rest = after;
    }
    out
}

/// The largest ratio of the sides in a row along a side.
fn worst(row: &[u64], side: f64, scale: f64) -> f64 {
    let sum: f64 = row.iter().map(|weight| *weight as f64 * scale).sum();
    let (most, least) = row.iter().fold((0.0_f64, f64::MAX), |(most, least), weight| {
        let area = *weight as f64 * scale;
        (most.max(area), least.min(area))
    });
    let (side, sum) = (side * side, sum * sum);
    (side * most / sum).max(sum / (side * least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_fit_into_their_arcs() {
        let arc = |from, to| Arc { level: 2, from, to };
        assert!(label(arc(0.0, 0.4), 60.0, "drivers").unwrap().contains("drivers"));
        let across = label(arc(0.0, 0.03), 60.0, "a_function_of_a_long_name").unwrap();
        assert!(across.contains('…'), "{across}");
        assert!(label(arc(0.0, 0.01), 60.0, "fs").is_none());
        assert!(label(arc(0.0, 0.03), 20.0, "a_function").is_none());
    }

    /// A label of letters of two columns is as long as twice as many narrow ones.
    #[test]
    fn wide_labels_fit_into_their_arcs() {
        let arc = Arc { level: 2, from: 0.0, to: 0.1 };
        assert!(label(arc, 60.0, "abcdefgh").unwrap().contains("abcdefgh"));
        let wide = label(arc, 60.0, "日本語の名前の木").unwrap();
        assert_eq!(wide, label(arc, 60.0, "abcdefghijklmnop").unwrap().replace("abcdefg…", "日本語…"));
        assert!(wide.contains("日本語…"), "{wide}");
    }

    #[test]
    fn a_whole_ring_is_drawn() {
        let whole = outline(Arc { level: 1, from: 0.0, to: 1.0 }, 50.0);
        assert_eq!(whole.matches('M').count(), 2);
    }

    #[test]
    fn areas_are_as_large_as_weights_and_fill_the_whole() {
        let whole = Area { x: 10.0, y: 20.0, width: 600.0, height: 400.0 };
        let weights = [6, 6, 4, 3, 2, 2, 1];
        let found = areas(&weights, whole);
        let per_unit = whole.width * whole.height / 24.0;
        for (area, weight) in found.iter().zip(weights) {
            assert!((area.width * area.height / per_unit - weight as f64).abs() < 1e-6, "{area:?}");
            assert!(area.x >= 10.0 && area.x + area.width < 610.01 && area.y + area.height < 420.01);
            assert!((area.width / area.height).max(area.height / area.width) < 3.0, "{area:?}");
        }
        assert!(areas(&[], whole).is_empty() && areas(&[0], whole).is_empty());
    }
}
