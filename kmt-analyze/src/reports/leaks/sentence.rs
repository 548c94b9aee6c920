//! Growth in a sentence: how fast, how much, who, where.
//!
//! Its rows may be judged over different times. Then their bytes were allocated in no one time, and only the rate is
//! reported. All shares of a sentence are shares of the rate, so that they can be compared.

use kmt_format::kernel::ClockUnit;

use super::makers::TasksRow;
use super::named_parts::of_recorder;
use super::reclaimable::rate;
use super::row::{Growth, LeakRow, PageGrowth};
use super::text_parts::FamilyPart;
use super::who::{OF_IT, by, by_makers, in_cgroup, through};
use crate::render::words::{counted, share};
use crate::reports::common::View;
use crate::reports::leaks::judge::verdict::Verdict;
use crate::trace::names::function_of;

/// Growth of a family, in a window of that length: `Slab memory grew by 536 KiB/s: 15.7 MiB in 30.0 s, 99 % of it by
/// python3-21782, at alloc_pipe_info through pipe2().`
pub fn growth_sentence(family: &FamilyPart, window: u64, view: &View) -> String {
    let Some(leader) = family.table.rows.first() else { return String::new() };
    let per_second = family.bytes_per_second;
    let grew = amount(leader, (family.bytes, per_second), family.growth, window, view);
    let (what, pages) = with_pages(family.pages.as_ref(), per_second, view);
    if let Some(tasks) = &family.tasks {
        return format!("{what} {grew}, with {}.{pages}", of_tasks(tasks, family.holders.first()));
    }
    let of = if pages_lead(family) { "of the slab memory" } else { OF_IT };
    match Shared::of(family) {
        Some(shared) if shared.is_of_one && !pages_lead(family) => {
            shared.sentence(family, leader, window, view) + &pages
        }
        shared => {
            let all = shared.map_or(String::new(), |shared| shared.addition(view));
            format!("{what} {grew}{}, {}.{pages}{all}", by_makers(family, of), at(family, leader))
        }
    }
}

/// True if the pages of a family grow faster than its slab memory.
fn pages_lead(family: &FamilyPart) -> bool {
    family.pages.as_ref().is_some_and(|pages| pages.sum.bytes_per_second > family.bytes_per_second)
}

/// Begin of the sentence, and another one for pages that grow with slab memory: the larger part is first, pages with those who have
/// most of them.
fn with_pages(pages: Option<&PageGrowth>, slab_per_second: u64, view: &View) -> (String, String) {
    let slab = "Slab memory grew by".to_owned();
    let Some(pages) = pages else { return (slab, String::new()) };
    let per_second = pages.sum.bytes_per_second;
    let of_pages = rate(per_second, view);
    if per_second <= slab_per_second {
        return (slab, format!(" Pages grew with it by {of_pages}."));
    }
    let held: Vec<(&str, u64)> = pages.holders.iter().map(|(task, part)| (task.as_str(), *part)).collect();
    let holders = by(&held, (pages.growth.per_window, "of the pages"), pages.tasks, pages.name.as_deref());
    let hourly = hourly(per_second, view);
    (format!("Pages grew by {of_pages}{hourly}{holders}, and slab memory with them by"), String::new())
}

/// ` (1.84 GiB an hour)`; empty: the clock has no seconds.
fn hourly(per_second: u64, view: &View) -> String {
    match view.unit {
        ClockUnit::Nanoseconds => format!(" ({} an hour)", view.bytes(per_second.saturating_mul(3_600))),
        ClockUnit::Ticks => String::new(),
    }
}

/// Growth at call sites of other findings, as a share 1/N of a family, from which it is named.
const SHARED: u64 = 8;

/// Growth of the task that has most of a family, where it also has some at call sites that other growth leads.
struct Shared<'f> {
    task: &'f str,
    /// Bytes per second: all of it, and that of the family.
    all: u64,
    own: u64,
    /// Nearly all of the family is the task's.
    is_of_one: bool,
}

