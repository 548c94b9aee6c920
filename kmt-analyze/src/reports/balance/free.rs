//! Free memory of a balance, its change, and the accounts that took it or gave it.
//!
//! Free memory is MemFree of /proc/meminfo and the pages on per-CPU lists, which only /proc/zoneinfo has. The two texts are read one
//! after the other.

use serde::Serialize;

use super::freed::FreedPart;
use super::rows::{AccountHolderRow, AccountRow, BalanceRows, PageHolderRow};
use crate::sort_rows::SortRows;
use crate::trace::accounts::{ANONYMOUS, CPU_LISTS, FREE, FREE_ACCOUNTS, REST};

/// Accounts that are named beside free memory.
const NAMED: usize = 4;

/// Accounts whose holders are named.
const HELD: [&str; 3] = [REST, ANONYMOUS, "shmem"];

/// Share of the largest change, as 1/N, below which others say little.
const SMALL: u64 = 50;

/// Free memory, with that in per-CPU lists, and the accounts that took it or gave it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FreeMemory {
    /// MemTotal at the end, in bytes.
    pub total: u64,
    /// Free bytes at the end, or at the only time: MemFree, and pages in per-CPU lists where zoneinfo has them.
    pub bytes: i64,
    /// Change of the free bytes; `null`: there is one time.
    pub bytes_change: Option<i64>,
    /// MemFree of /proc/meminfo alone, at the end or at the only time: without pages in per-CPU lists.
    pub mem_free: i64,
    /// Change of MemFree in bytes; `null`: there is one time.
    pub mem_free_change: Option<i64>,
    /// MemAvailable of /proc/meminfo at the end or at the only time; `null`: the kernel does not report it.
    pub mem_available: Option<u64>,
    /// Accounts that changed most, in both directions, the largest change first; of one time the largest accounts, by
    /// the bytes that are certainly theirs.
    pub accounts: Vec<AccountAmount>,
    /// Facts that only the screen has.
    #[serde(skip)]
    pub shown: FreeShown,
}

/// Facts on free memory that only the screen has.
#[derive(Debug, Default)]
pub struct FreeShown {
    /// Accounts that are not reported.
    pub unknown: Vec<&'static str>,
    /// The cache that grew most, its account, and its growth, where they are known.
    pub cache: Option<(String, &'static str, u64)>,
    /// Bytes of page cache of the recording's own file.
    pub own_file: u64,
    /// The holder of most pages that are in no account, if memory in no account is named.
    pub holder: Option<PageHolderRow>,
    /// The holders of most pages of the account that grew most, and of anonymous memory if it grew.
    pub account_holders: Vec<AccountHolderRow>,
    /// The task that freed most memory from before the recording, where anonymous memory gave back some.
    pub freed: Option<FreedPart>,
    /// The file is a part of a recording: the accounts are of the whole.
    pub sliced: Option<String>,
}

/// An account beside free memory.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountAmount {
    /// Account, as in `balance`.
    pub account: &'static str,
    /// Name on screens.
    pub name: &'static str,
    /// Change in bytes, of a range the end nearest to 0; of one time the bytes. Of `in_no_account` it is that with unknown accounts.
    pub bytes: i64,
    /// True if the change can be larger.
    pub is_minimum: bool,
    /// True if there is one time, and its bytes can be fewer.
    pub is_maximum: bool,
}

/// Difference in bytes from which the change of MemFree is named beside that of free memory.
const LISTS_LARGE: u64 = 16 << 20;

/// Smaller difference from which it is named if it is also a large share of the change: counters of the kernel are batched by
/// CPU, so that less than a MiB may be their error alone.
const LISTS_NOTABLE: u64 = 1 << 20;

/// Share of the change, as 1/N, that is large.
const LISTS_SHARE: u64 = 20;

/// Change of free memory: with pages on per-CPU lists, and of MemFree alone.
#[derive(Debug, Clone, Copy)]
pub struct FreeChange {
    /// Change of MemFree and of pages on per-CPU lists.
    pub bytes: i64,
    /// MemFree at the end.
    pub mem_free: i64,
    pub mem_free_change: i64,
    /// True if pages on per-CPU lists are known.
    pub has_lists: bool,
}

