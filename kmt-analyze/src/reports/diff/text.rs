//! The screen of a comparison: live memory first, then allocated memory.

use super::difference::{Changes, NameRow};
use super::rows::{DiffRow, DiffRows, SideRow};
use super::{DiffKey, DiffOptions};
use crate::render::screen::{Cell, Column, CommandLine, Ink, Screen, ScreenPart, Table};
use crate::render::words::{count, counted, share};
use crate::reports::diff::difference::Difference;
use crate::trace::names::function_of;

/// The growth, the sides, and the rows that differ.
pub fn screen(DiffRows { diff }: &DiffRows, options: &DiffOptions) -> Screen {
    let mut screen = Screen::default();
    answer(&mut screen, diff, options);
    if let Some(sentence) = limit(diff, options) {
        screen.answer(sentence);
    }
    let sides = [("A", &diff.before), ("B", &diff.after)]
        .map(|(name, side)| format!("{name}: {}, {}", side.name, runs(side)));
    screen.parts.push(ScreenPart::Lines { heading: String::new(), lines: sides.to_vec() });
    let rate = if options.rates { ", per second" } else { "" };
    let live =
        table(format!("live bytes at the end{rate}"), &diff.shown.live, |row| &row.bytes_live, options);
    let allocated =
        table(format!("allocated bytes{rate}"), &diff.shown.allocated, |row| &row.bytes_alloc, options);
    for mut table in [live, allocated] {
        table.explain("noise", format!("noise: standard error of the change, from {}.", diff.noise_from));
        screen.table(table);
    }
    if diff.rows_beyond_noise > 0 {
        screen.note(
            "Beyond noise: chance alone brings a change of this size in less than 1 of 100 comparisons, and it is over 0.1 % of all bytes.",
        );
    }
    let by = if options.by == DiffKey::Cache { "call-site" } else { "cache" };
    screen
        .next(CommandLine::from("diff").option("--by", by), format!("the same by {}", by.replace('-', " ")));
    if !options.all {
        screen.next("diff --all", "rows within noise too");
    }
    screen
}

/// Growth of live slab memory, then the number of rows that differ.
fn answer(screen: &mut Screen, diff: &DiffRow, options: &DiffOptions) {
    let all = counted(diff.rows_total as u64, "row", "rows");
    if diff.rows_beyond_noise == 0 {
        screen.answer(format!("Nothing differs beyond noise in {all}."));
        return;
    }
    let look = &options.output.show.look;
    let rate = if options.rates { " a second" } else { "" };
    let changes = [diff.live_growth_beyond_noise, diff.live_decrease_beyond_noise];
    screen.answer(live_change(changes, &most_grown(diff), rate, |value| bytes(value).shown(look)));
    let most = diff.shown.allocated.rows.first().filter(|row| row.bytes_alloc.is_real()).map_or(
        String::new(),
        |row| {
            let change = row.bytes_alloc.change();
            let (more, change) =
                (if change < 0.0 { "less" } else { "more" }, bytes(change.abs()).shown(look));
            format!("; {} allocated {change}{rate} {more}", function_of(&row.name))
        },
    );
    screen.answer(format!("{} of {all} differ beyond noise{most}.", count(diff.rows_beyond_noise as u64)));
    screen.answer.extend(losses([&diff.before, &diff.after]));
}

/// Lost events, which the noise does not have: they can make a difference of rows.
fn losses(sides: [&SideRow; 2]) -> Option<String> {
    let of = |(name, side): (&str, &SideRow)| {
        let all = side.runs.iter().map(|run| run.events).fold(0, u64::saturating_add);
        let lost = side.runs.iter().map(|run| run.lost_events_counted).fold(0, u64::saturating_add);
        side.is_lossy().then(|| match lost {
            0 => format!("{name} lost an unknown number of events"),
            _ => format!(
                "{name} lost {} ({})",
                counted(lost, "event", "events"),
                share(lost, all.saturating_add(lost))
            ),
        })
    };
    let lost: Vec<String> = ["A", "B"].into_iter().zip(sides).filter_map(of).collect();
    (!lost.is_empty()).then(|| {
        format!("Lost events are not in the noise and can make these differences: {}.", lost.join(", "))
    })
}

/// Growth of live slab memory in rows beyond noise with its largest part, the decrease in others, and both together.
fn live_change(
    [growth, decrease]: [f64; 2],
    most: &str,
    rate: &str,
    shown: impl Fn(f64) -> String,
) -> String {
    let (grown, fallen) = (shown(growth), shown(decrease));
    match (growth >= 0.5, decrease >= 0.5) {
        (false, false) => "Live slab memory did not change beyond noise.".to_owned(),
        (true, false) => format!("Live slab memory grew by {grown}{rate} beyond noise{most}."),
        (false, true) => format!("Live slab memory fell by {fallen}{rate} beyond noise."),
        (true, true) => {
            let net = growth - decrease;
            let verb = if net < 0.0 { "fell" } else { "grew" };
            let net = shown(net.abs());
            format!(
                "Live slab memory {verb} by {net}{rate} beyond noise: {grown} more in rows that grew{most}, {fallen} less in others."
            )
        }
    }
}

