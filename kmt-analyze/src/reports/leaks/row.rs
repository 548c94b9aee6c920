//! What stays of one call site, or of one kind of pages.

use serde::Serialize;

use super::families::{Family, per_second};
use super::judged::Judged;
use super::stacks::RowStack;
use crate::collect::growth::Numbers;
use crate::reports::common::labels::Labels;
use crate::reports::common::rows::Address;

/// What stays of one call site, or of one kind of pages.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeakRow {
    /// `grows`, `grows_in_batches`, `reclaimable` (in a family: pinned), `with_reclaimable` (one for each object of a
    /// reclaimable cache), `with_tasks` (born when tasks started that still run), `with_slabs` (slab pages, and what the
    /// allocator keeps for each slab), `warming`, `burst`, `lazy` (freed late and all at once, by design), `frees_unseen`,
    /// `window_too_short`, `uncertain`, `young`, `few`.
    pub verdict: &'static str,
    /// `kmalloc` or `cache`; `null`: pages.
    pub api: Option<&'static str>,
    /// Address of the call site; `null`: not known.
    pub call_site: Option<Address>,
    /// Function and offset, or the kind of pages.
    pub symbol: String,
    /// Cache or size class; of pages their migrate type, or `slab`.
    pub cache: String,
    /// Objects, or pages, that are live at the end.
    pub survivors: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that are older than their kind gets.
    pub old_survivors: u64,
    /// Their bytes.
    pub old_bytes: u64,
    /// The same a second, or in 10^9 ticks, since growth began.
    pub old_bytes_per_second: u64,
    /// Age beyond which an object is old, in the clock's unit.
    pub old_age: u64,
    /// Allocations in the steps that old survivors come from.
    pub allocations_of_that_age: u64,
    /// Steps with old survivors.
    pub steps_with_survivors: usize,
    /// Steps that could have some.
    pub steps: usize,
    /// Old survivors born in the first half of those steps.
    pub first_half: u64,
    /// Old survivors born in the second half.
    pub second_half: u64,
    /// Objects, or pages, freed in the window.
    pub freed: u64,
    /// Objects, or pages, found gone in it.
    pub freed_unseen: u64,
    /// How old 99 of 100 freed ones were at most, in the clock's unit; `null`: none was freed.
    pub lifetime_p99: Option<u64>,
    /// Survivors by the step of their birth, of 32.
    pub survivors_by_birth: Numbers,
    /// How old 99 of 100 of those freed unseen were at most when they were found to be over, in the clock's unit.
    pub unseen_age_p99: Option<u64>,
    /// Step in which growth began that continues since; `null`: at once, or none does.
    pub began_step: Option<usize>,
    /// Batches of steps with old survivors.
    pub batches: usize,
    /// Number of its row in `families`; `null`: it is in none.
    pub family: Option<usize>,
    /// Tasks that allocated most survivors.
    pub holders: Vec<HolderRow>,
    /// Stacks with most survivors, where stacks were recorded.
    pub stacks: Vec<StackRow>,
    /// Bytes, or pages, of the survivors.
    #[serde(skip)]
    pub amount: u64,
    /// Bytes, or pages, of the old ones.
    #[serde(skip)]
    pub old_amount: u64,
    /// The same a second.
    #[serde(skip)]
    pub old_amount_per_second: u64,
    /// Tasks that allocated survivors.
    #[serde(skip)]
    pub holders_total: usize,
}

/// A task that allocated survivors.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HolderRow {
    /// Thread id.
    pub pid: i32,
    /// Name and id.
    pub task: String,
    /// Survivors that it allocated.
    pub survivors: u64,
}

/// Survivors of one call stack.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StackRow {
    /// Survivors.
    pub survivors: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Functions, the innermost first, without the allocator's.
    pub frames: Vec<String>,
}

/// Tasks named for a row.
const HOLDERS: usize = 5;

/// Makes rows of judged ones.
pub(super) struct RowMaker<'m, 's, 'd> {
    pub(super) labels: &'m Labels<'s, 'd>,
    pub(super) families: &'m [Family<'m>],
    pub(super) length: u64,
    pub(super) page_size: u64,
}

impl RowMaker<'_, '_, '_> {
    /// A row.
    pub(super) fn row(&self, r: &Judged<'_>) -> LeakRow {
        let e = &r.evidence;
        let bytes =
            |amount: u64| if r.api.is_some() { amount } else { amount.saturating_mul(self.page_size) };
        let a_second = per_second(r, self.length);
        let is_member = |family: &Family<'_>| family.rows.iter().any(|member| std::ptr::eq(*member, r));
        LeakRow {
            verdict: e.verdict.name(),
            api: r.api.map(|api| api.name()),
            call_site: (r.address != 0).then_some(Address(r.address)),
            symbol: r.name.clone(),
            cache: r.cache.clone(),
            survivors: e.survivors,
            bytes: bytes(e.amount),
            old_survivors: e.old,
            old_bytes: bytes(e.old_amount),
            old_bytes_per_second: bytes(a_second),
            old_age: e.old_age,
            allocations_of_that_age: e.old_births,
            steps_with_survivors: e.steps.0,
            steps: e.steps.1,
            first_half: e.halves.0,
            second_half: e.halves.1,
            freed: e.freed.0,
            freed_unseen: e.freed.1,
            lifetime_p99: r.course.lifetimes.quantile(990),
            survivors_by_birth: r.course.survivors.all(),
            unseen_age_p99: r.course.unseen_ages.quantile(990),
            began_step: e.began,
            batches: e.batches,
            family: self.families.iter().position(is_member),
            holders: self.holders(r),
            stacks: self.stacks(r),
            amount: e.amount,
            old_amount: e.old_amount,
            old_amount_per_second: a_second,
            holders_total: r.course.holders.len(),
        }
    }

    /// Tasks that allocated most survivors.
    fn holders(&self, row: &Judged<'_>) -> Vec<HolderRow> {
        let mut all: Vec<(i32, u64)> =
            row.course.holders.iter().map(|(pid, steps)| (*pid, steps.sum())).collect();
        all.sort_by_key(|&(pid, survivors)| (std::cmp::Reverse(survivors), pid));
        let holder =
            |&(pid, survivors): &(i32, u64)| HolderRow { pid, task: self.labels.task(pid), survivors };
        all.iter().take(HOLDERS).map(holder).collect()
    }

    /// Stacks with most survivors.
    fn stacks(&self, row: &Judged<'_>) -> Vec<StackRow> {
        let stack = |stack: &RowStack| StackRow {
            survivors: stack.live,
            bytes: stack.bytes_live,
            frames: stack.frames.iter().map(|&address| self.labels.symbol(address)).collect(),
        };
        row.stacks.iter().map(stack).collect()
    }
}
