//! `boot`, against a loop over all events for each mark.

use std::fs;
use std::path::PathBuf;

use kmt_format::Loss;
use kmt_format::kernel::parse_kallsyms;
use serde_json::Value;

use crate::model::next;
use crate::support::files::{Scratch, at, json, run, stderr, stdout};
use crate::support::hostile::Made;

const KALLSYMS: &[u8] =
    b"ffffffff81000000 T _text\nffffffff81001000 T kernel_user\nffffffff81003000 t first_init\n\
    ffffffff81004000 t second_init\nffffffff81020000 T _etext\nffffffffc0001000 t mod_user\t[extra]\n\
    ffffffffc0002000 t mod_end\t[extra]\n";
const SITES: [u64; 2] = [0xffff_ffff_8100_1010, 0xffff_ffff_c000_1010];
const MODULE: usize = 1;
const BYTES: i64 = 64;
const PAGE: i64 = 4096;
const MS: u64 = 1_000_000;

/// Ids of the events of a boot.
const LEVEL: u16 = 31;
const INITCALL: u16 = 32;
const LOAD: u16 = 33;
const EXEC: u16 = 34;
const FORK: u16 = 35;

/// A change of memory: time, allocated or freed, site of a slab object; pages: `None`.
type Change = (u64, bool, Option<usize>);

/// A mark of the boot: time, kind, name.
type Mark = (u64, &'static str, &'static str);

/// A boot of 100 steps of 10 ms each.
struct Boot {
    made: Made,
    changes: Vec<Change>,
    marks: Vec<Mark>,
    start: u64,
}

impl Boot {
    /// From a time on; with the events of a boot, or without any of them.
    fn new(start: u64, has_marks: bool) -> Self {
        let mut made = Made::default();
        let loc = "__data_loc char[]";
        if has_marks {
            made.class("initcall", "initcall_level", LEVEL, &[(loc, "level", 4)], "\"\"");
            made.class("initcall", "initcall_start", INITCALL, &[("initcall_t", "func", 8)], "\"\"");
            made.class(
                "module",
                "module_load",
                LOAD,
                &[("unsigned int", "taints", 4), (loc, "name", 4)],
                "\"\"",
            );
            let exec = [(loc, "filename", 4), ("pid_t", "pid", 4), ("pid_t", "old_pid", 4)];
            made.class("sched", "sched_process_exec", EXEC, &exec, "\"\"");
            let fork = [("pid_t", "parent_pid", 4), ("pid_t", "child_pid", 4)];
            made.class("sched", "sched_process_fork", FORK, &fork, "\"\"");
        }
        made.writer().add_symbols(&parse_kallsyms(KALLSYMS, &[], 4096), &[]).unwrap();
        Self { made, changes: Vec::new(), marks: vec![(start, "start", "")], start }
    }

    fn at(&mut self, time: u64) {
        self.made.set_time(time.wrapping_sub(100));
    }

    /// A text behind `words` of 4 bytes, of which the one at `place` is its position.
    fn text(words: &[u32], place: usize, text: &str) -> Vec<u8> {
        let offset = 8 + 4 * words.len() as u32;
        let mut words = words.to_vec();
        words[place] = offset | (text.len() as u32 + 1) << 16;
        let mut rest: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        rest.extend(text.as_bytes());
        rest.push(0);
        rest
    }

    fn mark(&mut self, step: u64, kind: &'static str, name: &'static str) {
        let time = self.start + step * 10 * MS;
        self.at(time);
        match kind {
            "initcall_level" => self.made.event(0, LEVEL, 1, &Self::text(&[0], 0, name)),
            "initcall" => {
                let function = if name == "first_init" { 0x8100_3000u64 } else { 0x8100_4000 };
                let function = 0xffff_ffff_0000_0000 | function;
                self.made.event(0, INITCALL, 1, &function.to_le_bytes());
            }
            "module" => self.made.event(0, LOAD, 50, &Self::text(&[0, 0], 1, name)),
            "helper" | "first_process" => self.made.event(0, EXEC, 40, &Self::text(&[0, 40, 40], 0, name)),
            "init" => self.made.event(0, EXEC, 1, &Self::text(&[0, 1, 1], 0, name)),
            _ => self.made.event(0, EXEC, 60, &Self::text(&[0, 60, 60], 0, name)),
        }
        // A helper of the kernel is a program like any other.
        self.marks.push((time, if kind == "helper" { "process" } else { kind }, name));
    }

    fn fork(&mut self, step: u64, parent: i32, child: i32) {
        self.at(self.start + step * 10 * MS);
        let rest = [parent.to_le_bytes(), child.to_le_bytes()].concat();
        self.made.event(0, FORK, parent, &rest);
    }