impl<'f> Shared<'f> {
    /// `None`: it has none elsewhere, or little.
    fn of(family: &'f FamilyPart) -> Option<Self> {
        let ((task, own), whole) = (family.holders.first()?, family.growth.per_window);
        if family.elsewhere.saturating_mul(SHARED) < *own || whole == 0 {
            return None;
        }
        let rate = |part: u64| {
            let rate = u128::from(family.bytes_per_second) * u128::from(part) / u128::from(whole);
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        let all = rate(own.saturating_add(family.elsewhere));
        let is_of_one = own.saturating_mul(10) >= whole.saturating_mul(9);
        Some(Self { task, all, own: rate(*own), is_of_one })
    }

    /// What others have a part of is reported first: then all of the task's.
    fn addition(&self, view: &View) -> String {
        format!(" With call sites of other findings, {} has {}.", self.task, rate(self.all, view))
    }

    /// `Slab memory of python3-21782 grew by 1.54 MiB/s (5.41 GiB an hour) in 34.00 s, 531 KiB/s of it at alloc_pipe_info through
    /// pipe2(), the rest at call sites of other findings.`
    fn sentence(&self, family: &FamilyPart, leader: &LeakRow, window: u64, view: &View) -> String {
        let held: Vec<(&str, u64)> =
            family.holders.iter().map(|(task, part)| (task.as_str(), *part)).collect();
        let (all, hourly, own) = (rate(self.all, view), hourly(self.all, view), rate(self.own, view));
        let time = time_of(leader, window, view);
        format!(
            "Slab memory of {}{} grew by {all}{hourly}{time}, {own} of it at {}{}, the rest at call sites of other findings.",
            self.task,
            in_cgroup(leader, &held, family.growth.per_window),
            function_of(&leader.symbol),
            through(leader),
        )
    }
}

/// Smallest share of a family, as 1/N, for which its leader is named before a call site with more of it.
const LEADS: u64 = 10;

/// Call sites of a family: the one that names the leaked object, and the one that grows most.
fn at(family: &FamilyPart, leader: &LeakRow) -> String {
    let place = |row: &LeakRow| format!("{}{}", function_of(&row.symbol), through(row));
    let Some(most) = &family.largest else { return format!("at {}", place(leader)) };
    let whole = family.growth.per_window;
    let part = share(most.per_window, whole);
    if leader.per_window.saturating_mul(LEADS) < whole {
        return format!("at {} ({part} of it), with {}", place(most), function_of(&leader.symbol));
    }
    format!("at {}; {part} of it at {}", place(leader), function_of(&most.symbol))
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

/// Growth of pages: of call sites where stacks were recorded, else of kinds.
pub fn page_growth_sentence(growth: &PageGrowth, window: u64, view: &View) -> String {
    let (row, sum) = (&growth.most, growth.sum);
    let held: Vec<(&str, u64)> = growth.holders.iter().map(|(task, part)| (task.as_str(), *part)).collect();
    let others = sum.rows.saturating_sub(1) as u64;
    let (at, others) = match row.call_site {
        Some(_) => (
            format!("at {}{}", function_of(&row.symbol), through(row)),
            counted(others, "other call site", "other call sites"),
        ),
        None => (format!("as {}", kind(row)), counted(others, "other kind", "other kinds")),
    };
    let others = if sum.rows > 1 { format!(" and {others}") } else { String::new() };
    format!(
        "Pages grew by {}{}{}, {at}{others}{}.",
        amount(row, (sum.bytes, sum.bytes_per_second), growth.growth, window, view),
        by(&held, (growth.growth.per_window, OF_IT), growth.tasks, growth.name.as_deref()),
        in_cgroup(row, &held, growth.growth.per_window),
        of_recorder(row.page_use, &held)
    )
}

/// A kind of pages: by its use if that is known, else by its flags.
pub(super) fn kind(row: &LeakRow) -> String {
    let symbol = row.symbol.to_string();
    match row.page_use {
        None | Some("kernel" | "other user memory" | "unknown use") => format!("{symbol} ({})", row.cache),
        Some(name) => format!("{name}, {}", symbol.split(',').next().unwrap_or_default()),
    }
}

/// Growth of one task whose frees have no event.
pub fn may_grow_sentence(row: &LeakRow, window: u64, view: &View) -> String {
    let held: Vec<(&str, u64)> =
        row.holders.iter().take(1).map(|most| (most.task.as_str(), most.old_survivors)).collect();
    let one = Growth { is_of_one_time: true, ..Growth::default() };
    format!(
        "Slab memory may grow by {}{}, at {}: at a steady pace, but its frees have no event and may have happened.",
        amount(row, (row.old_bytes, row.old_bytes_per_second), one, window, view),
        by(&held, (row.old_survivors, OF_IT), 1, None),
        function_of(&row.symbol),
    )
}

/// ` from +4.50 s to the end`, of growth that began late; else ` in 34.00 s`.
fn time_of(row: &LeakRow, window: u64, view: &View) -> String {
    match row.since {
        Some(since) => format!(" from +{} to the end", view.duration(since.saturating_sub(view.start))),
        None => format!(" in {}", view.duration(window)),
    }
}

/// Rate, by second and by hour, and the time: from the begin of the growth to the end. Where a quarter of that time or more is too
/// young to be judged, the bytes and the time of the old objects, of which the rate is. Batches have their bytes and number.
fn amount(
    row: &LeakRow,
    (bytes, per_second): (u64, u64),
    growth: Growth,
    window: u64,
    view: &View,
) -> String {
    let rate = format!("{}{}", rate(per_second, view), hourly(per_second, view));
    if growth.is_of_one_time && row.verdict == Verdict::Batches {
        return format!("{rate}: {} in {} batches", view.bytes(bytes), row.batches);
    }
    let since = row.since.map_or(0, |since| since.saturating_sub(view.start));
    let time = time_of(row, window, view);
    let judged = u128::from(bytes) * 1_000_000_000 / u128::from(per_second.max(1));
    let grown = u128::from(window.saturating_sub(since));
    if per_second == 0 || judged * 4 >= grown * 3 {
        return format!("{rate}{time}");
    }
    // Of rows with different times the rates are added up, and no one time has all bytes.
    match (growth.is_of_one_time, u64::try_from(judged)) {
        (true, Ok(judged)) => {
            let old = format!("{} in {}", view.bytes(bytes), view.duration(judged));
            format!("{rate}{time} ({old}; younger objects are not judged)")
        }
        _ => format!("{rate}{time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::leaks::makers::{MakersRow, ThreadsRow};
    use crate::reports::leaks::row::{HolderRow, LeakSum, StackRow};
    use crate::reports::leaks::text_parts::LeakTable;

    fn view() -> View {
        View { start: 1_000_000_000, ..View::plain() }
    }

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
            growth: Growth { per_window: 16_465_920, is_of_one_time: true },
            holders: vec![("python3-21782".into(), 16_301_260)],
            makers: MakersRow { tasks: 57, ..MakersRow::default() },
            ..FamilyPart::default()
        };
        change(&mut family, &mut leader);
        family.table = LeakTable { rows: vec![leader], total: 1 };
        growth_sentence(&family, 34_000_000_000, &view())
    }

    #[test]
    fn how_much_how_fast_who_and_where() {
        assert_eq!(
            family(|_, _| ()),
            "Slab memory grew by 536 KiB/s (1.84 GiB an hour) in 34.00 s, 99 % of it by python3-21782, at alloc_pipe_info through pipe2()."
        );
        assert_eq!(growth_sentence(&FamilyPart::default(), 1, &view()), "");
    }

    #[test]
    fn call_sites_that_two_leaks_share_count_for_both() {
        let of = |elsewhere| family(|family, _| family.elsewhere = elsewhere);
        assert_eq!(
            of(32_000_000),
            "Slab memory of python3-21782 grew by 1.54 MiB/s (5.40 GiB an hour) in 34.00 s, 531 KiB/s of it at alloc_pipe_info through pipe2(), the rest at call sites of other findings."
        );
        assert_eq!(of(1_000_000), of(0), "little");
        // Others have a part: the sentence is on all of them.
        let of_two = family(|family, _| {
            family.elsewhere = 32_000_000;
            family.holders = vec![("python3-21782".into(), 12_000_000)];
        });
        assert!(
            of_two.starts_with("Slab memory grew by 536 KiB/s (")
                && of_two.ends_with(" With call sites of other findings, python3-21782 has 1.40 MiB/s."),
            "{of_two}"
        );
    }

    #[test]
    fn the_call_site_with_most_is_named_with_its_share() {
        let other = |most, leads| {
            family(|family, leader| {
                leader.per_window = leads;
                let symbol = "__alloc_skb+0x1/0x2".into();
                family.largest = Some(LeakRow { symbol, per_window: most, ..LeakRow::default() });
            })
        };
        let little = other(15_312_000, 90_000);
        assert!(little.ends_with(", at __alloc_skb (93 % of it), with alloc_pipe_info."), "{little}");
        let much = other(10_043_000, 6_000_000);
        let said = ", at alloc_pipe_info through pipe2(); 61 % of it at __alloc_skb.";
        assert!(much.ends_with(said), "{much}");
    }

    #[test]
    fn bytes_that_grew_in_different_times_are_not_those_of_one_time() {
        let sentence = family(|family, leader| {
            family.growth = Growth { per_window: 20_000_000, is_of_one_time: false };
            family.holders = vec![("python3-21782".into(), 20_000_000)];
            leader.per_window = 9_000_000;
            let symbol = "alloc_inode+0x1/0x2".into();
            family.largest = Some(LeakRow { symbol, per_window: 11_000_000, ..LeakRow::default() });
        });
        assert_eq!(
            sentence,
            "Slab memory grew by 536 KiB/s (1.84 GiB an hour) in 34.00 s, 100 % of it by python3-21782, at alloc_pipe_info through pipe2(); 55 % of it at alloc_inode."
        );
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        let sentence = family(|family, leader| {
            family.holders.clear();
            leader.stacks.clear();
        });
        assert_eq!(
            sentence,
            "Slab memory grew by 536 KiB/s (1.84 GiB an hour) in 34.00 s, at alloc_pipe_info."
        );
        // Other stacks have more of it.
        let sentence = family(|_, leader| leader.survivors = 2_000);
        assert!(!sentence.contains("through"), "{sentence}");
    }

    #[test]
    fn growth_that_began_late_comes_in_batches_or_is_of_many_tasks() {
        let late = family(|_, leader| leader.since = Some(5_500_000_000));
        assert!(late.contains("(1.84 GiB an hour) from +4.50 s to the end, 99 % of it by"), "{late}");
        let of_several = family(|family, leader| {
            (leader.since, family.growth.is_of_one_time) = (Some(5_500_000_000), false);
        });
        assert!(
            of_several.contains("536 KiB/s (1.84 GiB an hour) from +4.50 s to the end, 99 %"),
            "{of_several}"
        );
        let batches = family(|_, leader| (leader.verdict, leader.batches) = (Verdict::Batches, 4));
        assert!(batches.contains("15.7 MiB in 4 batches, 99 %"), "{batches}");
        let many = family(|family, _| family.holders = vec![("sh-1".into(), 500_000)]);
        assert!(many.contains(", by 57 tasks, at most 3.0 % of it each, at alloc_pipe_info"), "{many}");
        let children = family(|family, _| {
            family.holders = vec![("wkr-1".into(), 500_000)];
            let (name, parent) = (Some("wkr".to_owned()), Some("sh-4711".to_owned()));
            family.makers = MakersRow { tasks: 247, name, parent, exited: Some(240), threads: None };
        });
        let two = family(|family, _| {
            family.holders = vec![("a-1".into(), 9_000_000), ("b-2".into(), 7_000_000)];
        });
        assert!(two.contains(", 55 % of it by a-1, 43 % of it by b-2, at alloc_pipe_info"), "{two}");
        let threads = family(|family, _| {
            family.holders = vec![("wkr-1".into(), 2_000_000), ("wkr-2".into(), 2_000_000)];
            let threads = Some(ThreadsRow { threads: 8, process: "wkr-1".into() });
            family.makers = MakersRow { tasks: 9, threads, ..MakersRow::default() };
        });
        assert!(threads.contains(", by 8 threads of wkr-1, at alloc_pipe_info"), "{threads}");
        let said = ", by 247 short-lived tasks named wkr, children of sh-4711, at alloc_pipe_info";
        assert!(children.contains(said), "{children}");
    }

    #[test]
    fn a_cgroup_is_that_of_the_one_task() {
        let of = |task: &str| {
            family(|_, leader| {
                leader.cgroup = Some("/system.slice/leaky.service".to_owned());
                let task = task.to_owned();
                leader.holders = vec![HolderRow { pid: 21_782, task, survivors: 1, old_survivors: 1 }];
            })
        };
        let said = "99 % of it by python3-21782 in cgroup /system.slice/leaky.service, at ";
        assert!(of("python3-21782").contains(said), "{}", of("python3-21782"));
        assert!(!of("other-1").contains("cgroup"), "that of another task");
        let many = family(|family, _| {
            family.holders = vec![("head-1".into(), 500_000)];
            family.makers = MakersRow { tasks: 42, name: None, ..MakersRow::default() };
        });
        assert!(many.contains(", by 42 tasks, at most 3.0 % of it each"), "{many}");
    }

    #[test]
    fn pages_that_grow_with_a_family_are_of_the_same_leak() {
        let pages = |bytes: u64, bytes_per_second| PageGrowth {
            sum: LeakSum { rows: 1, bytes, bytes_per_second },
            growth: Growth { per_window: bytes, is_of_one_time: true },
            holders: vec![("reader-9".into(), bytes / 4 * 3)],
            tasks: 3,
            ..PageGrowth::default()
        };
        let with = family(|family, _| {
            family.pages = Some(pages(1, 4_096));
        });
        assert!(with.ends_with("through pipe2(). Pages grew with it by 4.00 KiB/s."), "{with}");
        let more = family(|family, _| {
            family.pages = Some(pages(3 * 16_465_920, 3 * 548_864));
        });
        let begin = "Pages grew by 1.57 MiB/s (5.52 GiB an hour), 75 % of the pages by reader-9, and slab memory with them by 536 KiB/s (1.84 GiB an hour) in 34.00 s, 99 % of the slab memory by";
        assert!(more.starts_with(begin) && more.ends_with("through pipe2()."), "{more}");
    }

    #[test]
    fn tasks_that_stay_are_named_with_their_parent() {
        let of = |not_reaped| family(|family, _| family.tasks = Some(TasksRow { live: 929, not_reaped }));
        let all = "536 KiB/s (1.84 GiB an hour) in 34.00 s, with 929 tasks started by python3-21782 that ";
        assert!(of(Some(900)).ends_with(&format!("{all}exited and were not reaped.")), "{}", of(Some(900)));
        assert!(of(Some(2)).ends_with(&format!("{all}did not exit.")), "{}", of(Some(2)));
        assert!(of(None).ends_with(&format!("{all}did not exit or were not reaped.")), "{}", of(None));
    }

    #[test]
    fn pages_grow_at_a_call_site_or_as_a_kind() {
        let row =
            LeakRow { symbol: "order 0, GFP_KERNEL".into(), cache: "Unmovable".into(), ..LeakRow::default() };
        let sum = LeakSum { rows: 1, bytes: 10 << 20, bytes_per_second: 2 << 20 };
        let whole = Growth { per_window: 10 << 20, is_of_one_time: true };
        let holders = vec![("dd-7".into(), 6 << 20)];
        let mut growth = PageGrowth { most: row, sum, growth: whole, holders, tasks: 3, name: None };
        assert_eq!(
            page_growth_sentence(&growth, 9_000_000_000, &view()),
            "Pages grew by 2.00 MiB/s (7.03 GiB an hour) in 9.00 s (10.0 MiB in 5.00 s; younger objects are not judged), 60 % of it by dd-7, as order 0, GFP_KERNEL (Unmovable)."
        );
        growth.most.page_use = Some("anonymous memory");
        let said = page_growth_sentence(&growth, 1, &view());
        assert!(said.ends_with("by dd-7, as anonymous memory, order 0."), "{said}");
        growth.holders = vec![("trace-cmd-88".into(), 6 << 20)];
        growth.most.page_use = Some("page cache");
        let said = page_growth_sentence(&growth, 1, &view());
        assert!(
            said.ends_with(", order 0 (trace-cmd is a recorder: perhaps the file that it writes)."),
            "{said}"
        );
        growth.most.page_use = Some("page tables");
        let said = page_growth_sentence(&growth, 1, &view());
        assert!(!said.contains("recorder"), "{said}");
        growth.holders = vec![("dd-7".into(), 6 << 20)];
        growth.most.call_site = Some(crate::reports::common::rows::Address(1));
        growth.most.symbol = "leak_pages+0x1/0x2 [m]".into();
        assert!(page_growth_sentence(&growth, 1, &view()).ends_with("at leak_pages [m]."));
        growth.sum.rows = 3;
        let said = page_growth_sentence(&growth, 1, &view());
        assert!(said.ends_with("at leak_pages [m] and 2 other call sites."), "{said}");
    }
}
