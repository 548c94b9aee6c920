//! The screen of a comparison: live memory first, then allocated memory.
//!
//! `rows` has the figures of both sides, with the noise between runs of one side; this file names the largest changes
//! beyond noise and makes the tables. It also reports losses of either side and the smallest change that one recording
//! of each side can show.

use super::difference::{Changes, NameRow};
use super::rows::{DiffRow, DiffRows, SideRow};
use super::{DiffKey, DiffOptions};
use crate::render::look::Look;
use crate::render::screen::{Cell, Column, CommandLine, Ink, Screen, ScreenPart, Table};
use crate::render::words::{count, counted, share};
use crate::reports::diff::difference::Difference;
use crate::sort_rows::SortRows;
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
    let likely = |changes: &Changes, figure: fn(&NameRow) -> &Difference| {
        changes.rows.iter().any(|row| figure(row).is_likely())
    };
    if likely(&diff.shown.live, |row| &row.bytes_live)
        || likely(&diff.shown.allocated, |row| &row.bytes_alloc)
    {
        screen.note(
            "likely: 4 times the noise or more; chance brings that to one of some thousand rows. Repeated recordings decide (--repeat-before, --repeat-after).",
        );
    }
    if diff.without_recorder {
        screen.note("Memory that the recorder itself allocated is left out (--with-recorder counts it).");
    }
    let by = if options.by == DiffKey::Cache { "call-site" } else { "cache" };
    screen
        .next(CommandLine::from("diff").option("--by", by), format!("the same by {}", by.replace('-', " ")));
    if !options.all {
        screen.next("diff --all", "rows within noise too");
    }
    screen
}