/// The smallest change that one recording of each side can show, of the row with most allocated bytes.
fn limit(diff: &DiffRow, options: &DiffOptions) -> Option<String> {
    let row = diff.shown.largest.as_ref()?;
    let exact = &row.bytes_alloc;
    let least = exact.least_beyond_noise();
    let share = match exact.before {
        before if before > 0.0 => format!(" ({})", share(least as u64, before as u64)),
        _ => String::new(),
    };
    Some(format!(
        "Changes of the bytes allocated at {} below {}{}{share} cannot be distinguished from noise: repeat the recording (`kmt-capture record --repeat 3`), and add its files (--repeat-before, --repeat-after).",
        function_of(&row.name),
        bytes(least).shown(&options.output.show.look),
        if options.rates { " a second" } else { "" },
    ))
}

/// The row of slab memory that grew most.
fn most_grown(diff: &DiffRow) -> String {
    let change = |row: &NameRow| row.bytes_live.change();
    let slab = diff.shown.live.rows.iter().filter(|row| row.kind != "pages" && row.bytes_live.is_real());
    slab.max_by(|a, b| change(a).total_cmp(&change(b))).map_or(String::new(), |row| {
        let part = share(change(row).max(0.0) as u64, diff.live_growth_beyond_noise as u64);
        format!(", {part} of it by {}", function_of(&row.name))
    })
}

/// Events and lengths of the runs of a side.
fn runs(side: &SideRow) -> String {
    let seconds: Option<Vec<String>> =
        side.runs.iter().map(|run| run.seconds.map(|seconds| format!("{seconds:.2}"))).collect();
    let (lengths, unit) = match seconds {
        Some(seconds) => (seconds, "s"),
        None => (side.runs.iter().map(|run| count(run.length)).collect(), "ticks"),
    };
    let events: Vec<String> = side.runs.iter().map(|run| count(run.events)).collect();
    let lost = if side.is_lossy() { " (events were lost)" } else { "" };
    format!("{} events in {} {unit}{lost}", events.join(" + "), lengths.join(" + "))
}

/// Rows of one figure.
fn table(
    title: String,
    changes: &Changes,
    figure: fn(&NameRow) -> &Difference,
    options: &DiffOptions,
) -> Table {
    let is_allocated = title.starts_with("allocated");
    let verdict = |is_real: bool| match is_real {
        true => Cell::Verdict("yes".to_owned(), Ink::Bad),
        false => Cell::Verdict("no".to_owned(), Ink::Plain),
    };
    let exact = |row: &NameRow| *figure(row);
    let noise = |row: &NameRow| bytes(exact(row).noise).shown(&options.output.show.look);
    Table::of_rows(title, &changes.rows)
        .of("row", "rows", changes.total)
        .column(Column::name("name"), |row| Cell::symbol(&row.name))
        .column(Column::whole("kind").leaves(3), |row| Cell::text(row.kind))
        .column(Column::number("A"), |row| bytes(exact(row).before))
        .column(Column::number("B"), |row| bytes(exact(row).after))
        .column(Column::number("change"), |row| Cell::BytesChange(exact(row).change().round() as i64))
        .column(Column::number("change %").leaves(1), |row| percent(&exact(row)))
        .column(Column::number("noise").leaves(2), |row| Cell::text(format!("±{}", noise(row))))
        .column_if(is_allocated, Column::number("share A").leaves(4), |r| {
            Cell::Percent(r.share_before_percent)
        })
        .column_if(is_allocated, Column::number("share B").leaves(4), |r| {
            Cell::Percent(r.share_after_percent)
        })
        .column_if(options.all, Column::whole("beyond noise"), |row| verdict(figure(row).is_real()))
        .into()
}

/// A number of bytes; one below zero is of a window in which more was freed.
fn bytes(value: f64) -> Cell {
    let value = value.round() as i64;
    u64::try_from(value).map_or(Cell::BytesChange(value), Cell::Bytes)
}

/// The change in percent.
fn percent(exact: &Difference) -> Cell {
    match exact.before {
        before if before != 0.0 => Cell::text(format!("{:+.1}%", 100.0 * exact.change() / before.abs())),
        _ if exact.change() != 0.0 => Cell::text("new"),
        _ => Cell::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::live_change;

    #[test]
    fn the_headline_has_what_grew_and_what_fell() {
        let said = |growth, decrease| {
            live_change([growth, decrease], ", 60 % of it by f", " a second", |bytes| format!("{bytes} B"))
        };
        assert_eq!(said(0.4, 0.0), "Live slab memory did not change beyond noise.");
        assert_eq!(said(9.0, 0.0), "Live slab memory grew by 9 B a second beyond noise, 60 % of it by f.");
        assert_eq!(said(0.0, 9.0), "Live slab memory fell by 9 B a second beyond noise.");
        for (growth, decrease, net) in [(9.0, 12.0, "fell by 3 B"), (12.0, 9.0, "grew by 3 B")] {
            assert_eq!(
                said(growth, decrease),
                format!(
                    "Live slab memory {net} a second beyond noise: {growth} B more in rows that grew, 60 % of it by f, {decrease} B less in others."
                )
            );
        }
    }
}
