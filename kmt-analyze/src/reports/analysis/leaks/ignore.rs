//! `--ignore FILE`: findings that are known and hidden, by patterns.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::judged::Judged;
use super::makers::holder;
use super::verdict::Verdict;
use crate::render::words::escaped;
use crate::reports::common::labels::Labels;
use crate::trace::event_names::glob;

/// Longest file of patterns, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Patterns of a file.
#[derive(Debug, Clone)]
pub struct Ignore {
    path: PathBuf,
    patterns: Vec<String>,
}

/// Findings that patterns hide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ignored {
    /// File of the patterns.
    pub file: String,
    /// Findings hidden: families, and other rows with a verdict other than `young` and `few`.
    pub findings: usize,
    /// Rows hidden of `callers`, `page_callers` and `pages`.
    pub rows: usize,
}

impl Ignore {
    /// Reads a file of patterns, one per line; empty lines and lines that begin with `#` are left out.
    pub fn read(path: PathBuf) -> Result<Self, String> {
        let bytes = contents(&path).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > FILE_MAX {
            return Err(format!("the file is larger than {} MiB", FILE_MAX >> 20));
        }
        let patterns = patterns(&String::from_utf8_lossy(&bytes));
        Ok(Self { path, patterns })
    }

    /// Hides rows of slab objects and of pages.
    pub fn hide_all(&self, all: [&mut Vec<Judged<'_>>; 3], labels: &Labels<'_, '_>) -> Ignored {
        let mut ignored =
            Ignored { file: escaped(self.path.as_os_str().as_encoded_bytes()), findings: 0, rows: 0 };
        for rows in all {
            self.hide(rows, labels, &mut ignored);
        }
        ignored
    }

    /// True if a pattern matches the symbol, the function, the cache, or the task that holds at least half of a row.
    fn matches(&self, row: &Judged<'_>, labels: &Labels<'_, '_>) -> bool {
        let function = row.name.split_once("+0x").map(|(function, _)| function);
        let holder =
            holder(&row.growing).filter(|(_, held)| held.saturating_mul(2) >= row.growing.survivors.sum());
        let task = holder.map(|(pid, _)| labels.task(pid));
        let texts = [Some(row.name.as_str()), function, Some(row.cache.as_str()), task.as_deref()];
        let is_match =
            |pattern: &String| texts.iter().flatten().any(|text| glob(pattern.as_bytes(), text.as_bytes()));
        self.patterns.iter().any(is_match)
    }

    /// Removes the rows that match, and the families whose leader matches; counts them.
    fn hide(&self, rows: &mut Vec<Judged<'_>>, labels: &Labels<'_, '_>, counts: &mut Ignored) {
        let matching: Vec<bool> = rows.iter().map(|row| self.matches(row, labels)).collect();
        let is_hidden = |at: usize, row: &Judged<'_>| {
            [Some(at), row.leader].into_iter().flatten().any(|at| matching.get(at) == Some(&true))
        };
        let hidden: Vec<bool> = rows.iter().enumerate().map(|(at, row)| is_hidden(at, row)).collect();
        // Numbers of the rows that are left: with any row of a family its leader is left.
        let mut left = 0;
        let mut numbers = Vec::with_capacity(rows.len());
        for (at, (row, &is_hidden)) in rows.iter().zip(&hidden).enumerate() {
            let goes_with_leader = row.leader.is_some_and(|to| to != at && matching.get(to) == Some(&true));
            numbers.push(left);
            left += usize::from(!is_hidden);
            counts.rows += usize::from(is_hidden);
            counts.findings += usize::from(is_hidden && !goes_with_leader && has_verdict(row));
        }
        let mut is_left = hidden.into_iter().map(|is_hidden| !is_hidden);
        rows.retain(|_| is_left.next().unwrap_or(true));
        for row in rows {
            row.leader = row.leader.and_then(|leader| numbers.get(leader).copied());
        }
    }
}

fn has_verdict(row: &Judged<'_>) -> bool {
    !matches!(row.evidence.verdict, Verdict::Young | Verdict::Few)
}

/// Contents of a file, as far as its length is allowed.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn patterns(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_are_no_patterns() {
        assert_eq!(
            patterns("# known\n\n alloc_pipe_info*\r\n\t#x\npython3-*\n"),
            ["alloc_pipe_info*", "python3-*"]
        );
    }

    #[test]
    fn a_file_that_is_missing_or_too_long_is_refused() {
        assert!(Ignore::read(PathBuf::from("/nonexistent/patterns")).is_err());
        // A file without an end.
        let long = Ignore::read(PathBuf::from("/dev/zero"));
        assert!(long.is_err_and(|error| error.contains("larger than 1 MiB")));
    }
}
