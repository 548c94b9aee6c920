//! Forty random selections: sums by any keys are the totals of `summary` and of `pages`.

use std::path::Path;

use crate::groups::{KEYS, check};
use crate::model::next;
use crate::page_groups::{PAGE_KEYS, check_pages};
use crate::support::files::{Scratch, data, json};

/// Random choices: the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        next(&mut self.0) % limit
    }

    /// One of some texts.
    pub fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len() as u64) as usize]
    }

    /// A condition of any key, on values that the captures have.
    pub fn condition(&mut self) -> String {
        match self.below(9) {
            0 => format!("size{}{}", self.of(&["<", ">", "<=", ">="]), 8 << self.below(9)),
            1 => format!("bytes_req{}{}", self.of(&["<", ">"]), 1 + self.below(4_000)),
            2 => format!("node={}", self.below(2)),
            3 => format!("cpu{}{}", self.of(&["=", "!="]), self.below(4)),
            4 => format!("lifetime{}{}us", self.of(&["<", ">"]), 1 + self.below(20_000)),
            5 => format!("comm{}{}", self.of(&["=", "!="]), self.of(&["sh", "<idle>", "true"])),
            6 => format!("cache{}{}", self.of(&["=", "!="]), self.of(&["kmalloc-64", "vm_area_struct"])),
            7 => format!("call_site~{}", self.of(&["alloc", "anon_vma", "^mas_", "file"])),
            _ => format!("pid{}{}", self.of(&["<", ">"]), self.below(300)),
        }
    }

    /// One to three conditions, and at times a range of time or an instant.
    fn selection(&mut self, condition: fn(&mut Self) -> String) -> Vec<String> {
        let mut selection = Vec::new();
        for _ in 0..1 + self.below(3) {
            selection.extend(["--where".to_owned(), condition(self)]);
        }
        match self.below(4) {
            0 => {
                // Parts of the shortest capture, of 40 ms.
                let from = self.below(15);
                let to = from + 1 + self.below(20);
                selection.extend(["--time".to_owned(), format!("+0.{from:03}..+0.{to:03}")]);
            }
            1 => selection.extend(["--at".to_owned(), format!("+0.{:03}", self.below(38))]),
            _ => {}
        }
        selection
    }
}

fn words(selection: &[String]) -> Vec<&str> {
    selection.iter().map(String::as_str).collect()
}

#[test]
fn sums_of_random_selections_are_those_of_summary() {
    let scratch = Scratch::new();
    let files =
        ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"].map(|name| scratch.convert(&data(name)));
    let mut random = Random::new(45);
    let mut allocs = 0;
    for number in 0..40 {
        let file: &Path = &files[number % files.len()];
        let selection = random.selection(Random::condition);
        let selection = words(&selection);
        let summary = json(&[&["summary", "--json"], &*selection].concat(), file);
        allocs += u64::from(summary["slab"]["alloc_events"].as_u64().unwrap_or(0) > 0);
        check(file, random.of(&KEYS), &selection, &summary);
    }
    assert!((10..40).contains(&allocs), "{allocs} of 40 selections have allocations");
}

#[test]
fn sums_of_random_selections_of_pages_are_all_pages() {
    let scratch = Scratch::new();
    let files = ["x86_64-6.12", "s390x-6.1", "armhf-6.1"].map(|name| scratch.convert(&data(name)));
    let mut random = Random::new(46);
    for number in 0..20 {
        let selection = random.selection(|random| match random.below(3) {
            0 => format!("order{}{}", random.of(&["<", ">", "="]), random.below(4)),
            1 => format!("cpu{}{}", random.of(&["=", "!="]), random.below(4)),
            _ => format!("comm{}{}", random.of(&["=", "!="]), random.of(&["sh", "<idle>", "true"])),
        });
        check_pages(&files[number % files.len()], random.of(&PAGE_KEYS[3..]), &words(&selection));
    }
}
