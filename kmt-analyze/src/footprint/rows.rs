//! Static and dynamic memory by directory.
//!
//! Sizes of code and data come from object files or a linked kernel (`build`, `linked`), dynamic memory from a trace by
//! the source files of its call sites. Both are joined by source file, then added up by directory. The screen, CSV and
//! pictures of `footprint` show these rows.

use std::collections::BTreeMap;

use serde::Serialize;

use super::build::SizedObject;
use super::sizes::Sizes;
use crate::sort_rows::SortRows;

/// Quantity that orders the rows, and that a picture shows: the attributes of trace_analyze.py.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Attribute {
    /// Static memory, and dynamic memory in use
    Current,
    /// Code and data
    Static,
    /// Dynamic memory in use
    CurrentDynamic,
    /// All allocations
    TotalDynamic,
    /// Dynamic memory in use beyond what was requested
    Waste,
}

/// Rows of `footprint`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FootprintRows {
    /// Directory whose parts the rows are; empty: the top of the source.
    pub start_branch: String,
    /// True if a trace gave the dynamic memory.
    pub has_trace: bool,
    /// Files below the folders that are not read, since they are no regular files there: their sizes are in no row.
    pub files_refused: usize,
    /// Sum of all rows.
    pub total: FootprintSums,
    /// Directories, or files below the directory, the largest first; `unknown`: without a source file, `no symbol`: padding and other
    /// bytes that no symbol covers,
    /// `DIRECTORY/inferred from names`: allocations of functions whose directory is inferred.
    pub rows: Vec<FootprintRow>,
}

/// A directory or file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FootprintRow {
    /// Path from the top of the source.
    pub path: String,
    /// Sums of all below it.
    #[serde(flatten)]
    pub sums: FootprintSums,
}

/// Bytes of code, data and allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FootprintSums {
    /// Code and data.
    #[serde(flatten)]
    pub sizes: Sizes,
    /// Sum of code and data.
    #[serde(rename = "static")]
    pub static_bytes: u64,
    /// Slab memory in use at the end; `null`, here and in the next keys: no trace is given, or it lacks the events.
    pub current_dynamic: Option<u64>,
    /// All slab memory that was allocated.
    pub total_dynamic: Option<u64>,
    /// Slab memory in use beyond what was requested.
    pub waste: Option<u64>,
    /// static + current_dynamic.
    pub current: Option<u64>,
}

/// Dynamic memory of a source file; `None`: its events were not recorded.
#[derive(Debug, Clone, Copy)]
pub struct Dynamic {
    /// In use.
    pub current: Option<u64>,
    /// Allocated.
    pub total: Option<u64>,
    /// In use beyond requests.
    pub waste: Option<u64>,
}

impl Dynamic {
    /// Nothing allocated.
    pub const ZERO: Self = Self { current: Some(0), total: Some(0), waste: Some(0) };
    /// Nothing known.
    pub const UNKNOWN: Self = Self { current: None, total: None, waste: None };
}

/// A sum is known if its parts are.
pub fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

impl Default for FootprintSums {
    fn default() -> Self {
        let (sizes, zero) = (Sizes::default(), Some(0));
        Self {
            sizes,
            static_bytes: 0,
            current_dynamic: zero,
            total_dynamic: zero,
            waste: zero,
            current: zero,
        }
    }
}

impl FootprintSums {
    fn add(&mut self, sizes: Sizes, dynamic: Dynamic) {
        self.sizes += sizes;
        self.static_bytes = self.sizes.total();
        self.current_dynamic = plus(self.current_dynamic, dynamic.current);
        self.total_dynamic = plus(self.total_dynamic, dynamic.total);
        self.waste = plus(self.waste, dynamic.waste);
        self.current = plus(Some(self.static_bytes), self.current_dynamic);
    }

    /// The value of an attribute.
    pub fn of(&self, attribute: Attribute) -> Option<u64> {
        match attribute {
            Attribute::Current => self.current,
            Attribute::Static => Some(self.static_bytes),
            Attribute::CurrentDynamic => self.current_dynamic,
            Attribute::TotalDynamic => self.total_dynamic,
            Attribute::Waste => self.waste,
        }
    }
}

