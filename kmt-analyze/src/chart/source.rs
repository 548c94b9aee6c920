//! What pictures of the source tree have in common: parts with tooltips and links, and a legend.

use kmt_format::kernel::KernelVersion;

use super::svg::{Anchor, Svg, cut};
use super::tree::SourceNode;
use crate::export::Weight;
use crate::html::html_text;
use crate::render::words::{count, percent, size};

/// Colours of directories.
const COLOURS: usize = 8;
/// Directories of the legend.
const ROWS: usize = 24;
/// Parts of each that the legend has, at most.
const INNER: usize = 4;
/// Where amounts and shares of the legend end.
const AMOUNT: f64 = 886.0;
const SHARE: f64 = 944.0;
/// Characters of a name in the legend.
const NAME: usize = 22;

/// Texts of a picture.
pub struct SourcePicture {
    pub title: String,
    /// Quantity.
    pub weight: Weight,
    /// Weight of the whole tree.
    pub whole: u64,
    /// Version of the kernel, for links into its source.
    pub version: Option<KernelVersion>,
}

/// A part that is drawn.
pub struct Part<'n> {
    pub node: &'n SourceNode,
    /// Number of the directory at the top that has it.
    pub colour: usize,
    /// Level in the tree, from 1.
    pub level: usize,
    /// Outline, as the `d` of a path.
    pub path: String,
    /// Element of its label.
    pub label: Option<String>,
}

impl SourcePicture {
    /// The title of a picture of a weight below a directory.
    pub fn title(weight: Weight, branch: Option<&str>) -> String {
        let what = match weight {
            Weight::Alloc => "Allocated memory by directory",
            Weight::Live => "Memory still allocated, by directory",
            Weight::Waste => "Bytes allocated beyond those requested, by directory",
            Weight::Count => "Allocations by directory",
        };
        branch.map_or(what.to_owned(), |branch| format!("{what}: {branch}"))
    }

    /// A weight with its unit.
    pub fn amount(&self, weight: u64) -> String {
        if self.weight == Weight::Count { count(weight) } else { size(weight) }
    }

    /// Draws a part.
    pub fn part(&self, svg: &mut Svg, part: &Part<'_>) {
        let Part { node, colour, level, path, label } = part;
        let name = if node.path.ends_with(&node.name) {
            node.path.clone()
        } else {
            format!("{}: {}", node.path, node.name)
        };
        let title = format!("{name}: {}, {}", self.amount(node.weight), percent(node.weight, self.whole));
        let (open, close) = self
            .link(&node.path)
            .map_or((String::new(), ""), |link| (format!("<a href=\"{}\">", html_text(&link)), "</a>"));
        svg.add(format_args!(
            "{open}<g class=\"part\" data-path=\"{}\" data-name=\"{}\" data-value=\"{}\"><title>{}</title>\
             <path d=\"{path}\" class=\"r{}\" fill-opacity=\"{:.2}\"/>{}</g>{close}\n",
            html_text(&node.path),
            html_text(&node.name),
            node.weight,
            html_text(&title),
            colour % COLOURS,
            (1.15 - 0.15 * *level as f64).max(0.4),
            label.as_deref().unwrap_or_default()
        ));
    }

    /// Link to a directory or file of mainline Linux.
    fn link(&self, path: &str) -> Option<String> {
        let version = self.version?;
        let is_plain = path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+".contains(&b));
        // A function stands below its file.
        let file = path.split_inclusive('/').scan(false, |is_done, part| {
            let goes_on = !*is_done;
            *is_done |= part.trim_end_matches('/').contains('.');
            goes_on.then_some(part)
        });
        let file: String = file.collect();
        let (major, minor) = (version.major, version.minor);
        (is_plain && !path.is_empty()).then(|| {
            format!("https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/{}?h=v{major}.{minor}", file.trim_end_matches('/'))
        })
    }
}

/// A row of the legend.
fn row(svg: &mut Svg, picture: &SourcePicture, (x, y): (f64, f64), (part, root): (&SourceNode, &SourceNode)) {
    svg.text((x, y), "", Anchor::Start, &cut(&part.name, NAME));
    svg.text((AMOUNT, y), "muted", Anchor::End, &picture.amount(part.weight));
    svg.text((SHARE, y), "muted", Anchor::End, &percent(part.weight, root.weight));
}

/// Directories at the top with their colours and weights; returns where the legend ends.
pub fn legend(svg: &mut Svg, root: &SourceNode, picture: &SourcePicture, (x, y): (f64, f64)) -> f64 {
    let mut y = y;
    let mut rows = ROWS.saturating_sub(root.below.len());
    for (number, part) in root.below.iter().take(ROWS).enumerate() {
        svg.rect((x, y - 10.0), (14.0, 12.0), &format!("r{}", number % COLOURS), "");
        row(svg, picture, (x + 20.0, y), (part, root));
        y += 18.0;
        for inner in part.below.iter().take(INNER.min(rows)) {
            row(svg, picture, (x + 34.0, y), (inner, root));
            y += 18.0;
        }
        rows = rows.saturating_sub(part.below.len().min(INNER));
    }
    if let Some(more) = root.below.len().checked_sub(ROWS).filter(|more| *more > 0) {
        svg.text((x + 20.0, y), "muted", Anchor::Start, &format!("and {more} more"));
        y += 18.0;
    }
    y
}
