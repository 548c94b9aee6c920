//! The screen of growth: a sentence that answers, then tables of call sites and pages.

use kmt_format::kernel::ClockUnit;

use super::reclaimable::{ReclaimableGrowth, rate};
use super::rows::{LeakRows, LeakTables};
use super::sentence::{growth_sentence, kind, may_grow_sentence, page_growth_sentence};
use super::text_parts::FamilyPart;
use super::text_tables::{growing, others, pages};
use crate::render::screen::{CommandLine, Screen};
use crate::render::words::{count, counted, share};
use crate::reports::common::View;
use crate::reports::common::ages::unknown_age_note;
use crate::reports::common::lead::MaybeRefused;
use crate::trace::names::function_of;

/// Families whose stacks are shown.
const STACKS: usize = 3;

/// Growth of memory, and call sites by verdict.
pub fn screen(rows: &LeakRows, view: &View) -> Screen {
    let tables = match &rows.leaks {
        MaybeRefused::Refused { refused } => return refusal(refused),
        MaybeRefused::Found(tables) => tables,
    };
    let parts = &tables.text;
    let mut screen = Screen::default();
    answer(&mut screen, tables, view);
    screen.table(growing(parts, view));
    for family in parts.families.iter().take(STACKS) {
        stack(&mut screen, family, view);
    }
    screen.table(others(parts, view));
    screen.table(pages("pages by call site", ("call site", "call sites"), &parts.page_callers, view));
    if parts.page_callers.rows.is_empty() {
        screen.table(pages("pages by kind", ("kind", "kinds"), &parts.pages, view));
    }
    notes(&mut screen, tables, view);
    next(&mut screen, tables);
    screen
}

fn refusal(reason: &str) -> Screen {
    let mut screen = Screen::new(format!("No verdict: {reason}."));
    screen.note("Record for 30 s or more: objects that live longer than others of their kind show growth.");
    screen.next("callers --sort live", "call sites with most live memory");
    screen
}

/// The sentences of the answer.
fn answer(screen: &mut Screen, tables: &LeakTables, view: &View) {
    let parts = &tables.text;
    if let Some(family) = parts.families.first() {
        screen.answer(growth_sentence(family, tables.window, view));
        let others = parts.other_families;
        if others.rows > 0 {
            let groups = counted(others.rows as u64, "other group", "other groups");
            let growth = rate(others.bytes_per_second, view);
            screen.answer(format!("{groups} of call sites grew by {growth}."));
        }
    }
    if let Some((first, others)) = parts.page_growths.split_first() {
        screen.answer(page_growth_sentence(first, tables.window, view));
        let rows: u64 = others.iter().map(|growth| growth.sum.rows as u64).sum();
        let per_second = others.iter().map(|growth| growth.sum.bytes_per_second).fold(0, u64::saturating_add);
        if rows > 0 {
            let kinds = match first.most.call_site {
                Some(_) => counted(rows, "other call site", "other call sites"),
                None => counted(rows, "other kind", "other kinds"),
            };
            screen.answer(format!("{kinds} of pages of other tasks grew by {}.", rate(per_second, view)));
        }
    }
    if parts.families.is_empty() {
        screen.answer(no_growth(tables, view));
    }
    if let Some(row) = &parts.may_grow {
        screen.answer(may_grow_sentence(row, tables.window, view));
    }
    if let Some(row) = tables.unseen_growth.first() {
        screen.answer(row.sentence(view));
    }
    screen.answer.extend(matters(tables).map(|growth| growth.sentence(view)));
    if let Some(ignored) = tables.ignored.as_ref().filter(|ignored| ignored.rows > 0) {
        let findings = counted(ignored.findings as u64, "finding", "findings");
        screen.answer(format!("{findings} hidden by {}.", ignored.file));
    }
}

