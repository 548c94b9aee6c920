//! `diff`: two runs, or two windows of one, by what has the same name in both; what is noise, and what is not.

mod profile;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use profile::{Key, Row};
pub use profile::{Profile, build, of};

use crate::analysis::difference::{Difference, Figure, Threshold, compare};
use crate::failure::{Failure, Result};
use crate::render::out::{Out, print_json};
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::sums::more;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum By {
    /// Call sites
    #[default]
    CallSite,
    /// Caches and size classes
    Cache,
    /// Tasks of the same name
    Task,
}

/// How the comparison is printed and judged.
#[derive(Debug)]
pub struct Options {
    /// Names of the sides, as given.
    pub names: [String; 2],
    /// Per second, instead of as they are.
    pub per_second: bool,
    /// One second in the clock's unit.
    pub second: f64,
    /// Rows.
    pub limit: Option<usize>,
    /// Rows of noise, too.
    pub all: bool,
    /// Fail if live bytes grow by more than this, beyond noise.
    pub fail_over: Option<u64>,
    /// As JSON.
    pub json: bool,
    /// Call sites are matched by function alone: the kernels are different builds.
    pub by_function: bool,
}

/// One thing that is compared.
struct Line {
    key: Key,
    alloc: Difference,
    live: Difference,
    /// Share of all bytes allocated, before and after.
    share: (f64, f64),
}

/// Changes below this share of all bytes do not matter: the allocator's own bookkeeping and the like vary by so much
/// with the state that the machine happens to be in.
const SHARE_MIN: f64 = 0.001;

impl Line {
    fn is_real(&self) -> bool {
        self.alloc.is_real() || self.live.is_real()
    }

    fn weight(&self) -> f64 {
        self.live.change().abs().max(self.alloc.change().abs())
    }
}

/// Compares the runs of two sides, and prints what differs.
pub fn run(before: &[Profile], after: &[Profile], options: &Options) -> Result<()> {
    let lines = lines(before, after, options);
    let growth: f64 = lines
        .iter()
        .filter(|l| l.key.0 != "pages" && l.live.is_real())
        .map(|l| l.live.change())
        .filter(|change| *change > 0.0)
        .sum();
    if options.json {
        print_json(document(before, after, &lines, growth, options))?;
    } else {
        let mut out = Out::stdout();
        out.page(&page(before, after, &lines, growth, options))?;
        out.finish()?;
    }
    match options.fail_over {
        Some(limit) if growth > limit as f64 => Err(Failure::new(format!(
            "live slab memory grew by {} bytes beyond noise, more than --fail-over {limit} allows",
            count(growth as u64)
        ))),
        _ => Ok(()),
    }
}

fn lines(before: &[Profile], after: &[Profile], options: &Options) -> Vec<Line> {
    let keys: BTreeSet<&Key> = before.iter().chain(after).flat_map(|p| p.rows.keys()).collect();
    let row = |profile: &Profile, key: &Key| {
        let row = profile.rows.get(key).copied().unwrap_or_default();
        let seconds = (profile.length as f64 / options.second).max(f64::MIN_POSITIVE);
        if options.per_second { row.scaled(1.0 / seconds) } else { row }
    };
    let runs = |side: &[Profile], key: &Key, figure: fn(&Row) -> Figure| -> Vec<Figure> {
        side.iter().map(|p| figure(&row(p, key))).collect()
    };
    // Slab and pages are never added up; each kind has shares of its own.
    let total = |side: &[Profile], is_pages: bool, figure: fn(&Row) -> Figure| -> f64 {
        let of = |p: &Profile| {
            let rows = p.rows.keys().filter(|k| (k.0 == "pages") == is_pages);
            rows.map(|k| figure(&row(p, k)).total.abs()).sum::<f64>()
        };
        side.iter().map(of).sum::<f64>() / side.len().max(1) as f64
    };
    let totals = [false, true].map(|pages| {
        let both = |figure| (total(before, pages, figure), total(after, pages, figure));
        [both(|r| r.alloc), both(|r| r.live)]
    });
    // Both figures of every row are compared.
    let threshold = Threshold::of(before.len(), after.len(), keys.len() * 2);
    let mut lines: Vec<Line> = keys
        .into_iter()
        .map(|key| {
            let [of_alloc, of_live] = totals[usize::from(key.0 == "pages")];
            let difference = |figure: fn(&Row) -> Figure, (a, b): (f64, f64)| {
                compare(&runs(before, key, figure), &runs(after, key, figure), threshold)
                    .beyond(a.max(b) * SHARE_MIN)
            };
            let (alloc, live) = (difference(|r| r.alloc, of_alloc), difference(|r| r.live, of_live));
            let share = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
            let share = (share(alloc.before, of_alloc.0), share(alloc.after, of_alloc.1));
            Line { key: key.clone(), alloc, live, share }
        })
        .collect();
    lines.sort_by(|a, b| {
        b.is_real().cmp(&a.is_real()).then(b.weight().total_cmp(&a.weight())).then_with(|| a.key.cmp(&b.key))
    });
    lines
}

