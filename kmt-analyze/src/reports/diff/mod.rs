//! `diff`: two runs, or two windows of one, by names that occur in both; changes beyond noise.

mod profile;
mod rows;
mod text;

pub use profile::{Profile, build, of};
pub use rows::DiffRows;

use crate::failure::{Failure, Result};
use crate::render::out::{Out, Schema, print_rows};
use crate::render::text::count;

/// Keys of the comparison.
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

/// Options of the comparison and its output.
#[derive(Debug)]
pub struct Options {
    /// Names of the sides, as given.
    pub names: [String; 2],
    /// Per second, instead of as they are.
    pub per_second: bool,
    /// One second in the clock's unit.
    pub second: f64,
    /// Largest number of rows.
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

/// Compares the runs of two sides, and prints the differences.
pub fn run(before: &[Profile], after: &[Profile], options: &Options) -> Result<()> {
    let rows = rows::of(before, after, options);
    if options.json {
        print_rows(Schema::first("diff"), &rows)?;
    } else {
        let mut out = Out::stdout();
        out.page(&text::of(&rows, options))?;
        out.finish()?;
    }
    let growth = rows.diff.growth;
    match options.fail_over {
        Some(limit) if growth > limit as f64 => Err(Failure::new(format!(
            "live slab memory grew by {} bytes beyond noise, more than --fail-over {limit} allows",
            count(growth as u64)
        ))),
        _ => Ok(()),
    }
}
