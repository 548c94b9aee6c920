//! The screen of `balance`.
//!
//! Rows come from `rows` (accounts), `free` (free memory) and `traced` (pages of the events); `sentence` has the words
//! of amounts and changes. A range is shown by its upper end, or by both ends where it includes 0. Memory in no account
//! is in the answer only if it is large for the machine.

use super::free::FreeMemory;
use super::holders;
use super::rows::{AccountRow, BalanceRows, PAGES_RECORD, PagePoolRow, PageUses};
use super::sentence::{free_sentence, sized};
use crate::render::look::Look;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{listed, share};
use crate::reports::info::CacheChange;
use crate::trace::accounts::{ACCOUNTS, REST, name_in_sentences};

/// The answer, accounts, caches, and the recording that shows more.
pub fn screen(rows: &BalanceRows, look: &Look) -> Screen {
    let mut screen = Screen { answer: answer(rows, look), ..Screen::default() };
    screen.table(accounts(rows, look));
    if let Some(pages) = &rows.pages {
        holders::answer(pages, look).into_iter().for_each(|sentence| screen.answer(sentence));
        screen.table(uses(pages));
        match &pages.groups {
            Some(groups) => holders::add_groups(&mut screen, groups, pages.has_stacks),
            None => holders::add(&mut screen, rows, pages),
        }
    }
    if let Some(pools) = rows.page_pools.as_deref().filter(|pools| !pools.is_empty()) {
        screen.table(pool_table(pools));
    }
    screen.table(caches(rows));
    let is_known = add_known(&mut screen, rows, look);
    let has_stacks = rows.pages.as_ref().is_some_and(|pages| pages.has_stacks);
    if has_stacks {
        screen.next("pages --by call_site,task", "all pages by call site and task");
    }
    if !is_known && (!has_stacks || rows.record != PAGES_RECORD) {
        let about = rows.largest_growth().map_or(REST, |row| row.account);
        let about = name_in_sentences(about);
        screen.lines(format!("Recording that shows who allocates ({about})"), vec![rows.record.to_owned()]);
    }
    notes(&mut screen, rows, look);
    screen
}

/// Adds the holder of the account that grew most, as far as this file has it, and the report that shows more; returns if it does.
fn add_known(screen: &mut Screen, rows: &BalanceRows, look: &Look) -> bool {
    let Some(largest) = rows.largest_growth().filter(|_| rows.is_compared) else { return false };
    if let Some(holder) = &rows.largest_holder {
        let of = match (holder.is_recorder, holder.account) {
            (true, "page_cache") => ", the recorder: the file of this recording",
            (true, _) => ", the recorder",
            _ => "",
        };
        // They may be more than the growth: older pages were freed.
        let is_part = i64::try_from(holder.bytes_live).is_ok_and(|bytes| bytes <= largest.change());
        let pages = match is_part {
            true => format!("pages of {}", Cell::Bytes(holder.bytes_live).shown(look)),
            false => "most pages".to_owned(),
        };
        screen.answer(format!(
            "Of {} ({}), {pages} that are still allocated are from {}{of}.",
            name_in_sentences(largest.account),
            Cell::BytesChange(largest.change()).shown(look),
            holder.task
        ));
        screen.next("tasks --sort live_pages", "tasks with most pages");
        return true;
    }
    let known = match largest.account {
        "slab_reclaimable" | "slab_unreclaimable" if rows.shown.has_slab_events => {
            ("callers --sort live", "call sites with most slab memory")
        }
        // Stacks are areas of vmalloc, or pages without events of areas.
        "vmalloc" | "kernel_stacks" if rows.shown.has_vmalloc_events => {
            ("vmalloc --sort live", "call sites with most vmalloc memory")
        }
        "percpu" if rows.shown.has_percpu_events => {
            ("percpu --sort live", "call sites with most percpu memory")
        }
        _ => return false,
    };
    screen.next(known.0, known.1);
    true
}

/// Free memory, what took or gave it, and the rest.
fn answer(rows: &BalanceRows, look: &Look) -> Vec<String> {
    let free = FreeMemory::of(rows);
    let mut answer: Vec<String> = free.iter().map(|free| free_sentence(free, look)).collect();
    if let Some(rest) = rows.account(REST).filter(|rest| is_notable(rest, rows)) {
        answer.push(rest_sentence(rest, rows, look));
    }
    vec![answer.join(" ")]
}

/// Memory in no account at the end, or what the accounts have beyond MemTotal.
fn rest_sentence(rest: &AccountRow, rows: &BalanceRows, look: &Look) -> String {
    let time = if rows.is_compared { " at the end" } else { "" };
    let size = sized(rest.bytes.saturating_abs(), look);
    let share = share(rest.bytes.unsigned_abs(), rows.total);
    let is_exact = rest.bytes_min == Some(rest.bytes);
    match (rest.bytes < 0, is_exact) {
        (true, _) => {
            let least = if is_exact { "" } else { "at least " };
            format!(
                "Accounts{time} add up to {least}{size} more than MemTotal ({share} of it): the kernel's counts were read while they changed."
            )
        }
        (false, true) => format!("In no account{time}: {size} ({share} of MemTotal)."),
        (false, false) => format!("In no account{time}: at most {size} ({share} of MemTotal)."),
    }
}

