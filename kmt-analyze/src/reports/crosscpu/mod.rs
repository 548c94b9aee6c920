//! `crosscpu`: objects freed on another CPU or node than they were allocated on.
//!
//! The collector `CrossCpu` has the frees by both CPUs and by call site (rule R11). Rows are made here, the screen in `text`.

mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::collect::frees::CallerCrossCpu;
use crate::collect::{Collectors, CrossCpu, Handle};
use crate::pass::Analysis;
use crate::render::screen::Screen;
use crate::reports::common::basis::Input;
use crate::reports::common::labels::{Labels, Symbol};
use crate::reports::common::rows::Address;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::sort_rows::SortRows;
use crate::stream::Api;

/// Frees on another CPU or node.
#[derive(Debug, Default, clap::Args)]
pub struct CrossCpuReport;

impl Report for CrossCpuReport {
    type Handles = Handle<CrossCpu>;
    type Rows = CrossCpuRows;

    const NAME: &'static str = "crosscpu";
    const TITLE: &'static str = "cross-CPU frees";
    const ABOUT: &'static str = "Objects freed on another CPU or node";
    const RESTS_ON: Input = Input::SlabLives;

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(CrossCpu)
    }

    /// Rows of all call sites whose objects were freed on another CPU.
    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> CrossCpuRows {
        let (analysis, sums) = (context.analysis, context.analysis.get(*handle));
        let labels = Labels::new(context.session);
        let callers = (0..).zip(&sums.callers).filter(|(_, caller)| caller.crossed > 0);
        let mut callers: Vec<_> =
            callers.map(|(number, caller)| (labels.caller(analysis, number), caller)).collect();
        callers.sort_rows_by(|((api_a, _, a), of_a), ((api_b, _, b), of_b)| {
            (of_b.crossed, a, api_a).cmp(&(of_a.crossed, b, api_b))
        });
        let shown = context.limit.min(callers.len());
        let matrix = sums.pairs().collect();
        let nodes = by_node(context, &matrix);
        let (cross_cpu_frees, cross_cpu_bytes) = between(&matrix);
        let between_nodes = nodes.as_ref().map(between);
        CrossCpuRows {
            crosscpu: FreesByCpu {
                frees: matrix.values().map(|(objects, _)| objects).sum(),
                cross_cpu_frees,
                cross_cpu_bytes,
                unknown_age: sums.callers.iter().map(|caller| caller.crossed - caller.delay.count()).sum(),
                cpus: pairs(&matrix),
                nodes: nodes.as_ref().map(pairs),
                cross_node_frees: between_nodes.map(|(objects, _)| objects),
                callers_total: callers.len(),
                callers: callers.into_iter().take(shown).map(|c| caller_row(analysis, &labels, c)).collect(),
            },
        }
    }

    fn screen(&self, rows: &CrossCpuRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CrossCpuRows {
    /// Frees by CPU, node and call site.
    pub crosscpu: FreesByCpu,
}

/// Frees of objects allocated in the trace.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FreesByCpu {
    /// Frees on any CPU.
    pub frees: u64,
    /// Frees on another CPU than the allocation.
    pub cross_cpu_frees: u64,
    /// Bytes of frees on another CPU than the allocation.
    pub cross_cpu_bytes: u64,
    /// Objects among these frees on another CPU that were allocated before the clock ran: their lifetimes are unknown.
    pub unknown_age: u64,
    /// Frees by pair of CPUs; pairs without frees are left out.
    pub cpus: Vec<PairRow>,
    /// Frees by pair of nodes; `null`: the node of a CPU is not recorded.
    pub nodes: Option<Vec<PairRow>>,
    /// Frees on another node than the allocation.
    pub cross_node_frees: Option<u64>,
    /// Number of call sites and interfaces whose objects were freed on another CPU, including those beyond the limit of
    /// rows.
    pub callers_total: usize,
    /// Call sites and interfaces, those of most such frees first.
    pub callers: Vec<CrossCallerRow>,
}

