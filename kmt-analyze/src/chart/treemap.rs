//! The source tree as nested rectangles, each as large as its memory.

use super::frame::{Frame, HEAD, MARGIN, WIDTH};
use super::source::{Part, SourcePicture, legend};
use super::svg::{Svg, cut};
use super::tree::SourceNode;
use crate::html::html_text;

const HEIGHT: f64 = 560.0;
/// Height of the line with the name of a part.
const LINE: f64 = 15.0;
const CHAR: f64 = 6.2;
const GAP: f64 = 1.5;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// The picture of a tree.
pub fn draw(root: &SourceNode, picture: &SourcePicture, frame: &Frame) -> String {
    let mut svg = Svg::default();
    frame.head(&mut svg, &picture.title);
    let area = Area { x: MARGIN, y: HEAD, width: 640.0, height: HEIGHT };
    parts(&mut svg, root, picture, area, (1, None));
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
fn parts(
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
        let chars = ((own.width - 6.0) / CHAR).max(0.0) as usize;
        let has_label = chars >= 3 && own.height >= LINE;
        let label = has_label.then(|| {
            format!(
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                own.x + 3.0,
                own.y + 11.5,
                html_text(&cut(&part.name, chars))
            )
        });
        picture.part(svg, &Part { node: part, colour, level, path, label });
        let head = if has_label { LINE } else { GAP };
        let inner = Area {
            x: own.x + GAP,
            y: own.y + head,
            width: own.width - 2.0 * GAP,
            height: own.height - head - GAP,
        };
        if inner.width > 4.0 && inner.height > 4.0 {
            parts(svg, part, picture, inner, (level + 1, Some(colour)));
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
