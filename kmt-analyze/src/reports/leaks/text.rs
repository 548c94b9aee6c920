//! The screen of growth: sentences that answer, then tables of call sites and pages, stacks, notes and next commands.
//!
//! Rows come from `rows`, and groups of call sites from `text_parts`. `sentence` and `reclaimable` make sentences and
//! `text_tables` the tables. Of slab memory and pages, the one that grows faster is first. If the report refuses to judge, the
//! screen has the reason or, where events were lost, the leads of `lossy`.

use kmt_format::kernel::ClockUnit;

use super::reclaimable::{ReclaimableGrowth, rate};
use super::rows::{LeakRows, LeakTables};
use super::sentence::{growth_sentence, kind, may_grow_sentence, page_growth_sentence};
use super::text_parts::{FamilyPart, TextParts};
use super::text_tables::{growing, others, pages};
use crate::collect::growth::STEPS;
use crate::render::screen::{CommandLine, Screen};
use crate::render::words::{count, counted, share};
use crate::reports::common::View;
use crate::reports::common::ages::unknown_age_note;
use crate::reports::common::lead::{MaybeRefused, also, behind_colon};
use crate::reports::common::record_again::not_judged_for;
use crate::reports::leaks::judge::evidence::{SURVIVORS_MIN, YOUNG_STEPS};
use crate::reports::leaks::judge::pages::is_of_user_space;
use crate::trace::names::function_of;

/// Families whose stacks are shown.
const STACKS: usize = 3;

/// Growth of memory, and call sites by verdict.
pub fn screen(rows: &LeakRows, view: &View) -> Screen {
    let tables = match &rows.leaks {
        MaybeRefused::Refused { refused } => {
            return rows.lossy.screen().unwrap_or_else(|| refusal(refused));
        }
        MaybeRefused::Found(tables) => tables,
    };
    let parts = &tables.text;
    let mut screen = Screen::default();
    answer(&mut screen, rows, tables, view);
    let of_pages_first = pages_grow_faster(parts);
    if of_pages_first {
        page_tables(&mut screen, parts, view);
    }
    screen.table(growing(parts, view));
    for family in parts.families.iter().take(STACKS) {
        stack(&mut screen, family, view);
    }
    screen.table(others(parts, view));
    if !of_pages_first {
        page_tables(&mut screen, parts, view);
    }
    notes(&mut screen, tables, view);
    rows.lossy.next(&mut screen);
    next(&mut screen, tables);
    screen
}

fn refusal(reason: &str) -> Screen {
    let mut screen = Screen::new(format!("No verdict: {reason}."));
    screen.note("Record for 30 s or more: objects that live longer than others of their kind show growth.");
    screen.next("callers --sort live", "call sites with most live memory");
    screen
}

/// Pages by call site, or by kind where stacks were not recorded.
fn page_tables(screen: &mut Screen, parts: &TextParts, view: &View) {
    screen.table(pages("pages by call site", ("call site", "call sites"), &parts.page_callers, view));
    if parts.page_callers.rows.is_empty() {
        screen.table(pages("pages by kind", ("kind", "kinds"), &parts.pages, view));
    }
}

/// True if pages grow faster than slab memory: the larger growth is first.
fn pages_grow_faster(parts: &TextParts) -> bool {
    let slab = parts.families.first().map_or(0, |family| family.bytes_per_second);
    parts.page_growths.first().is_some_and(|growth| growth.sum.bytes_per_second > slab)
}

