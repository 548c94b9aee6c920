//! A flame graph: each frame as wide as what was allocated by what it called.
//!
//! Stacks and their weights come from `export folded`. With a second file, colours show the change of each frame and
//! its title the weight before. Frames narrower than a fraction of a unit are left out, so that a picture of any trace
//! stays small. A script in the file marks frames by a search text.

use std::collections::BTreeMap;

use super::frame::{Frame, HEAD, MARGIN, WIDTH};
use super::svg::{Anchor, Svg, cut, html_text};
use super::{BaseStacks, ChartKind, ChartOptions};
use crate::export::Weight;
use crate::render::words::{count, counted, percent, size};

const ROW: f64 = 17.0;
/// Narrower frames are left out.
const WIDTH_MIN: f64 = 0.4;
/// Frames that are drawn, and how deep; a stack of the kernel has some 60.
const FRAMES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 200;
/// Width of a column of text.
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

/// Quantity that the width of a frame shows, and whether that is bytes.
fn what(options: &ChartOptions) -> (&'static str, bool) {
    match (options.weight, options.pages) {
        (Weight::Count, false) => ("Allocations by call stack", false),
        (Weight::Count, true) => ("Pages by call stack", false),
        (Weight::Waste, _) => ("Bytes allocated beyond those requested, by call stack", true),
        (Weight::Live, _) => ("Memory still allocated, by call stack", true),
        (Weight::Alloc, _) if options.selection.at.is_some() => {
            ("Memory allocated at an instant, by call stack", true)
        }
        (Weight::Alloc, _) => ("Allocated memory by call stack", true),
    }
}

#[derive(Default)]
struct FlameNode<'s> {
    weight: u64,
    before: u64,
    below: BTreeMap<&'s str, FlameNode<'s>>,
}

/// Adds a stack; returns its depth.
fn add<'s>(root: &mut FlameNode<'s>, path: &'s str, weight: impl Fn(&mut FlameNode<'s>)) -> usize {
    weight(root);
    let mut node = root;
    let mut deepest = 0;
    for name in path.split(';').take(DEPTH_MAX) {
        node = node.below.entry(name).or_default();
        weight(node);
        deepest += 1;
    }
    deepest
}

/// The picture of stacks: outermost frame first, separated by `;`.
pub fn draw(stacks: &BTreeMap<String, u64>, options: &ChartOptions, frame: &Frame) -> String {
    let (title, is_bytes) = what(options);
    let mut root = FlameNode::default();
    let mut deepest = 0;
    for (path, &weight) in stacks.iter().filter(|(_, weight)| **weight > 0) {
        let depth = add(&mut root, path, |node| node.weight = node.weight.saturating_add(weight));
        deepest = deepest.max(depth);
    }
    for (path, &weight) in options.before.iter().flat_map(|before| &before.stacks) {
        add(&mut root, path, |node| node.before = node.before.saturating_add(weight));
    }
    let mut picture = Picture {
        svg: Svg::default(),
        whole: root.weight,
        is_bytes,
        has_before: options.before.is_some(),
        bottom: (options.kind != ChartKind::Icicle).then_some(deepest),
        drawn: 0,
        left_out: 0,
    };
    frame.head(&mut picture.svg, title);
    picture.svg.add(format_args!(
        "<text id=\"search\" tabindex=\"0\" role=\"button\" x=\"{:.1}\" y=\"24\" text-anchor=\"end\" style=\"cursor:pointer\">search (/)</text>\n",
        WIDTH - MARGIN
    ));
    let per_unit = (WIDTH - 2.0 * MARGIN) / (root.weight.max(1) as f64);
    let all = format!("all: {}", picture.amount(root.weight));
    picture.frame((MARGIN, 0), WIDTH - 2.0 * MARGIN, &all, &root);
    picture.children(&root, MARGIN, 1, per_unit);
    let mut y = HEAD + ROW * (deepest as f64 + 1.0) + 8.0;
    if picture.left_out > 0 {
        let frames = counted(picture.left_out, "frame is", "frames are");
        let text = format!("{frames} too narrow to be drawn, with all functions called there.");
        picture.svg.text((MARGIN, y + 14.0), "muted", Anchor::Start, &text);
        y += 26.0;
    }
    if let Some(before) = &options.before {
        y = legend(&mut picture, before, y);
    }
    let end = frame.foot(&mut picture.svg, y);
    picture.svg.add(format_args!("{SEARCH}"));
    picture.svg.finish(WIDTH, end + MARGIN, title, "Each frame is as wide as the sum of the frames below it")
}

