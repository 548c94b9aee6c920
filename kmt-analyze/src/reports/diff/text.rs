//! The sides, the answer, and the table of differences.

use super::Options;
use super::rows::{DiffRow, DiffRows, FigureRow, NameRow, SideRow};
use crate::analysis::difference::Difference;
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::shown::more;

/// The page.
pub fn of(DiffRows { diff }: &DiffRows, options: &Options) -> String {
    let mut out = format!(
        "A: {}, {}\nB: {}, {}\nnoise by {}\n",
        diff.before.name,
        runs(&diff.before, options.second),
        diff.after.name,
        runs(&diff.after, options.second),
        diff.noise_from,
    );
    out.push_str(&cautions(diff, options));
    let rows = count(diff.rows_total as u64);
    out.push_str(&match diff.rows_beyond_noise {
        0 => format!("\nnothing differs beyond noise, of {rows} rows\n"),
        real => format!(
            "\n{} of {rows} rows differ beyond noise; live slab memory grew by {} bytes{} there\n",
            count(real as u64),
            count(diff.growth as u64),
            if options.per_second { " a second" } else { "" },
        ),
    });
    out + &differences(diff, options)
}

fn runs(side: &SideRow, second: f64) -> String {
    let lengths: Vec<String> =
        side.runs.iter().map(|run| format!("{:.2}", run.length as f64 / second)).collect();
    let events: Vec<String> = side.runs.iter().map(|run| count(run.events)).collect();
    format!("{} events in {} s", events.join(" + "), lengths.join(" + "))
}

/// Lines on losses, builds and lengths that limit the comparison.
fn cautions(diff: &DiffRow, options: &Options) -> String {
    let mut out = String::new();
    if diff.is_lossy() {
        out.push_str("events were lost in at least one of them: what counts events is a lower bound, what is live is uncertain\n");
    }
    if diff.matched_by_function {
        out.push_str(
            "the kernels are different builds: call sites are matched by function, without the offset\n",
        );
    }
    let mean = |side: &SideRow| {
        side.runs.iter().map(|run| run.length as f64).sum::<f64>() / side.runs.len().max(1) as f64
    };
    let ratio = mean(&diff.after) / mean(&diff.before).max(1.0);
    if !options.per_second && !(0.9..=1.1).contains(&ratio) {
        out.push_str(&format!("B is {ratio:.2} times as long as A: --per-second compares rates\n"));
    }
    out
}

/// The table; empty without rows.
fn differences(diff: &DiffRow, options: &Options) -> String {
    use Align::{Left, Right};
    // Rows that differ beyond noise are the first ones.
    let total = if options.all { diff.rows_total } else { diff.rows_beyond_noise };
    if total == 0 {
        return String::new();
    }
    let listed = diff.rows.iter().filter(|row| options.all || row.is_real());
    let rows: Vec<Vec<String>> = listed.map(cells).collect();
    let columns = [
        ("", Left),
        ("", Left),
        ("allocated A", Right),
        ("B", Right),
        ("change", Right),
        ("", Right),
        ("noise", Right),
        ("", Left),
        ("share A, B", Right),
        ("live A", Right),
        ("B", Right),
        ("change", Right),
        ("", Right),
        ("noise", Right),
        ("", Left),
    ];
    format!(
        "\n{}{}\nBytes. !: chance alone would bring as large a difference, in any row, less than once in a hundred comparisons, and it is more than a thousandth of all. Noise is the standard error of the difference.\n",
        table(&columns, &rows),
        more(rows.len(), total, "rows"),
    )
}

fn cells(row: &NameRow) -> Vec<String> {
    let mut cells = vec![row.kind.to_owned(), row.name.clone()];
    cells.extend(figure(&row.bytes_alloc));
    cells.push(format!("{:.1}% {:.1}%", row.share_before_percent, row.share_after_percent));
    cells.extend(figure(&row.bytes_live));
    cells
}

fn figure(FigureRow { exact, is_real, .. }: &FigureRow) -> [String; 6] {
    [
        number(exact.before),
        number(exact.after),
        signed(exact.change()),
        percent(exact),
        format!("±{}", number(exact.noise)),
        if *is_real { "!" } else { "" }.to_owned(),
    ]
}

fn percent(exact: &Difference) -> String {
    match exact.before {
        before if before != 0.0 => format!("{:+.1}%", 100.0 * exact.change() / before.abs()),
        _ if exact.change() != 0.0 => "new".to_owned(),
        _ => String::new(),
    }
}

fn number(value: f64) -> String {
    let text = count(value.abs().round() as u64);
    if value <= -0.5 { format!("-{text}") } else { text }
}

fn signed(value: f64) -> String {
    let text = number(value);
    if value >= 0.5 { format!("+{text}") } else { text }
}
