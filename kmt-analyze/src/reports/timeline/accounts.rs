//! `timeline --by account`: the kernel's accounts of memory at each reading, and what is in no account.
//!
//! Readings are `trace/accounts/series`; rows, and the screen of them, are made here.

use serde::Serialize;

use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, listed};
use crate::reports::balance::{FreeChange, free_moved, without_lists};
use crate::reports::common::{ReportContext, View};
use crate::sort_rows::SortRows;
use crate::trace::accounts::{ACCOUNTS, CPU_LISTS, FREE, FREE_ACCOUNTS, REST, Readings, Recording, clamped};
use crate::trace::sliced::Sliced;

/// Accounts over time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountTimes {
    /// Each account at each reading, by time, in the order of docs/balance.md; `in_no_account` is the last one of a time. The
    /// `bytes_min` of accounts and the `bytes` of `in_no_account` are MemTotal.
    pub amounts: Vec<AccountAt>,
    /// Accounts that a reading lacks: their memory is in `in_no_account`.
    pub unknown: Vec<&'static str>,
    /// Number of readings.
    pub readings: usize,
    /// Readings that are left out, as their texts cannot be parsed.
    pub readings_unread: usize,
}

/// One account at one time.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountAt {
    /// Account.
    pub account: &'static str,
    /// Name on screens.
    pub name: &'static str,
    /// Time after it was read, in the clock's unit.
    pub time: u64,
    /// Bytes, at most. Negative: counts were read while they changed.
    pub bytes: i64,
    /// Bytes at least; `null`: unknown.
    pub bytes_min: Option<i64>,
    /// MemTotal at that time.
    pub total: u64,
}

/// Readings of the selected time.
pub fn readings(context: &ReportContext<'_, '_>) -> Readings {
    let session = context.session;
    let trace = session.trace;
    let first = session.first_time().unwrap_or(0);
    // A part of a recording has the texts of its begin and its end.
    let whole = Sliced::of(trace.metadata()).and_then(|sliced| sliced.whole);
    let recording = Recording {
        name: session.path.display().to_string(),
        metadata: trace.metadata(),
        page_size: trace.header().page_size,
        span: whole.unwrap_or((first, session.last_time().unwrap_or(first))),
    };
    let selection = context.selection;
    Readings::of(&recording, selection.has_window().then(|| selection.span(session)))
}

/// Rows of readings.
pub fn compute(readings: &Readings) -> AccountTimes {
    let mut amounts = Vec::new();
    for reading in &readings.readings {
        let (time, total) = (reading.time, reading.balance.total);
        for (account, amount) in ACCOUNTS.iter().zip(&reading.balance.amounts) {
            let Some(amount) = amount else { continue };
            let (bytes, least) = (clamped(amount.most.into()), clamped(amount.least().into()));
            let (account, name) = (account.key, account.name);
            amounts.push(AccountAt { account, name, time, bytes, bytes_min: Some(least), total });
        }
        let (least, most) = reading.balance.rest();
        let (account, name) = (REST, "in no account");
        amounts.push(AccountAt { account, name, time, bytes: most, bytes_min: least, total });
    }
    let first = readings.readings.first();
    let unknown = first.map_or(Vec::new(), |reading| {
        let all = ACCOUNTS.iter().zip(&reading.balance.amounts);
        all.filter(|(_, amount)| amount.is_none()).map(|(account, _)| account.key).collect()
    });
    AccountTimes { amounts, unknown, readings: readings.readings.len(), readings_unread: readings.unread }
}

/// One account at all times.
pub struct AccountLine<'r> {
    pub account: &'static str,
    pub name: &'static str,
    pub at: Vec<&'r AccountAt>,
}

