//! Commands that write a new .kmt file from another one, or check one.
//!
//! `recover` and `symbolize` are here, with the options that all of these commands share. `recover` writes the intact contents of
//! a damaged or torn file. `symbolize` adds the functions and source lines of a trace's addresses, which then travel with it.

mod anonymize;
mod copy;
mod folds;
mod slice;
mod verify;

pub use anonymize::{AnonymizeOptions, run as anonymize};
use copy::{add_lines, failed};
pub use slice::{SliceOptions, run as slice};
pub use verify::run as verify;

// docs/json.schema.json is made of them.
#[cfg(test)]
pub use anonymize::AnonymizeRows;
#[cfg(test)]
pub use verify::VerifyRows;

use std::path::{Path, PathBuf};

use kmt_common::compress::Compress;
use kmt_common::recovery::report;
use kmt_common::tell;
use kmt_format::Fault;
use kmt_format::edit::{Rewrite, RewriteOptions};
use kmt_format::read::Trace;
use kmt_format::write::Writer;

use crate::env::Env;
use crate::export::output::{Export, Target};
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::render::words::count;
use crate::sort_rows::SortRows;
use crate::trace::faults::Faults;
use crate::trace::open::{lines_of, repair, report_faults};

/// Options of commands that write a .kmt file.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE.kmt")]
    pub output: PathBuf,
    /// Overwrite FILE.kmt if it exists
    #[arg(long)]
    pub force: bool,
    /// Compression of the file
    #[arg(long, value_enum, default_value = "none")]
    pub compress: Compress,
}

/// The trace of a command that writes a .kmt file.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// The .kmt file, or the files of one recording of `kmt-capture record --rotate`; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

impl OutputArgs {
    /// The file to write.
    pub fn target(&self) -> Target {
        Target { path: self.output.clone(), force: self.force }
    }
}

/// Writes the intact contents as a sound file.
pub fn recover(path: &Path, made: &OutputArgs, bytes: &[u8], env: &Env) -> Result<Outcome> {
    let failed = |e: kmt_format::Error| {
        let failure = Failure::new(format!("{}: {e}", path.display()));
        failure.hint(match e.fault() {
            Fault::Limit => limits::REMEDY,
            _ => {
                "recover takes a .kmt file, however damaged, with its first 64 bytes or a later copy of them"
            }
        })
    };
    let options = RewriteOptions::new().compression(kmt_format::Compression::from(made.compress));
    let mut rewrite = Rewrite::new(bytes, env.limits.file, options).map_err(failed)?;
    let mut out = Export::open_binary(&made.target(), env)?;
    while let Some(bytes) = rewrite.next_bytes().map_err(failed)? {
        out.write(&bytes)?;
    }
    out.finish()?;
    Ok(report(path, rewrite.recovery(), "; verify lists them", false))
}

/// Writes the trace with the lines of its addresses.
pub fn symbolize(path: &Path, made: &OutputArgs, bytes: &[u8], env: &Env) -> Result<Outcome> {
    if !env.source.is_given() && env.source.system_map.is_none() {
        return Err(Failure::new("no debug information is given")
            .hint("--vmlinux FILE, --modules DIR or --debug-dir DIR have it, --system-map FILE names"));
    }
    let trace = Trace::builder().limits(env.limits.file).open(bytes).map_err(|e| failed(&e))?;
    let mut lines = if env.source.is_given() { lines_of(&trace, env)? } else { Vec::new() };
    lines.sort_rows_by_key(|line| (line.address, line.depth));
    let mut writer = Writer::append_to(bytes, env.limits.file, made.compress.into())
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())).hint(repair(path)))?;
    add_lines(&mut writer, &lines)?;
    let rest = writer.finish().map_err(|e| failed(&e))?;
    let mut out = Export::open_binary(&made.target(), env)?;
    out.write(bytes)?;
    out.write(&rest)?;
    out.finish()?;
    let addresses = lines.chunk_by(|a, b| a.address == b.address).count() as u64;
    tell!("{} addresses have source lines", count(addresses));
    let is_sound = report_faults(path, &trace, &Faults::default());
    Ok(if is_sound { Outcome::Done } else { Outcome::Incomplete })
}
