//! Folders of the source depend on each other one way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// First names of the paths that begin with `crate::`, alone or in braces; comments and tests left out.
fn named(text: &str) -> BTreeSet<String> {
    let code: String =
        text.lines().filter(|l| !l.trim_start().starts_with("//")).map(|l| format!("{l}\n")).collect();
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let list = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => rest.split(|c| !is_name(c)).next().unwrap_or_default(),
        };
        for item in list.split(',') {
            out.extend(
                item.trim().split(|c| !is_name(c)).next().filter(|n| !n.is_empty()).map(str::to_owned),
            );
        }
    }
    out
}

/// All that a folder depends on, also by way of others.
fn reached<'g>(graph: &'g BTreeMap<String, BTreeSet<String>>, from: &'g str) -> BTreeSet<&'g str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(node) = next.pop() {
        let new = graph.get(node).into_iter().flatten().filter(|n| seen.insert(n.as_str()));
        next.extend(new.map(String::as_str));
    }
    seen
}

#[test]
fn folders_depend_on_each_other_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        let place = file.strip_prefix(&root).unwrap().components().next().unwrap();
        let place = place.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
        // The two roots hold all others.
        if place == "lib" || place == "main" {
            continue;
        }
        let names = named(&fs::read_to_string(file).unwrap());
        let names = names.into_iter().filter(|name| *name != place);
        graph.entry(place.clone()).or_default().extend(names);
    }
    assert!(graph.len() > 10 && graph["ledger"].contains("stream"), "{graph:?}");
    let folders = graph.keys().map(String::as_str);
    let in_cycles: Vec<&str> = folders.filter(|folder| reached(&graph, folder).contains(folder)).collect();
    assert!(in_cycles.is_empty(), "{in_cycles:?}");
}