    /// Allocations and frees between two steps, of slab objects and pages.
    fn load(&mut self, seed: &mut u64, steps: std::ops::Range<u64>, live: &mut Vec<(u64, Option<usize>)>) {
        for number in 0..40 {
            let time =
                self.start + steps.start * 10 * MS + 1_000 + number * (steps.end - steps.start) * 200_000;
            self.at(time);
            let cpu = (next(seed) % 2) as u32;
            if next(seed) % 3 == 0 && !live.is_empty() {
                let (place, site) = live.swap_remove((next(seed) % live.len() as u64) as usize);
                match site {
                    Some(_) => self.made.kfree(cpu, SITES[0], place),
                    None => self.made.pages_free(cpu, place, 0),
                }
                self.changes.push((time, false, site));
                continue;
            }
            let number = self.changes.len() as u64;
            // Frames are far from the addresses of objects: none holds one.
            let (place, site) = match next(seed) % 3 {
                2 => (0x10_0000 + number, None),
                site => (0xffff_8880_0010_0000 + number * 64, Some(site as usize)),
            };
            match site {
                Some(site) => self.made.kmalloc(cpu, 7, SITES[site], place),
                None => self.made.pages(cpu, 7, place, 0),
            }
            live.push((place, site));
            self.changes.push((time, true, site));
        }
    }

    /// Two objects on a CPU before the clock ran.
    fn before_clock(&mut self, cpu: u32, live: &mut Vec<(u64, Option<usize>)>) {
        self.made.writer().add_metadata(&[("events_at_zero", b"2")]).unwrap();
        for place in [0xffff_8880_0000_1000, 0xffff_8880_0000_1040] {
            self.at(0);
            self.made.kmalloc(cpu, 0, SITES[0], place);
            live.push((place, Some(0)));
            self.changes.push((0, true, Some(0)));
        }
    }

    fn write(self, scratch: &Scratch) -> (PathBuf, Vec<Change>, Vec<Mark>) {
        let file = scratch.0.join("boot.kmt");
        fs::write(&file, self.made.finish()).unwrap();
        (file, self.changes, self.marks)
    }
}

/// A whole boot, or the same events of a later time.
fn whole(scratch: &Scratch, start: u64) -> (PathBuf, Vec<Change>, Vec<Mark>) {
    let (mut seed, mut live) = (7, Vec::new());
    let mut boot = Boot::new(start, true);
    if start == 0 {
        boot.before_clock(0, &mut live);
    }
    boot.load(&mut seed, 0..10, &mut live);
    boot.mark(10, "initcall_level", "core");
    boot.load(&mut seed, 10..12, &mut live);
    boot.mark(20, "initcall", "first_init");
    boot.load(&mut seed, 20..28, &mut live);
    boot.mark(30, "initcall_level", "device");
    boot.mark(32, "initcall", "second_init");
    boot.load(&mut seed, 32..38, &mut live);
    boot.mark(39, "helper", "/sbin/modprobe");
    boot.mark(40, "init", "/init");
    boot.load(&mut seed, 41..45, &mut live);
    boot.mark(50, "init", "/sbin/init");
    boot.mark(60, "module", "extra");
    boot.load(&mut seed, 61..69, &mut live);
    boot.fork(70, 1, 60);
    boot.mark(71, "process", "/usr/bin/first");
    // A program of no task that init started, and those that ran before, are no marks.
    boot.at(start + 720 * MS);
    boot.made.event(0, EXEC, 90, &Boot::text(&[0, 90, 90], 0, "/usr/bin/other"));
    boot.at(start + 721 * MS);
    boot.made.event(0, EXEC, 60, &Boot::text(&[0, 60, 60], 0, "/usr/bin/first"));
    boot.made.event(0, EXEC, 1, &Boot::text(&[0, 1, 1], 0, "/sbin/init"));
    boot.load(&mut seed, 75..99, &mut live);
    boot.write(scratch)
}

/// Bytes that are live before a time: of slab objects, of pages.
fn live_at(changes: &[Change], time: u64) -> [i64; 2] {
    let mut live = [0; 2];
    for (_, is_alloc, site) in changes.iter().filter(|change| change.0 < time) {
        let (place, bytes) = if site.is_some() { (0, BYTES) } else { (1, PAGE) };
        live[place] += if *is_alloc { bytes } else { -bytes };
    }
    live
}

fn number(value: &Value, pointer: &str) -> i64 {
    at(value, pointer).as_i64().unwrap_or_else(|| panic!("{pointer} in {value:#}"))
}

