//! Growth in a sentence: how much, how fast, who, where.

use kmt_format::kernel::ClockUnit;

use super::makers::TasksRow;
use super::row::LeakRow;
use super::syscall;
use super::text_parts::FamilyPart;
use crate::render::screen::function_of;
use crate::render::text::count;
use crate::render::words::{counted, share};
use crate::reports::analysis::leaks::verdict::Verdict;
use crate::reports::common::View;

/// Smallest share of the memory, as 1/N, from which one task is named.
const MANY: u64 = 10;

/// Growth of a family, in a window of that length: `Slab memory grew by 536 KiB/s: 15.7 MiB in 30.0 s, 99 % by
/// python3-21782, at alloc_pipe_info through pipe2().`
pub fn growth_sentence(family: &FamilyPart, window: u64, view: &View) -> String {
    let Some(leader) = family.table.rows.first() else { return String::new() };
    let (bytes, per_second) = (family.bytes, family.bytes_per_second);
    let grew = format!("{}{}", amount(bytes, per_second, window, view), course(leader, view));
    let of_pages = rate(family.pages.bytes_per_second, view);
    // The larger part first.
    let (what, pages) = match family.pages.rows {
        0 => ("Slab memory grew by".to_owned(), String::new()),
        _ if family.pages.bytes_per_second > per_second => {
            (format!("Pages grew by {of_pages}, and slab memory with them by"), String::new())
        }
        _ => ("Slab memory grew by".to_owned(), format!(" Pages grew with it by {of_pages}.")),
    };
    if let Some(tasks) = &family.tasks {
        return format!("{what} {grew}, with {}.{pages}", of_tasks(tasks, family.holder.as_ref()));
    }
    format!(
        "{what} {grew}{}, at {}{}.{pages}",
        by_makers(family, bytes),
        function_of(&leader.symbol),
        through(leader)
    )
}

/// Tasks that did not end, or were not reaped, with the task that started most of them.
fn of_tasks(tasks: &TasksRow, most: Option<&(String, u64)>) -> String {
    let number = counted(tasks.live, "task", "tasks");
    let started = most.map_or(String::new(), |(task, _)| format!(" started by {task}"));
    match tasks.not_reaped {
        Some(not_reaped) if not_reaped.saturating_mul(2) >= tasks.live => {
            format!("{number}{started} that exited and were not reaped")
        }
        Some(_) => format!("{number}{started} that did not exit"),
        None => format!("{number}{started} that did not exit or were not reaped"),
    }
}

/// The tasks that made a family: one that did most, or many with what they have in common.
fn by_makers(family: &FamilyPart, bytes: u64) -> String {
    let makers = &family.makers;
    let held = family.holder.as_ref().map(|(task, bytes)| (task.as_str(), *bytes));
    let has_most = held.is_some_and(|(_, most)| most.saturating_mul(2) >= bytes);
    if has_most || (makers.name.is_none() && makers.parent.is_none()) {
        return by(held, bytes, makers.tasks);
    }
    let are_short = makers.exited.is_some_and(|exited| exited * 5 >= makers.tasks * 4);
    let kind = if are_short { "short-lived " } else { "" };
    let named = makers.name.as_ref().map_or(String::new(), |name| format!(" named {name}"));
    let parent = makers.parent.as_ref().map_or(String::new(), |parent| format!(", children of {parent}"));
    format!(", by {} {kind}tasks{named}{parent}", count(makers.tasks as u64))
}

/// Growth of pages: of a call site where stacks were recorded, else of a kind.
pub fn page_growth_sentence(row: &LeakRow, window: u64, view: &View) -> String {
    let held = row.holders.first().map(|most| (most.task.as_str(), most.old_survivors));
    let at = match row.call_site {
        Some(_) => format!("at {}{}", function_of(&row.symbol), through(row)),
        None => format!("as {} ({})", row.symbol, row.cache),
    };
    format!(
        "Pages grew by {}{}{}, {at}.",
        amount(row.old_bytes, row.old_bytes_per_second, window, view),
        course(row, view),
        by(held, row.old_survivors, row.old_holders_total),
    )
}