/// Share of MemTotal, as 1/N, below which memory in no account is as usual.
const USUAL: u64 = 20;

/// True if memory in no account says something: at one time, or where it or its change is large.
fn is_notable(rest: &AccountRow, rows: &BalanceRows) -> bool {
    let is_large = |bytes: i64| bytes.unsigned_abs().saturating_mul(USUAL) >= rows.total;
    let has_grown = rows.largest_growth().is_some_and(|largest| largest.account == REST);
    !rows.is_compared || has_grown || is_large(rest.bytes) || is_large(rest.change())
}

/// An amount, or its upper end.
fn amount(most: Option<i64>, least: Option<i64>, look: &Look) -> Cell {
    match most {
        None => Cell::Empty,
        Some(bytes) if least == Some(bytes) => {
            u64::try_from(bytes).map_or(Cell::BytesChange(bytes), Cell::Bytes)
        }
        Some(bytes) => Cell::text(format!("≤ {}", sized(bytes, look))),
    }
}

/// A change; of a range the upper end, or both ends if it includes 0.
fn change(row: &AccountRow, look: &Look) -> Cell {
    let Some((least, most)) = row.change_range() else { return Cell::Empty };
    let shown = |bytes: i64| Cell::BytesChange(bytes).shown(look);
    if row.change_with_unknown.is_some() {
        return Cell::text("unknown");
    }
    match row.is_change_exact() {
        true => Cell::BytesChange(most),
        false if includes_0(row) => Cell::text(format!("{} to {}", shown(least), shown(most))),
        false => Cell::About(Box::new(Cell::BytesChange(most))),
    }
}

/// True if the direction of a change is not known.
fn includes_0(row: &AccountRow) -> bool {
    row.change_range().is_some_and(|(least, most)| least <= 0 && most >= 0)
}

/// Accounts with memory, and MemTotal below them.
fn accounts(rows: &BalanceRows, look: &Look) -> Table {
    let mut columns = match rows.is_compared {
        true => vec![
            Column::name("account"),
            Column::number("begin").leaves(1),
            Column::number("end"),
            Column::number("change"),
            Column::number("of MemTotal"),
        ],
        false => vec![Column::name("account"), Column::number("bytes"), Column::number("of MemTotal")],
    };
    // Names of the kernel's texts.
    if look.wide {
        columns.push(Column::text("lines of /proc"));
    }
    let with_fields = |mut cells: Vec<Cell>, fields: &str| {
        if look.wide {
            cells.push(Cell::text(fields));
        }
        cells
    };
    let shown: Vec<&AccountRow> =
        rows.accounts.iter().filter(|row| !row.is_empty() || row.account == REST).collect();
    let mut table = Table::new("", columns).of(
        "account",
        "accounts",
        shown.len() + 1 + usize::from(rows.recording_buffers.is_some()),
    );
    let is_upper_end =
        |row: &&AccountRow| row.bytes_change.is_some() && !row.is_change_exact() && !includes_0(row);
    if shown.iter().any(is_upper_end) {
        table.explain(
            "change",
            "~ in change: a range, of which the upper end is shown; --json has both ends.",
        );
    }
    for row in shown {
        let end = amount(Some(row.bytes), row.bytes_min, look);
        let share = Cell::Percent(row.percent);
        let name = Cell::text(row.name);
        match rows.is_compared {
            true => {
                let begin = amount(row.bytes_before, row.bytes_min_before, look);
                table.row(with_fields(vec![name, begin, end, change(row, look), share], row.fields));
            }
            false => table.row(with_fields(vec![name, end, share], row.fields)),
        }
    }
    if let Some(buffers) = rows.recording_buffers {
        let name = Cell::text("of which ring buffers of this recording");
        let share = Cell::Percent(100.0 * buffers as f64 / rows.total.max(1) as f64);
        let bytes = || Cell::Bytes(buffers);
        let cells = vec![name, bytes(), bytes(), Cell::BytesChange(0), share];
        table.row(with_fields(cells, "record.buffers_kb of the file"));
    }
    let name = Cell::text("MemTotal");
    let (end, share) = (Cell::Bytes(rows.total), Cell::Percent(100.0));
    match rows.total_before {
        Some(before) => {
            let change = i128::from(rows.total) - i128::from(before);
            let change = Cell::BytesChange(i64::try_from(change).unwrap_or(i64::MAX));
            table.row(with_fields(vec![name, Cell::Bytes(before), end, change, share], "MemTotal"));
        }
        None => table.row(with_fields(vec![name, end, share], "MemTotal")),
    }
    table
}

