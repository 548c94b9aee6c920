//! A screen as lines of text: the answer, its parts, notes, trust, and the next commands.
//!
//! A report makes a `Screen`; `layout` fits its tables and `wrap` its sentences to the width. `render/out` prints the result.
//! Each line is made harmless before colour is added, because texts come from the file. Commands are whole at any width, so that
//! they can be copied to a shell.

use std::borrow::Cow;

use kmt_common::text::{LINE_MAX, cut, tame};

use super::layout::{Fitted, Table};
use super::wrap::{width_of, wrap};
use super::{CommandLine, Ink, Lead, Next, Screen, ScreenPart, paint};
use crate::render::look::Look;
use crate::render::words::counted;

/// Note where a table has a number that is unknown.
const UNKNOWN_NOTE: &str = "?: unknown; the trace has no events or stacks for it.";

/// End of a line that a shell continues with the next one.
const CONTINUED: &str = " \\";

/// Longest line of a finding with its command beside it.
const LEAD_MAX: usize = 160;

/// Fewest characters of a fact beside its name.
const FACT_MIN: usize = 24;

/// A sentence without what steers the terminal; a very long one is cut.
fn harmless(text: &str) -> Cow<'_, str> {
    match cut(text, LINE_MAX) {
        Cow::Borrowed(text) => tame(text),
        Cow::Owned(text) => Cow::Owned(tame(&text).into_owned()),
    }
}

/// A screen as text. `trust` has the sentences on how far it can be trusted; `arguments` are the trace and the options that
/// commands on it need, as a shell reads them.
///
/// Nothing from a file steers the terminal: each line is made harmless before colour is added.
pub fn page(screen: &Screen, trust: &[String], arguments: &[String], look: &Look) -> String {
    let mut out = String::new();
    for (number, lead) in screen.leads.iter().enumerate() {
        // One command below several sentences.
        let is_repeated = screen.leads.get(number + 1).is_some_and(|next| next.command == lead.command);
        match is_repeated {
            true => sentences(&mut out, &lead.sentence, Ink::Answer, look),
            false => self::lead(&mut out, lead, arguments, look),
        }
    }
    for sentence in &screen.answer {
        sentences(&mut out, sentence, Ink::Answer, look);
    }
    let mut notes = Vec::new();
    for part in &screen.parts {
        gap(&mut out);
        self::part(&mut out, &mut notes, part, look);
    }
    for note in &screen.notes {
        add(&mut notes, note);
    }
    if !notes.is_empty() {
        gap(&mut out);
        notes.iter().for_each(|note| sentences(&mut out, note, Ink::Plain, look));
    }
    if !trust.is_empty() {
        gap(&mut out);
        trust.iter().for_each(|line| sentences(&mut out, line, Ink::Warning, look));
    }
    if !screen.next.is_empty() {
        gap(&mut out);
        next(&mut out, &screen.next, arguments, look);
    }
    out
}

/// A finding: the command beside it where both fit, else below it.
fn lead(out: &mut String, lead: &Lead, arguments: &[String], look: &Look) {
    let command = command(&lead.command, arguments);
    let sentence = harmless(&lead.sentence);
    let length = width_of(&sentence) + 2 + width_of(&command);
    // A line without a limit would hide the command behind the sentence. A recording is a step of its own.
    if length <= look.width && length <= LEAD_MAX && !lead.command.is_recording() {
        out.push_str(&paint(&sentence, Ink::Answer, look.colour));
        line_of(out, &format!("  {command}"), Ink::Dim, look);
        return;
    }
    sentences(out, &lead.sentence, Ink::Answer, look);
    broken(&lead.command, arguments, 4, look.width)
        .iter()
        .for_each(|line| line_of(out, line, Ink::Dim, look));
}

/// Adds a note once.
fn add(notes: &mut Vec<String>, note: &str) {
    if !notes.iter().any(|other| other == note) {
        notes.push(note.to_owned());
    }
}

