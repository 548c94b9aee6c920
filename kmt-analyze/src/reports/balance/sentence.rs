//! Sentences of free memory: its change, and the accounts that took it or gave it.
//!
//! `balance`, the first screen and `timeline --by account` have them. Free memory includes pages on per-CPU lists where the texts
//! have these.

use super::free::{AccountAmount, FreeChange, FreeMemory};
use super::holders;
use crate::render::look::Look;
use crate::render::screen::Cell;
use crate::render::words::{listed, share};
use crate::trace::accounts::{ANONYMOUS, PAGE_CACHE, REST, name_in_sentences};

/// Bytes as a cell shows them.
pub fn sized(bytes: i64, look: &Look) -> String {
    u64::try_from(bytes).map_or(Cell::BytesChange(bytes), Cell::Bytes).shown(look)
}

/// Free memory, its change, and the accounts that took it or gave it: `Free memory fell by 8.57 MiB to 300 MiB of 1.00 GiB: page
/// cache of files took 24.1 MiB; tmpfs gave back 10.0 MiB.`
pub fn free_sentence(free: &FreeMemory, look: &Look) -> String {
    let bytes = sized(free.bytes, look);
    let whole = sized(i64::try_from(free.total).unwrap_or(i64::MAX), look);
    let Some(change) = free.change() else {
        let account = |row: &AccountAmount| {
            let most = if row.is_maximum { "at most " } else { "" };
            format!("{} ({most}{})", name_in_sentences(row.account), sized(row.bytes, look))
        };
        let named: Vec<String> = free.accounts.iter().map(account).collect();
        let share = share(free.bytes.unsigned_abs(), free.total);
        let sentence = format!("{bytes} of {whole} are free ({share}).");
        return match named.as_slice() {
            [] => sentence,
            named => format!("{sentence} Largest accounts: {}.", listed(named)),
        };
    };
    let end = if change.bytes == 0 { ":" } else { " to" };
    let sentence = format!(
        "{}{end} {bytes} of {whole}{}{}",
        free_moved(&change, look),
        available(free, look),
        without_lists(&change, look)
    );
    let took = moves(free, look, "took", |bytes| bytes > 0);
    let gave = moves(free, look, "gave back", |bytes| bytes < 0);
    let parts = if change.bytes > 0 { [gave, took] } else { [took, gave] };
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let sentence =
        if parts.is_empty() { format!("{sentence}.") } else { format!("{sentence}: {}.", parts.join("; ")) };
    match &free.shown.sliced {
        Some(sliced) => format!("{sentence} {sliced}"),
        None => sentence,
    }
}

/// ` (21.3 GiB available)`: free memory alone looks like a shortage where page cache fills the rest; empty: it is about the same.
fn available(free: &FreeMemory, look: &Look) -> String {
    let more = |available: &u64| available / 2 > u64::try_from(free.bytes).unwrap_or(0);
    let available = free.mem_available.filter(more);
    available.map_or(String::new(), |bytes| format!(" ({} available)", Cell::Bytes(bytes).shown(look)))
}

fn moved(change: i64) -> &'static str {
    if change < 0 { "fell" } else { "grew" }
}

/// `Free memory fell by 848 KiB`, and what it lacks.
pub fn free_moved(change: &FreeChange, look: &Look) -> String {
    let lists = if change.has_lists { "" } else { " without pages on per-CPU lists" };
    match change.bytes {
        0 => format!("Free memory{lists} did not change"),
        bytes => format!("Free memory{lists} {} by {}", moved(bytes), sized(bytes.saturating_abs(), look)),
    }
}

/// `, with pages on per-CPU lists (MemFree alone grew by 145 MiB to 1.20 GiB)`; empty: it changed alike.
pub fn without_lists(change: &FreeChange, look: &Look) -> String {
    let Some(alone) = change.other_mem_free() else { return String::new() };
    let end = sized(change.mem_free, look);
    let alone = match alone {
        0 => format!("did not change: {end}"),
        _ => format!("{} by {} to {end}", moved(alone), sized(alone.saturating_abs(), look)),
    };
    format!(", with pages on per-CPU lists (MemFree alone {alone})")
}