/// The verdict where nothing grows, or where none is possible.
pub fn no_growth_sentence(rows: &LeakRows, view: &View) -> Option<String> {
    match &rows.leaks {
        MaybeRefused::Refused { refused } => Some(format!("Growth cannot be judged: {refused}.")),
        MaybeRefused::Found(tables) => {
            let parts = &tables.text;
            let grows = !parts.families.is_empty() || !parts.page_growths.is_empty();
            let caches = matters(tables).map(|growth| format!(" {}", growth.sentence(view)));
            (!grows).then(|| {
                let nothing = if caches.is_some() { "Nothing but caches" } else { "Nothing" };
                let window = view.duration(tables.window);
                let unjudged = unjudged(tables, "of what is still allocated", view);
                format!("{nothing} grew steadily in {window}.{}{unjudged}", caches.unwrap_or_default())
            })
        }
    }
}

/// The sentence where no family grows.
fn no_growth(tables: &LeakTables, view: &View) -> String {
    let parts = &tables.text;
    let pages_grow = !parts.page_growths.is_empty();
    let do_caches_grow = matters(tables).is_some();
    let subject = match (parts.has_slab, parts.has_pages && !pages_grow, do_caches_grow) {
        (true, true, false) => "Neither slab memory nor pages grew steadily",
        (true, true, true) => "Besides caches, neither slab memory nor pages grew steadily",
        (true, false, false) => "Slab memory did not grow steadily",
        (true, false, true) => "Besides caches, slab memory did not grow steadily",
        (false, ..) if pages_grow => return "Slab memory was not recorded.".to_owned(),
        (false, _, false) => "Pages did not grow steadily",
        (false, _, true) => "Besides page cache, pages did not grow steadily",
    };
    let slab = format!("{} of slab objects", view.bytes(parts.slab.bytes));
    let pages = format!("{} of pages", view.bytes(parts.pages_live.bytes));
    let live = match (parts.slab.rows > 0, parts.pages_live.rows > 0) {
        (true, true) => format!("{slab} and {pages} are still allocated"),
        (true, false) => format!("{slab} are still allocated"),
        (false, true) => format!("{pages} are still allocated"),
        (false, false) => "all that was allocated in it was freed".to_owned(),
    };
    let of = if parts.slab.rows > 0 && parts.pages_live.rows > 0 { "of both" } else { "of them" };
    let unjudged = unjudged(tables, of, view);
    format!("{subject} in {}: {live}.{unjudged}", view.duration(tables.window))
}

/// A sentence on memory that lives too long for the window; empty: there is none.
fn unjudged(tables: &LeakTables, of: &str, view: &View) -> String {
    let parts = &tables.text;
    let bytes = view.bytes(parts.unjudged.bytes);
    let most = parts.unjudged_most.as_ref().map_or(String::new(), |row| {
        let part = share(row.bytes, parts.unjudged.bytes);
        match row.api {
            Some(_) => format!(", {part} of it at {}", function_of(&row.symbol)),
            None => format!(", {part} of it {}", kind(row)),
        }
    });
    match parts.unjudged.rows {
        0 => String::new(),
        _ if parts.window_needed > tables.window => {
            let needed = view.duration(parts.window_needed);
            format!(" Not judged: {bytes} {of}{most}; record at least {needed} to judge it.")
        }
        _ => format!(" Not judged: {bytes} {of}{most}."),
    }
}

/// Growth of what the kernel can reclaim, where it is at least a tenth as fast as that of all that it cannot.
fn matters(tables: &LeakTables) -> Option<&ReclaimableGrowth> {
    let parts = &tables.text;
    let first = parts.families.first().map_or(0, |family| family.bytes_per_second);
    let pages = parts.page_growths.iter().map(|growth| growth.sum.bytes_per_second);
    let growth = pages.chain([first, parts.other_families.bytes_per_second]).fold(0, u64::saturating_add);
    let is_much = parts.reclaimable.bytes_per_second().saturating_mul(10) >= growth;
    Some(&parts.reclaimable).filter(|reclaimable| is_much && !reclaimable.is_none())
}

/// Growth of what the kernel can reclaim, where it matters beside other growth.
pub fn reclaimable_growth(rows: &LeakRows) -> Option<&ReclaimableGrowth> {
    rows.tables().and_then(matters)
}

