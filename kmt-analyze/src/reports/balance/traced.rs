//! Pages that a trace saw allocated, by use, beside the accounts that have such pages; and who holds those in no account.
//!
//! The use of a page follows from the stack of its allocation (`page_use`), else from its flags, as `leaks` names it.

use std::collections::{BTreeMap, HashMap};

use kmt_format::schema::Meaning;

use super::page_use::{
    ANONYMOUS, IN_NO_ACCOUNT, KERNEL, LARGE_KMALLOC, MODULES, MOVABLE, OTHER_KERNEL, SHMEM, UNKNOWN, USER,
    accounts_of, use_of_stack,
};
use super::rows::{
    AccountHolderRow, AccountRow, BalanceRows, PageGroupRow, PageHolderRow, PageUseRow, PageUses,
};
use crate::collect::groups::{NO_ORIGIN, PageGroupSums};
use crate::collect::{Collectors, PageGroups};
use crate::failure::Outcome;
use crate::ledger::PageGroup;
use crate::ledger::frames::NO_STACK;
use crate::ledger::totals::FrameTotals;
use crate::limits::ROWS_MAX;
use crate::pass::selection::{Selection, recorder_threads};
use crate::pass::{self, Needs, Request};
use crate::reports::common::rows::Address;
use crate::reports::common::{Context, ReportContext};
use crate::reports::grouped::{GroupKey, GroupPart, Grouping, Values};
use crate::reports::leaks::judge::pages::{UnreclaimedPages, use_of};
use crate::sort_rows::SortRows;
use crate::stream::PageSite;
use crate::trace::accounts::{ANONYMOUS as ANONYMOUS_ACCOUNT, REST};
use crate::trace::names::is_core;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Pages of a recording by use, and at most `rows_max` holders of those in no account, or groups by the keys `by`, if it has
/// events of pages.
pub fn pages(
    session: &Session<'_>,
    rows: &BalanceRows,
    by: &[&'static GroupKey],
    rows_max: usize,
) -> (Option<PageUses>, Option<AccountHolderRow>, Outcome) {
    let selection = Selection::default();
    let context = Context { session, selection: &selection, limit: ROWS_MAX };
    let mut collectors = Collectors::default();
    let handle = collectors.add(PageGroups);
    let needs = by.iter().map(|key| key.needs()).fold(Needs::EVENT_COUNTS | Needs::FLAG_NAMES, Needs::union);
    let request = Request::new(&selection, &collectors).with(needs);
    let analysis = pass::run(session, &request);
    let ended = outcome(session, &analysis.faults);
    let context = ReportContext::new(&context, &analysis);
    if !context.basis().page_allocs {
        return (None, None, ended);
    }
    let has_frees = context.basis().page_ends();
    let mut sums = PageTotals::default();
    let values = Values::new(&context);
    let mut groups: Grouping<'_, '_, OfGroup> = Grouping::new(by, &values, &analysis);
    sums.add_all(&context, analysis.get(handle), |group, site, name, totals| {
        if !by.is_empty() {
            groups.of(GroupPart::Pages(group, site)).add(name, totals);
        }
    });
    let page_size = analysis.page_size.0;
    let most = |of: &OfGroup, ()| Some(of.most(has_frees).into());
    let groups =
        (!by.is_empty()).then(|| groups.table(&[()], most, rows_max, |of| of.row(has_frees, page_size)));
    let holders = sums.holders(&context, has_frees);
    let older = analysis.balance.frames.counts.free_only_frames;
    let bytes_of = |frames: u64| frames.saturating_mul(page_size);
    let uses = PageUses {
        bytes_freed_older: has_frees.then(|| bytes_of(older)),
        has_stacks: sums.has_stacks,
        uses: sums.uses(rows, &context, has_frees),
        holders_total: holders.len(),
        holders: holders.into_iter().take(rows_max).collect(),
        groups,
    };
    let is_known = rows.is_compared && has_frees && rows.shown.sliced.is_none();
    let largest = rows.largest_growth().filter(|_| is_known);
    let largest = largest.and_then(|account| sums.largest_holder(account, rows, &context));
    (Some(uses), largest, ended)
}

/// Holders of what took free memory, as `balance` has them: of most pages that are in no account and still allocated, and of
/// the account that grew most and anonymous memory. There are none where frees were not recorded.
pub fn holders_of_growth(
    context: &ReportContext<'_, '_>,
    groups: &PageGroupSums,
    rows: &BalanceRows,
) -> (Option<PageHolderRow>, Vec<AccountHolderRow>) {
    let basis = context.basis();
    if !basis.page_allocs || !basis.page_ends() {
        return (None, Vec::new());
    }
    let mut sums = PageTotals::default();
    sums.add_all(context, groups, |_, _, _, _| ());
    let largest = rows.largest_growth().filter(|_| rows.is_compared);
    let is_other =
        |row: &&AccountRow| row.change() > 0 && largest.is_some_and(|of| of.account != row.account);
    let anonymous = rows.account(ANONYMOUS_ACCOUNT).filter(is_other);
    let accounts = largest.into_iter().chain(anonymous);
    let of_accounts = accounts.filter_map(|account| sums.largest_holder(account, rows, context));
    (sums.holders(context, true).into_iter().next(), of_accounts.collect())
}

/// True if uses are by stack: then those of pages that are in the file as sums are unknown.
fn are_by_stack(context: &ReportContext<'_, '_>) -> bool {
    context.recorded(Meaning::KERNEL_STACK) == Some(true)
}

/// Use of pages, and the address of the function that holds them; `None`: unknown.
#[derive(Debug, Clone, Copy)]
struct Named {
    name: &'static str,
    holder: Option<u64>,
    has_stack: bool,
}

/// Use of pages by a stack.
#[derive(Debug, Clone, Copy, Default)]
struct OfStack {
    by_function: Option<&'static str>,
    /// The use that the module of the holder shows, where neither function nor flags do.
    by_module: Option<&'static str>,
    holder: Option<u64>,
}

/// Finds uses of pages. Each stack is looked at once.
struct Namer<'c, 's, 'd> {
    context: &'c ReportContext<'s, 'd>,
    kept: UnreclaimedPages<'c>,
    stacks: HashMap<u32, OfStack>,
}

