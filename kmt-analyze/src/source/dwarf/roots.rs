//! Paths of files in debug information, from the top of the kernel's source.
//!
//! A build has its own directory in the names of its units. The roots are learned from units of files that each kernel has, and
//! removed from all other paths.

use super::walk::Reader;
use crate::sort_rows::SortRows;
use crate::source::frame::PATH_MAX;

/// Files at the same place in every kernel: of the kernel itself, and a header whose
/// types nearly each unit of C uses.
const KNOWN: [&str; 2] = ["init/main.c", HEADER];

/// The header.
const HEADER: &str = "include/linux/types.h";

/// Begins of paths at most: each path is compared with all of them. A kernel has some five.
const ROOTS_MAX: usize = 64;

/// Begins of paths that are left out.
pub struct Roots(Vec<String>);

impl Roots {
    /// With the root that the command line gives.
    pub fn new(given: Option<&str>) -> Self {
        Self(given.into_iter().map(with_slash).collect())
    }

    /// True if any root is known.
    pub fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// Learns the root from the full path of a known file of a unit, and the directory in which the unit was built.
    pub fn learn(&mut self, path: &str, directory: &str) {
        let path = clean(path);
        let root = KNOWN.iter().find_map(|known| path.strip_suffix(known));
        if let Some(root) = root.filter(|root| root.is_empty() || root.ends_with('/')) {
            self.0.push(root.to_owned());
            self.0.push(with_slash(directory));
            self.0.sort_rows_by_key(|root| std::cmp::Reverse(root.len()));
        }
    }

    /// Takes the directory in which a unit was built, if it ends with a known root: compilers have an
    /// option that leaves out its begin, assemblers do not.
    pub fn learn_directory(&mut self, directory: &str) {
        let directory = with_slash(directory);
        if self.0.contains(&directory) || self.0.len() > ROOTS_MAX {
            return;
        }
        let known = self.0.iter().filter(|root| !root.is_empty() && !root.starts_with('/'));
        let begins: Vec<String> = known
            .filter_map(|root| directory.strip_suffix(root.as_str()).filter(|begin| begin.ends_with('/')))
            .map(str::to_owned)
            .collect();
        if !begins.is_empty() {
            self.0.extend(begins);
            self.0.push(directory);
            self.0.sort_rows_by_key(|root| std::cmp::Reverse(root.len()));
        }
    }

    /// A path without its root: the longest one that it begins with, else `directory` in which its unit was built.
    pub fn relative(&self, path: &str, directory: Option<&str>) -> String {
        let path = clean(path);
        let own = directory.map(with_slash);
        let mut roots = self.0.iter().chain(own.as_ref().filter(|_| !self.is_known()));
        let rest = roots.find_map(|root| path.strip_prefix(root.as_str()).filter(|_| !root.is_empty()));
        rest.map_or(path.clone(), str::to_owned)
    }
}

fn with_slash(directory: impl AsRef<str>) -> String {
    let directory = clean(directory.as_ref());
    if directory.ends_with('/') || directory.is_empty() { directory } else { directory + "/" }
}

/// A path without `.` and `..`.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let path_of = parts.join("/");
    if path.starts_with('/') { format!("/{path_of}") } else { path_of }
}

/// Roots by the kernel's first unit; the directory in which the first unit of all was built.
pub fn learn_units(dwarf: &gimli::Dwarf<Reader<'_>>, roots: &mut Roots) -> Option<String> {
    let mut first = None;
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let (name, directory) = unit_name(&unit);
        if name.ends_with("main.c") {
            roots.learn(&name, &directory);
        }
        first.get_or_insert(directory);
        if first.is_some() && roots.is_known() {
            break;
        }
    }
    if !roots.is_known() {
        learn_from_headers(dwarf, roots);
    }
    first
}

/// Roots by the header that units of a module include.
fn learn_from_headers(dwarf: &gimli::Dwarf<Reader<'_>>, roots: &mut Roots) {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Some(program) = &unit.line_program else { continue };
        let header = program.header();
        let directory = unit_name(&unit).1;
        for file in header.file_names() {
            let text = |value| {
                let text = dwarf.attr_string(&unit, value).ok().filter(|text| text.len() <= PATH_MAX)?;
                Some(text.to_string_lossy().into_owned())
            };
            let name = text(file.path_name()).unwrap_or_default();
            if !HEADER.ends_with(&name) || name.is_empty() {
                continue;
            }
            let folder = file.directory(header).and_then(text).unwrap_or_default();
            let path = format!("{folder}/{name}");
            roots
                .learn(&if path.starts_with('/') { path } else { format!("{directory}/{path}") }, &directory);
            if roots.is_known() {
                return;
            }
        }
    }
}

/// Path of a unit, and the directory in which it was built; of longer texts the begin.
pub fn unit_name(unit: &gimli::Unit<Reader<'_>>) -> (String, String) {
    let text = |reader: Reader<'_>| {
        let bytes = reader.slice();
        String::from_utf8_lossy(bytes.get(..PATH_MAX).unwrap_or(bytes)).into_owned()
    };
    let (name, directory) =
        (unit.name.map(text).unwrap_or_default(), unit.comp_dir.map(text).unwrap_or_default());
    (if name.starts_with('/') { name } else { format!("{directory}/{name}") }, directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_top_of_the_source() {
        let mut roots = Roots::new(None);
        assert_eq!(roots.relative("/src/m/../m/a.c", Some("/src/m")), "a.c");
        roots.learn("/b/linux-6.1/init/main.c", "/b/linux-6.1/debian/build/x");
        assert_eq!(roots.relative("/b/linux-6.1/fs/ext4/super.c", None), "fs/ext4/super.c");
        assert_eq!(
            roots.relative("/b/linux-6.1/debian/build/x/./include/generated/a.h", None),
            "include/generated/a.h"
        );
        assert_eq!(roots.relative("/b/linux-6.1/debian/build/x/../../../mm/slub.c", None), "mm/slub.c");
        assert_eq!(roots.relative("/elsewhere/a.c", Some("/elsewhere")), "/elsewhere/a.c");
        let mut debian = Roots::new(None);
        debian.learn("debian/build/amd64/init/main.c", "debian/build/amd64");
        debian.learn_directory("/b/linux-6.1/debian/build/amd64");
        assert_eq!(
            debian.relative("/b/linux-6.1/arch/x86/entry/entry_64.S", None),
            "arch/x86/entry/entry_64.S"
        );
        assert_eq!(debian.relative("/b/linux-6.1/debian/build/amd64/arch/x86/a.S", None), "arch/x86/a.S");
        let mut relative = Roots::new(None);
        relative.learn("init/main.c", "");
        assert_eq!(relative.relative("./mm/slub.c", None), "mm/slub.c");
        let mut mapped = Roots::new(Some("/a/b"));
        assert_eq!(mapped.relative("/a/b/mm/slub.c", None), "mm/slub.c");
        mapped.learn("/c/xinit/main.c", "/c");
        assert_eq!(mapped.relative("/c/x.c", None), "/c/x.c");
    }
}
