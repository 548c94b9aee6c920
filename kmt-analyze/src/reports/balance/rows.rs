//! Rows of `balance`: accounts at one time or at two, and the caches that changed most.
//!
//! Input are the texts of /proc that a recording has or a user saved (`trace::accounts`). `compute` makes one row an
//! account, with bounds where memory may be in two accounts, and the row of the memory in no account. `text` makes the
//! screen, `traced` adds the parts that need events.

use serde::Serialize;

use crate::failure::Result;
use crate::reports::common::labels::Symbol;
use crate::reports::common::rows::Address;
use crate::reports::common::sliced;
use crate::reports::grouped::GroupTable;
use crate::reports::info::{CacheChange, cache_changes};
use crate::trace::accounts::{ACCOUNTS, Balance, FREE_ACCOUNTS, REST, Texts, attached, clamped};
use crate::trace::session::Session;

/// Rows of `balance`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BalanceRows {
    /// True if there are two times.
    pub is_compared: bool,
    /// MemTotal at the begin, in bytes; `null`: there is one time.
    pub total_before: Option<u64>,
    /// MemTotal at the end, or at the only time.
    pub total: u64,
    /// MemAvailable at the end, or at the only time; `null`: the kernel does not report it.
    pub mem_available: Option<u64>,
    /// Accounts that do not overlap, and `in_no_account` last: MemTotal less all accounts. Accounts that are not reported are left
    /// out, see `unknown`.
    pub accounts: Vec<AccountRow>,
    /// Accounts that the texts do not report: their memory is in `in_no_account`, the lower end of which is then unknown, and the
    /// change.
    pub unknown: Vec<&'static str>,
    /// Number of caches that changed; `null`: slabinfo is not there twice, or the page size is unknown.
    pub caches_total: Option<usize>,
    /// Caches of /proc/slabinfo that changed, the largest change of bytes first.
    pub caches: Option<Vec<CacheChange>>,
    /// Pages that the trace saw allocated, by use; `null`: no trace, without events of pages, or a file with survivors, which has
    /// sums in place of events.
    pub pages: Option<PageUses>,
    /// Page pools of the network, the most memory still held first; `null`: page_pool:page_pool_state_hold was not recorded,
    /// or a file with survivors.
    pub page_pools: Option<Vec<PagePoolRow>>,
    /// Memory of the ring buffers of the recording, in bytes, which is in `in_no_account` at both times: they were allocated before
    /// the begin and are freed after the end. `null`: no recording, or not stored.
    pub recording_buffers: Option<u64>,
    /// The task that allocated most of the pages of the account that grew most; `null`: no account grew, no trace, or no task has a
    /// quarter of the growth.
    pub largest_holder: Option<AccountHolderRow>,
    /// Facts that only the screen has.
    #[serde(skip)]
    pub shown: BalanceShown,
    /// A command whose recording shows who allocates the memory that changed most.
    pub record: &'static str,
}

/// Facts that only the screen has. Of an account whose events are in the trace, this file has the allocations.
#[derive(Debug, Clone, Default)]
pub struct BalanceShown {
    /// The sentence on a file that is a part of a recording: the accounts are of the whole; `None`: it is not.
    pub sliced: Option<String>,
    /// True if the trace has events of slab memory.
    pub has_slab_events: bool,
    /// True if it has events of vmalloc areas.
    pub has_vmalloc_events: bool,
    /// True if it has events of percpu memory.
    pub has_percpu_events: bool,
    /// True if a recording has the texts of its end alone.
    pub has_only_end: bool,
}

/// The task with most pages of an account.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountHolderRow {
    /// Account.
    pub account: &'static str,
    /// The task, and its id.
    pub task: String,
    /// Bytes of pages that it allocated in the trace and that are still allocated.
    pub bytes_live: u64,
    /// True if it is the recorder: page cache is that of the file that it wrote.
    pub is_recorder: bool,
}

