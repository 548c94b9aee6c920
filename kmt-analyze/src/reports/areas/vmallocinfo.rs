//! The kernel's own counts of areas, from snapshots in the recording, beside the areas of the trace.
//!
//! Change of /proc/vmallocinfo (`vmalloc_info_show`, mm/vmalloc.c, 4.4 to 7.2), and the line Percpu of /proc/meminfo: pages of
//! the percpu allocator, used or not (`pcpu_nr_pages`, mm/percpu.c).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::collect::AreaKind;
use crate::collect::groups::AreaGroupSums;
use crate::render::words::escaped;
use crate::reports::common::ReportContext;
use crate::sort_rows::SortRows;
use crate::trace::meminfo;

/// Change from the begin of the recording to its end. Areas that were freed and not unmapped yet are left out.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VmallocInfoChange {
    /// Areas at the begin.
    pub areas_before: u64,
    /// Areas at the end.
    pub areas_after: u64,
    /// Bytes of addresses at the begin.
    pub bytes_before: u64,
    /// Bytes at the end.
    pub bytes_after: u64,
    /// Areas that the trace lacks to explain the change: areas_after - areas_before - live areas + frees without an
    /// allocation in the trace. 0: the trace explains it. `null`: frees were not recorded.
    pub areas_unexplained: Option<i64>,
    /// Callers whose areas changed, or with live areas in the trace; most live bytes first.
    pub callers: Vec<VmallocCaller>,
}

/// Change of one caller.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VmallocCaller {
    /// Caller that the kernel names: function and offset; `null`: none, or live areas without a stack that has one.
    pub caller: Option<String>,
    /// Areas at the begin.
    pub areas_before: u64,
    /// Areas at the end.
    pub areas_after: u64,
    /// Bytes at the begin.
    pub bytes_before: u64,
    /// Bytes at the end.
    pub bytes_after: u64,
    /// Live areas in the trace whose stack has the caller.
    pub live: u64,
    /// Bytes of these live areas.
    pub bytes_live: u64,
}

impl VmallocCaller {
    /// Areas at the end minus areas at the begin.
    pub fn areas_change(&self) -> i64 {
        change(self.areas_before, self.areas_after)
    }

    /// Bytes at the end minus bytes at the begin.
    pub fn bytes_change(&self) -> i64 {
        change(self.bytes_before, self.bytes_after)
    }

    /// Areas allocated before the trace that were freed in it, if nothing else explains the difference.
    pub fn freed_older(&self) -> i64 {
        change(0, self.live).saturating_sub(self.areas_change())
    }
}

/// Difference of two counts.
fn change(before: u64, after: u64) -> i64 {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    number(after).saturating_sub(number(before))
}

/// Function and offset, without the function's size, which `%pS` prints.
fn short(symbol: &str) -> &str {
    symbol.split('/').next().unwrap_or(symbol)
}

/// Number and bytes of the areas of each caller that are allocated: `0xstart-0xend  bytes caller+0x1/0x2 [module] pages=…`.
fn by_caller(file: &str) -> BTreeMap<Option<String>, (u64, u64)> {
    let mut all: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for line in file.lines() {
        let mut words = line.split_ascii_whitespace().skip(1);
        let bytes: Option<u64> = words.next().and_then(|bytes| bytes.parse().ok());
        let caller = words.next().unwrap_or_default();
        let Some(bytes) = bytes.filter(|_| caller != "unpurged") else { continue };
        let caller = caller.contains("+0x").then(|| escaped(short(caller).as_bytes()));
        let sums = all.entry(caller).or_default();
        *sums = (sums.0 + 1, sums.1.saturating_add(bytes));
    }
    all
}

/// The change of a trace; `None`: not read twice, or part of the trace is selected.
pub fn vmallocinfo(context: &ReportContext<'_, '_>, sums: &AreaGroupSums) -> Option<VmallocInfoChange> {
    let metadata = context.session.trace.metadata();
    let file = |when: &str| metadata.attachment(&format!("vmallocinfo.{when}"));
    let (before, after) = (file("before")?, file("after")?);
    if context.selection.is_active() {
        return None;
    }
    let mut callers: BTreeMap<Option<String>, VmallocCaller> = BTreeMap::new();
    for (caller, (areas, bytes)) in by_caller(&String::from_utf8_lossy(before)) {
        let row = callers.entry(caller).or_default();
        (row.areas_before, row.bytes_before) = (areas, bytes);
    }
    for (caller, (areas, bytes)) in by_caller(&String::from_utf8_lossy(after)) {
        let row = callers.entry(caller).or_default();
        (row.areas_after, row.bytes_after) = (areas, bytes);
    }
    add_live(context, sums, &mut callers);
    let mut callers: Vec<_> =
        callers.into_iter().map(|(caller, row)| VmallocCaller { caller, ..row }).collect();
    let sum = |of: fn(&VmallocCaller) -> u64| callers.iter().map(of).fold(0, u64::saturating_add);
    let [areas_before, areas_after] = [sum(|row| row.areas_before), sum(|row| row.areas_after)];
    let unexplained = || {
        let trace = change(sums.frees_unmatched, sum(|row| row.live));
        change(areas_before, areas_after).saturating_sub(trace)
    };
    let has_frees = context.basis().areas(AreaKind::Vmalloc)[1];
    let totals = VmallocInfoChange {
        areas_before,
        areas_after,
        bytes_before: sum(|row| row.bytes_before),
        bytes_after: sum(|row| row.bytes_after),
        areas_unexplained: has_frees.then(unexplained),
        callers: Vec::new(),
    };
    callers.retain(|row| row.areas_change() != 0 || row.bytes_change() != 0 || row.live > 0);
    callers.sort_rows_by_key(|row| Reverse((row.bytes_live, row.bytes_change().unsigned_abs())));
    Some(VmallocInfoChange { callers, ..totals })
}

/// Adds live areas of the trace to the caller that the kernel names for them: the innermost function of their stack that
/// is a caller. The kernel's caller may be further out than the call site: `alloc_thread_stack_node` gives its own.
fn add_live(
    context: &ReportContext<'_, '_>,
    sums: &AreaGroupSums,
    callers: &mut BTreeMap<Option<String>, VmallocCaller>,
) {
    let symbols = context.symbols();
    let mut found: HashMap<u32, Option<String>> = HashMap::new();
    for (group, totals) in sums.groups.iter().filter(|(_, totals)| totals.live > 0) {
        let caller = found.entry(group.stack).or_insert_with(|| {
            let stack = context.analysis.interner.stacks.get(group.stack)?;
            let names = stack.iter().map(|&address| symbols.shown(address));
            names.map(|name| short(&name).to_owned()).find(|name| callers.contains_key(&Some(name.clone())))
        });
        let row = callers.entry(caller.clone()).or_default();
        row.live += totals.live;
        row.bytes_live = row.bytes_live.saturating_add(totals.bytes_live);
    }
}

/// Change of the line.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PercpuLine {
    /// Bytes at the begin of the recording.
    pub bytes_before: u64,
    /// Bytes at its end.
    pub bytes_after: u64,
}

/// The line at the begin and the end; `None`: not read twice, or not in the kernel (before 4.19).
pub fn percpu(context: &ReportContext<'_, '_>) -> Option<PercpuLine> {
    let metadata = context.session.trace.metadata();
    let (bytes_before, bytes_after) = meminfo::twice(metadata, "Percpu")?;
    Some(PercpuLine { bytes_before, bytes_after })
}
