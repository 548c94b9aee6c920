//! Modules of every crate of the workspace depend on each other one way.
//!
//! A module file and its children are one family. Between the children of one module, folders as well as files, there
//! must be no cycle of dependencies. A child may use what its parent defines: `impl` blocks of one type are split over
//! files. A path counts for the file that defines the item, also where a `pub use` makes the path shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, Meta, UseTree};

/// Members of the workspace, by folder.
const CRATES: [&str; 7] = [
    "kmt-format",
    "kmt-format/capi",
    "kmt-format/python",
    "kmt-capture",
    "kmt-capture/common",
    "kmt-analyze",
    "vector-builder",
];

/// Cycles that are still there: crate, module, and those of its children that form the cycle. Entries are removed when
/// a cycle is opened; new ones are not added.
const ALLOWED: &[(&str, &str, &[&str])] = &[];

type ModuleId = usize;

/// A module, inline or a file of its own.
#[derive(Default)]
struct Module {
    name: String,
    parent: Option<ModuleId>,
    /// The module whose file this is in: itself, or an ancestor of an inline module.
    file: ModuleId,
    children: BTreeMap<String, ModuleId>,
    items: Vec<Item>,
    /// Names of items that are defined here.
    defined: BTreeSet<String>,
    /// Names that `use` brings into scope, with their paths.
    imported: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

/// The modules of a library or a program. The first one is its root.
struct Modules(Vec<Module>);

impl Modules {
    fn read(root: &Path) -> Self {
        let mut modules = Self(Vec::new());
        let file = modules.parse(root);
        modules.add(String::new(), None, true, file, root.parent().unwrap());
        modules
    }

    fn parse(&self, path: &Path) -> Vec<Item> {
        let text = fs::read_to_string(path).unwrap();
        syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display())).items
    }

    /// Adds a module with all its children. `folder` is where files of children are.
    fn add(
        &mut self,
        name: String,
        parent: Option<ModuleId>,
        is_file: bool,
        items: Vec<Item>,
        folder: &Path,
    ) -> ModuleId {
        let id = self.0.len();
        let file = if is_file { id } else { self.0[parent.unwrap()].file };
        self.0.push(Module { name, parent, file, ..Module::default() });
        for item in items {
            if only_in_tests(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    let below = folder.join(&name);
                    let child = match module.content {
                        Some((_, items)) => self.add(name.clone(), Some(id), false, items, &below),
                        None => {
                            let candidates: [PathBuf; 2] =
                                [folder.join(format!("{name}.rs")), below.join("mod.rs")];
                            let path = candidates.iter().find(|p| p.exists()).unwrap_or_else(|| {
                                panic!("{} has no file for `mod {name}`", folder.display())
                            });
                            let items = self.parse(path);
                            self.add(name.clone(), Some(id), true, items, &below)
                        }
                    };
                    self.0[id].children.insert(name, child);
                }
                Item::Use(item) => {
                    let module = &mut self.0[id];
                    leaves(&item.tree, &mut Vec::new(), &mut |path, name| match name {
                        Some(name) => {
                            module.imported.insert(name, path);
                        }
                        None => module.globs.push(path),
                    });
                    module.items.push(Item::Use(item));
                }
                item => {
                    self.0[id].defined.extend(defined_name(&item));
                    self.0[id].items.push(item);
                }
            }
        }
        id
    }

    fn root(&self) -> ModuleId {
        0
    }

    /// Modules that define what a path names, seen from `from`; none for paths into other crates.
    fn definers(&self, from: ModuleId, path: &[String]) -> BTreeSet<ModuleId> {
        let mut found = BTreeSet::new();
        self.resolve(from, path, &mut BTreeSet::new(), &mut found);
        found
    }

    /// Each import is followed once (`expanded`): `pub use example::example` leads to itself otherwise.
    fn resolve(
        &self,
        from: ModuleId,
        path: &[String],
        expanded: &mut BTreeSet<(ModuleId, String)>,
        found: &mut BTreeSet<ModuleId>,
    ) {
        let Some((first, rest)) = path.split_first() else {
            found.insert(from);
            return;
        };
        match first.as_str() {
            "crate" => return self.resolve(self.root(), rest, expanded, found),
            "self" => return self.resolve(from, rest, expanded, found),
            "super" => return self.resolve(self.0[from].parent.expect("a parent"), rest, expanded, found),
            _ => {}
        }
        let module = &self.0[from];
        // One name may stand for a module, a type and a function.
        if let Some(&child) = module.children.get(first) {
            self.resolve(child, rest, expanded, found);
        }
        if module.defined.contains(first) {
            found.insert(from);
        }
        if !expanded.insert((from, first.clone())) {
            return;
        }
        if let Some(import) = module.imported.get(first) {
            let path: Vec<String> = import.iter().chain(rest).cloned().collect();
            self.resolve(from, &path, expanded, found);
        }
        if found.is_empty() {
            for glob in &module.globs {
                let mut targets = BTreeSet::new();
                self.resolve(from, glob, expanded, &mut targets);
                for target in targets {
                    self.resolve(target, path, expanded, found);
                }
            }
        }
    }

    /// From the root to this module.
    fn line(&self, module: ModuleId) -> Vec<ModuleId> {
        let mut line: Vec<ModuleId> =
            std::iter::successors(Some(module), |&module| self.0[module].parent).collect();
        line.reverse();
        line
    }

    fn path(&self, module: ModuleId) -> String {
        let names = self.line(module).into_iter().map(|m| self.0[m].name.as_str());
        names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join("::")
    }
}