impl<'c, 's, 'd> Namer<'c, 's, 'd> {
    fn new(context: &'c ReportContext<'s, 'd>) -> Self {
        let analysis = context.analysis;
        let kept = UnreclaimedPages::new(context.session, &analysis.interner, analysis.page_size.0);
        Self { context, kept, stacks: HashMap::new() }
    }

    fn named(&mut self, site: &PageSite, stack: u32) -> Named {
        // The kernel's counts are for kinds of which most pages are old.
        let kept = self.kept.use_by_flags(site);
        let by_flags = use_of(self.context.analysis.interner.gfp(site.gfp_flags), site.order);
        if stack == NO_STACK {
            return Named { name: kept.unwrap_or(by_flags), holder: None, has_stack: false };
        }
        let context = self.context;
        let of = *self.stacks.entry(stack).or_insert_with(|| of_stack(context, stack));
        let is_told = ![KERNEL, USER, UNKNOWN].contains(&by_flags);
        let last = if is_told { by_flags } else { of.by_module.unwrap_or(by_flags) };
        Named { name: kept.or(of.by_function).unwrap_or(last), holder: of.holder, has_stack: true }
    }
}

fn of_stack(context: &ReportContext<'_, '_>, stack: u32) -> OfStack {
    let stack = context.analysis.interner.stacks.get(stack).map(Vec::as_slice).unwrap_or_default();
    let stack: Vec<u64> = stack.iter().copied().filter(|&address| address != 0).collect();
    let symbols: Vec<Vec<u8>> = stack.iter().map(|&address| context.symbols().raw(address)).collect();
    let found = use_of_stack(&symbols);
    let holder = found.holder.and_then(|index| stack.get(index)).copied();
    let of_module = |symbol: &Vec<u8>| is_core(symbol).map(|core| if core { OTHER_KERNEL } else { MODULES });
    let by_module = found.holder.and_then(|index| symbols.get(index)).and_then(of_module);
    OfStack { by_function: found.by_function, by_module, holder }
}

/// Pages of one group: all, and their frames by use, those still allocated and all.
#[derive(Debug, Default)]
struct OfGroup {
    totals: FrameTotals,
    uses: BTreeMap<&'static str, (u64, u64)>,
}

impl OfGroup {
    fn add(&mut self, name: &'static str, totals: &FrameTotals) {
        self.totals += totals;
        let (live, all) = self.uses.entry(name).or_default();
        *live = live.saturating_add(totals.frames_live);
        *all = all.saturating_add(totals.frames_alloc);
    }

    /// Frames still allocated; all of them where frees were not recorded.
    fn most(&self, has_frees: bool) -> u64 {
        if has_frees { self.totals.frames_live } else { self.totals.frames_alloc }
    }

