//! Lines and events of a text that need a note: how many, and where the first one is.

use super::description::NO_KMEM;
use super::text_sections::Shortage;
use crate::import::Bounds;
use crate::import::text::{NO_TASK, Schema};
use kmt_common::text::count;

/// A number of lines or events.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counted {
    number: u64,
    /// Line of the first one.
    first: u64,
}

/// Counts of a text.
#[derive(Debug, Default)]
pub struct TextCounts {
    /// Lines until now.
    pub lines: u64,
    /// True if there are events of the system kmem.
    pub has_kmem: bool,
    /// Lines that are not events.
    pub other: Counted,
    /// Lines that look like events and cannot be read.
    pub torn: Counted,
    /// Lines with several readings.
    pub ambiguous: Counted,
    /// Events without a task.
    pub taskless: Counted,
    /// Stacks without a frame.
    pub frameless: Counted,
    /// Ends of functions without a begin.
    pub nameless: Counted,
    /// Events whose pointer the kernel could not print.
    pub unprinted: Counted,
    /// Events with a number that is missing or cannot be read.
    pub unreadable: Counted,
    /// Events of a layout that is invalid.
    pub kinds_left_out: Counted,
    /// Events of a layout beyond the limit.
    pub layouts_left_out: Counted,
    /// Events with more pairs than are kept.
    pub cut: Counted,
    /// Entries that headers promise, where lines are missing.
    pub shortage: Shortage,
}

impl TextCounts {
    /// Adds the line that was read last to one of the counts.
    pub fn add(&mut self, of: impl FnOnce(&mut Self) -> &mut Counted) {
        let line = self.lines;
        let counted = of(self);
        if counted.number == 0 {
            counted.first = line;
        }
        counted.number += 1;
    }

    /// Adds the entries that a header promises, and that the text lacks.
    pub fn short(&mut self, shortage: Shortage) {
        self.shortage = self.shortage.and(shortage);
    }

    /// A note on each count, and on what the schema left out.
    pub fn notes(&self, schema: &Schema, bounds: &Bounds, notes: &mut Vec<String>) {
        let lines = |counted: Counted, what: &str, which: &str| {
            (counted.number > 0).then(|| {
                let at = if what == "line" { "line" } else { "in line" };
                format!("{} {which}; the first is {at} {}", count(counted.number, what), counted.first)
            })
        };
        notes.extend(lines(self.other, "line", "without an event: left out"));
        if !self.has_kmem {
            notes.push(NO_KMEM.to_owned());
        }
        notes.extend(self.shortage.note());
        notes.extend([
            lines(self.torn, "line", "with a part of an event: counted as lost"),
            lines(self.ambiguous, "line", "can be read in several ways, because names of tasks look like columns; the right-most reading is used"),
            lines(self.unreadable, "event", "without a number, or with one that cannot be read: counted as lost"),
        ].into_iter().flatten());
        let events = |counted: Counted, what: &str, which: String| {
            (counted.number > 0).then(|| format!("{} {which}", count(counted.number, what)))
        };
        let task = format!("without a task in the text: it is unknown, and its number is {NO_TASK}");
        notes.extend(
            [
                events(self.taskless, "event", task),
                events(
                    self.frameless,
                    "stack",
                    "without frames in the text (option `fields`): left out".to_owned(),
                ),
                events(self.nameless, "end", "of functions without a begin in the text: left out".to_owned()),
                events(self.unprinted, "event", "without a pointer (early boot): counted as lost".to_owned()),
                events(self.kinds_left_out, "event", "of an invalid layout: counted as lost".to_owned()),
            ]
            .into_iter()
            .flatten(),
        );
        self.bounded(schema, bounds, notes);
        if let Some(name) = &schema.gfp.unknown {
            notes.push(format!("unknown allocation flags are left out, such as {name}"));
        }
    }

    /// Notes on exceeded limits.
    fn bounded(&self, schema: &Schema, bounds: &Bounds, notes: &mut Vec<String>) {
        let Bounds { layouts, functions, pairs, .. } = bounds;
        for (number, what, name) in [
            (
                self.layouts_left_out.number,
                format!("events have a layout beyond the first {layouts}: they are counted as lost"),
                "layouts",
            ),
            (
                schema.symbols.left_out,
                format!("addresses are in functions beyond the first {functions}: they are left out"),
                "functions",
            ),
            (
                self.cut.number,
                format!("events have more than {pairs} fields: the others are left out"),
                "pairs",
            ),
        ] {
            if number > 0 {
                notes.push(format!("{number} {what}; --limit {name}=SIZE raises the limit"));
            }
        }
    }
}
