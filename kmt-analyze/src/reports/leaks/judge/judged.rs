//! A call site, or a kind of pages, with the verdict on its live memory, its caches and its stacks.
//!
//! A call site that allocates objects of several sizes uses several caches. Stacks are known where they were recorded.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use kmt_common::unseen_frees::is_freed_in_bulk;
use kmt_format::schema::Meaning;
use serde::Serialize;

use super::evidence::{Evidence, SURVIVORS_MIN};
use super::kernel_names::FREED_BY_RCU;
use super::verdict::Verdict;
use crate::collect::growth::SurvivorSums;
use crate::collect::sums::{CallSums, StackSums};
use crate::pass::caches::CacheNames;
use crate::pass::{self, Analysis};
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::common::page_sums::of_users;
use crate::sort_rows::SortRows;
use crate::stream::{Api, NameId};
use crate::trace::aliases::Aliases;
use crate::trace::names::cache_name;
use crate::trace::session::Session;

/// Share of the old objects from which they are of one task, in percent.
const ONE_TASK_PERCENT: u64 = 90;

/// Share of the old objects, as 1/N, up to which freed ones are almost none.
const ALMOST_NONE: u64 = 32;

/// Name of the use of pages that hold data of files and devices.
pub const PAGE_CACHE_USE: &str = "page cache";

/// A call site, or a kind of pages, with the verdict on its live memory.
pub struct Judged<'r> {
    pub api: Option<Api>,
    pub address: u64,
    pub name: String,
    /// Cache or size class with most of it, and the number of others.
    pub cache: String,
    /// Caches with live objects, those with most first; none for pages.
    pub caches: Vec<CacheShare>,
    pub evidence: Evidence,
    /// The kernel reclaims objects of its cache when memory is short.
    pub is_reclaimable: bool,
    /// Of tasks that started in the window, whose number grows.
    pub is_of_tasks: bool,
    /// Stacks with most live objects, where stacks were recorded.
    pub stacks: Vec<RowStack>,
    pub survival: &'r SurvivorSums,
    /// The survivors that the verdict is about: the old ones, if there are enough; of a part alone if only that grows.
    pub growing: Cow<'r, SurvivorSums>,
    /// Number of the row that leads its family.
    pub leader: Option<usize>,
    /// Pages for the percpu allocator, which a kernel worker may allocate for others.
    pub is_percpu: bool,
    /// Of a kind of pages: what they are used for.
    pub page_use: Option<&'static str>,
    /// Of pages: number of the family that they grow with.
    pub grows_with: Option<usize>,
}

/// Live bytes below which a loss explains objects that seem not to be freed: 40 objects of 96 bytes, of many tasks, were no leak.
const SUSPECT_BYTES_MIN: u64 = 16 << 10;

impl<'r> Judged<'r> {
    /// True for objects that cross a loss, almost none of which was freed as far as the events show, allocated at an even pace, that
    /// the kernel cannot reclaim, and that are not just a few bytes.
    pub fn is_suspect(&self) -> bool {
        let Evidence { verdict, freed, old, old_births, steps, .. } = self.evidence;
        verdict == Verdict::Uncertain
            && !self.is_reclaimable
            && self.evidence.amount >= SUSPECT_BYTES_MIN
            && freed.0.saturating_add(freed.1).saturating_mul(ALMOST_NONE) <= old
            && old >= SURVIVORS_MIN
            && old.saturating_mul(10) >= old_births.saturating_mul(9)
            && steps.0 * 2 >= steps.1
            && self.evidence.has_like_halves()
    }

    /// A row of no family, without what only some rows have.
    pub fn new(
        (address, name, cache): (u64, String, String),
        evidence: Evidence,
        survival: &'r SurvivorSums,
    ) -> Self {
        Self {
            api: None,
            address,
            name,
            cache,
            caches: Vec::new(),
            evidence,
            is_reclaimable: false,
            is_of_tasks: false,
            stacks: Vec::new(),
            survival,
            growing: growing(&evidence, survival),
            leader: None,
            is_percpu: false,
            page_use: None,
            grows_with: None,
        }
    }
}

