//! `diff`: changes beyond noise between two runs, or two windows of one, by names that occur in both.
//!
//! Losses, builds and lengths limit a comparison; these cautions stand beside its rows.

mod difference;
mod profile;
mod rows;
mod text;

use profile::RunRow;
pub use profile::{Naming, RunProfile, build, check_sums, compute};
pub use rows::DiffRows;

use serde_json::{Map, Value};

use crate::env::Env;
use crate::failure::{Failure, Result};
use crate::render::out::{self, Schema, print_rows};
use crate::render::screen::{Screen, page};
use crate::render::words::count;
use crate::reports::column_order::ColumnOrder;
use crate::reports::output::Output;

/// Keys of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum DiffKey {
    /// Call sites
    #[default]
    CallSite,
    /// Caches and size classes
    Cache,
    /// Tasks of the same name
    Task,
    /// Modules; [kernel] is the core kernel
    Module,
}

/// Options of the comparison and its output.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// Names of the sides, as given.
    pub names: [String; 2],
    /// Files and windows of both, as a shell reads them.
    pub arguments: Vec<String>,
    /// Key of the comparison.
    pub by: DiffKey,
    /// Rates, or totals, are asked for; `None`: the lengths of the runs decide.
    pub per_second: Option<bool>,
    /// Rates are compared.
    pub rates: bool,
    /// Also rows within noise.
    pub all: bool,
    /// Fail if live bytes grow by more than this, beyond noise.
    pub fail_over: Option<u64>,
    /// Rows, JSON or text, and display.
    pub output: Output,
    /// Order of the rows; empty: the largest changes first.
    pub order: ColumnOrder,
    /// Call sites are matched by function alone: the kernels are different builds.
    pub by_function: bool,
}

/// Compares the runs of two sides, and prints the differences.
pub fn run(before: &[RunProfile], after: &[RunProfile], options: &DiffOptions, env: &Env) -> Result<()> {
    let options = &settled(before, after, options);
    if options.rates && before.iter().chain(after).any(|profile| profile.run.seconds.is_none()) {
        return Err(Failure::new("--per-second: the clock of a trace counts ticks of unknown length")
            .hint("compare windows of the same number of ticks, with --time and --against"));
    }
    let rows = rows::compute(before, after, options);
    let whole = (!options.order.is_empty()).then(|| {
        let options =
            DiffOptions { output: Output { limit: Some(usize::MAX), ..options.output }, ..options.clone() };
        (rows::compute(before, after, &options), options)
    });
    match whole {
        None if options.output.json => print_rows(env, Schema::first("diff"), &rows, None)?,
        None => print(text::screen(&rows, options), &rows, options, env)?,
        Some((whole, _)) if options.output.json => {
            let mut document = document(&rows);
            options.order.sort_document(&mut document, self::document(&whole))?;
            print_rows(env, Schema::first("diff"), &document, None)?;
        }
        Some((whole, all)) => {
            let mut screen = text::screen(&rows, options);
            options.order.sort_screen(&mut screen, text::screen(&whole, &all))?;
            print(screen, &rows, options, env)?;
        }
    }
    let growth = rows.diff.live_growth_beyond_noise;
    match options.fail_over {
        Some(limit) if growth > limit as f64 => Err(Failure::new(format!(
            "rows of live slab memory grew by {} bytes beyond noise, more than --fail-over {limit} allows",
            count(growth as u64)
        ))),
        _ => Ok(()),
    }
}

/// The screen of a comparison, and its cautions.
pub fn screen(before: &[RunProfile], after: &[RunProfile], options: &DiffOptions) -> (Screen, Vec<String>) {
    let options = settled(before, after, options);
    let rows = rows::compute(before, after, &options);
    (text::screen(&rows, &options), sentences(&rows, &options))
}

/// The options with the kind of figures: rates where the lengths differ by more than a twentieth and all are in seconds. A limit
/// of `--fail-over` is one of totals.
fn settled(before: &[RunProfile], after: &[RunProfile], options: &DiffOptions) -> DiffOptions {
    let runs = |side: &[RunProfile]| side.iter().map(|profile| profile.run.clone()).collect::<Vec<_>>();
    let (before, after) = (runs(before), runs(after));
    let has_seconds = before.iter().chain(&after).all(|run| run.seconds.is_some());
    let differs = || ratio(&before, &after).is_some_and(self::differs);
    let by_length = || options.fail_over.is_none() && has_seconds && differs();
    DiffOptions { rates: options.per_second.unwrap_or_else(by_length), ..options.clone() }
}

/// The rows as a JSON object.
fn document(rows: &DiffRows) -> Map<String, Value> {
    match serde_json::to_value(rows) {
        Ok(Value::Object(document)) => document,
        _ => Map::new(),
    }
}

/// Prints the screen; the limits of the comparison stand where other reports have their trust.
fn print(screen: Screen, rows: &DiffRows, options: &DiffOptions, env: &Env) -> Result<()> {
    let show = &options.output.show;
    let text = page(&screen, &sentences(rows, options), &options.arguments, &show.look);
    out::print(env, show.pager, text.as_bytes())
}

/// Sentences on losses, builds and lengths that limit the comparison.
fn sentences(DiffRows { diff }: &DiffRows, options: &DiffOptions) -> Vec<String> {
    let mut out = Vec::new();
    if diff.is_lossy() {
        out.push("Events were lost: event counts are minimums; live figures are uncertain.".to_owned());
    }
    if diff.matched_by_function {
        out.push(
            "The kernels are different builds: call sites are matched by function, without offset."
                .to_owned(),
        );
    }
    match ratio(&diff.before.runs, &diff.after.runs) {
        None => out
            .push("The lengths of A and B cannot be compared: their clocks have different units.".to_owned()),
        Some(ratio) if differs(ratio) && options.per_second != Some(true) => {
            let has_rates = diff.before.runs.iter().chain(&diff.after.runs).all(|run| run.seconds.is_some());
            let figures = match (options.rates, options.per_second) {
                (true, _) => ": rates are compared (--totals compares totals)",
                (false, None) if has_rates => ": totals are compared (--per-second compares rates)",
                _ => "",
            };
            out.push(format!("B is {ratio:.2} times as long as A{figures}."));
        }
        _ => {}
    }
    out
}

/// True for lengths of which totals cannot be compared.
fn differs(ratio: f64) -> bool {
    !(0.95..=1.05).contains(&ratio)
}

/// Length of the second side over that of the first. `None`: seconds beside ticks, or ticks of two clocks.
fn ratio(before: &[RunRow], after: &[RunRow]) -> Option<f64> {
    let mean = |side: &[RunRow], length: fn(&RunRow) -> Option<f64>| {
        let lengths: Option<Vec<f64>> = side.iter().map(length).collect();
        lengths.map(|lengths| lengths.iter().sum::<f64>() / lengths.len().max(1) as f64)
    };
    let of = |length: fn(&RunRow) -> Option<f64>| {
        Some(mean(after, length)? / mean(before, length)?.max(f64::MIN_POSITIVE))
    };
    let mut clocks = before.iter().chain(after).map(|run| &run.clock);
    let first = clocks.next();
    let is_one_clock = clocks.all(|clock| Some(clock) == first);
    of(|run| run.seconds).or_else(|| of(|run| Some(run.length as f64)).filter(|_| is_one_clock))
}