impl<'r> AccountLine<'r> {
    /// The account at the reading of that number.
    fn reading(&self, number: usize) -> Option<&'r AccountAt> {
        self.at.get(number).copied()
    }

    /// Largest amount, and its time.
    pub fn highest(&self) -> Option<&AccountAt> {
        self.at.iter().rev().max_by_key(|at| at.bytes).copied()
    }

    fn first(&self) -> i64 {
        self.at.first().map_or(0, |at| at.bytes)
    }

    fn last(&self) -> i64 {
        self.at.last().map_or(0, |at| at.bytes)
    }

    fn change(&self) -> i64 {
        self.last().saturating_sub(self.first())
    }

    /// Difference of the largest and the smallest amount.
    fn movement(&self) -> u64 {
        let bytes = || self.at.iter().map(|at| at.bytes);
        bytes().max().unwrap_or(0).abs_diff(bytes().min().unwrap_or(0))
    }

    /// Largest amounts of equal parts of the readings, as many as fit.
    fn sparkline(&self) -> Vec<u64> {
        let each = self.at.len().div_ceil(SPARKS_MAX).max(1);
        let most = |part: &[&AccountAt]| part.iter().map(|at| at.bytes.max(0) as u64).max().unwrap_or(0);
        self.at.chunks(each).map(most).collect()
    }
}

impl AccountTimes {
    /// Lines of all accounts, in their order.
    pub fn lines(&self) -> Vec<AccountLine<'_>> {
        let width = self.amounts.len() / self.readings.max(1);
        let first = self.amounts.iter().take(width);
        let line = |(index, at): (usize, &AccountAt)| AccountLine {
            account: at.account,
            name: at.name,
            at: self.amounts.iter().skip(index).step_by(width.max(1)).collect(),
        };
        first.enumerate().map(line).collect()
    }
}

/// One reading has no changes.
pub const ONE_READING: &str =
    "One reading of the kernel's accounts; --snapshot-every 5s of kmt-capture record makes more.";

/// Characters of a sparkline at most.
const SPARKS_MAX: usize = 20;
/// Columns of accounts beside free memory and the rest.
const MOVED: usize = 2;

/// The answer, all accounts, and the readings, of which at most `steps` are shown.
pub fn screen(rows: &AccountTimes, first_fault: Option<&str>, steps: usize, view: &View) -> Screen {
    let lines: Vec<AccountLine<'_>> = rows
        .lines()
        .into_iter()
        .filter(|line| line.account == REST || line.movement() > 0 || line.last() != 0)
        .collect();
    let mut screen = Screen::new(answer(&lines, rows, view));
    screen.table(accounts(&lines, rows.readings > 1));
    if rows.readings > 1 {
        screen.table(times(&lines, rows, steps, view));
    }
    screen.note(
        "Amounts are the largest possible: a part of some accounts may be in another one or outside of MemTotal (docs/balance.md).",
    );
    if !rows.unknown.is_empty() {
        let name = |key: &&str| {
            ACCOUNTS.iter().find(|account| account.key == *key).map(|account| account.in_sentences.to_owned())
        };
        let names: Vec<String> = rows.unknown.iter().filter_map(name).collect();
        screen.note(format!("Not in all readings, and so in no account: {}.", listed(&names)));
    }
    if let Some(fault) = first_fault {
        let number = counted(rows.readings_unread as u64, "reading is", "readings are");
        screen.note(format!("{number} left out: {fault}."));
    }
    if rows.readings == 2 {
        screen.note("The recording has readings of its begin and its end: --snapshot-every 5s of kmt-capture record adds more.");
    }
    screen.next("balance", "begin and end, and who allocates");
    if rows.readings > 1 {
        screen.next("chart balance -o balance.svg", "the same as a picture");
    }
    screen
}

fn bytes(bytes: i64) -> Cell {
    u64::try_from(bytes).map_or(Cell::BytesChange(bytes), Cell::Bytes)
}

