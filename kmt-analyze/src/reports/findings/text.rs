//! The first screen: findings with their commands, the verdict on growth, free memory, totals, and who allocated most.
//!
//! It is made of `rows`. Findings are first, those of growth before others; waste is a note, because it is a share of what was
//! allocated, not of what is held. `top_table` has the tables. The screen has few next commands, so that the first one is read.

use super::finding::Finding;
use super::held::HeldRow;
use super::rows::{FindingRows, Part, Parts};
use super::top_table;
use crate::render::screen::{Cell, Column, CommandLine, Lead, Screen, Table};
use crate::render::words::{count, share};
use crate::reports::balance::{FreeMemory, free_sentence};
use crate::reports::common::View;
use crate::reports::common::lead::also;
use crate::reports::leaks::rate;
use crate::reports::summary::{SummaryRows, live_least};

/// Share of the first finding of growth, and of the memory of the process that is named before it, as 1/N, below which
/// growth is one line.
const SMALL: u64 = 100;

/// Findings, who allocates and who holds memory, the recording, and short totals.
pub fn screen(rows: &FindingRows, view: &View) -> Screen {
    let mut screen = Screen { says_losses: true, ..Screen::default() };
    // What happened comes first, before its possible reasons.
    let stopped = rows.recording.stopped.iter();
    screen.leads(stopped.map(|text| Lead { sentence: text.clone(), command: "info".into() }).collect());
    let (waste, leading): (Vec<&Finding>, Vec<&Finding>) =
        rows.findings.iter().partition(|finding| finding.finding == "waste");
    let held = rows
        .held
        .as_ref()
        .map(|held| Held { row: held, sentence: held.sentence(rows.still_allocated_pages.as_ref(), view) });
    let whole = rows.whole_time_growth.as_ref();
    screen.leads(whole.map_or_else(Vec::new, |growth| growth.leads(view)));
    screen.leads(leads(&leading, held.as_ref(), view));
    let verdict = rows.verdict.as_deref();
    match verdict.zip(rows.shown.again.as_ref()).and_then(|(verdict, again)| again.lead(verdict)) {
        Some(lead) => screen.leads(vec![lead]),
        None => screen.answer.extend(rows.verdict.clone()),
    }
    screen.answer.extend(rows.perhaps.iter().cloned());
    screen.answer.extend(rows.shown.reclaimable.as_ref().map(|growth| growth.sentence(view)));
    screen.answer.extend(rows.free_memory.iter().map(|free| free_memory(free, view)));
    if rows.free_memory.is_none() {
        // One number for each use of pages: else that of the kernel's accounts.
        let older = rows.shown.page_bytes_older;
        rows.page_growth.iter().for_each(|row| screen.answer(row.sentence(older, view)));
    }
    screen.answer(rows.recording.shown(rows.shown.says_losses.then_some(rows.shown.losses_len)).to_owned());
    screen.table(totals(&rows.totals, view));
    screen.table(top_table::slab(rows.allocated.as_ref(), rows.still_allocated.as_ref(), view));
    let [allocated, live] = [&rows.allocated_pages, &rows.still_allocated_pages].map(Option::as_ref);
    screen.table(top_table::pages(allocated, live, view));
    // Missing frees change the shares.
    rows.parts.iter().filter(|_| !view.is_lossy).for_each(|parts| screen.note(by_part(parts, view)));
    // Of what was handed out, not of what is held: it explains the table.
    waste.iter().for_each(|finding| screen.note(sentence(finding, view)));
    next(&mut screen, rows, view);
    if screen.next.len() < commands_max(&screen) {
        waste.iter().for_each(|finding| screen.next(finding.command, "who wastes it"));
    }
    screen.next("all", "every report");
    screen
}

fn sentence(finding: &Finding, view: &View) -> String {
    finding.said(view).to_owned()
}

/// Free memory by the kernel's accounts, which do not rest on events. They are not exact: counters are batched by CPU, and read one
/// after another.
fn free_memory(free: &FreeMemory, view: &View) -> String {
    let sentence = free_sentence(free, &view.look);
    if view.is_lossy {
        format!("{sentence} Lost events do not change these counts of /proc.")
    } else {
        sentence
    }
}