/// The stack with most objects of a family's leader.
fn stack(screen: &mut Screen, family: &FamilyPart, view: &View) {
    let Some(leader) = family.table.rows.first() else { return };
    let Some(most) = leader.stacks.first() else { return };
    let name = |frame: &String| if view.look.wide { frame.clone() } else { function_of(frame) };
    let frames: Vec<String> = most.frames.iter().map(name).collect();
    let heading = format!(
        "stack of {} of the objects of {}",
        share(most.survivors, leader.survivors),
        function_of(&leader.symbol)
    );
    screen.lines(heading, vec![frames.join(" < ")]);
}

fn notes(screen: &mut Screen, tables: &LeakTables, view: &View) {
    let parts = &tables.text;
    if let Some(exit) = tables.command_exit {
        let at = view.time(exit);
        screen.note(format!(
            "Live memory is that at {at}, before the recorded command began to exit and freed what it had."
        ));
    }
    if parts.families.iter().any(|family| family.has_pinned) {
        screen.note(
            "Objects of reclaimable caches that grow with others are pinned: the kernel cannot reclaim them.",
        );
    }
    screen.notes.extend(unknown_age_note(tables.unknown_age));
    if parts.omits_recorder {
        screen.note("Memory that the recorder itself allocated is not counted.");
    }
    not_judged(screen, tables, view);
    if parts.families.is_empty() && parts.has_slab {
        window_note(tables.window, view).into_iter().for_each(|note| screen.note(note));
    }
    if tables.slab_pages.is_none() && !parts.pages.rows.is_empty() {
        screen.note("Pages of slabs are among the pages: the direct map base is unknown.");
    }
}

/// Old bytes that a finding needs; `findings` has the rule.
const LEAST: u64 = 16 << 10;

/// A slow leak that people look for, in bytes a second: 8 MiB a day.
const SLOW: u64 = 100;

/// The growth that this window shows, and the window for slower growth.
fn window_note(window: u64, view: &View) -> Option<String> {
    if view.unit == ClockUnit::Ticks {
        return None;
    }
    // The last eighth of a window is too young to be judged.
    let needed = LEAST * 8 / 7;
    let shown = u128::from(needed) * 1_000_000_000 / u128::from(window.max(1));
    let shown = u64::try_from(shown).unwrap_or(u64::MAX);
    let minutes = counted(needed.div_ceil(SLOW).div_ceil(60), "minute", "minutes");
    (shown > SLOW).then(|| {
        format!(
            "In {} growth of {} or more is found. For {} ({} a day), record at least {minutes}.",
            view.duration(window),
            rate(shown, view),
            rate(SLOW, view),
            view.bytes(SLOW * 86_400),
        )
    })
}

/// Call sites without a verdict, and the recording that would give one.
fn not_judged(screen: &mut Screen, tables: &LeakTables, view: &View) {
    let parts = &tables.text;
    let sites = |number: u64| counted(number, "call site", "call sites");
    let left = match (parts.young, parts.few) {
        (0, 0) => String::new(),
        (young, 0) => format!("{} with recent objects only", sites(young)),
        (0, few) => format!("{} with fewer than 16 live objects", sites(few)),
        (young, few) => {
            let few = count(few);
            format!("{} with recent objects only, {few} with fewer than 16 live objects", sites(young))
        }
    };
    if !left.is_empty() {
        screen.note(format!("Not judged: {left}."));
    }
    if parts.window_needed > tables.window && !parts.families.is_empty() {
        let needed = view.duration(parts.window_needed);
        screen
            .note(format!("A recording of {needed} or more gives verdicts where this window is too short."));
    }
}

fn next(screen: &mut Screen, tables: &LeakTables) {
    let parts = &tables.text;
    let leader = parts.families.first().and_then(|family| family.table.rows.first());
    match leader {
        Some(leader) if !leader.stacks.is_empty() => {
            screen.next("callgraph --by live", "all stacks of memory that is still allocated");
        }
        Some(_) => {
            screen.note("Stacks show the callers: kmt-capture record --stack kmem:kmalloc --stack kmem:kmem_cache_alloc.");
        }
        None => screen.next("callers --sort live", "call sites with most live memory"),
    }
    match leader.and_then(|leader| leader.holders.first()) {
        Some(holder) => screen.next(
            CommandLine::from("lifetimes").option("--pid", holder.pid),
            "where its other objects are freed",
        ),
        None => screen.next("timeline", "live memory over time"),
    }
}