/// A rate of growth.
pub fn rate(bytes_per_second: u64, view: &View) -> String {
    let per = if view.unit == ClockUnit::Ticks { " per 10^9 ticks" } else { "/s" };
    format!("{}{per}", view.bytes(bytes_per_second))
}

/// Rate, amount, and the time that it took: the part of the window that can be judged, since growth began.
fn amount(bytes: u64, per_second: u64, window: u64, view: &View) -> String {
    let length = u128::from(bytes) * 1_000_000_000 / u128::from(per_second.max(1));
    let length = u64::try_from(length).unwrap_or(window).min(window);
    format!("{}: {} in {}", rate(per_second, view), view.bytes(bytes), view.duration(length))
}

/// Begin of growth, if it is within the window, or the number of batches.
fn course(row: &LeakRow, view: &View) -> String {
    match row.since {
        _ if row.verdict == Verdict::Batches => format!(" in {} batches", row.batches),
        Some(since) => format!(" since {}", view.time(since)),
        None => String::new(),
    }
}

/// The task that holds most, in words.
fn by(held: Option<(&str, u64)>, whole: u64, tasks: usize) -> String {
    match held {
        // One of many is no answer.
        Some((_, most)) if most.saturating_mul(MANY) < whole => {
            format!(", by {} tasks, at most {} each", count(tasks as u64), share(most, whole))
        }
        Some((task, most)) => format!(", {} by {task}", share(most, whole)),
        None => String::new(),
    }
}