#[test]
fn marks_have_the_memory_of_their_time() {
    let scratch = Scratch::new();
    let (file, changes, marks) = whole(&scratch, 0);
    let rows = json(&["boot", "--json"], &file);
    let boot = at(&rows, "/boot");
    let found = at(boot, "/marks").as_array().unwrap();
    assert_eq!((found.len(), number(boot, "/marks_total")), (marks.len(), marks.len() as i64));
    let is_phase = |kind: &str| ["start", "initcall_level", "first_process", "init"].contains(&kind);
    let first_event = changes[0].0;
    for (index, (row, (time, kind, name))) in found.iter().zip(&marks).enumerate() {
        let time = if *kind == "start" { first_event } else { *time };
        assert_eq!(number(row, "/time"), time as i64, "{kind}");
        assert_eq!(at(row, "/kind"), kind);
        assert_eq!(at(row, "/name").as_str().unwrap_or_default(), *name);
        let later = marks.iter().skip(index + 1).find(|mark| !is_phase(kind) || is_phase(mark.1));
        let until = later.map_or(u64::MAX, |mark| mark.0);
        let ([slab, pages], then) = (live_at(&changes, time), live_at(&changes, until));
        assert_eq!(
            (number(row, "/bytes_live"), number(row, "/page_bytes_live")),
            (slab, pages),
            "{kind} {name}"
        );
        let change = (number(row, "/bytes_change"), number(row, "/page_bytes_change"));
        assert_eq!(change, (then[0] - slab, then[1] - pages), "{kind} {name}");
    }
    let end = live_at(&changes, u64::MAX);
    assert_eq!([number(boot, "/bytes_live"), number(boot, "/page_bytes_live")], end);
    assert_eq!(number(&json(&["summary", "--json"], &file), "/slab/bytes_live"), end[0]);
    assert!(at(boot, "/starts_at_boot") == true);
    assert_eq!((number(boot, "/start"), number(boot, "/events_at_zero")), (0, 2));

    // Before user space: by a loop over each allocation.
    let user_space = 400 * MS;
    assert_eq!(number(boot, "/user_space"), user_space as i64);
    let before = at(boot, "/before_user_space");
    let early = |is_alloc| {
        let is_it = |change: &&Change| change.0 < user_space && change.1 == is_alloc && change.2.is_some();
        changes.iter().filter(is_it).count() as i64 * BYTES
    };
    assert_eq!(number(before, "/bytes_alloc"), early(true));
    assert_eq!(number(before, "/bytes_freed_before"), early(false));
    let rest = number(before, "/bytes_freed_after") + number(before, "/bytes_live");
    assert_eq!(rest, early(true) - early(false));
    assert!(number(before, "/bytes_freed_after") > 0 && number(before, "/bytes_live") > 0);

    // What stays: by module as `callers --by module` has it.
    let groups = json(&["callers", "--by", "module", "--sort", "live", "--json"], &file);
    assert_eq!(at(boot, "/by_module/groups"), at(&groups, "/groups"));
    let of_module =
        at(boot, "/by_module/groups").as_array().unwrap().iter().find(|row| row["module"] == "[extra]");
    let allocated = changes.iter().filter(|change| change.1 && change.2 == Some(MODULE)).count() as i64;
    assert_eq!(number(of_module.unwrap(), "/alloc_events"), allocated);
    let peak = json(&["peak", "--json"], &file);
    assert_eq!(at(boot, "/peak/bytes_live"), at(&peak, "/peak/bytes_live"));
    assert_eq!(at(boot, "/peak/time"), at(&peak, "/peak/time"));
}

#[test]
fn the_screen_answers_first_and_fits_a_terminal_of_24_lines() {
    let scratch = Scratch::new();
    let (file, ..) = whole(&scratch, 0);
    let screen = stdout(&run(&["boot"], &file));
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    // Answer and table; losses, missing events and commands are below.
    assert!(screen.lines().position(|line| line.starts_with("not shown")) < Some(24), "{screen}");
    assert!(screen.lines().next().unwrap().contains(" of slab memory"), "{screen}");
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("are still allocated at the end (0.9"), "{screen}");
    assert!(words.contains("Before user space began at 0.400 s, "), "{screen}");
    assert!(words.contains("extra "), "{screen}");
    let all = stdout(&run(&["boot", "-l", "0"], &file));
    for mark in [
        "first event",
        "initcalls: device",
        "initcall second_init",
        "program /sbin/modprobe",
        "init: /init",
        "init: /sbin/init",
        "module extra",
    ] {
        assert!(all.contains(mark), "{mark}: {all}");
    }
    // User space, and the mark of most growth.
    let few = stdout(&run(&["boot", "-l", "2"], &file));
    assert!(few.contains("init: /init") && few.contains("not shown: "), "{few}");
}