impl Judged<'_> {
    /// Function of the call site.
    pub fn function(&self) -> &str {
        function(&self.name)
    }

    /// True where one task's objects grow at a steady pace, and no free of them has an event: they may be freed already.
    pub fn may_grow(&self) -> bool {
        let (evidence, old) = (&self.evidence, self.evidence.old);
        let most = self.growing.tasks().map(|(_, steps)| steps.sum()).max().unwrap_or(0);
        let is_bulk = self.caches.first().is_some_and(|share| is_freed_in_bulk(&share.cache));
        evidence.verdict == Verdict::ImpliedFrees
            && old >= SURVIVORS_MIN
            && evidence.freed.0 == 0
            && evidence.has_steady_pace()
            && most.saturating_mul(100) >= old.saturating_mul(ONE_TASK_PERCENT)
            && !is_bulk
            && !FREED_BY_RCU.contains(&self.function())
    }

    /// True for page cache that grows, and that the kernel can reclaim.
    pub fn is_growth_of_page_cache(&self) -> bool {
        self.page_use == Some(PAGE_CACHE_USE) && self.evidence.verdict == Verdict::Reclaimable
    }

    /// True for the kernel's structure of a task.
    pub fn is_task(&self) -> bool {
        self.caches.first().is_some_and(|share| share.cache == "task_struct")
    }
}

/// The survivors that a verdict is about.
pub fn growing<'r>(evidence: &Evidence, survival: &'r SurvivorSums) -> Cow<'r, SurvivorSums> {
    if evidence.old < SURVIVORS_MIN {
        Cow::Borrowed(survival)
    } else {
        Cow::Owned(evidence.part.of(survival))
    }
}

/// Function of a call site.
pub fn function(name: &str) -> &str {
    name.split_once("+0x").map_or(name, |(function, _)| function)
}

/// Sorts by verdict, then by old bytes.
pub fn sort(rows: &mut [Judged<'_>]) {
    rows.sort_rows_by(|a, b| {
        (a.evidence.verdict, b.evidence.old_amount, &a.name).cmp(&(
            b.evidence.verdict,
            a.evidence.old_amount,
            &b.name,
        ))
    });
}

/// Live objects of a call site in one cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheShare {
    /// Cache or size class.
    pub cache: String,
    /// Survivors.
    pub survivors: u64,
    /// Other names of the cache, at most 128, which the kernel has merged; `null`: unknown.
    pub aliases: Option<Vec<String>>,
    /// True if an event names the cache; kmalloc has size classes.
    #[serde(skip)]
    pub is_named: bool,
}

/// Caches of live objects, with their other names.
pub struct LiveCaches<'r> {
    result: &'r Analysis,
    names: CacheNames<'r>,
    aliases: Aliases,
}

impl<'r> LiveCaches<'r> {
    /// Caches in a trace.
    pub fn new(context: &ReportContext<'r, '_>) -> Self {
        let (session, result) = (context.session, context.analysis);
        Self { result, names: CacheNames::of(result), aliases: Aliases::of(session.trace.metadata()) }
    }

    /// Caches of live objects, those with most first.
    pub fn of(&self, survival: &SurvivorSums) -> Vec<CacheShare> {
        let mut found: BTreeMap<(String, Option<NameId>), u64> = BTreeMap::new();
        for (number, &survivors) in survival.sites.iter() {
            let Some(site) = self.result.interner.sites.get(number) else { continue };
            let named = self.names.named(number, None).filter(|_| site.api == Api::Cache);
            *found.entry((self.names.shown(number, None), named)).or_default() += survivors;
        }
        let share = |((cache, named), survivors): ((String, Option<NameId>), u64)| CacheShare {
            aliases: named.map(|name| self.aliases(name)).unwrap_or_default(),
            is_named: named.is_some(),
            cache,
            survivors,
        };
        let mut shares: Vec<CacheShare> = found.into_iter().map(share).collect();
        shares.sort_rows_by_key(|share| std::cmp::Reverse(share.survivors));
        shares
    }

    fn aliases(&self, name: NameId) -> Option<Vec<String>> {
        let others = self.aliases.others(self.result.interner.name(name))?;
        Some(others.into_iter().map(cache_name).collect())
    }
}