fn difference_json(d: &Difference) -> Value {
    json!({
        "before": d.before.round(),
        "after": d.after.round(),
        "change": d.change().round(),
        "noise": d.noise.round(),
        "score": d.score,
        "score_needed": d.needed,
        "least_that_matters": d.least.round(),
        "is_real": d.is_real(),
    })
}

fn document(
    before: &[Profile],
    after: &[Profile],
    lines: &[Line],
    growth: f64,
    options: &Options,
) -> Map<String, Value> {
    let side = |name: &str, runs: &[Profile]| {
        json!({
            "name": name,
            "runs": runs.iter().map(|p| json!({
                "events": p.events, "length": p.length, "lost_events": p.has_losses,
            })).collect::<Vec<_>>(),
        })
    };
    let shown = options.limit.unwrap_or(usize::MAX).min(lines.len());
    let mut out = Map::new();
    let [a, b] = &options.names;
    out.insert(
        "diff".into(),
        json!({
            "before": side(a, before),
            "after": side(b, after),
            "unit": if options.per_second { "bytes per second" } else { "bytes" },
            "noise_from": noise_from(before, after),
            "matched_by_function": options.by_function,
            "live_growth_beyond_noise": growth.round(),
            "rows_total": lines.len(),
            "rows_beyond_noise": lines.iter().filter(|l| l.is_real()).count(),
            "rows": lines.iter().take(shown).map(|l| json!({
                "kind": l.key.0,
                "name": l.key.1,
                "bytes_alloc": difference_json(&l.alloc),
                "bytes_live": difference_json(&l.live),
                "share_before_percent": l.share.0,
                "share_after_percent": l.share.1,
            })).collect::<Vec<_>>(),
        }),
    );
    out
}

fn noise_from(before: &[Profile], after: &[Profile]) -> &'static str {
    if before.len() + after.len() > 2 { "repeated runs" } else { "16 parts of each run" }
}

fn page(before: &[Profile], after: &[Profile], lines: &[Line], growth: f64, options: &Options) -> String {
    use Align::{Left, Right};
    let [a, b] = &options.names;
    let seconds = |side: &[Profile]| {
        let lengths: Vec<String> =
            side.iter().map(|p| format!("{:.2}", p.length as f64 / options.second)).collect();
        let events: Vec<String> = side.iter().map(|p| count(p.events)).collect();
        format!("{} events in {} s", events.join(" + "), lengths.join(" + "))
    };
    let mut out = format!("A: {a}, {}\nB: {b}, {}\n", seconds(before), seconds(after));
    out.push_str(&format!("noise by {}\n", noise_from(before, after)));
    if before.iter().chain(after).any(|p| p.has_losses) {
        out.push_str("events were lost in at least one of them: what counts events is a lower bound, what is live is uncertain\n");
    }
    if options.by_function {
        out.push_str(
            "the kernels are different builds: call sites are matched by function, without the offset\n",
        );
    }
    let mean =
        |side: &[Profile]| side.iter().map(|p| p.length as f64).sum::<f64>() / side.len().max(1) as f64;
    let ratio = mean(after) / mean(before).max(1.0);
    if !options.per_second && !(0.9..=1.1).contains(&ratio) {
        out.push_str(&format!("B is {ratio:.2} times as long as A: --per-second compares rates\n"));
    }
    let real = lines.iter().filter(|l| l.is_real()).count();
    out.push_str(&match real {
        0 => format!("\nnothing differs beyond noise, of {} rows\n", count(lines.len() as u64)),
        n => format!(
            "\n{} of {} rows differ beyond noise; live slab memory grew by {} bytes{} there\n",
            count(n as u64),
            count(lines.len() as u64),
            count(growth as u64),
            if options.per_second { " a second" } else { "" },
        ),
    });
    let listed: Vec<&Line> = lines.iter().filter(|l| options.all || l.is_real()).collect();
    if listed.is_empty() {
        return out;
    }
    let shown = options.limit.unwrap_or(usize::MAX).min(listed.len());
    let cells = |d: &Difference| {
        let percent = match d.before {
            b if b != 0.0 => format!("{:+.1}%", 100.0 * d.change() / b.abs()),
            _ if d.change() != 0.0 => "new".to_owned(),
            _ => String::new(),
        };
        let mark = if d.is_real() { "!" } else { "" };
        [
            number(d.before),
            number(d.after),
            signed(d.change()),
            percent,
            format!("±{}", number(d.noise)),
            mark.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = listed
        .iter()
        .take(shown)
        .map(|l| {
            let mut row = vec![l.key.0.to_owned(), l.key.1.clone()];
            row.extend(cells(&l.alloc));
            row.push(format!("{:.1}% {:.1}%", l.share.0, l.share.1));
            row.extend(cells(&l.live));
            row
        })
        .collect();
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
    out.push_str(&format!("\n{}{}", table(&columns, &rows), more(shown, listed.len(), "rows")));
    out.push_str("\nBytes. !: chance alone would bring as large a difference, in any row, less than once in a hundred comparisons, and it is more than a thousandth of all. Noise is the standard error of the difference.\n");
    out
}

fn number(value: f64) -> String {
    let text = count(value.abs().round() as u64);
    if value <= -0.5 { format!("-{text}") } else { text }
}

fn signed(value: f64) -> String {
    let text = number(value);
    if value >= 0.5 { format!("+{text}") } else { text }
}