/// The process that held most memory, and its sentence.
struct Held<'r> {
    row: &'r HeldRow,
    sentence: String,
}

impl Held<'_> {
    /// True if growth is small beside the memory of the process.
    fn exceeds(&self, finding: &Finding) -> bool {
        finding.bytes.is_some_and(|bytes| bytes.saturating_mul(SMALL) < self.row.bytes_resident)
    }

    /// True if growth is larger than the memory of the process.
    fn is_below(&self, finding: &Finding) -> bool {
        finding.bytes.is_some_and(|bytes| bytes > self.row.bytes_resident)
    }
}

/// Findings, and the process that held most memory before those with less; growth that is small beside the first of them is
/// one line.
fn leads(findings: &[&Finding], held: Option<&Held<'_>>, view: &View) -> Vec<Lead> {
    // Memory of processes ends with them, however much it is: it does not make a leak of the kernel small.
    let first = |of_user_memory: bool| {
        let of_kind = findings.iter().filter(|finding| finding.of_user_memory == of_user_memory);
        of_kind.filter_map(|finding| finding.bytes_per_second).next().unwrap_or(0)
    };
    let [first_of_kernel, first_of_users] = [false, true].map(first);
    let is_small = |finding: &Finding| {
        let rate = finding.bytes_per_second;
        let is_exceeded = held.is_some_and(|held| held.exceeds(finding));
        let first =
            if finding.of_user_memory { first_of_kernel.max(first_of_users) } else { first_of_kernel };
        rate.is_some_and(|rate| is_exceeded || rate.saturating_mul(SMALL) < first)
    };
    let (small, large): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().copied().partition(|finding| is_small(finding));
    let (growth, others): (Vec<&Finding>, Vec<&Finding>) =
        large.into_iter().partition(|finding| finding.bytes_per_second.is_some());
    let (larger, growth): (Vec<&Finding>, Vec<&Finding>) =
        growth.into_iter().partition(|finding| held.is_some_and(|held| held.is_below(finding)));
    let mut leads: Vec<Lead> = Vec::new();
    let mut add = |sentence: &str, command: &'static str| {
        let sentence = if leads.is_empty() { sentence.to_owned() } else { also(sentence) };
        leads.push(Lead { sentence, command: command.into() });
    };
    larger.iter().for_each(|finding| add(&sentence(finding, view), finding.command));
    held.iter().for_each(|held| add(&held.sentence, held.row.command()));
    growth.iter().for_each(|finding| add(&sentence(finding, view), finding.command));
    if let [one] = small.as_slice() {
        add(&sentence(one, view), one.command);
    } else if !small.is_empty() {
        let sum = small.iter().filter_map(|finding| finding.bytes_per_second).fold(0, u64::saturating_add);
        let (number, sum) = (count(small.len() as u64), rate(sum, view));
        add(&format!("{number} smaller findings of growth, {sum} together."), "leaks");
    }
    others.iter().for_each(|finding| add(&sentence(finding, view), finding.command));
    leads
}

/// Commands on a first screen, with those of its answer.
const COMMANDS_MAX: usize = 7;

/// Number of commands that may stand below the tables, before the one on all reports.
fn commands_max(screen: &Screen) -> usize {
    let of_file = screen.leads.iter().filter(|lead| !lead.command.is_recording());
    (COMMANDS_MAX - 1).saturating_sub(of_file.count())
}

