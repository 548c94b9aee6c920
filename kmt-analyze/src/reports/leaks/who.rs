//! Who has a growth, and where, in words: tasks with their shares, what many of them have in common, the cgroup, the system call.
//!
//! The numbers are those of rows and families; `sentence` puts the words together.

use super::makers;
use super::named_parts::{MANY, are_both};
use super::row::LeakRow;
use super::text_parts::FamilyPart;
use crate::render::words::{count, counted, share};

/// Of what a share is, where the sentence has one amount.
pub(super) const OF_IT: &str = "of it";

/// Two makers that hold nearly all: two leaks at one call site.
pub(super) fn two<'h>(held: &[(&'h str, u64)], whole: u64) -> Option<[(&'h str, u64); 2]> {
    let [one, two] = *held else { return None };
    are_both(one.1, two.1, whole).then_some([one, two])
}

/// The tasks that hold most, in words, with their shares of a whole; `name` is that of all of them, if they have one.
pub(super) fn by(held: &[(&str, u64)], (whole, of): (u64, &str), tasks: usize, name: Option<&str>) -> String {
    let said = |(task, bytes): (&str, u64)| format!(", {} {of} by {task}", share(bytes, whole));
    match (held, two(held, whole)) {
        (_, Some(both)) => both.map(said).concat(),
        // One of many is no answer.
        ([(_, most), ..], _) if most.saturating_mul(MANY) < whole => match name {
            Some(name) => format!(", by {name} ({})", counted(tasks as u64, "task", "tasks")),
            None => format!(", by {} tasks, at most {} {of} each", count(tasks as u64), share(*most, whole)),
        },
        ([one, ..], _) => said(*one),
        ([], _) => String::new(),
    }
}

/// ` in cgroup /system.slice/a.service`: that of the one task that holds most; empty: several do, or it is unknown.
pub(super) fn in_cgroup(row: &LeakRow, held: &[(&str, u64)], whole: u64) -> String {
    let first = row.holders.first().map(|most| most.task.as_str());
    let is_first =
        held.first().is_some_and(|(task, part)| Some(*task) == first && part.saturating_mul(2) >= whole);
    let cgroup = row.cgroup.as_ref().filter(|_| is_first && two(held, whole).is_none());
    cgroup.map_or(String::new(), |path| format!(" in cgroup {}", with_short_ids(path)))
}

/// Digits of an id of a container that are shown, as its own tools do.
const ID_DIGITS: usize = 12;

/// A path with long hexadecimal ids cut: `/docker/418fae8919ca…`.
fn with_short_ids(path: &str) -> String {
    let (mut out, mut digits) = (String::new(), 0);
    for letter in path.chars() {
        digits = if letter.is_ascii_hexdigit() { digits + 1 } else { 0 };
        match digits {
            ..=ID_DIGITS => out.push(letter),
            _ if digits == ID_DIGITS + 1 => out.push('…'),
            _ => {}
        }
    }
    out
}

/// The system call that most stacks came through.
pub(super) fn through(row: &LeakRow) -> String {
    let call = row.stacks.first().and_then(|stack| makers::syscall_of(&stack.frames));
    let Some(call) = call else { return String::new() };
    let same = row.stacks.iter().filter(|stack| makers::syscall_of(&stack.frames) == Some(call));
    let survivors = same.map(|stack| stack.survivors).fold(0, u64::saturating_add);
    let is_most = survivors.saturating_mul(2) >= row.survivors;
    if is_most { format!(" through {call}()") } else { String::new() }
}

/// The tasks that made a family: one that did most, or many with what they have in common.
pub(super) fn by_makers(family: &FamilyPart, of: &str) -> String {
    let (makers, whole) = (&family.makers, family.growth.per_window);
    let held: Vec<(&str, u64)> = family.holders.iter().map(|(task, part)| (task.as_str(), *part)).collect();
    let has_most =
        held.first().is_some_and(|(_, most)| most.saturating_mul(2) >= whole) || two(&held, whole).is_some();
    if let Some(threads) = makers.threads.as_ref().filter(|_| !has_most) {
        return format!(", by {} threads of {}", count(threads.threads as u64), threads.process);
    }
    if has_most || (makers.name.is_none() && makers.parent.is_none()) {
        let leader = family.table.rows.first();
        let cgroup = leader.map_or(String::new(), |row| in_cgroup(row, &held, whole));
        return format!("{}{cgroup}", by(&held, (whole, of), makers.tasks, makers.name.as_deref()));
    }
    let are_short = makers.exited.is_some_and(|exited| exited * 5 >= makers.tasks * 4);
    let kind = if are_short { "short-lived " } else { "" };
    let named = makers.name.as_ref().map_or(String::new(), |name| format!(" named {name}"));
    let parent = makers.parent.as_ref().map_or(String::new(), |parent| format!(", children of {parent}"));
    format!(", by {} {kind}tasks{named}{parent}", count(makers.tasks as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_one_name_are_counted() {
        assert_eq!(by(&[("head-1", 1)], (42, OF_IT), 42, Some("head")), ", by head (42 tasks)");
    }

    #[test]
    fn long_ids_of_containers_are_cut() {
        let path = "/system.slice/docker-418fae8919ca3848dd834026261a74b5.scope";
        assert_eq!(with_short_ids(path), "/system.slice/docker-418fae8919ca….scope");
        assert_eq!(with_short_ids("/added/a-418fae8919ca"), "/added/a-418fae8919ca");
    }
}
