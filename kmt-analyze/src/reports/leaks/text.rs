//! The report as text.

use super::row::LeakRow;
use super::rows::{LeakRows, LeakTables, Leaked};
use super::text_parts::{FamilyPart, Group, Table};
use crate::analysis::leaks::Verdict;
use crate::collect::growth::STEPS;
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, percent};
use crate::reports::common::View;
use crate::reports::common::shown::more;
use Align::{Left, Right};

/// Smallest share of the survivors, as 1/N, from which one task is named.
const MANY: u64 = 10;

/// All of it.
pub fn of(rows: &LeakRows, view: &View) -> String {
    let rows = match &rows.leaks {
        Leaked::Refused { refused } => return format!("not seen freed: {refused}\n"),
        Leaked::Found(tables) => tables,
    };
    let mut out = families(rows, view);
    for group in &rows.text.groups {
        out.push_str(&self::group(group, rows, view));
    }
    out.push_str(&format!(
        "{} call sites have only young survivors, {} fewer than 16\n",
        count(rows.text.young),
        count(rows.text.few)
    ));
    for (table, heading) in [
        (&rows.text.page_callers, "PAGES, by call site; what is read into the page cache is reclaimable"),
        (&rows.text.pages, "PAGES, by kind, but for slabs; movable ones are user memory or page cache"),
    ] {
        if table.total > 0 {
            out.push_str(&format!("\n{heading}\n{}", of_pages(table, view)));
        }
    }
    out.push_str(&match rows.slab_pages {
        Some(0) => String::new(),
        Some(pages) => {
            format!("\n{} live pages of the trace are slabs: what they hold is above\n", count(pages))
        }
        None => "\npage frames could not be placed in memory: slabs are among the pages\n".to_owned(),
    });
    out.push_str("\nOld: older than three times what 99 of 100 freed ones of the call site reached, and not of the window's last eighth. Growing: old ones from at least half of the steps of time, or from three quarters of those since it began, and the second half brings at least half of what the first did; or three batches and more of like size. Where frees have no event, older than three times what it took to find 99 of 100 to be over, and one of twenty births. It says nothing of objects that were there before.\n");
    out
}

/// Call sites that grow, together with those that are born and stay with them.
fn families(rows: &LeakTables, view: &View) -> String {
    let found = match rows.families_total {
        0 => "nothing grows steadily".to_owned(),
        1 => "one thing grows".to_owned(),
        n => format!("{n} things grow"),
    };
    let mut out = format!("NOT SEEN FREED in {}: {found}\n\n", duration(rows.window, view.unit));
    if rows.families_total == 0 {
        return out;
    }
    out.push_str("growing, and not saturating; together what is born together and stays\n");
    for (number, family) in (1u64..).zip(&rows.text.families) {
        out.push_str(&self::family(number, family, rows, view));
    }
    out + "\n"
}

fn family(number: u64, family: &FamilyPart, rows: &LeakTables, view: &View) -> String {
    let Some(leader) = family.table.rows.first() else { return String::new() };
    let others = match family.table.total - 1 {
        0 => String::new(),
        1 => " and one more call site".to_owned(),
        n => format!(" and {n} more call sites"),
    };
    let pinned = "of caches that are marked reclaimable: what is pinned cannot be taken back\n";
    format!(
        "\n{number}. {}{others}: {} old bytes, {} a second{}{}\n{}{}{}",
        leader.symbol,
        count(family.bytes),
        count(family.bytes_per_second),
        holder(leader),
        began(leader, rows, view),
        stack(leader),
        of_slab(&family.table, view),
        if family.has_pinned { pinned } else { "" }
    )
}

/// The task that allocated most survivors of a row, in words.
fn holder(row: &LeakRow) -> String {
    match row.holders.first() {
        // One of many says nothing.
        Some(most) if most.survivors.saturating_mul(MANY) < row.survivors => {
            let (tasks, each) = (count(row.holders_total as u64), count(most.survivors));
            format!(", by {tasks} tasks, {each} at most each")
        }
        Some(most) => format!(", by {} ({})", most.task, percent(most.survivors, row.survivors).trim()),
        None => String::new(),
    }
}

/// The stack with most survivors of a row, if stacks were recorded.
fn stack(row: &LeakRow) -> String {
    row.stacks.first().map_or(String::new(), |most| {
        let share = percent(most.survivors, row.survivors);
        format!("stack of {}: {}\n", share.trim(), most.frames.join(" < "))
    })
}

/// When growth began, if not at once; or in how many batches it comes.
fn began(row: &LeakRow, rows: &LeakTables, view: &View) -> String {
    match (row.verdict == Verdict::Batches.name(), row.began_step) {
        (true, _) => format!("; in {} batches", row.batches),
        (false, Some(step)) => {
            let after = (rows.window / STEPS as u64).saturating_mul(step as u64);
            format!("; began {} after the start, and continues", duration(after, view.unit))
        }
        (false, None) => String::new(),
    }
}

