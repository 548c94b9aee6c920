//! Memory by call site, function, file, directory or module, of one copy or of two.
//!
//! Input are lines of /proc/allocinfo, as `trace::allocinfo` parses them. Lines are added up by the key of `--by`; sums
//! that do not fit are refused rather than cut. The screen, JSON and CSV of `allocinfo` show these rows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kmt_common::failure::{Failure, Result};
use serde::Serialize;

use crate::reports::common::sorting::SortKey;
use crate::sort_rows::SortRows;
use crate::trace::allocinfo::AllocinfoLine;

/// Key of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum AllocinfoKey {
    /// File, line and function
    #[value(name = "call-site", aliases = ["site", "call_site"])]
    CallSite,
    /// Function
    Function,
    /// Source file
    File,
    /// Directory of the source file
    #[value(name = "dir", alias = "directory")]
    Dir,
    /// Module
    Module,
}

/// Names that sort the rows, the largest first.
pub const ORDERS: &[SortKey] =
    &[SortKey::Change, SortKey::Growth, SortKey::CallsGrowth, SortKey::Live, SortKey::Calls, SortKey::Name];

/// Rows of `allocinfo`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AllocinfoRows {
    /// Key of the rows: `call-site`, `function`, `file`, `dir`, `module`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub by: AllocinfoKey,
    /// True if two copies are compared.
    pub is_compared: bool,
    /// Sums of all call sites.
    pub total: Figures,
    /// Rows whose bytes grew; `null`, here and in the next two keys: there is one copy.
    pub grown: Option<u64>,
    /// Rows whose bytes shrank.
    pub shrunk: Option<u64>,
    /// Rows without a change in bytes and allocations; they are left out.
    pub unchanged: Option<u64>,
    /// Number of rows, including those beyond the limit.
    pub rows_total: usize,
    /// Rows.
    pub rows: Vec<AllocinfoRow>,
}

/// Memory of one key.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AllocinfoRow {
    /// Name: `FILE:LINE`, function, file, directory or module; `kernel`: no module.
    pub name: String,
    /// Function, of call sites alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Module of a call site; absent: the kernel itself, or another key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Figures of the row.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Bytes and allocations in use. Those of a call site that a copy does not have are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figures {
    /// Bytes in the first copy; `null`, here and in the next key: there is one copy.
    pub bytes_before: Option<i64>,
    /// Allocations in the first copy.
    pub calls_before: Option<i64>,
    /// Bytes in the second copy, or in the only one.
    pub bytes: i64,
    /// Allocations in the second copy, or in the only one.
    pub calls: i64,
    /// Change in bytes; `null`, here and in the next key: there is one copy.
    pub bytes_change: Option<i64>,
    /// Change in allocations.
    pub calls_change: Option<i64>,
    /// Call sites whose figures the kernel reports as not accurate, in either copy.
    pub inaccurate: u64,
}

/// Columns of rows that are written as a table.
pub fn columns(by: AllocinfoKey) -> Vec<&'static str> {
    let names: &[&str] =
        if by == AllocinfoKey::CallSite { &["name", "function", "module"] } else { &["name"] };
    let figures =
        ["bytes_before", "calls_before", "bytes", "calls", "bytes_change", "calls_change", "inaccurate"];
    names.iter().chain(&figures).copied().collect()
}

/// Name, function, module.
type Name = (String, Option<String>, Option<String>);

/// Bytes and allocations before and after.
#[derive(Default, Clone, Copy)]
struct Sums {
    bytes: [i64; 2],
    calls: [i64; 2],
    inaccurate: u64,
}