impl FreeChange {
    /// The change of MemFree, where it differs notably from that of free memory: pages moved to per-CPU lists or from them.
    pub fn other_mem_free(&self) -> Option<i64> {
        let (all, alone) = (self.bytes, self.mem_free_change);
        let by = all.abs_diff(alone);
        let is_other_direction = all.signum() * alone.signum() < 0;
        let is_large_share = by >= LISTS_NOTABLE && by.saturating_mul(LISTS_SHARE) > all.unsigned_abs();
        (is_other_direction || by > LISTS_LARGE || is_large_share).then_some(alone)
    }
}

impl FreeMemory {
    /// Free memory of a balance; `None`: it is not reported.
    pub fn of(rows: &BalanceRows) -> Option<Self> {
        let parts: Vec<&AccountRow> = FREE_ACCOUNTS.iter().filter_map(|key| rows.account(key)).collect();
        let mem_free = rows.account(FREE)?;
        let sum = |of: fn(&AccountRow) -> i64| parts.iter().map(|row| of(row)).fold(0, i64::saturating_add);
        let (bytes, change) = (sum(|row| row.bytes), sum(AccountRow::change));
        let amount = |row: &AccountRow| if rows.is_compared { row.change() } else { row.bytes };
        // Most of CMA in use, say, are pages that other accounts have: its upper end makes it no large account. The rest has no
        // lower end if an account is unknown.
        let certain = |row: &AccountRow| row.bytes_min.unwrap_or(row.bytes);
        let size = |row: &AccountRow| match rows.is_compared {
            true => row.change().unsigned_abs(),
            false => u64::try_from(certain(row)).unwrap_or(0),
        };
        let others = rows.accounts.iter().filter(|row| !FREE_ACCOUNTS.contains(&row.account));
        let mut most: Vec<&AccountRow> = others.collect();
        most.sort_rows_by_key(|row| std::cmp::Reverse(size(row)));
        let least = most.first().map_or(0, |row| size(row) / SMALL);
        most.retain(|row| size(row) > least);
        let account = |row: &AccountRow| AccountAmount {
            account: row.account,
            name: row.name,
            bytes: amount(row),
            is_minimum: rows.is_compared && !row.is_change_exact(),
            is_maximum: !rows.is_compared && row.bytes_min != Some(row.bytes),
        };
        Some(Self {
            total: rows.total,
            bytes,
            bytes_change: rows.is_compared.then_some(change),
            mem_free: mem_free.bytes,
            mem_free_change: rows.is_compared.then(|| mem_free.change()),
            mem_available: rows.mem_available,
            accounts: most.into_iter().take(NAMED).map(account).collect(),
            shown: FreeShown {
                unknown: rows.unknown.clone(),
                sliced: rows.shown.sliced.clone(),
                ..FreeShown::default()
            },
        })
    }

    /// Change of free memory; `None`: there is one time.
    pub fn change(&self) -> Option<FreeChange> {
        Some(FreeChange {
            bytes: self.bytes_change?,
            mem_free: self.mem_free,
            mem_free_change: self.mem_free_change?,
            has_lists: !self.shown.unknown.contains(&CPU_LISTS),
        })
    }

    /// True if the holder of pages of an account that took some of it is of interest: of memory in no account, of anonymous memory
    /// and of tmpfs. A part of a recording does not have all holders.
    pub fn names_holders(&self) -> bool {
        let is_named = |row: &AccountAmount| HELD.contains(&row.account) && row.bytes > 0;
        self.bytes_change.is_some() && self.shown.sliced.is_none() && self.accounts.iter().any(is_named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    #[test]
    fn the_change_of_mem_free_is_named_where_it_is_another_one() {
        let of = |all: i64, alone: i64| {
            let free = FreeMemory {
                total: 1 << 32,
                bytes: 1 << 30,
                bytes_change: Some(all),
                mem_free: 1 << 29,
                mem_free_change: Some(alone),
                mem_available: None,
                accounts: Vec::new(),
                shown: FreeShown::default(),
            };
            free.change().unwrap().other_mem_free()
        };
        assert_eq!(of(-421 * MIB, 145 * MIB), Some(145 * MIB), "another direction");
        assert_eq!(of(-4_096, 4_096), Some(4_096), "another direction");
        assert_eq!(of(-2_000 * MIB, -2_017 * MIB), Some(-2_017 * MIB), "more than 16 MiB");
        assert_eq!(of(-20 * MIB, -22 * MIB), Some(-22 * MIB), "more than 5 %");
        for alike in [(-421 * MIB, -420 * MIB), (-2_000 * MIB, -2_015 * MIB), (8_192, 4_096), (0, 4_096)] {
            assert_eq!(of(alike.0, alike.1), None, "{alike:?}");
        }
    }
}