/// Pages by use.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageUses {
    /// Bytes of pages allocated before the trace and freed in it, whose use is unknown; `null`: frees were not recorded.
    pub bytes_freed_older: Option<u64>,
    /// True if allocations of pages have stacks: uses are by stack, and holders are call sites; else by flags, and tasks.
    pub has_stacks: bool,
    /// Uses, the most memory still allocated first.
    pub uses: Vec<PageUseRow>,
    /// Number of holders of pages that are in no account, or whose use is unknown.
    pub holders_total: usize,
    /// These holders, the most memory still allocated first.
    pub holders: Vec<PageHolderRow>,
    /// With --by: all pages by its keys, the most memory still allocated first.
    #[serde(flatten)]
    pub groups: Option<GroupTable<PageGroupRow>>,
}

/// Pages of one group of --by.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageGroupRow {
    /// Use of most of the pages.
    pub r#use: &'static str,
    /// Number of uses.
    pub uses_total: usize,
    /// Bytes allocated in the trace.
    pub bytes_alloc: u64,
    /// Bytes of them still allocated at the end; `null`: frees were not recorded.
    pub bytes_live: Option<u64>,
    /// Bytes of these that are in no account, or whose use is not known; `null`: frees were not recorded.
    pub bytes_live_in_no_account: Option<u64>,
}

/// Pages of one holder that are in no account, as far as their use is known.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageHolderRow {
    /// Use of the pages: `network buffers`, `drivers and other modules` ...; `kernel`: kernel memory of any use.
    pub r#use: &'static str,
    /// Bytes allocated in the trace; `null`: pages that were freed soon are in the file as sums, which have no holder.
    pub bytes_alloc: Option<u64>,
    /// Bytes of them still allocated at the end; `null`: frees were not recorded.
    pub bytes_live: Option<u64>,
    /// Address of the call site: the innermost function outside of allocators, DMA and buffer functions; `null`: no stack.
    pub call_site: Option<Address>,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Module of the call site, `[kernel]` for the core kernel; `null`: unknown.
    pub module: Option<String>,
    /// The task that allocated most of the pages, and its id.
    pub task: String,
    /// Number of tasks that allocated some; without pages that are in the file as sums.
    pub tasks_total: usize,
}

/// Pages of one use.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageUseRow {
    /// Use of the pages, by the stack of the allocation or its flags: `page cache`, `slab`, `network buffers` ...; `kernel`: kernel
    /// memory of any use.
    pub r#use: &'static str,
    /// Bytes allocated in the trace; `null`: uses are by stack, and pages that were freed soon are in the file as sums, which have
    /// no stack.
    pub bytes_alloc: Option<u64>,
    /// Bytes of them still allocated at the end; `null`: frees were not recorded.
    pub bytes_live: Option<u64>,
    /// Accounts that have such pages.
    pub accounts: &'static [&'static str],
    /// Change of these accounts; of a range the end nearest to 0. `null`: unknown, or they also have pages of other uses.
    pub bytes_change: Option<i64>,
}

/// One pool of pages for packets.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PagePoolRow {
    /// Number of the pool, in the order of their first events.
    pub pool: usize,
    /// The task that took most pages into the pool; `null`: none was taken in the trace.
    pub task: Option<String>,
    /// Bytes of pages taken in the trace that the pool still counts: in the pool or in packets.
    pub bytes_held: u64,
    /// Pages taken in the trace, by events.
    pub holds: u64,
    /// Pages given back.
    pub releases: u64,
    /// Those of them that the pool took before the trace.
    pub releases_older: u64,
}

/// One account. Its memory is between `bytes_min` and `bytes`, which differ where a part may be in another account or outside of
/// MemTotal.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountRow {
    /// Account.
    pub account: &'static str,
    /// Name on screens.
    pub name: &'static str,
    /// Lines of the kernel's texts that it is made of.
    pub fields: &'static str,
    /// Bytes at the begin, at most; `null`: there is one time.
    pub bytes_before: Option<i64>,
    /// Bytes of the account at the begin, at least; `null`: there is one time, or, of `in_no_account`, an account is
    /// unknown.
    pub bytes_min_before: Option<i64>,
    /// Bytes at the end, at most. Negative: counts were read while they changed.
    pub bytes: i64,
    /// Bytes of the account at the end, at least; `null`: of `in_no_account`, an account is unknown.
    pub bytes_min: Option<i64>,
    /// Change, at most; `null`: there is one time. Of `in_no_account` also `null` if an account is unknown: its change is in that of
    /// `bytes`, and is not bounded.
    pub bytes_change: Option<i64>,
    /// Change of the bytes of the account, at least; `null`: there is one time, or, of `in_no_account`, an
    /// account is unknown.
    pub bytes_change_min: Option<i64>,
    /// Smallest and largest change of `in_no_account` and unknown accounts together; `None`: there are none of these.
    #[serde(skip)]
    pub change_with_unknown: Option<(i64, i64)>,
    /// Share of `bytes` in MemTotal at the end, in percent.
    pub percent: f64,
}