/// Changes of live memory, the largest first, then the number of rows that differ.
fn answer(screen: &mut Screen, diff: &DiffRow, options: &DiffOptions) {
    let all = counted(diff.rows_total as u64, "row", "rows");
    let look = &options.output.show.look;
    let rate = if options.rates { " a second" } else { "" };
    let mut changes = [LiveChange::of(diff, false), LiveChange::of(diff, true)];
    changes.sort_rows_by(|a, b| b.size().total_cmp(&a.size()));
    let has_likely = changes.iter().any(|change| change.likely.is_some());
    if diff.rows_beyond_noise == 0 && !has_likely {
        screen.answer(format!("Nothing differs beyond noise in {all}."));
        return;
    }
    for change in changes.iter().filter(|change| change.size() >= 0.5 || !change.is_pages) {
        screen.answer(change.sentence(rate, |value| bytes(value).shown(look)));
    }
    screen.answer.extend(reclaimable(diff, rate, look));
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

/// The part of a change that is of caches which fill with use: no leak, and no saving.
fn reclaimable(diff: &DiffRow, rate: &str, look: &Look) -> Option<String> {
    let change = diff.live_change_reclaimable;
    let row = diff.shown.live.rows.iter().find(|row| row.is_reclaimable && row.bytes_live.is_real())?;
    (change.abs() >= 0.5).then(|| {
        let verb = if change < 0.0 { "fell" } else { "grew" };
        format!(
            "Of slab memory, caches that the kernel can reclaim {verb} by {}{rate} (most at {}): they fill with use, in the first run after a boot most.",
            bytes(change.abs()).shown(look),
            function_of(&row.name)
        )
    })
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

/// Change of live memory, of slab objects or of pages.
struct LiveChange {
    is_pages: bool,
    /// Growth and decrease in rows beyond noise.
    beyond: [f64; 2],
    /// Name of the row that grew most, and its share of the growth; empty: none grew.
    most: String,
    /// The largest row that is several times the noise, where none is beyond it: its change, its name, and how often.
    likely: Option<(f64, String, f64)>,
}

impl LiveChange {
    fn of(diff: &DiffRow, is_pages: bool) -> Self {
        let beyond = match is_pages {
            false => [diff.live_growth_beyond_noise, diff.live_decrease_beyond_noise],
            true => [diff.live_page_growth_beyond_noise, diff.live_page_decrease_beyond_noise],
        };
        let rows = || diff.shown.live.rows.iter().filter(move |row| (row.kind == "pages") == is_pages);
        let change = |row: &&NameRow| row.bytes_live.change();
        let real = rows().filter(|row| row.bytes_live.is_real());
        let most = real.max_by(|a, b| change(a).total_cmp(&change(b))).filter(|row| change(row) > 0.0);
        let most = most.map_or(String::new(), |row| {
            let part = share(change(&row) as u64, beyond[0] as u64);
            format!(", {part} of it by {}", function_of(&row.name))
        });
        let likely = rows().filter(|row| row.bytes_live.is_likely());
        let likely = likely.max_by(|a, b| change(a).abs().total_cmp(&change(b).abs()));
        let likely =
            likely.map(|row| (change(&row), function_of(&row.name).to_owned(), row.bytes_live.score.abs()));
        Self { is_pages, beyond, most, likely: likely.filter(|_| beyond == [0.0, 0.0]) }
    }

    /// Bytes by which changes are sorted.
    fn size(&self) -> f64 {
        let [growth, decrease] = self.beyond;
        self.likely.as_ref().map_or(growth.max(decrease), |(change, _, _)| change.abs())
    }

    /// Growth with its largest part, the decrease in others, and both together.
    fn sentence(&self, rate: &str, shown: impl Fn(f64) -> String) -> String {
        let what = if self.is_pages { "Live memory of pages" } else { "Live slab memory" };
        if let Some((change, name, times)) = &self.likely {
            let verb = if *change < 0.0 { "fell" } else { "grew" };
            let change = shown(change.abs());
            return format!(
                "{what} {verb} by {change}{rate} at {name}, {times:.1} times the noise: repeat the recordings to be sure."
            );
        }
        let [growth, decrease] = self.beyond;
        let (grown, fallen, most) = (shown(growth), shown(decrease), &self.most);
        match (growth >= 0.5, decrease >= 0.5) {
            (false, false) => format!("{what} did not change beyond noise."),
            (true, false) => format!("{what} grew by {grown}{rate} beyond noise{most}."),
            (false, true) => format!("{what} fell by {fallen}{rate} beyond noise."),
            (true, true) => {
                let net = growth - decrease;
                let verb = if net < 0.0 { "fell" } else { "grew" };
                let net = shown(net.abs());
                format!(
                    "{what} {verb} by {net}{rate} beyond noise: {grown} more in rows that grew{most}, {fallen} less in others."
                )
            }
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
    let verdict = |figure: &Difference| match (figure.is_real(), figure.is_likely()) {
        (true, _) => Cell::Verdict("yes".to_owned(), Ink::Bad),
        (false, true) => Cell::Verdict("likely".to_owned(), Ink::Plain),
        (false, false) => Cell::Verdict("no".to_owned(), Ink::Plain),
    };
    let has_likely = changes.rows.iter().any(|row| figure(row).is_likely());
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
        .column_if(options.all || has_likely, Column::whole("beyond noise"), |row| verdict(figure(row)))
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
    use super::LiveChange;

    fn said(is_pages: bool, beyond: [f64; 2], likely: Option<(f64, String, f64)>) -> String {
        let most = ", 60 % of it by f".to_owned();
        LiveChange { is_pages, beyond, most, likely }.sentence(" a second", |bytes| format!("{bytes} B"))
    }

    #[test]
    fn the_headline_has_what_grew_and_what_fell() {
        let slab = |growth, decrease| said(false, [growth, decrease], None);
        assert_eq!(slab(0.4, 0.0), "Live slab memory did not change beyond noise.");
        assert_eq!(slab(9.0, 0.0), "Live slab memory grew by 9 B a second beyond noise, 60 % of it by f.");
        assert_eq!(slab(0.0, 9.0), "Live slab memory fell by 9 B a second beyond noise.");
        for (growth, decrease, net) in [(9.0, 12.0, "fell by 3 B"), (12.0, 9.0, "grew by 3 B")] {
            assert_eq!(
                slab(growth, decrease),
                format!(
                    "Live slab memory {net} a second beyond noise: {growth} B more in rows that grew, 60 % of it by f, {decrease} B less in others."
                )
            );
        }
        let pages = said(true, [9.0, 0.0], None);
        assert_eq!(pages, "Live memory of pages grew by 9 B a second beyond noise, 60 % of it by f.");
    }

    #[test]
    fn a_likely_change_has_its_ratio_to_the_noise() {
        let likely = said(true, [0.0, 0.0], Some((7.0, "order 0, movable".to_owned(), 4.28)));
        assert_eq!(
            likely,
            "Live memory of pages grew by 7 B a second at order 0, movable, 4.3 times the noise: repeat the recordings to be sure."
        );
    }
}