/// Commands that fit the file, those that answer its question first.
fn next(screen: &mut Screen, rows: &FindingRows, view: &View) {
    let shown = &rows.shown;
    match &rows.whole_time {
        // Its findings have the command.
        Some(_) if rows.whole_time_growth.is_some() => {}
        Some(whole) => {
            let (command, what) = match whole.can_judge_growth(view.unit) {
                true => ("leaks", "what grows where nothing is missing"),
                false => ("summary", "the longest time in which nothing is missing"),
            };
            screen.next(CommandLine::from(command).option("--time", whole.range()), what);
        }
        None if rows.verdict.is_some() => screen.next("leaks", "growth, and the evidence"),
        None => {}
    }
    if shown.says_losses {
        screen.next("slabinfo", "growth of caches by the kernel's counts");
    }
    if rows.free_memory.is_some() {
        screen.next("balance", "where free memory went");
    }
    if shown.begins_at_boot {
        screen.next("boot", "memory of the boot, by initcall, module and program");
    }
    if shown.has_stalls {
        screen.next("latency", "who waits for memory");
    }
    match (&rows.allocated, shown.has_stacks) {
        (None, _) => {}
        (Some(_), true) => screen.next("callgraph", "who allocates, by stack"),
        (Some(_), false) => screen.next("callers", "who allocates"),
    }
    if rows.still_allocated.is_some() {
        screen.next("callers --sort live", "who holds memory");
    }
    if rows.still_allocated_pages.is_some() {
        screen.next("tasks --sort live_pages", "who holds pages");
    }
    if rows.page_growth.is_some() {
        screen.next("pages", "pages by order and use");
    }
    if rows.allocated.is_none() && rows.page_growth.is_none() && shown.has_events {
        screen.next("events", "events that the file has");
    }
    screen.next.truncate(commands_max(screen));
}

/// `Slab memory still allocated: ~fs 51 %, ~mm 20 %.`
fn by_part(parts: &Parts, view: &View) -> String {
    let name = |part: &Part| format!("{} {}", part.subsystem, share(part.bytes, parts.bytes_total));
    let unknown = (parts.bytes_unknown > 0)
        .then(|| format!("unknown {}", share(parts.bytes_unknown, parts.bytes_total)));
    let named = parts.largest.iter().map(|part| part.bytes).fold(parts.bytes_unknown, u64::saturating_add);
    let rest = parts.bytes_total.saturating_sub(named);
    let rest = (rest > 0).then(|| format!("others {}", share(rest, parts.bytes_total)));
    let names: Vec<String> = parts.largest.iter().map(name).chain(rest).chain(unknown).collect();
    let is_inferred = parts.largest.iter().any(|part| part.subsystem.starts_with('~'));
    format!(
        "Slab memory {}: {}{}.",
        if parts.is_live { top_table::live_heading(view) } else { "allocated" },
        names.join(", "),
        if is_inferred { " (~: inferred from names of functions)" } else { "" }
    )
}

/// Bytes freed, with those whose free has no event: allocated less freed is still allocated.
fn freed(seen: Option<u64>, unseen: Option<u64>) -> Option<u64> {
    Some(seen?.saturating_add(unseen.unwrap_or(0)))
}

/// Totals of kmalloc, caches and pages.
fn totals(rows: &SummaryRows, view: &View) -> Table {
    let live = top_table::live_heading(view);
    let columns = [
        Column::whole("memory"),
        Column::number("allocs"),
        Column::number("allocated"),
        Column::number("freed"),
        Column::number(live),
        Column::number("wasted").leaves(1),
    ];
    let mut table = Table::new("", columns);
    if let Some(slab) = &rows.slab {
        for (name, totals) in [("kmalloc", &slab.kmalloc.totals), ("slab caches", &slab.cache.totals)] {
            table.row([
                Cell::text(name),
                Cell::count(totals.alloc_events),
                Cell::bytes(totals.bytes_alloc),
                Cell::bytes(freed(totals.bytes_freed, totals.bytes_freed_unseen)),
                Cell::bytes(totals.bytes_live),
                Cell::bytes(totals.bytes_wasted),
            ]);
        }
    }
    if let Some(pages) = rows.pages.as_ref().filter(|pages| !pages.sums.is_empty()) {
        let sums = &pages.sums.sums;
        table.row([
            Cell::text("pages (slabs included)"),
            Cell::count(sums.alloc_events),
            Cell::bytes(sums.bytes_alloc),
            Cell::bytes(sums.bytes_freed),
            Cell::bytes(sums.bytes_live),
            Cell::Empty,
        ]);
    }
    let what = if view.is_lossy { "Without a free event" } else { "Still allocated" };
    let time = match view.is_window {
        false if view.part.is_some() => "of what was allocated in this part of the recording",
        false => "of what was allocated during the recording",
        true => "at the end of the selected time, also what was allocated before it",
    };
    let least = live_least(rows, view).map_or(String::new(), |least| {
        format!("; at least {least} of slab objects are still allocated (estimated with the lost events)")
    });
    table.explain(live, format!("{what}: {time}{least}."));
    table
}
