//! Memory that is still allocated, judged: which of it grows, in which families, and why the rest does not.

pub mod caches;
mod course;
mod evidence;
pub mod families;
pub mod ignore;
pub mod judged;
mod kernel_names;
pub mod makers;
pub mod page_survivals;
mod pages;
mod reclaimable;
mod rules;
pub mod slab;
pub mod stacks;
mod tasks;
mod telling;
mod together;
pub mod until;
pub mod verdict;

use crate::collect::growth::SurvivorSums;
use crate::reports::common::ReportContext;
use ignore::{Ignore, Ignored};
use judged::Judged;
use page_survivals::PageSurvivals;
use pages::{Started, families_of, page_caller_rows, page_rows};
use slab::LeakSums;

/// Live memory with its verdicts, in order of importance.
pub struct JudgedMemory<'g> {
    /// Slab objects by call site.
    pub slab: Vec<Judged<'g>>,
    /// Pages by call site, where stacks were recorded.
    pub page_callers: Vec<Judged<'g>>,
    /// Pages by kind.
    pub pages: Vec<Judged<'g>>,
    /// Tasks that started in the window and are still allocated.
    pub tasks: SurvivorSums,
    /// Rows that patterns hide.
    pub ignored: Option<Ignored>,
}

impl<'g> JudgedMemory<'g> {
    /// Judges the live memory of a window of that length; `survivals` are its pages.
    pub fn of(
        context: &ReportContext<'_, '_>,
        collected: LeakSums<'g>,
        survivals: &'g PageSurvivals,
        length: u64,
        ignore: Option<&Ignore>,
    ) -> Self {
        let LeakSums { growth, kin, .. } = collected;
        let mut slab = slab::judged(context, collected);
        let tasks = slab::tasks_started(&slab);
        let started = Started { tasks: &tasks, kin, step: growth.step() };
        let mut page_callers = page_caller_rows(context, survivals, &started);
        let mut pages = page_rows(context.analysis, survivals, &page_callers, &started);
        let hide =
            |ignore: &Ignore| ignore.hide_all([&mut slab, &mut page_callers, &mut pages], context.labels());
        let ignored = ignore.map(hide);
        let families = families::families(&slab, length);
        for rows in [&mut page_callers, &mut pages] {
            let of_families = families_of(rows, &families, kin);
            rows.iter_mut().zip(of_families).for_each(|(row, family)| row.grows_with = family);
        }
        Self { slab, page_callers, pages, tasks, ignored }
    }
}