/// Dependencies between siblings: parent, from, to; with the paths that make each.
type Edges = BTreeMap<(ModuleId, ModuleId, ModuleId), BTreeSet<String>>;

fn edges(modules: &Modules) -> Edges {
    let mut edges = Edges::new();
    for (id, module) in modules.0.iter().enumerate() {
        let mut paths = Paths(BTreeSet::new());
        module.items.iter().for_each(|item| paths.visit_item(item));
        for path in &paths.0 {
            for target in modules.definers(id, path) {
                let from = modules.line(module.file);
                let to = modules.line(modules.0[target].file);
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(&a), Some(&b)) = (from.get(shared), to.get(shared)) {
                    let use_of = format!("{} uses {}", modules.path(id), path.join("::"));
                    edges.entry((from[shared - 1], a, b)).or_default().insert(use_of);
                }
            }
        }
    }
    edges
}

/// Groups of modules that reach each other, with their parent.
fn cycles(edges: &Edges) -> BTreeSet<(ModuleId, BTreeSet<ModuleId>)> {
    let mut next: BTreeMap<ModuleId, BTreeSet<ModuleId>> = BTreeMap::new();
    for &(_, from, to) in edges.keys() {
        next.entry(from).or_default().insert(to);
    }
    let reached = |from: ModuleId| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            open.extend(next.get(&module).into_iter().flatten().copied().filter(|&m| seen.insert(m)));
        }
        seen
    };
    let all: BTreeMap<ModuleId, BTreeSet<ModuleId>> = next.keys().map(|&m| (m, reached(m))).collect();
    let mut cycles = BTreeSet::new();
    for &(parent, from, _) in edges.keys() {
        let cycle: BTreeSet<ModuleId> =
            all[&from].iter().copied().filter(|m| all.get(m).is_some_and(|r| r.contains(&from))).collect();
        if !cycle.is_empty() {
            cycles.insert((parent, cycle));
        }
    }
    cycles
}

/// All paths in items, in the bodies of functions and in the tokens of macros.
struct Paths(BTreeSet<Vec<String>>);

impl Paths {
    /// Paths among the tokens of a macro, which has no syntax of its own.
    fn in_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.take(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    // `use path::{a, b}` inside a macro counts for the path before the braces only.
                    self.take(&mut path);
                    self.in_tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.take(&mut path);
                    colons = 0;
                }
            }
        }
        self.take(&mut path);
    }

    fn take(&mut self, path: &mut Vec<String>) {
        let path = std::mem::take(path);
        if !path.is_empty() {
            self.0.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_item(&mut self, item: &'ast Item) {
        if !only_in_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Fn(item) => item.attrs.as_slice(),
            ImplItem::Const(item) => item.attrs.as_slice(),
            _ => &[],
        };
        if !only_in_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        leaves(&item.tree, &mut Vec::new(), &mut |path, _| {
            self.0.insert(path);
        });
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        visit::visit_macro(self, item);
        self.in_tokens(item.tokens.clone());
    }
}

