//! A report's screen as HTML: what the terminal shows, as sentences and tables.
//!
//! Reports have one screen for the terminal and the page. Texts are escaped with `html_text`, and long ones are cut as
//! on a terminal. `document` puts the results into the page.

use kmt_common::text::{LINE_MAX, TEXT_MAX, cut};

use crate::chart::svg::html_text;
use crate::render::look::Look;
use crate::render::screen::{Screen, ScreenPart, Table};

/// The screen, without its findings.
pub fn html(screen: &Screen, look: &Look) -> String {
    let mut out = String::new();
    for sentence in &screen.answer {
        out += &format!("<p class=answer>{}</p>\n", self::sentence(sentence));
    }
    for part in &screen.parts {
        match part {
            ScreenPart::Table(table) => out += &self::table(table, look),
            ScreenPart::Lines { heading, lines } => {
                let lines: String = lines.iter().map(|line| sentence(line) + "\n").collect();
                out += &format!("<h4>{}</h4>\n<pre>{lines}</pre>\n", sentence(heading));
            }
            ScreenPart::Facts(facts) => {
                let fact =
                    |(name, fact): &(&str, String)| format!("<dt>{}<dd>{}", html_text(name), sentence(fact));
                out += &format!("<dl>{}</dl>\n", facts.iter().map(fact).collect::<String>());
            }
            ScreenPart::Verbatim(text) => out += &format!("<pre>{}</pre>\n", html_lines(text.lines())),
        }
    }
    for note in &screen.notes {
        out += &format!("<p class=note>{}</p>\n", sentence(note));
    }
    out
}

/// A sentence; a very long one is cut, as on a terminal.
pub fn sentence(text: &str) -> String {
    html_text(&cut(text, LINE_MAX))
}

/// Lines of text; each ends with a line break.
pub fn html_lines<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    lines.map(|line| html_text(line) + "\n").collect()
}

fn table(table: &Table, look: &Look) -> String {
    let name = if table.title.is_empty() { table.noun.1 } else { &table.title };
    // Where it does not fit, it scrolls, by keyboard too.
    let mut out =
        format!("<div class=wide tabindex=0 role=region aria-label=\"{}\"><table>\n", html_text(name));
    if !table.title.is_empty() {
        out += &format!("<caption>{}</caption>\n", html_text(&table.title));
    }
    let class =
        |at: usize| if table.columns.get(at).is_some_and(|c| c.is_number()) { " class=n" } else { "" };
    let heading = |(at, column): (usize, &crate::render::screen::Column)| {
        format!("<th scope=col{}>{}</th>", class(at), html_text(column.heading))
    };
    let headings: String = table.columns.iter().enumerate().map(heading).collect();
    out += &format!("<thead><tr>{headings}</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        let cell = |(at, cell): (usize, &crate::render::screen::Cell)| {
            format!("<td{}>{}</td>", class(at), html_text(&cut(&cell.shown(look), TEXT_MAX)))
        };
        out += &format!("<tr>{}</tr>\n", row.iter().enumerate().map(cell).collect::<String>());
    }
    out += "</tbody></table></div>\n";
    let more = table.rows_total.saturating_sub(table.rows.len());
    if more > 0 {
        out += &format!(
            "<p class=note>{more} more {}</p>\n",
            if more == 1 { table.noun.0 } else { table.noun.1 }
        );
    }
    for note in table.explanations() {
        out += &format!("<p class=note>{}</p>\n", html_text(note));
    }
    out
}