/// Call sites of one verdict.
fn group(group: &Group, rows: &LeakTables, view: &View) -> String {
    let heading = match (group.verdict, rows.text.tasks_started) {
        (Verdict::WithTasks, 1) => "of a task that started meanwhile and still runs".to_owned(),
        (Verdict::WithTasks, tasks) => {
            format!("of {} tasks that started meanwhile and still run", count(tasks))
        }
        (verdict, _) => heading(verdict).to_owned(),
    };
    let needed = match group.verdict {
        Verdict::FreesUnseen => window_needed(group.unseen_age_p99_max, rows, view),
        _ => String::new(),
    };
    format!("{heading}\n{}{needed}\n", of_slab(&group.table, view))
}

fn heading(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reclaimable => "growing, in caches that the kernel takes back when it needs memory",
        Verdict::WithReclaimable => "growing along with those, one for each object of theirs",
        Verdict::WithSlabs => "growing with the slabs: what the allocator keeps for each",
        Verdict::Warming => "warming: many early, few late",
        Verdict::Burst => "in bursts: something started and stays",
        Verdict::Lazy => "freed late and all at once, by design",
        Verdict::FreesUnseen => "freed without events (RCU, bulk): survivors may be long gone",
        Verdict::TooShort => "window too short: what is freed lives about as long",
        Verdict::Uncertain => "uncertain: most cross a loss",
        Verdict::Grows | Verdict::Batches | Verdict::WithTasks | Verdict::Young | Verdict::Few => "",
    }
}

/// How long a window has to be to judge objects whose frees have no event.
fn window_needed(age: u64, rows: &LeakTables, view: &View) -> String {
    // A quarter of it is left to look for old ones in.
    let window = age.saturating_mul(4);
    if window <= rows.window {
        return String::new();
    }
    format!(
        "found to be over up to {} after their birth (99 of 100 that were): windows of {} and more can tell them from leaks\n",
        duration(age, view.unit),
        duration(window, view.unit)
    )
}

/// A table of slab objects.
fn of_slab(rows: &Table, view: &View) -> String {
    let first = [("call site", Left), ("cache", Left)];
    let cells = |row: &LeakRow| vec![row.symbol.clone(), row.cache.clone()];
    figures(rows, view, &first, "bytes", cells)
}

/// A table of pages.
fn of_pages(rows: &Table, view: &View) -> String {
    let first = [("pages", Left), ("type", Left), ("", Left)];
    let cells = |row: &LeakRow| vec![row.symbol.clone(), row.cache.clone(), row.verdict.replace('_', " ")];
    figures(rows, view, &first, "pages", cells)
}

/// A table whose first columns are given.
fn figures(
    rows: &Table,
    view: &View,
    first: &[(&'static str, Align)],
    amount: &'static str,
    first_cells: impl Fn(&LeakRow) -> Vec<String>,
) -> String {
    let figures = [
        ("live", Right),
        (amount, Right),
        ("old", Right),
        (amount, Right),
        ("a second", Right),
        ("of births", Right),
        ("steps", Right),
        ("halves", Right),
        ("freed ones p99", Right),
        ("born", Left),
    ];
    let columns: Vec<_> = first.iter().copied().chain(figures).collect();
    let cells = |row: &LeakRow| {
        let mut cells = first_cells(row);
        cells.extend([
            count(row.survivors),
            count(row.amount),
            count(row.old_survivors),
            count(row.old_amount),
            count(row.old_amount_per_second),
            percent(row.old_survivors, row.allocations_of_that_age),
            format!("{}/{}", row.steps_with_survivors, row.steps),
            format!("{}, {}", count(row.first_half), count(row.second_half)),
            row.lifetime_p99.map_or("none freed".to_owned(), |p99| duration(p99, view.unit)),
            spark(&row.survivors_by_birth),
        ]);
        cells
    };
    let cells: Vec<Vec<String>> = rows.rows.iter().map(cells).collect();
    table(&columns, &cells) + &more(rows.rows.len(), rows.total, "rows")
}

/// A small chart: when survivors were born.
fn spark(steps: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = steps.iter().max().copied().unwrap_or(0).max(1);
    let bar = |&n: &u64| match n {
        0 => ' ',
        n => BARS.get((n * 7 / most) as usize).copied().unwrap_or('█'),
    };
    // Two steps a character.
    steps
        .chunks(2)
        .map(|pair| bar(&(pair.iter().sum::<u64>() / 2 + u64::from(pair.iter().sum::<u64>() == 1))))
        .collect()
}