/// The sentences of the answer.
fn answer(screen: &mut Screen, rows: &LeakRows, tables: &LeakTables, view: &View) {
    let parts = &tables.text;
    let of_pages_first = pages_grow_faster(parts);
    if of_pages_first {
        page_growth(screen, tables, view);
    }
    if let Some(family) = parts.families.first() {
        screen.answer(growth_sentence(family, tables.window, view));
        let others = parts.other_families;
        if let Some(second) = parts.families.get(1).filter(|_| others.rows == 1) {
            screen.answer(also(&growth_sentence(second, tables.window, view)));
        } else if others.rows > 0 {
            let groups = counted(others.rows as u64, "other group", "other groups");
            let growth = rate(others.bytes_per_second, view);
            screen.answer(format!("{groups} of call sites grew by {growth}."));
        }
    }
    if !of_pages_first {
        page_growth(screen, tables, view);
    }
    if parts.families.is_empty() {
        let is_verdict = parts.lost.is_some() && parts.page_growths.is_empty();
        match is_verdict {
            true => rows.lossy.answer(screen),
            false => screen.answer(no_growth(tables, view)),
        }
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

/// The sentences on pages that grow.
fn page_growth(screen: &mut Screen, tables: &LeakTables, view: &View) {
    let Some((first, others)) = tables.text.page_growths.split_first() else { return };
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

/// The verdict where nothing grows, or where none is possible.
pub fn no_growth_sentence(rows: &LeakRows, view: &View) -> Option<String> {
    match &rows.leaks {
        MaybeRefused::Refused { refused } => Some(format!("Growth cannot be judged: {refused}.")),
        MaybeRefused::Found(tables) if rows.grows() => None,
        MaybeRefused::Found(tables) => rows.lossy.verdict.clone().or_else(|| Some(verdict(tables, view))),
    }
}

/// Growth that is too little for a finding: the first sentence of the report on it.
pub fn little_growth(rows: &LeakRows, view: &View) -> Option<String> {
    let tables = rows.tables()?;
    let parts = &tables.text;
    let slab = parts.families.first().map(|family| growth_sentence(family, tables.window, view));
    let pages = parts.page_growths.first().map(|growth| page_growth_sentence(growth, tables.window, view));
    let first = if pages_grow_faster(parts) { pages.or(slab) } else { slab.or(pages) };
    first.map(|sentence| behind_colon("Little grew", &sentence))
}

/// Objects at an even pace that a verdict needs: those of the last eighth of the time are too young.
const SHOWN_MIN: u64 = (SURVIVORS_MIN * STEPS as u64).div_ceil((STEPS - YOUNG_STEPS) as u64);

/// Memory without a verdict, from which on it is no detail.
const UNJUDGED_MIN: u64 = 1 << 20;

/// The verdict where nothing grows: first why it is not judged, where that is so of most memory.
fn verdict(tables: &LeakTables, view: &View) -> String {
    let parts = &tables.text;
    if let Some(reason) = not_judged_reason(tables, view) {
        return reason;
    }
    let window = view.duration(tables.window);
    let bytes = parts.unjudged.bytes;
    let live = parts.slab.bytes.saturating_add(parts.pages_live.bytes);
    let is_most = bytes >= UNJUDGED_MIN && bytes.saturating_mul(2) >= live;
    let is_named = bytes >= UNJUDGED_MIN && bytes.saturating_mul(10) >= live;
    let shown = least_shown(tables.window, view).map_or(String::new(), |rate| {
        let least = format!(
            "; growth of the kernel's own memory by {rate} or more, and {SHOWN_MIN} objects or more of a call site, would show"
        );
        match bytes {
            1.. if !is_most && !is_named => format!("{least}, but for {} that cannot be judged", view.bytes(bytes)),
            _ => least,
        }
    });
    let nothing = match (is_most, matters(tables)) {
        (true, _) => {
            let (most, remedy) = (unjudged_most(tables), remedy(tables, view));
            let short = if parts.is_cut { "Too short or cut" } else { "Too short" };
            let bytes = view.bytes(bytes);
            let judge = format!("{short} to judge {bytes} of what is still allocated{most}{remedy}.");
            // The question is for a leak of the kernel first.
            let is_of_pages = parts.unjudged_most.as_ref().is_some_and(|row| row.api.is_none());
            return match is_of_pages && parts.has_slab && !parts.is_cut {
                true => {
                    let keeps = matters(tables).map_or("", |_| " that the kernel must keep");
                    format!("Slab memory{keeps} did not grow steadily in {window}{shown}. {judge}")
                }
                false => format!("{judge} Nothing else grew steadily in {window}{shown}."),
            };
        }
        (false, Some(_)) => "Nothing that the kernel must keep",
        (false, None) => "Nothing",
    };
    let unjudged = match is_named {
        true => unjudged(tables, "of what is still allocated", view),
        false => String::new(),
    };
    format!("{nothing} grew steadily in {window}{shown}.{unjudged}")
}

/// Why an answer without growth may be wrong: missing events, or a damaged file; `None` if it is sure.
fn not_judged_reason(tables: &LeakTables, view: &View) -> Option<String> {
    let parts = &tables.text;
    if let Some(lost) = &parts.lost {
        return Some(not_judged_for(lost, None));
    }
    parts.is_damaged.then(|| match parts.unjudged.bytes {
        0 => "Growth was not judged: the file is cut or damaged.".to_owned(),
        bytes => format!(
            "Too short or cut to judge: {} of what is still allocated{}.",
            view.bytes(bytes),
            unjudged_most(tables)
        ),
    })
}

/// The sentence where no family grows.
fn no_growth(tables: &LeakTables, view: &View) -> String {
    let parts = &tables.text;
    let pages_grow = !parts.page_growths.is_empty();
    if let Some(reason) = not_judged_reason(tables, view).filter(|_| !pages_grow) {
        return reason;
    }
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
    if parts.unjudged.rows == 0 {
        return String::new();
    }
    let bytes = view.bytes(parts.unjudged.bytes);
    format!(" Not judged: {bytes} {of}{}{}.", unjudged_most(tables), remedy(tables, view))
}

/// `, 84 % of it anonymous or tmpfs, order 0, most by rustc-77`: the row with most of the memory that is not judged.
fn unjudged_most(tables: &LeakTables) -> String {
    let parts = &tables.text;
    let Some(row) = &parts.unjudged_most else { return String::new() };
    let part = share(row.bytes, parts.unjudged.bytes);
    let task = row.holders.first().filter(|most| most.survivors.saturating_mul(2) >= row.survivors);
    let task = task.map_or(String::new(), |most| format!(" (most by {})", most.task));
    match row.api {
        Some(_) => format!(", {part} of it at {}{task}", function_of(&row.symbol)),
        None => format!(", {part} of it {}{task}", kind(row)),
    }
}

/// `; record about 95 s to judge it`; empty: a longer window would not show it.
fn remedy(tables: &LeakTables, view: &View) -> String {
    let needed = tables.text.window_needed;
    if needed <= tables.window {
        String::new()
    } else {
        format!("; record {} to judge it", about(needed, view))
    }
}

/// A length without digits that mean nothing: `about 95 s`, `about 4 minutes`.
fn about(length: u64, view: &View) -> String {
    let seconds = length.div_ceil(1_000_000_000);
    match view.unit {
        ClockUnit::Ticks => format!("about {}", view.duration(length)),
        ClockUnit::Nanoseconds if seconds < 20 => format!("about {seconds} s"),
        ClockUnit::Nanoseconds if seconds <= 180 => format!("about {} s", seconds.next_multiple_of(5)),
        ClockUnit::Nanoseconds => format!("about {} minutes", seconds.div_ceil(60)),
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
    if parts.families.is_empty() && parts.has_slab && not_judged_reason(tables, view).is_none() {
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

/// The least growth that this window shows, in bytes a second.
fn least(window: u64) -> u64 {
    // The last eighth of a window is too young to be judged.
    let shown = u128::from(LEAST * 8 / 7) * 1_000_000_000 / u128::from(window.max(1));
    u64::try_from(shown).unwrap_or(u64::MAX)
}

/// The same as a screen has it; `None`: the clock counts ticks of unknown length.
fn least_shown(window: u64, view: &View) -> Option<String> {
    (view.unit == ClockUnit::Nanoseconds).then(|| rate(least(window), view))
}

/// The growth that this window shows, and the window for slower growth.
fn window_note(window: u64, view: &View) -> Option<String> {
    let shown = least_shown(window, view)?;
    let minutes = counted((LEAST * 8 / 7).div_ceil(SLOW).div_ceil(60), "minute", "minutes");
    (least(window) > SLOW).then(|| {
        format!(
            "In {} growth of {shown} or more is found. For {} ({} a day), record at least {minutes}.",
            view.duration(window),
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
        let needed = about(parts.window_needed, view);
        screen.note(format!("A recording of {needed} gives verdicts where this window is too short."));
    }
}

/// True if pages of the kernel grow, alone or with slab memory, and the recording has no stacks of pages.
fn pages_lack_call_sites(parts: &TextParts) -> bool {
    let alone = parts.page_growths.iter().any(|growth| !growth.most.page_use.is_some_and(is_of_user_space));
    let with_slab = parts.families.iter().any(|family| family.pages.is_some());
    parts.page_callers.rows.is_empty() && (alone || with_slab)
}

fn next(screen: &mut Screen, tables: &LeakTables) {
    let parts = &tables.text;
    let leader = parts.families.first().and_then(|family| family.table.rows.first());
    match leader {
        Some(leader) if !leader.stacks.is_empty() => {
            screen.next("callgraph --by live", "all stacks of memory that is still allocated");
        }
        Some(_) => {
            let with_stacks = CommandLine::recording("--stack kmem:kmalloc --stack kmem:kmem_cache_alloc");
            screen.next(with_stacks, "a recording with stacks, which show the callers");
        }
        None => screen.next("callers --sort live", "call sites with most live memory"),
    }
    if pages_lack_call_sites(parts) {
        let with_stacks = CommandLine::recording("--stack kmem:mm_page_alloc");
        screen.next(with_stacks, "a recording with call sites of pages");
    }
    match leader.and_then(|leader| leader.holders.first()) {
        Some(holder) => screen.next(
            CommandLine::from("lifetimes").option("--pid", holder.pid),
            "where its other objects are freed",
        ),
        None => screen.next("timeline", "live memory over time"),
    }
}