/// Free memory and the rest, at the first reading and the last one.
fn answer(lines: &[AccountLine<'_>], rows: &AccountTimes, view: &View) -> String {
    let shown = |amount: i64| bytes(amount).shown(&view.look);
    let find = |account: &str| lines.iter().find(|line| line.account == account);
    if rows.readings == 1 {
        let sum = FREE_ACCOUNTS.iter().filter_map(|account| find(account)).map(AccountLine::last);
        let free = shown(sum.fold(0, i64::saturating_add));
        let rest = find(REST)
            .map_or(String::new(), |rest| format!(" In no account: at most {}.", shown(rest.last())));
        return format!("{ONE_READING} {free} are free.{rest}");
    }
    let free = find(FREE).map(|free| {
        let parts = FREE_ACCOUNTS.iter().filter_map(|account| find(account));
        let change = FreeChange {
            bytes: parts.map(AccountLine::change).fold(0, i64::saturating_add),
            mem_free: free.last(),
            mem_free_change: free.change(),
            has_lists: !rows.unknown.contains(&CPU_LISTS),
        };
        format!(
            "{} between the first and the last of {}{}. ",
            free_moved(&change, &view.look),
            counted(rows.readings as u64, "reading", "readings"),
            without_lists(&change, &view.look)
        )
    });
    let rest = find(REST).map(|rest| {
        let highest = rest
            .highest()
            .map_or(String::new(), |at| format!(", highest at {} ({})", view.time(at.time), shown(at.bytes)));
        format!(
            "In no account: at most {} first and {} last{highest}.",
            shown(rest.first()),
            shown(rest.last())
        )
    });
    free.unwrap_or_default() + &rest.unwrap_or_default()
}

/// Accounts at the first reading and the last; of one reading their amounts.
fn accounts(lines: &[AccountLine<'_>], is_compared: bool) -> Table {
    if !is_compared {
        return Table::of_rows("", lines)
            .of("account", "accounts", lines.len())
            .column(Column::name("account"), |line| Cell::text(line.name))
            .column(Column::number("bytes"), |line| bytes(line.last()))
            .into();
    }
    Table::of_rows("", lines)
        .of("account", "accounts", lines.len())
        .column(Column::name("account"), |line| Cell::text(line.name))
        .column(Column::whole("over time").leaves(1), |line| Cell::Sparkline(line.sparkline()))
        .column(Column::number("first").leaves(2), |line| bytes(line.first()))
        .column(Column::number("highest").leaves(3), |line| bytes(line.highest().map_or(0, |at| at.bytes)))
        .column(Column::number("last"), |line| bytes(line.last()))
        .column(Column::number("change"), |line| Cell::BytesChange(line.change()))
        .into()
}

/// Readings with free memory, the rest, and the accounts that moved most.
fn times(lines: &[AccountLine<'_>], rows: &AccountTimes, steps: usize, view: &View) -> Table {
    let is_own = |line: &&AccountLine<'_>| [FREE, REST].contains(&line.account);
    let mut moved: Vec<&AccountLine<'_>> = lines.iter().filter(|line| !is_own(line)).collect();
    moved.sort_rows_by_key(|line| std::cmp::Reverse(line.movement()));
    let own =
        [FREE, REST].into_iter().filter_map(|account| lines.iter().find(|line| line.account == account));
    let shown: Vec<&AccountLine<'_>> = own.chain(moved.into_iter().take(MOVED)).collect();
    let mut columns = vec![Column::number("time")];
    columns.extend(shown.iter().enumerate().map(|(number, line)| match number {
        0 | 1 => Column::number(line.name),
        number => Column::number(line.name).leaves(number as u8),
    }));
    let each = rows.readings.div_ceil(steps.max(1)).max(1);
    // The last one is always shown.
    let numbers: Vec<usize> = (0..rows.readings).rev().step_by(each).collect();
    let mut table = Table::new("Readings", columns).of("reading", "readings", rows.readings);
    for number in numbers.into_iter().rev() {
        let time = shown.first().and_then(|line| line.reading(number)).map_or(0, |at| at.time);
        let cells = shown.iter().map(|line| line.reading(number).map_or(Cell::Empty, |at| bytes(at.bytes)));
        table.row(std::iter::once(Cell::text(view.time(time))).chain(cells));
    }
    table
}
