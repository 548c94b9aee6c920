//! A flame graph: each frame as wide as what was allocated below it.

use std::collections::BTreeMap;

use super::frame::{Frame, HEAD, MARGIN, WIDTH};
use super::svg::{Svg, cut, escaped};
use crate::export::Weight;
use crate::render::text::{count, percent};
use crate::render::words::size;

const ROW: f64 = 17.0;
/// Narrower frames are left out.
const WIDTH_MIN: f64 = 0.4;
/// Frames that are drawn, and how deep; a stack of the kernel has some 60.
const FRAMES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 200;
/// Width of a character.
const CHAR: f64 = 6.2;
/// Colours of frames.
const COLOURS: u32 = 5;
/// Marks the frames whose name has the text that the user gives; `/` asks again.
const SEARCH: &str = "<script><![CDATA[\
const all=document.querySelectorAll('.frame');\
function search(){const word=prompt('Frames whose name contains:');if(word===null)return;\
for(const f of all)f.classList.toggle('hit',word!==''&&f.dataset.name.includes(word));}\
document.getElementById('search').addEventListener('click',search);\
document.addEventListener('keydown',e=>{if(e.key==='/'){e.preventDefault();search();}});\
]]></script>\n";

/// Quantity that a width shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct What {
    title: &'static str,
    is_bytes: bool,
}

/// Quantity that the width of a frame shows.
pub fn what(weight: Weight, pages: bool, at: bool) -> What {
    let (title, is_bytes) = match (weight, pages) {
        (Weight::Count, false) => ("Allocations by call stack", false),
        (Weight::Count, true) => ("Pages by call stack", false),
        (Weight::Waste, _) => ("Bytes allocated beyond those requested, by call stack", true),
        (Weight::Live, _) => ("Memory still allocated, by call stack", true),
        (Weight::Alloc, _) if at => ("Memory allocated at an instant, by call stack", true),
        (Weight::Alloc, _) => ("Allocated memory by call stack", true),
    };
    What { title, is_bytes }
}

#[derive(Default)]
struct Node<'s> {
    weight: u64,
    below: BTreeMap<&'s str, Node<'s>>,
}

/// The picture of stacks: outermost frame first, separated by `;`.
pub fn of(stacks: &BTreeMap<String, u64>, what: What, frame: &Frame) -> String {
    let mut root = Node::default();
    let mut deepest = 0;
    for (path, &weight) in stacks.iter().filter(|(_, weight)| **weight > 0) {
        root.weight = root.weight.saturating_add(weight);
        let mut node = &mut root;
        for (depth, name) in path.split(';').take(DEPTH_MAX).enumerate() {
            node = node.below.entry(name).or_default();
            node.weight = node.weight.saturating_add(weight);
            deepest = deepest.max(depth + 1);
        }
    }
    let mut picture = Picture { svg: Svg::default(), whole: root.weight, what, drawn: 0, left_out: 0 };
    frame.head(&mut picture.svg, what.title);
    picture.svg.add(format_args!(
        "<text id=\"search\" tabindex=\"0\" role=\"button\" x=\"{:.1}\" y=\"24\" text-anchor=\"end\" style=\"cursor:pointer\">search (/)</text>\n",
        WIDTH - MARGIN
    ));
    let per_unit = (WIDTH - 2.0 * MARGIN) / (root.weight.max(1) as f64);
    let all = format!("all: {}", picture.amount(root.weight));
    picture.frame((MARGIN, HEAD), WIDTH - 2.0 * MARGIN, &all, root.weight);
    picture.children(&root, MARGIN, HEAD + ROW, per_unit);
    let mut y = HEAD + ROW * (deepest as f64 + 1.0) + 8.0;
    if picture.left_out > 0 {
        let text = format!(
            "{} frames are too narrow to be drawn, with what is below them.",
            count(picture.left_out)
        );
        picture.svg.text((MARGIN, y + 14.0), "muted", super::svg::Anchor::Start, &text);
        y += 18.0;
    }
    let end = frame.foot(&mut picture.svg, y);
    picture.svg.add(format_args!("{SEARCH}"));
    picture.svg.finish(
        WIDTH,
        end + MARGIN,
        what.title,
        "Each frame is as wide as the sum of the frames below it",
    )
}

struct Picture {
    svg: Svg,
    whole: u64,
    what: What,
    drawn: usize,
    left_out: u64,
}

impl Picture {
    fn amount(&self, weight: u64) -> String {
        if self.what.is_bytes { size(weight) } else { count(weight) }
    }

    fn children(&mut self, node: &Node<'_>, mut x: f64, y: f64, per_unit: f64) {
        for (name, child) in &node.below {
            let width = child.weight as f64 * per_unit;
            if width < WIDTH_MIN || self.drawn >= FRAMES_MAX {
                self.left_out += 1;
            } else {
                self.drawn += 1;
                self.frame((x, y), width, name, child.weight);
                self.children(child, x, y + ROW, per_unit);
            }
            x += width;
        }
    }

    fn frame(&mut self, (x, y): (f64, f64), width: f64, name: &str, weight: u64) {
        let title = format!("{name}: {}, {}", self.amount(weight), percent(weight, self.whole));
        let chars = ((width - 4.0) / CHAR).max(0.0) as usize;
        let text = if chars >= 3 {
            format!("<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 3.0, y + 12.0, escaped(&cut(name, chars)))
        } else {
            String::new()
        };
        self.svg.add(format_args!(
            "<g class=\"frame\" data-name=\"{}\" data-value=\"{weight}\"><title>{}</title>\
             <rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" class=\"f{}\"/>{text}</g>\n",
            escaped(name),
            escaped(&title),
            ROW - 1.0,
            colour(name)
        ));
    }
}

/// The same name has the same colour.
fn colour(name: &str) -> u32 {
    name.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) % COLOURS
}