    fn row(&self, has_frees: bool, page_size: u64) -> PageGroupRow {
        let bytes = |frames: u64| frames.saturating_mul(page_size);
        let in_none = self.uses.iter().filter(|(name, _)| IN_NO_ACCOUNT.contains(name));
        let in_none = in_none.fold(0, |sum: u64, (_, (live, _))| sum.saturating_add(*live));
        let most = self.uses.iter().max_by_key(|(name, frames)| (**frames, std::cmp::Reverse(**name)));
        PageGroupRow {
            r#use: most.map_or(UNKNOWN, |(name, _)| *name),
            uses_total: self.uses.len(),
            bytes_alloc: bytes(self.totals.frames_alloc),
            bytes_live: has_frees.then(|| bytes(self.totals.frames_live)),
            bytes_live_in_no_account: has_frees.then(|| bytes(in_none)),
        }
    }
}

/// Pages of one holder: all, and those of each task.
#[derive(Debug, Default)]
struct OfHolder {
    totals: FrameTotals,
    tasks: HashMap<i32, u64>,
}

/// Pages by use, and those in no account by call site and by task.
#[derive(Debug, Default)]
struct PageTotals {
    uses: BTreeMap<&'static str, FrameTotals>,
    has_stacks: bool,
    by_call_site: HashMap<(&'static str, Option<u64>), OfHolder>,
    by_task: HashMap<(&'static str, i32), OfHolder>,
    /// Frames still allocated, of all uses.
    live: HashMap<(&'static str, i32), u64>,
}

impl PageTotals {
    /// Adds all groups of pages; `each` gets each with its kind and its use.
    fn add_all(
        &mut self,
        context: &ReportContext<'_, '_>,
        groups: &PageGroupSums,
        mut each: impl FnMut(&PageGroup, &PageSite, &'static str, &FrameTotals),
    ) {
        let (interner, mut namer) = (&context.analysis.interner, Namer::new(context));
        let are_sums_used = !are_by_stack(context);
        for (group, totals) in groups.0.iter().filter(|(_, totals)| !totals.has_no_pages()) {
            if group.origin == NO_ORIGIN && !are_sums_used {
                continue;
            }
            let Some(site) = interner.pages.get(group.site) else { continue };
            let named = namer.named(site, group.stack);
            match group.origin {
                // Sums of freed pages, which have no holder.
                NO_ORIGIN => *self.uses.entry(named.name).or_default() += totals,
                origin => {
                    let pid = interner.origins.get(origin).map_or(0, |origin| origin.pid);
                    self.add(named, pid, totals);
                }
            }
            each(group, site, named.name, totals);
        }
    }

    fn add(&mut self, named: Named, pid: i32, totals: &FrameTotals) {
        *self.uses.entry(named.name).or_default() += totals;
        self.has_stacks |= named.has_stack;
        let live = self.live.entry((named.name, pid)).or_default();
        *live = live.saturating_add(totals.frames_live);
        if !IN_NO_ACCOUNT.contains(&named.name) {
            return;
        }
        let by_call_site = self.by_call_site.entry((named.name, named.holder)).or_default();
        let by_task = self.by_task.entry((named.name, pid)).or_default();
        for holder in [by_call_site, by_task] {
            holder.totals += totals;
            let pages = holder.tasks.entry(pid).or_default();
            *pages = pages.saturating_add(totals.frames_live);
        }
    }

    /// Holders of pages in no account: call sites, or tasks without any stack; the most memory first.
    fn holders(&self, context: &ReportContext<'_, '_>, has_frees: bool) -> Vec<PageHolderRow> {
        let page_size = context.analysis.page_size.0;
        let is_folded = context.session.trace.header().folded;
        let row = |name: &'static str, holder: Option<u64>, of: &OfHolder| {
            let most = of.tasks.iter().max_by_key(|(pid, pages)| (**pages, std::cmp::Reverse(**pid)));
            PageHolderRow {
                r#use: name,
                bytes_alloc: (!is_folded).then(|| of.totals.frames_alloc.saturating_mul(page_size)),
                bytes_live: has_frees.then(|| of.totals.frames_live.saturating_mul(page_size)),
                call_site: holder.map(Address),
                symbol: context.labels().of_pages(holder),
                module: holder.and_then(|address| context.labels().module(address)),
                task: most.map_or_else(String::new, |(pid, _)| context.labels().task(*pid)),
                tasks_total: of.tasks.len(),
            }
        };
        let mut rows: Vec<PageHolderRow> = match self.has_stacks {
            true => self.by_call_site.iter().map(|((name, holder), of)| row(name, *holder, of)).collect(),
            false => self.by_task.iter().map(|((name, _), of)| row(name, None, of)).collect(),
        };
        // Freed pages have no holder.
        rows.retain(|row| row.bytes_live != Some(0));
        let most = |row: &PageHolderRow| std::cmp::Reverse((row.bytes_live, row.bytes_alloc));
        rows.sort_rows_by(|a, b| {
            let names = || (&a.symbol, a.r#use, &a.task).cmp(&(&b.symbol, b.r#use, &b.task));
            most(a).cmp(&most(b)).then_with(names)
        });
        rows
    }

    /// The task with most pages of an account that grew, if it has a quarter of the growth.
    fn largest_holder(
        &self,
        account: &AccountRow,
        rows: &BalanceRows,
        context: &ReportContext<'_, '_>,
    ) -> Option<AccountHolderRow> {
        // The allocator of a page of slabs has not all objects on it, and `kernel` is any use.
        if [REST, "slab_reclaimable", "slab_unreclaimable"].contains(&account.account) {
            return None;
        }
        let has_movable = self.uses.contains_key(MOVABLE);
        if has_movable && accounts_of(MOVABLE).contains(&account.account) && !grew_alone(account, rows) {
            return None;
        }
        let is_of_it = |name: &str| name != KERNEL && accounts_of(name).contains(&account.account);
        let mut tasks: BTreeMap<i32, u64> = BTreeMap::new();
        for ((_, pid), frames) in self.live.iter().filter(|((name, _), _)| is_of_it(name)) {
            let sum = tasks.entry(*pid).or_default();
            *sum = sum.saturating_add(*frames);
        }
        let (pid, frames) =
            tasks.into_iter().max_by_key(|(pid, frames)| (*frames, std::cmp::Reverse(*pid)))?;
        let bytes_live = frames.saturating_mul(context.analysis.page_size.0);
        let growth = u64::try_from(account.change()).unwrap_or(0);
        // Pages of processes that take the place of older ones are in no growth: more than tmpfs grew by are not its own.
        if has_movable && account.account == "shmem" && bytes_live > growth.saturating_add(growth / ALONE) {
            return None;
        }
        (bytes_live.saturating_mul(4) >= growth).then(|| AccountHolderRow {
            account: account.account,
            task: context.labels().task(pid),
            bytes_live,
            is_recorder: recorder_threads(context.session).contains(&pid),
        })
    }

    /// Pages by use, the most memory first.
    fn uses(&self, rows: &BalanceRows, context: &ReportContext<'_, '_>, has_frees: bool) -> Vec<PageUseRow> {
        let page_size = context.analysis.page_size.0;
        let are_all_known = !context.session.trace.header().folded || !are_by_stack(context);
        let bytes = |frames: u64| frames.saturating_mul(page_size);
        let row = |(&name, totals): (&&'static str, &FrameTotals)| {
            let accounts = accounts_of(name);
            let changes = rows.accounts.iter().filter(|row| accounts.contains(&row.account));
            let is_known = changes.clone().all(|row| row.change_with_unknown.is_none());
            PageUseRow {
                r#use: name,
                bytes_alloc: are_all_known.then(|| bytes(totals.frames_alloc)),
                bytes_live: has_frees.then(|| bytes(totals.frames_live)),
                accounts,
                bytes_change: (rows.is_compared && is_known && !self.is_part(name) && !accounts.is_empty())
                    .then(|| changes.map(|row| row.change()).fold(0, i64::saturating_add)),
            }
        };
        let mut uses: Vec<PageUseRow> = self.uses.iter().map(row).collect();
        uses.sort_rows_by_key(|row| std::cmp::Reverse((row.bytes_live, row.bytes_alloc)));
        uses
    }

    /// True if the accounts of a use have pages of another use, too: their change is not its own.
    fn is_part(&self, name: &str) -> bool {
        match name {
            KERNEL => self.has_stacks,
            LARGE_KMALLOC => true,
            ANONYMOUS | SHMEM => self.uses.contains_key(super::page_use::MOVABLE),
            name => IN_NO_ACCOUNT.contains(&name),
        }
    }
}

/// Growth of another account, as 1/N, from which pages by flags alone may be its pages.
const ALONE: u64 = 8;

/// True if, of anonymous memory and tmpfs, that account grew and the other hardly: without stacks their pages look alike.
fn grew_alone(account: &AccountRow, rows: &BalanceRows) -> bool {
    let mut others = ["anonymous", "shmem"].into_iter().filter(|key| *key != account.account);
    let growth = account.change();
    // A range is taken as the largest possible.
    let most = |row: &AccountRow| row.change_range().map_or(0, |(_, most)| most);
    others
        .all(|key| rows.account(key).is_none_or(|row| most(row).saturating_mul(ALONE as i64) < growth.max(1)))
}