/// Frees of one pair of CPUs or nodes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PairRow {
    /// Number of the CPU or node of the allocation.
    pub allocated_on: u32,
    /// Number of the CPU or node of the free.
    pub freed_on: u32,
    /// Frees.
    pub frees: u64,
    /// Bytes freed.
    pub bytes: u64,
}

/// Frees of the objects of one call site and interface on another CPU.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CrossCallerRow {
    /// `kmalloc` or `cache`.
    pub api: &'static str,
    /// Address of the call site.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Frees on any CPU.
    pub frees: u64,
    /// Frees on another CPU than the allocation.
    pub cross_cpu_frees: u64,
    /// Bytes of frees on another CPU than the allocation.
    pub bytes: u64,
    /// Median of their lifetimes, in the clock's unit.
    pub lifetime_p50: Option<u64>,
    /// 99th percentile.
    pub lifetime_p99: Option<u64>,
    /// Longest lifetime.
    pub lifetime_max: Option<u64>,
    /// Call sites of these frees, the most frequent first.
    pub freed_by: Vec<CrossFreeRow>,
}

/// Frees at one call site.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CrossFreeRow {
    /// Address of the call site of the free.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Frees there.
    pub frees: u64,
}

/// Number of objects, and their bytes.
type FreedAmount = (u64, u64);
/// Amounts by pair of CPUs or nodes: of the allocation, of the free.
type Matrix = BTreeMap<(u32, u32), FreedAmount>;

/// The matrix of nodes, if the node of each CPU is recorded.
fn by_node(context: &Context<'_, '_>, cpus: &Matrix) -> Option<Matrix> {
    let nodes = context.session.cpu_nodes()?;
    let mut out = Matrix::new();
    for ((from, to), amount) in cpus {
        let sum = out.entry((nodes.get(*from)?, nodes.get(*to)?)).or_default();
        *sum = (sum.0 + amount.0, sum.1 + amount.1);
    }
    Some(out)
}

/// Sum of the pairs with different numbers.
fn between(matrix: &Matrix) -> FreedAmount {
    let pairs = matrix.iter().filter(|((from, to), _)| from != to);
    pairs.fold((0, 0), |sum, (_, amount)| (sum.0 + amount.0, sum.1 + amount.1))
}

fn pairs(matrix: &Matrix) -> Vec<PairRow> {
    let pair = |(&(allocated_on, freed_on), &(frees, bytes)): (&(u32, u32), &FreedAmount)| PairRow {
        allocated_on,
        freed_on,
        frees,
        bytes,
    };
    matrix.iter().map(pair).collect()
}

fn caller_row(
    analysis: &Analysis,
    labels: &Labels<'_, '_>,
    ((api, address, symbol), caller): ((Api, u64, Symbol), &CallerCrossCpu),
) -> CrossCallerRow {
    CrossCallerRow {
        api: api.name(),
        call_site: Address(address),
        symbol,
        frees: caller.freed,
        cross_cpu_frees: caller.crossed,
        bytes: caller.bytes,
        lifetime_p50: caller.delay.quantile(500),
        lifetime_p99: caller.delay.quantile(990),
        lifetime_max: caller.delay.max(),
        freed_by: freed_by(analysis, labels, caller),
    }
}

fn freed_by(analysis: &Analysis, labels: &Labels<'_, '_>, caller: &CallerCrossCpu) -> Vec<CrossFreeRow> {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for (site, frees) in caller.freed_by.iter() {
        *sums.entry(labels.free_site(analysis, site).0).or_default() += frees;
    }
    let row = |(address, frees)| CrossFreeRow {
        call_site: Address(address),
        symbol: labels.located(address),
        frees,
    };
    let mut rows: Vec<CrossFreeRow> = sums.into_iter().map(row).collect();
    rows.sort_rows_by(|a, b| (b.frees, &a.symbol).cmp(&(a.frees, &b.symbol)));
    rows
}
