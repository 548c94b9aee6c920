//! The kernel's source as a tree: directories, files, functions, with the memory that they allocated.
//!
//! Pictures of the tree share this, with parts that have tooltips and links, and a legend. Places come from `source`.

use std::collections::BTreeMap;

use kmt_format::kernel::KernelVersion;

use super::svg::{Anchor, Svg, cut, html_text};
use crate::export::Weight;
use crate::render::words::{count, percent, size};
use crate::reports::grouped::GroupRows;
use crate::sort_rows::SortRows;

/// A directory, a file, or a function.
#[derive(Debug, Default)]
pub struct SourceNode {
    /// Path from the top of the source, and `:FUNCTION` for a function.
    pub path: String,
    /// Last part of the path.
    pub name: String,
    /// Weight of all below it.
    pub weight: u64,
    /// Parts, the heaviest first.
    pub below: Vec<SourceNode>,
}

/// Parts by name, while they are added up.
#[derive(Default)]
struct Branch {
    weight: u64,
    below: BTreeMap<String, Branch>,
}

impl Branch {
    fn add(&mut self, parts: &[&str], weight: u64) {
        self.weight = self.weight.saturating_add(weight);
        if let [first, rest @ ..] = parts {
            self.below.entry((*first).to_owned()).or_default().add(rest, weight);
        }
    }

    fn node(self, path: String, name: String) -> SourceNode {
        let below = self.below.into_iter().filter(|(_, branch)| branch.weight > 0);
        let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        let mut below: Vec<SourceNode> =
            below.map(|(name, branch)| branch.node(inner(&name), name)).collect();
        below.sort_rows_by(|a, b| (b.weight, &a.name).cmp(&(a.weight, &b.name)));
        SourceNode { path, name, weight: self.weight, below }
    }
}

/// The tree of weights by path, from `branch` on.
#[cfg(feature = "dwarf")]
pub fn of_paths<'p>(paths: impl Iterator<Item = (&'p str, u64)>, branch: &str) -> SourceNode {
    let mut root = Branch::default();
    for (path, weight) in paths {
        root.add(&path.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>(), weight);
    }
    below(root, branch)
}

/// The node of a directory.
fn below(mut root: Branch, branch: &str) -> SourceNode {
    for part in branch.split('/').filter(|part| !part.is_empty()) {
        root = root.below.remove(part).unwrap_or_default();
    }
    let name = if branch.is_empty() { "all".to_owned() } else { branch.to_owned() };
    root.node(branch.to_owned(), name)
}

/// The tree of groups by directory, file and function, from `branch` on, and the weight whose directory is inferred. What has
/// no directory is one part.
pub fn compute(rows: &GroupRows, weight: Weight, branch: Option<&str>) -> (SourceNode, u64) {
    let mut root = Branch::default();
    let mut inferred: u64 = 0;
    for group in &rows.table.groups {
        let sums = &group.row.sums;
        let amount = match weight {
            Weight::Alloc => sums.bytes_alloc,
            Weight::Live => sums.bytes_live,
            Weight::Waste => sums.bytes_wasted,
            Weight::Count => sums.alloc_events,
        };
        let amount = amount.unwrap_or(0);
        let function = group.text("function").unwrap_or("?");
        let parts: Vec<&str> = match group.path() {
            Some((path, is_inferred)) => {
                inferred = inferred.saturating_add(if is_inferred { amount } else { 0 });
                path.split('/').filter(|part| !part.is_empty()).chain([function]).collect()
            }
            None => vec!["no directory", function],
        };
        root.add(&parts, amount);
    }
    (below(root, branch.unwrap_or_default()), inferred)
}

/// This tree with parts below `least` of the whole gathered into one, and no more than `depth` levels.
pub fn gathered(node: SourceNode, depth: usize, least: u64) -> SourceNode {
    let SourceNode { path, name, weight, below } = node;
    if depth == 0 {
        return SourceNode { path, name, weight, below: Vec::new() };
    }
    let (mut large, mut small): (Vec<_>, Vec<_>) = below.into_iter().partition(|part| part.weight >= least);
    if small.len() == 1 {
        large.append(&mut small);
    }
    let mut below: Vec<SourceNode> = large.into_iter().map(|part| gathered(part, depth - 1, least)).collect();
    let rest = small.iter().fold(0, |sum: u64, part| sum.saturating_add(part.weight));
    if rest > 0 {
        let name = format!("{} more", small.len());
        below.push(SourceNode { path: path.clone(), name, weight: rest, below: Vec::new() });
    }
    SourceNode { path, name, weight, below }
}

/// Colours of directories.
const COLOURS: usize = 8;
/// Directories of the legend.
const ROWS: usize = 24;
/// Parts of each that the legend has, at most.
const INNER: usize = 4;
/// Where amounts and shares of the legend end.
const AMOUNT: f64 = 886.0;
const SHARE: f64 = 944.0;
/// Columns of a name in the legend.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> SourceNode {
        let mut root = Branch::default();
        for (path, weight) in
            [("fs/ext4/super.c/fill", 60), ("fs/open.c/open", 30), ("mm/slub.c/x", 8), ("mm/y.c/z", 2)]
        {
            root.add(&path.split('/').collect::<Vec<_>>(), weight);
        }
        root.node(String::new(), "all".to_owned())
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        fn sums(node: &SourceNode) {
            let below: u64 = node.below.iter().map(|part| part.weight).sum();
            assert!(node.below.is_empty() || below == node.weight, "{node:?}");
            node.below.iter().for_each(sums);
        }
        sums(&tree());
        assert_eq!(tree().below[0].below[0].path, "fs/ext4");
        for (depth, least) in [(1, 0), (2, 9), (4, 31), (9, 3)] {
            let gathered = gathered(tree(), depth, least);
            assert_eq!(gathered.weight, 100);
            sums(&gathered);
        }
        let few = gathered(tree(), 2, 9);
        assert_eq!(few.below[1].below.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(), ["2 more"]);
    }
}
