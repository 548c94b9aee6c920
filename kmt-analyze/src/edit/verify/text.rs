//! Results of all checks as a screen.

use super::rows::VerifyRow;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::counted;

/// Damaged places that are listed.
const PLACES_SHOWN: usize = 20;

/// The screen of a file: sound, unfinished or damaged, and the damage.
pub fn screen(file: &str, row: &VerifyRow) -> Screen {
    let mut screen = Screen::new(answer(file, row));
    screen.facts(facts(row));
    let shown = row.damages.len().min(PLACES_SHOWN);
    screen.table(
        Table::of_rows("", row.damages.iter().take(shown))
            .column(Column::number("damage at"), |damage| Cell::text(format!("{:#x}", damage.offset)))
            .column(Column::number("length"), |damage| Cell::Bytes(damage.len))
            .column(Column::text("error"), |damage| Cell::text(&damage.error)),
    );
    let left = row.damages_total.saturating_sub(shown as u64);
    if left > 0 {
        screen.note(format!("Not shown: {}.", counted(left, "damaged place", "damaged places")));
    }
    if row.sound && row.finished {
        screen.next("summary", "slab and page memory");
    } else {
        screen.next("recover -o WHOLE.kmt", "a sound file of all that can be read");
    }
    screen
}

fn answer(file: &str, row: &VerifyRow) -> String {
    let events = counted(row.events, "event", "events");
    match (row.sound, row.finished) {
        (true, true) => format!("{file} is sound: all checksums match, and all {events} can be read."),
        (true, false) => format!(
            "{file} is unfinished: {events} can be read, and the end is missing. The writer was interrupted, or the copy was cut."
        ),
        (false, _) => {
            let places = match row.damages_total {
                0 => String::new(),
                places => format!(" in {}", counted(places, "place", "places")),
            };
            let end = if row.finished { "" } else { ", and its end is missing" };
            format!("{file} is damaged{places}{end}: {events} can be read.")
        }
    }
}

fn facts(row: &VerifyRow) -> Vec<(&'static str, String)> {
    let kinds: Vec<String> = row.chunks.iter().map(|(kind, n)| format!("{kind}={n}")).collect();
    let mut facts = vec![("chunks", kinds.join(", "))];
    facts.extend(row.index.map(|index| ("index", index_text(index).to_owned())));
    if row.events_unreadable > 0 {
        let events = counted(row.events_unreadable, "event", "events");
        facts.push(("unreadable", format!("fields of {events}")));
    }
    for unknown in &row.unknown_fields {
        let fields = unknown.fields.join(", ");
        facts.push(("unknown", format!("{fields} of {}: of a later version of the format", unknown.class)));
    }
    facts
}

/// The state of the index; its JSON keeps the words that it always had.
fn index_text(index: &str) -> &str {
    match index {
        "agrees" => "matches the chunks",
        "tells another number of events than the chunks" => {
            "wrong: its number of events is not that of the chunks"
        }
        "cannot be used" => "unusable",
        other => other,
    }
}