/// Pages of the trace by use, beside the change of the accounts that have such pages.
fn uses(pages: &PageUses) -> Table {
    Table::of_rows("Pages allocated in the trace", &pages.uses)
        .of("use", "uses", pages.uses.len())
        .column(Column::name("use"), |row| Cell::text(row.r#use))
        .column(Column::number("allocated"), |row| Cell::bytes(row.bytes_alloc))
        .column(Column::number("still allocated"), |row| Cell::bytes(row.bytes_live))
        .column(Column::number("change of accounts"), |row| {
            row.bytes_change.map_or(Cell::Empty, Cell::BytesChange)
        })
        .explain(
            "change of accounts",
            "Change of accounts: of those that have such pages (--json names them). It includes pages allocated before the trace and freed in it.",
        )
        .into()
}

/// Pools that the screen shows.
const POOLS: usize = 8;

/// The table of page pools.
fn pool_table(pools: &[PagePoolRow]) -> Table {
    Table::of_rows("Pages of page pools (network buffers)", pools.iter().take(POOLS))
        .of("pool", "pools", pools.len())
        .column(Column::name("pool"), |row| Cell::text(format!("pool {}", row.pool)))
        .column(Column::text("task").leaves(1), |row| row.task.as_ref().map_or(Cell::Empty, Cell::text))
        .column(Column::number("still held"), |row| Cell::Bytes(row.bytes_held))
        .column(Column::number("taken").leaves(2), |row| Cell::Count(row.holds))
        .column(Column::number("given back").leaves(2), |row| Cell::Count(row.releases))
        .column(Column::number("older given back").leaves(3), |row| Cell::Count(row.releases_older))
        .into()
}

/// Caches that changed most.
fn caches(rows: &BalanceRows) -> Table {
    let caches = rows.caches.as_deref().unwrap_or_default();
    let active = |cache: &&CacheChange| {
        let change = Cell::Change(cache.active_change);
        if cache.active_estimated { Cell::About(Box::new(change)) } else { change }
    };
    let estimated = caches.iter().any(|cache| cache.active_estimated);
    let table = Table::of_rows("Slab caches that changed most", caches)
        .of("cache", "caches", rows.caches_total.unwrap_or(0))
        .column(Column::name("cache"), |cache| Cell::text(&cache.cache))
        .column(Column::number("begin").leaves(1), |cache| Cell::Bytes(cache.bytes_before))
        .column(Column::number("end").leaves(2), |cache| Cell::Bytes(cache.bytes_after))
        .column(Column::number("change"), |cache| Cell::BytesChange(cache.bytes_change))
        .column(Column::number("objects"), active);
    let legend =
        "~ in objects: an estimate of the kernel, for caches with more than 10,000 slabs (since 6.10).";
    if estimated { table.explain("objects", legend).into() } else { table.into() }
}

fn notes(screen: &mut Screen, rows: &BalanceRows, look: &Look) {
    if rows.shown.has_only_end {
        screen.note("No changes: the file has /proc/meminfo of its end alone, as a ring and a crash do.");
    }
    screen.note(
        "In no account: MemTotal without all accounts. It has pages of drivers, ring buffers, DMA and network buffers, which the kernel does not count by use.",
    );
    let is_open =
        |row: &&AccountRow| row.account != REST && row.bytes_min != Some(row.bytes) && !row.is_empty();
    let open: Vec<String> =
        rows.accounts.iter().filter(is_open).map(|row| name_in_sentences(row.account).to_owned()).collect();
    if !open.is_empty() {
        screen.note(format!(
            "≤: a part of {} may be in another account or outside of MemTotal (docs/balance.md).",
            listed(&open)
        ));
    }
    if !rows.unknown.is_empty() {
        let name = |key: &&str| {
            let account = ACCOUNTS.iter().find(|account| account.key == *key);
            account.map_or(String::new(), |account| format!("{} ({})", account.in_sentences, account.fields))
        };
        let names: Vec<String> = rows.unknown.iter().map(name).collect();
        let change =
            if rows.is_compared { " The change of in no account without them is unknown." } else { "" };
        screen.note(format!("Not in these texts, and so in no account: {}.{change}", listed(&names)));
    }
    if let Some(pages) = &rows.pages {
        if let Some(bytes) = pages.bytes_freed_older.filter(|bytes| *bytes > 0) {
            let bytes = Cell::Bytes(bytes).shown(look);
            screen.note(format!(
                "{bytes} of pages allocated before the trace were freed in it. Their use is unknown."
            ));
        }
    }
    if rows.total_before.is_some_and(|before| before != rows.total) {
        screen.note("MemTotal changed: memory was added or removed, or a balloon took or gave it.");
    }
}