/// Columns of the accounts as a table.
pub const COLUMNS: [&str; 10] = [
    "account",
    "name",
    "fields",
    "bytes_before",
    "bytes_min_before",
    "bytes",
    "bytes_min",
    "bytes_change",
    "bytes_change_min",
    "percent",
];

impl AccountRow {
    /// True if it had no memory at either time.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0 && self.bytes_before.unwrap_or(0) == 0
    }

    /// Smallest and largest change, of the rest with that of unknown accounts; `None`: there is one time.
    pub fn change_range(&self) -> Option<(i64, i64)> {
        self.change_with_unknown.or_else(|| self.bytes_change_min.zip(self.bytes_change))
    }

    /// Change that is certain: the end of a range that is nearest to 0, or 0 inside of it.
    pub fn change(&self) -> i64 {
        match self.change_range() {
            Some((least @ 1.., _)) => least,
            Some((_, most @ ..0)) => most,
            _ => 0,
        }
    }

    /// True if the change is one number.
    pub fn is_change_exact(&self) -> bool {
        self.change_range().is_none_or(|(least, most)| least == most)
    }
}

impl BalanceRows {
    /// Row of an account.
    pub fn account(&self, key: &str) -> Option<&AccountRow> {
        self.accounts.iter().find(|row| row.account == key)
    }

    /// The account that grew most, of those that are not free memory; of one time, what is in no account.
    pub fn largest_growth(&self) -> Option<&AccountRow> {
        if !self.is_compared {
            return self.account(REST);
        }
        let taken = self.accounts.iter().filter(|row| !FREE_ACCOUNTS.contains(&row.account));
        taken.max_by_key(|row| row.change()).filter(|row| row.change() > 0)
    }
}

/// Rows of one time, or of the changes between two; `caches_max` caches at most.
pub fn compute(before: Option<Texts>, after: Texts, caches_max: usize) -> BalanceRows {
    let (first, last, caches, after) = match before {
        Some(before) => {
            let (before, after) = Texts::of_two(before, after);
            let [first, last] = Balance::of_two(&before, &after);
            (Some(first), last, changed_caches(&before, &after), after)
        }
        None => (None, Balance::of(&after), None, after),
    };
    let mut rows = BalanceRows {
        is_compared: first.is_some(),
        total_before: first.as_ref().map(|first| first.total),
        total: last.total,
        mem_available: after.available(),
        accounts: accounts(first.as_ref(), &last),
        unknown: unknown(&last),
        caches_total: caches.as_ref().map(Vec::len),
        caches: caches.map(|caches| caches.into_iter().take(caches_max).collect()),
        pages: None,
        page_pools: None,
        recording_buffers: None,
        largest_holder: None,
        shown: BalanceShown::default(),
        record: "",
    };
    rows.record = record_command(rows.largest_growth().map_or(REST, |row| row.account));
    rows
}

/// Rows of a recording, from its texts of the begin and of the end; `None`: it does not have them.
pub fn of_recording(session: &Session<'_>, caches_max: usize) -> Result<Option<BalanceRows>> {
    let (metadata, name) = (session.trace.metadata(), session.path.display().to_string());
    let page_size = session.trace.header().page_size;
    let [before, after] = ["before", "after"].map(|when| attached(metadata, when));
    if !before.contains_key("meminfo") || !after.contains_key("meminfo") {
        return Ok(None);
    }
    let [before, after] = [before, after].map(|saved| Texts::parse(&name, &saved, page_size));
    let mut rows = compute(Some(before?), after?, caches_max);
    let kib: Option<u64> = metadata.text("record.buffers_kb").and_then(|number| number.parse().ok());
    rows.recording_buffers = kib.and_then(|kib| kib.checked_mul(1 << 10));
    rows.shown.sliced = sliced::sentence(session);
    Ok(Some(rows))
}