/// An empty line, except at the top.
fn gap(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

fn sentences(out: &mut String, text: &str, ink: Ink, look: &Look) {
    for line in wrap(&harmless(text), look.width, 0) {
        line_of(out, &line, ink, look);
    }
}

fn line_of(out: &mut String, line: &str, ink: Ink, look: &Look) {
    out.push_str(&paint(line, ink, look.colour));
    out.push('\n');
}

fn part(out: &mut String, notes: &mut Vec<String>, part: &ScreenPart, look: &Look) {
    match part {
        ScreenPart::Table(table) => self::table(out, notes, table, look),
        ScreenPart::Lines { heading, lines } => {
            if !heading.is_empty() {
                sentences(out, heading, Ink::Heading, look);
            }
            for line in lines {
                let indent = line.len() - line.trim_start().len();
                let wrapped = wrap(&harmless(line.trim_start()), look.width.saturating_sub(indent), 2);
                for line in wrapped {
                    line_of(out, &format!("{}{line}", " ".repeat(indent)), Ink::Plain, look);
                }
            }
        }
        ScreenPart::Facts(facts) => self::facts(out, facts, look),
        ScreenPart::Verbatim(text) => out.push_str(&tame(text)),
    }
}

/// Facts beside their names; under them where the terminal is narrow.
fn facts(out: &mut String, facts: &[(&'static str, String)], look: &Look) {
    let names = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 2;
    let beside = if look.width >= names + FACT_MIN { names } else { 2 };
    for (name, fact) in facts {
        let mut name = format!("{name:<beside$}");
        if name.chars().count() > beside {
            line_of(out, &name, Ink::Plain, look);
            name = String::new();
        }
        for line in wrap(&harmless(fact), look.width.saturating_sub(beside), 0) {
            line_of(out, format!("{name:<beside$}{line}").trim_end(), Ink::Plain, look);
            name.clear();
        }
    }
}

/// A table; the meanings of its columns go to the notes.
fn table(out: &mut String, notes: &mut Vec<String>, table: &Table, look: &Look) {
    if !table.title.is_empty() {
        sentences(out, &table.title, Ink::Heading, look);
    }
    let Fitted { lines, hidden, explanations, has_unknown } = table.fit(look);
    for line in &lines {
        out.push_str(line);
        out.push('\n');
    }
    explanations.iter().for_each(|note| add(notes, note));
    if has_unknown {
        add(notes, UNKNOWN_NOTE);
    }
    let more = table.rows_total.saturating_sub(table.rows.len()) as u64;
    let mut rest = Vec::new();
    if more > 0 {
        rest.push(format!("{} (-l 0)", counted(more, table.noun.0, table.noun.1)));
    }
    if !hidden.is_empty() {
        rest.push(format!("{} (--wide)", hidden.join(", ")));
    }
    if !rest.is_empty() {
        for line in wrap(&format!("not shown: {}", rest.join("; ")), look.width, 2) {
            line_of(out, &line, Ink::Dim, look);
        }
    }
}

/// Number of commands from which on a list is long.
const LONG: usize = 5;

/// Commands with their reasons beside them. Where a line would be too long, the reason is above it; a long list leaves it out.
fn next(out: &mut String, all: &[Next], arguments: &[String], look: &Look) {
    let lines = layout(all, arguments);
    if lines.iter().all(|line| width_of(line) <= look.width) {
        lines.iter().for_each(|line| line_of(out, line, Ink::Dim, look));
        return;
    }
    for next in all {
        let command = format!("  {}", command(&next.command, arguments));
        let whole = format!("{command}  # {}", harmless(&next.reason));
        let lines = [Some(whole), Some(command).filter(|_| all.len() >= LONG)];
        if let Some(line) = lines.iter().flatten().find(|line| width_of(line) <= look.width) {
            line_of(out, line, Ink::Dim, look);
            continue;
        }
        let reason = format!("# {}", next.reason);
        for line in wrap(&harmless(&reason), look.width.saturating_sub(2), 2) {
            line_of(out, &format!("  {line}"), Ink::Dim, look);
        }
        let lines = broken(&next.command, arguments, 2, look.width);
        lines.iter().for_each(|line| line_of(out, line, Ink::Dim, look));
    }
}

/// Commands with their reasons beside them.
fn layout(all: &[Next], arguments: &[String]) -> Vec<String> {
    let commands: Vec<String> = all.iter().map(|next| command(&next.command, arguments)).collect();
    let widest = commands.iter().map(|command| width_of(command)).max().unwrap_or(0);
    let line = |(next, command): (&Next, &String)| {
        let fill = " ".repeat(widest - width_of(command));
        format!("  {command}{fill}  # {}", harmless(&next.reason))
    };
    all.iter().zip(&commands).map(line).collect()
}

/// A command on the file, in one line.
fn command(line: &CommandLine, arguments: &[String]) -> String {
    broken(line, arguments, 0, usize::MAX).concat()
}

/// A command on the file. A line that is too long is continued behind a backslash, so that a shell reads all of it.
fn broken(command: &CommandLine, arguments: &[String], indent: usize, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = format!("{:indent$}{}", "", harmless(&command.with_program()));
    let arguments: &[String] = if command.is_recording() { &[] } else { arguments };
    for (at, argument) in arguments.iter().enumerate() {
        let argument = harmless(argument);
        let end = if at + 1 == arguments.len() { 0 } else { CONTINUED.len() };
        if width_of(&line) + 1 + width_of(&argument) + end > width {
            lines.push(line + CONTINUED);
            line = format!("{:indent$}    {argument}", "");
        } else {
            line.push(' ');
            line.push_str(&argument);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::screen::{Cell, Column};

    /// Whatever part of a screen a text is in: its beginning is shown, and how long it is.
    #[test]
    fn every_part_shows_the_beginning_of_a_long_text() {
        let long = "x".repeat(1 << 20);
        let mut screen = Screen::new(long.clone());
        screen.leads(vec![Lead { sentence: long.clone(), command: CommandLine::default().flag(&long) }]);
        screen.facts(vec![("kernel", long.clone())]);
        screen.lines(long.clone(), vec![long.clone()]);
        screen.note(format!("A note: {long}"));
        screen.next(CommandLine::default().flag(&long), long.clone());
        let columns = [Column::name("a"), Column::text("b"), Column::whole("c")];
        let mut table = Table::new(long.clone(), columns);
        table.row([Cell::symbol(&long), Cell::text(&long), Cell::text(&long)]);
        screen.table(table);
        for width in [80, Look::NO_LIMIT] {
            let shown = page(
                &screen,
                &[format!("Trust: {long}")],
                &["a.kmt".to_owned()],
                &Look { width, ..Look::default() },
            );
            assert!(shown.len() < 20 * LINE_MAX, "{} bytes", shown.len());
            assert!(shown.matches("1048576").count() >= 6, "{shown}");
        }
    }

    #[test]
    fn commands_are_whole_at_any_width() {
        let mut screen = Screen::new("An answer.");
        screen.leads(vec![Lead { sentence: "It grows.".to_owned(), command: "leaks".into() }]);
        screen.next("callers --sort live", "who holds it");
        let arguments = ["--vmlinux 'a b/vmlinux'".to_owned(), "'a b/trace.kmt'".to_owned()];
        let at = |width| page(&screen, &[], &arguments, &Look { width, ..Look::default() });
        assert_eq!(
            at(100),
            "It grows.  kmt-analyze leaks --vmlinux 'a b/vmlinux' 'a b/trace.kmt'\nAn answer.\n\n  \
             kmt-analyze callers --sort live --vmlinux 'a b/vmlinux' 'a b/trace.kmt'  # who holds it\n"
        );
        assert_eq!(
            at(50),
            "It grows.\n    kmt-analyze leaks --vmlinux 'a b/vmlinux' \\\n        'a b/trace.kmt'\nAn answer.\n\n  \
             # who holds it\n  kmt-analyze callers --sort live \\\n      --vmlinux 'a b/vmlinux' 'a b/trace.kmt'\n"
        );
    }

    /// A recording has no file, and is never behind a sentence, whose full stop would be copied.
    #[test]
    fn a_recording_is_on_a_line_of_its_own() {
        let mut screen = Screen::default();
        let command = CommandLine::recording("-d 3s").argument("--").argument("a b");
        screen.leads(vec![Lead { sentence: "Record again:".to_owned(), command: command.clone() }]);
        screen.next(command, "again");
        screen.next("leaks", "growth");
        let shown = page(&screen, &[], &["a.kmt".to_owned()], &Look { width: 100, ..Look::default() });
        assert_eq!(
            shown,
            "Record again:\n    kmt-capture record -d 3s -- 'a b'\n\n  kmt-capture record -d 3s -- 'a b'  # again\n  \
             kmt-analyze leaks a.kmt            # growth\n"
        );
    }

    #[test]
    fn commands_on_files_with_wide_letters_fit_the_terminal() {
        let mut screen = Screen::default();
        screen.next("callers", "who holds it");
        let at =
            |width| page(&screen, &[], &["日本語日本語.kmt".to_owned()], &Look { width, ..Look::default() });
        assert_eq!(at(54), "  kmt-analyze callers 日本語日本語.kmt  # who holds it\n");
        assert_eq!(at(53), "  # who holds it\n  kmt-analyze callers 日本語日本語.kmt\n");
        assert_eq!(at(36), "  # who holds it\n  kmt-analyze callers \\\n      日本語日本語.kmt\n");
    }

    #[test]
    fn facts_are_beside_or_under_their_names() {
        let mut screen = Screen::default();
        screen.facts(vec![("file", "a.kmt".into()), ("page size", "one two three four five six".into())]);
        let at = |width| page(&screen, &[], &[], &Look { width, ..Look::default() });
        assert_eq!(at(35), "file       a.kmt\npage size  one two three four five\n           six\n");
        assert_eq!(at(20), "file\n  a.kmt\npage size\n  one two three four\n  five six\n");
    }
}