/// The first cache, and the number of others: `kmalloc-16 + 5`.
pub fn label(caches: &[CacheShare]) -> String {
    match caches {
        [] => "?".to_owned(),
        [only] => only.cache.clone(),
        [first, others @ ..] => format!("{} + {}", first.cache, others.len()),
    }
}

/// Largest number of shown stacks of a call site.
const SHOWN: usize = 3;

/// A stack with its survivors.
#[derive(Debug, Clone)]
pub struct RowStack {
    /// Addresses, the innermost first, without the allocator's.
    pub frames: Vec<u64>,
    /// Live objects.
    pub live: u64,
    /// Bytes of live objects.
    pub bytes_live: u64,
}

/// True if slab allocations may have stacks: looking for them takes time for each allocation.
pub fn may_exist(session: &Session<'_>) -> bool {
    let metadata = session.trace.metadata();
    let conditions = metadata.attachment("event_conditions").unwrap_or_default();
    let conditions = String::from_utf8_lossy(conditions);
    let is_asked = conditions.lines().any(|line| {
        let of_slab = line.starts_with("kmem:kmalloc") || line.starts_with("kmem:kmem_cache_alloc");
        of_slab && line.contains("trigger=stacktrace")
    });
    // A live recording lists all of its triggers.
    pass::may_have(session.trace, Meaning::KERNEL_STACK)
        && (is_asked || metadata.text("source") != Some("live"))
}

/// Stacks with most survivors, by number of the call site.
pub fn by_caller(
    result: &pass::Analysis,
    labels: &Labels<'_, '_>,
    calls: Option<&CallSums>,
) -> HashMap<u32, Vec<RowStack>> {
    let mut found: HashMap<u32, Vec<(u32, StackSums)>> = HashMap::new();
    for (&stack, &sums) in calls.iter().flat_map(|calls| &calls.stacks).filter(|(_, sums)| sums.live > 0) {
        found.entry(sums.caller.unwrap_or(0)).or_default().push((stack, sums));
    }
    let shown = |mut stacks: Vec<(u32, StackSums)>| {
        stacks.sort_rows_by_key(|&(stack, sums)| (std::cmp::Reverse(sums.live), stack));
        let row = |(stack, sums): &(u32, StackSums)| {
            let addresses = result.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
            let frames = of_users(addresses, |address| labels.symbol(address)).collect();
            RowStack { frames, live: sums.live, bytes_live: sums.bytes_live }
        };
        stacks.iter().take(SHOWN).map(row).collect()
    };
    found.into_iter().map(|(caller, stacks)| (caller, shown(stacks))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::growth::STEPS;
    use crate::reports::leaks::judge::verdict::JudgedPart;

    #[test]
    fn the_largest_share_and_the_number_of_others() {
        let share =
            |cache: &str| CacheShare { cache: cache.into(), survivors: 1, aliases: None, is_named: true };
        assert_eq!(label(&[]), "?");
        assert_eq!(label(&[share("dentry")]), "dentry");
        assert_eq!(label(&[share("kmalloc-16"), share("kmalloc-32"), share("kmalloc-64")]), "kmalloc-16 + 2");
    }

    /// One object of these bytes in each step, none of them freed, most across a loss.
    fn lossy(bytes: u64, change: impl Fn(&mut Judged<'_>)) -> bool {
        let mut survival = SurvivorSums::default();
        for step in 0..STEPS {
            survival.births.add(step, 1);
            survival.survivors.add(step, 1);
            survival.survivor_amount.add(step, bytes);
        }
        let part = JudgedPart { to: 28, ..JudgedPart::default() };
        let evidence = Evidence { verdict: Verdict::Uncertain, ..Evidence::of_part(&survival, 1, part) };
        let mut row = Judged::new((1, "f".into(), "c".into()), evidence, &survival);
        change(&mut row);
        row.is_suspect()
    }

    #[test]
    fn where_events_were_lost_few_bytes_or_what_is_reclaimed_are_no_lead() {
        assert!(lossy(512, |_| ()), "16 KiB");
        assert!(!lossy(511, |_| ()), "a byte of each less");
        assert!(!lossy(512, |row| row.is_reclaimable = true));
        assert!(!lossy(512, |row| row.evidence.freed = (2, 0)));
        assert!(!lossy(512, |row| row.evidence.verdict = Verdict::Grows), "no loss");
    }
}
