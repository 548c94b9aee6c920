//! The kernel's source as a tree: directories, files, functions, with what they allocated.

use std::collections::BTreeMap;

use crate::export::Weight;
use crate::reports::grouped::GroupRows;

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
        below.sort_by(|a, b| (b.weight, &a.name).cmp(&(a.weight, &b.name)));
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
