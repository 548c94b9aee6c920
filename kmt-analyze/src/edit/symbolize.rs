//! `symbolize`: a trace with the functions and source lines of its addresses, which then travel with it.

use kmt_common::tell;
use kmt_format::read::Trace;
use kmt_format::write::Writer;

use super::copy::{add_lines, failed};
use super::output_args::OutputArgs;
use crate::env::Env;
use crate::export::output::Export;
use crate::failure::{Failure, Outcome, Result};
use crate::render::text::count;
use crate::trace::faults::Faults;
use crate::trace::lines::lines_of;
use crate::trace::open::{repair, report_faults};

/// Writes the trace with the lines of its addresses.
pub fn run(made: &OutputArgs, bytes: &[u8], env: &Env) -> Result<Outcome> {
    let path = &made.file;
    if !env.source.is_given() && env.source.system_map.is_none() {
        return Err(Failure::new("no debug information is given")
            .hint("--vmlinux FILE, --modules DIR or --debug-dir DIR have it, --system-map FILE names"));
    }
    let trace = Trace::builder().limits(env.limits.file).open(bytes).map_err(|e| failed(&e))?;
    let mut lines = if env.source.is_given() { lines_of(&trace, env)? } else { Vec::new() };
    lines.sort_by_key(|line| (line.address, line.depth));
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