/// Sums by file: objects and source files have one name here, without its end.
pub fn by_file(
    objects: &[SizedObject],
    dynamic: Option<&BTreeMap<String, Dynamic>>,
) -> BTreeMap<String, FootprintSums> {
    let mut files: BTreeMap<String, FootprintSums> = BTreeMap::new();
    let without = if dynamic.is_some() { Dynamic::ZERO } else { Dynamic::UNKNOWN };
    for object in objects {
        files.entry(stem(&object.path)).or_default().add(object.sizes, without);
    }
    for (path, dynamic) in dynamic.into_iter().flatten() {
        files.entry(stem(path)).or_default().add(Sizes::default(), *dynamic);
    }
    files
}

/// `fs/ext4/super` of `fs/ext4/super.c`, `.o`, `.ko`; headers keep their end.
fn stem(path: &str) -> String {
    let ends = [".ko.debug", ".ko", ".o", ".c", ".S", ".rs"];
    ends.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path).to_owned()
}

/// Rows below a directory, cut to `depth` parts below it.
pub fn compute(
    files: &BTreeMap<String, FootprintSums>,
    branch: &str,
    depth: usize,
    order: Attribute,
    has_trace: bool,
) -> FootprintRows {
    let mut rows: BTreeMap<String, FootprintSums> = BTreeMap::new();
    let mut total = FootprintSums::default();
    for (path, sums) in files {
        let below = match branch {
            "" => Some(path.as_str()),
            branch => path.strip_prefix(branch).and_then(|rest| rest.strip_prefix('/')),
        };
        let Some(below) = below else { continue };
        let end = below.match_indices('/').nth(depth - 1).map_or(below.len(), |(at, _)| at);
        let cut = path.len() - below.len() + end;
        let dynamic = Dynamic { current: sums.current_dynamic, total: sums.total_dynamic, waste: sums.waste };
        rows.entry(path.get(..cut).unwrap_or(path).to_owned()).or_default().add(sums.sizes, dynamic);
        total.add(sums.sizes, dynamic);
    }
    let mut rows: Vec<FootprintRow> =
        rows.into_iter().map(|(path, sums)| FootprintRow { path, sums }).collect();
    // What is unknown comes in the order of the static memory.
    let key = |row: &FootprintRow| (row.sums.of(order), row.sums.static_bytes);
    rows.sort_rows_by(|a, b| (key(b), &a.path).cmp(&(key(a), &b.path)));
    FootprintRows { start_branch: branch.to_owned(), has_trace, files_refused: 0, total, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::footprint::sizes::SizeKind;

    #[test]
    fn objects_and_source_files_meet() {
        let object = |path: &str, text| {
            let mut sizes = Sizes::default();
            sizes.add(SizeKind::Text, text);
            SizedObject { path: path.to_owned(), sizes }
        };
        let objects = [object("fs/ext4/super.o", 100), object("fs/open.o", 50), object("mm/slub.o", 30)];
        let dynamic = [
            ("fs/ext4/super.c".to_owned(), Dynamic { current: Some(7), total: Some(9), waste: Some(1) }),
            ("include/linux/x.h".to_owned(), Dynamic { current: Some(1), total: Some(1), waste: None }),
        ];
        let dynamic = dynamic.into_iter().collect();
        let files = by_file(&objects, Some(&dynamic));
        let all = compute(&files, "", 1, Attribute::Current, true);
        let names: Vec<&str> = all.rows.iter().map(|row| row.path.as_str()).collect();
        assert_eq!(names, ["fs", "mm", "include"]);
        let row = &all.rows[0].sums;
        assert_eq!((all.total.current, row.current, row.waste), (Some(188), Some(157), Some(1)));
        assert_eq!(all.total.waste, None, "of one file it is not known");
        let alone = compute(&by_file(&objects, None), "", 1, Attribute::Current, false);
        assert_eq!(
            (alone.total.static_bytes, alone.total.current, alone.rows[0].path.as_str()),
            (180, None, "fs")
        );
        let fs = compute(&files, "fs", 1, Attribute::TotalDynamic, true);
        let names: Vec<&str> = fs.rows.iter().map(|row| row.path.as_str()).collect();
        assert_eq!((names, fs.total.static_bytes), (vec!["fs/ext4", "fs/open"], 150));
    }
}