/// The system call that most stacks came through.
fn through(row: &LeakRow) -> String {
    let call = row.stacks.first().and_then(|stack| syscall::of_stack(&stack.frames));
    let Some(call) = call else { return String::new() };
    let same = row.stacks.iter().filter(|stack| syscall::of_stack(&stack.frames) == Some(call));
    let survivors = same.map(|stack| stack.survivors).fold(0, u64::saturating_add);
    let is_most = survivors.saturating_mul(2) >= row.survivors;
    if is_most { format!(" through {call}()") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::look::Look;
    use crate::reports::leaks::makers::MakersRow;
    use crate::reports::leaks::row::{HolderRow, LeakSum, StackRow};
    use crate::reports::leaks::text_parts::LeakTable;

    const VIEW: View = View {
        unit: ClockUnit::Nanoseconds,
        start: 1_000_000_000,
        start_of_day: None,
        is_lossy: false,
        limit: 20,
        look: Look { width: 80, exact_bytes: false, colour: false, wall_clock: false },
    };

    fn family(change: impl Fn(&mut FamilyPart, &mut LeakRow)) -> String {
        let frames = ["alloc_pipe_info+0xd7/0x230", "do_pipe2+0x1/0x2", "__x64_sys_pipe2+0x14/0x20"];
        let stack = StackRow { survivors: 900, bytes: 900, frames: frames.map(str::to_owned).to_vec() };
        let mut leader = LeakRow {
            symbol: "alloc_pipe_info+0xd7/0x230".into(),
            survivors: 1_000,
            stacks: vec![stack],
            verdict: Verdict::Grows,
            ..LeakRow::default()
        };
        let mut family = FamilyPart {
            bytes: 16_465_920,
            bytes_per_second: 548_864,
            holder: Some(("python3-21782".into(), 16_301_260)),
            makers: MakersRow { tasks: 57, ..MakersRow::default() },
            ..FamilyPart::default()
        };
        change(&mut family, &mut leader);
        family.table = LeakTable { rows: vec![leader], total: 1 };
        growth_sentence(&family, 34_000_000_000, &VIEW)
    }

    #[test]
    fn how_much_how_fast_who_and_where() {
        assert_eq!(
            family(|_, _| ()),
            "Slab memory grew by 536 KiB/s: 15.7 MiB in 30.00 s, 99 % by python3-21782, at alloc_pipe_info through pipe2()."
        );
        assert_eq!(growth_sentence(&FamilyPart::default(), 1, &VIEW), "");
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        let sentence = family(|family, leader| {
            family.holder = None;
            leader.stacks.clear();
        });
        assert_eq!(sentence, "Slab memory grew by 536 KiB/s: 15.7 MiB in 30.00 s, at alloc_pipe_info.");
        // Other stacks have more of it.
        let sentence = family(|_, leader| leader.survivors = 2_000);
        assert!(!sentence.contains("through"), "{sentence}");
    }

    #[test]
    fn growth_that_began_late_comes_in_batches_or_is_of_many_tasks() {
        let late = family(|_, leader| leader.since = Some(5_500_000_000));
        assert!(late.contains("15.7 MiB in 30.00 s since +4.500, 99 % by"), "{late}");
        let batches = family(|_, leader| (leader.verdict, leader.batches) = (Verdict::Batches, 4));
        assert!(batches.contains("in 30.00 s in 4 batches, 99 %"), "{batches}");
        let many = family(|family, _| family.holder = Some(("sh-1".into(), 500_000)));
        assert!(many.contains(", by 57 tasks, at most 3.0 % each, at alloc_pipe_info"), "{many}");
        let children = family(|family, _| {
            family.holder = Some(("wkr-1".into(), 500_000));
            let (name, parent) = (Some("wkr".to_owned()), Some("sh-4711".to_owned()));
            family.makers = MakersRow { tasks: 247, name, parent, exited: Some(240) };
        });
        let said = ", by 247 short-lived tasks named wkr, children of sh-4711, at alloc_pipe_info";
        assert!(children.contains(said), "{children}");
    }

    #[test]
    fn pages_that_grow_with_a_family_are_of_the_same_leak() {
        let with = family(|family, _| {
            family.pages = LeakSum { rows: 1, bytes: 1, bytes_per_second: 4_096 };
        });
        assert!(with.ends_with("through pipe2(). Pages grew with it by 4.00 KiB/s."), "{with}");
        let more = family(|family, _| {
            family.pages = LeakSum { rows: 1, bytes: 3 * 16_465_920, bytes_per_second: 3 * 548_864 };
        });
        let begin =
            "Pages grew by 1.57 MiB/s, and slab memory with them by 536 KiB/s: 15.7 MiB in 30.00 s, 99 % by";
        assert!(more.starts_with(begin) && more.ends_with("through pipe2()."), "{more}");
    }

    #[test]
    fn tasks_that_stay_are_named_with_their_parent() {
        let of = |not_reaped| family(|family, _| family.tasks = Some(TasksRow { live: 929, not_reaped }));
        let all = "15.7 MiB in 30.00 s, with 929 tasks started by python3-21782 that ";
        assert!(of(Some(900)).ends_with(&format!("{all}exited and were not reaped.")), "{}", of(Some(900)));
        assert!(of(Some(2)).ends_with(&format!("{all}did not exit.")), "{}", of(Some(2)));
        assert!(of(None).ends_with(&format!("{all}did not exit or were not reaped.")), "{}", of(None));
    }

    #[test]
    fn pages_grow_at_a_call_site_or_as_a_kind() {
        let holder = HolderRow { pid: 7, task: "dd-7".into(), survivors: 70, old_survivors: 60 };
        let mut row = LeakRow {
            symbol: "order 0, GFP_KERNEL".into(),
            cache: "Unmovable".into(),
            survivors: 400,
            old_survivors: 100,
            old_bytes: 10 << 20,
            old_bytes_per_second: 2 << 20,
            holders: vec![holder],
            ..LeakRow::default()
        };
        assert_eq!(
            page_growth_sentence(&row, 9_000_000_000, &VIEW),
            "Pages grew by 2.00 MiB/s: 10.0 MiB in 5.00 s, 60 % by dd-7, as order 0, GFP_KERNEL (Unmovable)."
        );
        row.call_site = Some(crate::reports::common::rows::Address(1));
        row.symbol = "leak_pages+0x1/0x2 [m]".into();
        assert!(page_growth_sentence(&row, 1, &VIEW).ends_with("at leak_pages [m]."));
    }
}
