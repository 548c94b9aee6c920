//! Sums by keys of `--by`.

use serde::Serialize;

use super::grouping::Grouping;
use super::numbered::{GroupPart, Numbered};
use super::table::GroupTable;
use super::values::Values;
use super::{Groupable, Only};
use crate::collect::groups::{Group, GroupSums};
use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::weights::{Estimate, in_order};
use crate::reports::common::ReportContext;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::{Estimated, SlabSums};
use crate::reports::common::sorting::SortKey;
use crate::stream::Api;

/// Groups of slab objects.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupRows {
    /// The groups.
    #[serde(flatten)]
    pub table: GroupTable<SlabGroup>,
    /// Sums over all groups.
    #[serde(skip)]
    pub all: SlabSums,
}

/// Slab objects of one group.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabGroup {
    /// Sums of its objects.
    #[serde(flatten)]
    pub sums: SlabSums,
    /// Sums that its samples represent; absent: no sample represents more than one event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<Estimated>,
}

/// Sums of a group before sorting and limiting.
#[derive(Debug, Default)]
struct SlabTotals {
    totals: Totals,
    estimate: Option<Estimate>,
    /// True for interfaces that allocated.
    apis: [bool; 2],
}

/// Adds the sums of all groups but those that `only` leaves out.
fn add(
    groups: &mut Grouping<'_, '_, SlabTotals>,
    analysis: &Analysis,
    sums: &GroupSums,
    only: Only<'_>,
    names: &mut Numbered<'_, '_>,
) {
    let mut parts: Vec<(&Group, &Totals)> = sums.iter().collect();
    // Estimates are sums of fractions: always in the same order.
    parts.sort_unstable_by_key(|(group, _)| **group);
    for (group, totals) in parts {
        let Some(site) = analysis.interner.sites.get(group.site) else { continue };
        let part = GroupPart::Slab(group, site);
        let is_left_out = match only {
            Only::All => false,
            Only::Kmalloc => site.api != Api::Kmalloc,
            Only::CallSite(text) | Only::Cache(text) => {
                let name = names.of(part);
                !names.text(&name).contains(text)
            }
        };
        if is_left_out {
            continue;
        }
        let sum = groups.of(part);
        sum.totals += totals;
        analysis.weights.add(site, totals, &mut sum.estimate);
        if let Some(has) = sum.apis.get_mut(site.api as usize) {
            *has = true;
        }
    }
}

/// Rows of all groups.
pub fn compute(context: &ReportContext<'_, '_>, sums: &GroupSums, report: &impl Groupable) -> GroupRows {
    let analysis = context.analysis;
    let options = report.row_options();
    let values = Values::new(context);
    let mut groups = Grouping::new(&options.groups.by, &values, analysis);
    let mut names = Numbered::new(&[report.only().key()], &values, analysis);
    add(&mut groups, analysis, sums, report.only(), &mut names);
    let basis = context.basis();
    let recorded = |apis: [bool; 2]| match apis {
        [true, false] => RecordedSums::slab(basis, Some(Api::Kmalloc)),
        [false, true] => RecordedSums::slab(basis, Some(Api::Cache)),
        _ => RecordedSums::slab(basis, None),
    };
    let row = |sum: &SlabTotals| SlabGroup {
        sums: SlabSums::of(&sum.totals, recorded(sum.apis)),
        estimated: sum.estimate.map(Estimated::from),
    };
    let (mut all, mut apis) = (Totals::default(), [false; 2]);
    for sum in groups.sums() {
        all += &sum.totals;
        apis.iter_mut().zip(sum.apis).for_each(|(any, has)| *any |= has);
    }
    let number = |sum: &SlabTotals, key: SortKey| key.number(&in_order(sum.estimate, sum.totals));
    GroupRows {
        table: groups.table(&options.sort, number, context.limit, row),
        all: SlabSums::of(&all, recorded(apis)),
    }
}