impl Sums {
    /// Adds a call site to a side; refused: the sum has more than 62 bits.
    fn add(&mut self, side: usize, line: &AllocinfoLine) -> Result<()> {
        let fits = |sum: i64, number: i64| {
            sum.checked_add(number).filter(|sum| sum.unsigned_abs() >> 62 == 0).ok_or_else(|| {
                Failure::new(format!("the sum with {}:{} is larger than 2^62", line.file, line.line))
            })
        };
        if let (Some(bytes), Some(calls)) = (self.bytes.get_mut(side), self.calls.get_mut(side)) {
            *bytes = fits(*bytes, line.bytes)?;
            *calls = fits(*calls, line.calls)?;
        }
        self.inaccurate += u64::from(!line.is_accurate);
        Ok(())
    }

    fn figures(&self, is_compared: bool) -> Figures {
        let ([bytes_before, bytes], [calls_before, calls]) = (self.bytes, self.calls);
        Figures {
            bytes_before: is_compared.then_some(bytes_before),
            calls_before: is_compared.then_some(calls_before),
            bytes,
            calls,
            bytes_change: is_compared.then(|| bytes - bytes_before),
            calls_change: is_compared.then(|| calls - calls_before),
            inaccurate: self.inaccurate,
        }
    }
}

/// Rows of one copy, or of the changes from the first to the second.
pub fn compute(
    before: Option<&[AllocinfoLine]>,
    after: &[AllocinfoLine],
    by: AllocinfoKey,
    order: SortKey,
    limit: usize,
) -> Result<AllocinfoRows> {
    let is_compared = before.is_some();
    let (mut sums, mut total) = (BTreeMap::<Name, Sums>::new(), Sums::default());
    for (side, lines) in [before.unwrap_or_default(), after].into_iter().enumerate() {
        for line in lines {
            sums.entry(name(line, by)).or_default().add(side, line)?;
            total.add(side, line)?;
        }
    }
    let row = |((name, function, module), sums): (Name, Sums)| AllocinfoRow {
        name,
        function,
        module,
        figures: sums.figures(is_compared),
    };
    let mut rows: Vec<AllocinfoRow> = sums.into_iter().map(row).collect();
    let number = |is: fn(i64) -> bool| {
        let changes = rows.iter().filter_map(|row| row.figures.bytes_change);
        is_compared.then(|| changes.filter(|change| is(*change)).count() as u64)
    };
    let (grown, shrunk) = (number(|change| change > 0), number(|change| change < 0));
    let all = rows.len();
    rows.retain(|row| {
        !is_compared || row.figures.bytes_change != Some(0) || row.figures.calls_change != Some(0)
    });
    let unchanged = is_compared.then(|| (all - rows.len()) as u64);
    // Rows of one key are in the order of their names.
    rows.sort_rows_by_key(|row| Reverse(key(&row.figures, order)));
    let rows_total = rows.len();
    rows.truncate(limit);
    Ok(AllocinfoRows {
        by,
        is_compared,
        total: total.figures(is_compared),
        grown,
        shrunk,
        unchanged,
        rows_total,
        rows,
    })
}

fn name(line: &AllocinfoLine, by: AllocinfoKey) -> Name {
    let name = match by {
        AllocinfoKey::CallSite => {
            let source = format!("{}:{}", line.file, line.line);
            return (source, Some(line.function.clone()), line.module.clone());
        }
        AllocinfoKey::Function => line.function.clone(),
        AllocinfoKey::File => line.file.clone(),
        AllocinfoKey::Dir => line.file.rsplit_once('/').map_or(".", |(dir, _)| dir).to_owned(),
        AllocinfoKey::Module => format!("[{}]", line.module.as_deref().unwrap_or("kernel")),
    };
    (name, None, None)
}

fn key(figures: &Figures, order: SortKey) -> i64 {
    match order {
        SortKey::Change => figures.bytes_change.unwrap_or(figures.bytes).abs(),
        SortKey::Growth => figures.bytes_change.unwrap_or(figures.bytes),
        SortKey::CallsGrowth => figures.calls_change.unwrap_or(figures.calls),
        SortKey::Live => figures.bytes,
        SortKey::Calls => figures.calls,
        _ => 0,
    }
}