/// Calls `found` with the path of each name that a `use` brings into scope, and the name; `None` for all (`*`).
fn leaves(tree: &UseTree, path: &mut Vec<String>, found: &mut impl FnMut(Vec<String>, Option<String>)) {
    let mut with = |path: &Vec<String>, last: &str, name: String| {
        let last = (last != "self" || path.is_empty()).then(|| last.to_owned());
        let path: Vec<String> = path.iter().cloned().chain(last).collect();
        let name = if name == "self" { path.last().unwrap().clone() } else { name };
        found(path, Some(name));
    };
    match tree {
        UseTree::Name(leaf) => with(path, &leaf.ident.to_string(), leaf.ident.to_string()),
        UseTree::Rename(leaf) => with(path, &leaf.ident.to_string(), leaf.rename.to_string()),
        UseTree::Glob(_) => found(path.clone(), None),
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            leaves(&step.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, path, found)),
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// True for `#[cfg(test)]` and `#[cfg(all(test, ...))]`.
fn only_in_tests(attributes: &[Attribute]) -> bool {
    fn names_test(tokens: TokenStream) -> bool {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let TokenTree::Ident(name) = token else { continue };
            match tokens.peek() {
                Some(TokenTree::Group(group)) if name == "all" && names_test(group.stream()) => return true,
                None | Some(TokenTree::Punct(_)) if name == "test" => return true,
                _ => {}
            }
        }
        false
    }
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && names_test(list.tokens.clone()),
        _ => false,
    })
}

/// The cycles of a crate with these files, as their members' names.
fn cycles_of(name: &str, files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let modules = Modules::read(&folder.join("lib.rs"));
    let cycles = cycles(&edges(&modules));
    cycles.iter().map(|(_, cycle)| cycle.iter().map(|&m| modules.0[m].name.clone()).collect()).collect()
}

#[test]
fn cycles_are_found_through_re_exports_macros_and_renames() {
    let root = "mod a; mod b; mod c; pub use a::A; pub use b::{self as other, B};";
    let files = |a, b, c| [("lib.rs", root), ("a.rs", a), ("b.rs", b), ("c.rs", c)];
    let cycle = files("use super::B as X; pub struct A(X);", "pub struct B; fn f() { dbg!(crate::A); }", "");
    assert_eq!(cycles_of("two", &cycle), [["a", "b"]]);
    let cycle = files("pub struct A; mod inner;", "pub struct B; use crate::c;", "fn f(_: super::A) {}");
    let cycle = [&cycle[..], &[("a/inner.rs", "type T = crate::other::B;")]].concat();
    assert_eq!(cycles_of("three", &cycle), [["a", "b", "c"]]);
}

#[test]
fn tests_and_families_are_no_cycles() {
    let root = "mod a; mod b; pub struct Shared; pub use a::A;";
    let a = "pub struct A(super::Shared); mod b; impl A { fn f(_: b::B) {} }";
    let below = "use super::A; pub struct B; impl A {}";
    let b = "use crate::{A, Shared}; #[cfg(test)] mod tests { use crate::b; }";
    let files = [("lib.rs", root), ("a.rs", a), ("a/b.rs", below), ("b.rs", b)];
    assert!(cycles_of("none", &files).is_empty());
    let a = "pub struct A; #[cfg(test)] use crate::b; #[cfg(all(test, unix))] fn f() { crate::b::g() }";
    assert!(cycles_of("tests", &[("lib.rs", root), ("a.rs", a), ("b.rs", b)]).is_empty());
}

/// The roots of a crate: its library and its program.
fn roots(folder: &Path) -> Vec<PathBuf> {
    let roots = ["lib.rs", "main.rs"].map(|name| folder.join("src").join(name));
    roots.into_iter().filter(|root| root.exists()).collect()
}

#[test]
fn siblings_depend_on_each_other_one_way() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut unused: BTreeSet<_> = ALLOWED.iter().collect();
    let mut wrong = String::new();
    let mut count = 0;
    for name in CRATES {
        for root in roots(&workspace.join(name)) {
            let modules = Modules::read(&root);
            let edges = edges(&modules);
            count += edges.len();
            for (parent, cycle) in cycles(&edges) {
                let members: Vec<&str> = cycle.iter().map(|&m| modules.0[m].name.as_str()).collect();
                let parent_path = modules.path(parent);
                let sorted = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<BTreeSet<_>>();
                let allowed = ALLOWED
                    .iter()
                    .find(|(c, p, list)| *c == name && *p == parent_path && sorted(list) == sorted(&members));
                if let Some(allowed) = allowed {
                    unused.remove(allowed);
                    continue;
                }
                wrong += &format!("\ncycle: ({name:?}, {parent_path:?}, &{members:?})\n");
                let within = edges.iter().filter(|((_, a, b), _)| cycle.contains(a) && cycle.contains(b));
                for ((_, from, to), uses) in within {
                    wrong += &format!("  {} -> {}:\n", modules.0[*from].name, modules.0[*to].name);
                    uses.iter().for_each(|use_of| wrong += &format!("    {use_of}\n"));
                }
            }
        }
    }
    for entry in unused {
        wrong += &format!("\nno longer a cycle, remove it from ALLOWED: {entry:?}\n");
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 300, "{count} dependencies are too few: the test does not see them");
}