/// Rows of the end of a recording, which lacks the texts of its begin: a ring; `None`: it lacks those of the end too.
pub fn of_end(session: &Session<'_>, caches_max: usize) -> Result<Option<BalanceRows>> {
    let (metadata, name) = (session.trace.metadata(), session.path.display().to_string());
    let after = attached(metadata, "after");
    if !after.contains_key("meminfo") {
        return Ok(None);
    }
    let after = Texts::parse(&name, &after, session.trace.header().page_size)?;
    let mut rows = compute(None, after, caches_max);
    rows.shown.has_only_end = true;
    rows.shown.sliced = sliced::sentence(session);
    Ok(Some(rows))
}

fn accounts(first: Option<&Balance>, last: &Balance) -> Vec<AccountRow> {
    let percent = |bytes: i64| 100.0 * bytes as f64 / last.total.max(1) as f64;
    let mut rows = Vec::new();
    for (index, account) in ACCOUNTS.iter().enumerate() {
        let Some(amount) = last.amounts.get(index).copied().flatten() else { continue };
        let earlier = first.and_then(|first| first.amounts.get(index).copied().flatten());
        let change = earlier.map(|earlier| earlier.change_to(&amount));
        let bytes = clamped(amount.most.into());
        rows.push(AccountRow {
            account: account.key,
            name: account.name,
            fields: account.fields,
            bytes_before: earlier.map(|amount| clamped(amount.most.into())),
            bytes_min_before: earlier.map(|amount| clamped(amount.least().into())),
            bytes,
            bytes_min: Some(clamped(amount.least().into())),
            bytes_change: change.map(|change| clamped(change.1)),
            bytes_change_min: change.map(|change| clamped(change.0)),
            change_with_unknown: None,
            percent: percent(bytes),
        });
    }
    let (before, rest) = (first.map(Balance::rest), last.rest());
    let change = first.map(|first| first.rest_change(last));
    rows.push(AccountRow {
        account: REST,
        name: "in no account",
        fields: "MemTotal - all accounts",
        bytes_before: before.map(|before| before.1),
        bytes_min_before: before.and_then(|before| before.0),
        bytes: rest.1,
        bytes_min: rest.0,
        bytes_change: change.filter(|_| last.is_whole()).map(|change| change.1),
        bytes_change_min: change.filter(|_| last.is_whole()).map(|change| change.0),
        change_with_unknown: change.filter(|_| !last.is_whole()),
        percent: percent(rest.1),
    });
    rows
}

/// Keys of accounts that are not reported.
fn unknown(balance: &Balance) -> Vec<&'static str> {
    let amounts = ACCOUNTS.iter().zip(&balance.amounts);
    amounts.filter(|(_, amount)| amount.is_none()).map(|(account, _)| account.key).collect()
}

fn changed_caches(before: &Texts, after: &Texts) -> Option<Vec<CacheChange>> {
    let page_size = after.page_size()?;
    Some(cache_changes(before.caches()?, after.caches()?, page_size))
}

/// The recording that has the call sites of pages.
pub const PAGES_RECORD: &str = "kmt-capture record -p pages -d 60s -o who.kmt";

/// The recording that has the call sites of slab memory.
pub const SLAB_RECORD: &str =
    "kmt-capture record -p slab --stack kmem:kmalloc --stack kmem:kmem_cache_alloc -d 60s -o who.kmt";

/// The recording that shows who allocates memory of an account.
fn record_command(account: &str) -> &'static str {
    match account {
        "slab_reclaimable" | "slab_unreclaimable" => SLAB_RECORD,
        "vmalloc" | "kernel_stacks" | "percpu" => "kmt-capture record -p all -d 60s -o who.kmt",
        _ => PAGES_RECORD,
    }
}