/// The accounts that took memory, or those that gave it back, as a clause; `None`: none did.
fn moves(free: &FreeMemory, look: &Look, verb: &str, is_it: fn(i64) -> bool) -> Option<String> {
    let amount = |(number, row): (usize, &AccountAmount)| {
        let verb = if number == 0 { format!(" {verb}") } else { String::new() };
        let least = if row.is_minimum { "at least " } else { "" };
        let bytes = sized(row.bytes.saturating_abs(), look);
        format!("{}{verb} {least}{bytes}{}", in_words(free, row), of_it(free, row, look))
    };
    let rows = free.accounts.iter().filter(|row| is_it(row.bytes)).enumerate();
    let named: Vec<String> = rows.map(amount).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Unknown accounts in the sentence.
const UNKNOWN_NAMED: usize = 2;

/// Name of an account within a sentence. The rest has unknown accounts in it, which are named.
fn in_words(free: &FreeMemory, row: &AccountAmount) -> String {
    if row.account != REST {
        return name_in_sentences(row.account).to_owned();
    }
    if free.shown.unknown.is_empty() {
        return "memory in no account (drivers, ring buffers, network)".to_owned();
    }
    let named = free.shown.unknown.iter().take(UNKNOWN_NAMED);
    let mut names: Vec<String> = named.map(|key| name_in_sentences(key).to_owned()).collect();
    match free.shown.unknown.len().saturating_sub(UNKNOWN_NAMED) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    format!("memory in no account or not in these texts ({})", listed(&names))
}

/// Share of an account, as 1/N, from which a part of it is named.
const PART: u64 = 10;

/// The part of an account whose reason is known: the recording's own file, a task, or one cache.
fn of_it(free: &FreeMemory, row: &AccountAmount, look: &Look) -> String {
    if row.account == PAGE_CACHE {
        if let Some(own) = of_own_file(free, row, look) {
            return own;
        }
    }
    let Ok(bytes) = u64::try_from(row.bytes) else { return freed(free, row, look) };
    let shown = |part: u64| Cell::Bytes(part.min(bytes)).shown(look);
    let holder = free.shown.account_holders.iter().find(|holder| holder.account == row.account);
    match (row.account, holder, &free.shown.cache) {
        (REST, ..) => free.shown.holder.as_ref().map_or(String::new(), |holder| {
            let holder_bytes = holder.bytes_live.unwrap_or(0);
            let whose = holders::whose(holder);
            match is_part(holder_bytes, bytes) {
                // Older pages were freed, or the account has other pages: it is not a part of the change.
                true if holder_bytes > bytes => format!(" (most pages {whose})"),
                true => format!(" ({} of pages {whose})", Cell::Bytes(holder_bytes).shown(look)),
                false => String::new(),
            }
        }),
        (_, Some(holder), _) => {
            // Older pages may have been freed: then they are more than the change.
            let part = if holder.bytes_live > bytes { "most".to_owned() } else { shown(holder.bytes_live) };
            format!(" ({part} by {})", holder.task)
        }
        (account, None, Some((cache, theirs, growth)))
            if account == *theirs && is_part(*growth, bytes) && *growth <= bytes =>
        {
            format!(" ({cache} {})", shown(*growth))
        }
        _ => String::new(),
    }
}

/// True if a part is large enough to be named.
fn is_part(part: u64, bytes: u64) -> bool {
    part > 0 && part.saturating_mul(PART) >= bytes
}

/// The recording's own file, which is in the page cache: ` (68.4 MiB of it this recording's own file)`. Where it is more than the
/// change, other files gave back memory: ` (this recording's own file 522 MiB, others gave back 366 MiB)`.
fn of_own_file(free: &FreeMemory, row: &AccountAmount, look: &Look) -> Option<String> {
    let own = free.shown.own_file;
    if !is_part(own, row.bytes.unsigned_abs()) {
        return None;
    }
    let shown = |bytes: u64| Cell::Bytes(bytes).shown(look);
    let others = i128::from(own) - i128::from(row.bytes);
    let others = u64::try_from(others).unwrap_or(0);
    let file = "this recording's own file";
    Some(match row.bytes {
        0.. if others == 0 => format!(" ({} of it {file})", shown(own)),
        // The recorder has a few pages that are not of its file.
        bytes @ 0.. if others.saturating_mul(PART) < own => {
            format!(" ({} of it {file})", shown(own.min(bytes.unsigned_abs())))
        }
        0.. if row.is_minimum => format!(" ({file} {})", shown(own)),
        0.. => format!(" ({file} {}, others gave back {})", shown(own), shown(others)),
        _ => {
            let least = if row.is_minimum { "at least " } else { "" };
            format!(" ({file} took {}, others gave back {least}{})", shown(own), shown(others))
        }
    })
}

/// ` (200 MiB freed by bigone-28068)`: of anonymous memory that was given back.
fn freed(free: &FreeMemory, row: &AccountAmount, look: &Look) -> String {
    let found = free.shown.freed.as_ref().filter(|_| row.account == ANONYMOUS && row.bytes < 0);
    found.map_or(String::new(), |found| {
        format!(" ({} freed by {})", Cell::Bytes(found.bytes).shown(look), found.task)
    })
}