struct Picture {
    svg: Svg,
    whole: u64,
    is_bytes: bool,
    has_before: bool,
    /// Depth of the deepest frame, where the outermost is at the bottom.
    bottom: Option<usize>,
    drawn: usize,
    left_out: u64,
}

impl Picture {
    fn amount(&self, weight: u64) -> String {
        if self.is_bytes { size(weight) } else { count(weight) }
    }

    fn children(&mut self, node: &FlameNode<'_>, mut x: f64, depth: usize, per_unit: f64) {
        for (name, child) in &node.below {
            let width = child.weight as f64 * per_unit;
            if child.weight == 0 {
                continue;
            }
            if width < WIDTH_MIN || self.drawn >= FRAMES_MAX {
                self.left_out += 1;
            } else {
                self.drawn += 1;
                self.frame((x, depth), width, name, child);
                self.children(child, x, depth + 1, per_unit);
            }
            x += width;
        }
    }

    fn frame(&mut self, (x, depth): (f64, usize), width: f64, name: &str, node: &FlameNode<'_>) {
        let weight = node.weight;
        let y = HEAD + ROW * self.bottom.map_or(depth, |bottom| bottom.saturating_sub(depth)) as f64;
        let mut title = format!("{name}: {}, {}", self.amount(weight), percent(weight, self.whole));
        let mut class = format!("f{}", colour(name));
        let mut before = String::new();
        if self.has_before {
            title.push_str(&format!("; before {}", self.amount(node.before)));
            class = format!("d{}", change(node));
            before = format!(" data-before=\"{}\"", node.before);
        }
        let columns = ((width - 4.0) / CHAR).max(0.0) as usize;
        let text = if columns >= 3 {
            format!(
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 3.0,
                y + 12.0,
                html_text(&cut(name, columns))
            )
        } else {
            String::new()
        };
        self.svg.add(format_args!(
            "<g class=\"frame\" data-name=\"{}\" data-value=\"{weight}\"{before}><title>{}</title>\
             <rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" class=\"{class}\"/>{text}</g>\n",
            html_text(name),
            html_text(&title),
            ROW - 1.0
        ));
    }
}

/// Class of the change: 0 shrank to nothing, 3 the same within 5 %, 6 more than twice.
fn change(node: &FlameNode<'_>) -> u32 {
    let (after, before) = (node.weight as f64, node.before as f64);
    match after / before.max(f64::MIN_POSITIVE) {
        times if times > 2.0 => 6,
        times if times > 1.25 => 5,
        times if times > 1.05 => 4,
        times if times >= 0.95 => 3,
        times if times >= 0.8 => 2,
        times if times >= 0.5 => 1,
        _ => 0,
    }
}

/// Legend of the colours; returns where the legend ends.
fn legend(picture: &mut Picture, before: &BaseStacks, y: f64) -> f64 {
    let steps = ["< 0.5 times", "< 0.8", "< 0.95", "same", "> 1.05", "> 1.25", "> 2 times"];
    for (number, text) in steps.iter().enumerate() {
        let x = MARGIN + 100.0 * number as f64;
        picture.svg.rect((x, y), (24.0, 12.0), &format!("d{number}"), "");
        picture.svg.text((x + 30.0, y + 10.0), "muted", Anchor::Start, text);
    }
    let text = format!("compared with {}", cut(&before.name, 100));
    picture.svg.text((MARGIN, y + 30.0), "muted", Anchor::Start, &text);
    y + 40.0
}

/// Colour of a name: equal names have equal colours.
fn colour(name: &str) -> u32 {
    name.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) % COLOURS
}