#[test]
fn a_recording_that_begins_later_says_so_first() {
    let scratch = Scratch::new();
    let (file, ..) = whole(&scratch, 100_000 * MS);
    let screen = stdout(&run(&["boot"], &file));
    assert!(
        screen.starts_with("The recording does not begin at boot (its clock shows 100.000 s): "),
        "{screen}"
    );
    assert!(screen.contains("init: /sbin/init") && !screen.contains("user space"), "{screen}");
    let rows = json(&["boot", "--json"], &file);
    assert!(at(&rows, "/boot/starts_at_boot") == false && at(&rows, "/boot/user_space").is_null());
    let marks = at(&rows, "/boot/marks").as_array().unwrap();
    assert!(marks.iter().all(|mark| at(mark, "/kind") != "first_process"), "{marks:#?}");
}

#[test]
fn without_events_of_a_boot_a_module_begins_with_its_first_event() {
    let scratch = Scratch::new();
    let (mut seed, mut live) = (9, Vec::new());
    let mut boot = Boot::new(0, false);
    boot.load(&mut seed, 0..90, &mut live);
    let (file, changes, _) = boot.write(&scratch);
    let rows = json(&["boot", "--json"], &file);
    let marks = at(&rows, "/boot/marks").as_array().unwrap();
    assert_eq!(marks.len(), 2);
    let first = changes.iter().find(|change| change.1 && change.2 == Some(MODULE)).unwrap().0;
    assert_eq!(
        (at(&marks[1], "/kind").as_str(), at(&marks[1], "/name").as_str()),
        (Some("module_use"), Some("extra"))
    );
    assert_eq!(number(&marks[1], "/time"), first as i64);
    assert_eq!(number(&marks[1], "/bytes_live"), live_at(&changes, first)[0]);
    assert!(at(&rows, "/boot/user_space").is_null() && at(&rows, "/boot/before_user_space").is_null());
    let screen = stdout(&run(&["boot"], &file));
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("initcall:*, module:module_load, sched:sched_process_exec not recorded"),
        "{screen}"
    );
}

#[test]
fn losses_make_a_boot_uncertain_from_the_loss_on() {
    let scratch = Scratch::new();
    let (mut seed, mut live) = (11, Vec::new());
    let mut boot = Boot::new(0, true);
    boot.load(&mut seed, 0..40, &mut live);
    boot.mark(45, "init", "/init");
    boot.load(&mut seed, 46..60, &mut live);
    boot.at(600 * MS);
    boot.made.writer().add_loss(0, Loss::counted(3)).unwrap();
    boot.load(&mut seed, 61..70, &mut live);
    boot.mark(75, "initcall_level", "late");
    boot.load(&mut seed, 76..99, &mut live);
    let (file, ..) = boot.write(&scratch);
    let rows = json(&["boot", "--json"], &file);
    let boot = at(&rows, "/boot");
    let uncertain = |row: &Value| number(row, "/bytes_live_uncertain");
    let marks = at(boot, "/marks").as_array().unwrap();
    assert_eq!((uncertain(&marks[0]), uncertain(&marks[1])), (0, 0));
    let late = marks.iter().find(|mark| at(mark, "/name") == "late").unwrap();
    let [of_late, live] = ["/bytes_live_uncertain", "/bytes_live"].map(|key| number(late, key));
    assert!(of_late > 0 && of_late <= live, "{marks:#?}");
    let summary = json(&["summary", "--json"], &file);
    assert_eq!(uncertain(boot), number(&summary, "/slab/bytes_live_uncertain"));
    assert!(number(boot, "/before_user_space/bytes_uncertain") > 0);
    let screen = stdout(&run(&["boot"], &file));
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("have no free event until the end") && words.contains(" uncertain"), "{screen}");
    assert!(!words.contains("still allocated at the end"), "{screen}");
}

#[test]
fn a_boot_whose_oldest_events_were_overwritten_begins_later() {
    let scratch = Scratch::new();
    let (mut seed, mut live) = (13, Vec::new());
    let mut boot = Boot::new(0, true);
    boot.before_clock(1, &mut live);
    let mut overwritten = Loss::counted(500);
    overwritten.overwritten = true;
    boot.made.writer().add_loss(0, overwritten).unwrap();
    boot.load(&mut seed, 50..90, &mut live);
    let (file, ..) = boot.write(&scratch);
    let screen = stdout(&run(&["boot"], &file));
    assert!(screen.starts_with("The recording begins at 0.5"), "{screen}");
    assert!(stdout(&run(&["boot"], &whole(&scratch, 0).0)).starts_with(|c: char| c.is_ascii_digit()));
}

#[test]
fn a_condition_on_lifetimes_is_refused() {
    let scratch = Scratch::new();
    let (file, ..) = whole(&scratch, 0);
    let refused = run(&["boot", "--where", "lifetime>1ms"], &file);
    assert!(!refused.status.success() && stderr(&refused).contains("boot cannot select by lifetime"));
}
