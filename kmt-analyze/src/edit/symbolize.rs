//! `symbolize`: a trace with the functions and source lines of its addresses, which then travel with it.

use std::path::Path;

use kmt_common::compress::Compress;
use kmt_common::tell;
use kmt_format::read::Trace;
use kmt_format::tables::SourceLine;
use kmt_format::write::Writer;

use super::copy::failed;
use crate::env::Env;
use crate::export::output::{Export, Target};
use crate::failure::{Failure, Outcome, Result};
use crate::render::text::count;
use crate::trace::lines::lines_of;
use crate::trace::open::outcome;

/// Rows of a chunk, about: rows of one address stand in one chunk.
const ROWS: usize = 4_096;

/// Writes the trace with the lines of its addresses.
pub fn run(path: &Path, bytes: &[u8], target: &Target, compress: Compress, env: &Env) -> Result<Outcome> {
    if !env.source.is_given() {
        return Err(Failure::new("no debug information is given")
            .hint("--vmlinux FILE, --modules DIR or --debug-dir DIR have it"));
    }
    let trace = Trace::builder().limits(env.limits.file).open(bytes).map_err(|e| failed(&e))?;
    let mut lines = lines_of(&trace, &env.source)?;
    lines.sort_by_key(|line| (line.address, line.depth));
    let mut writer = Writer::append_to(bytes, env.limits.file, compress.into()).map_err(|error| {
        Failure::new(format!("{}: {error}", path.display()))
            .hint("kmt-analyze recover makes a sound file of it")
    })?;
    for rows in chunks(&lines) {
        writer.add_lines(rows).map_err(|e| failed(&e))?;
    }
    let rest = writer.finish().map_err(|e| failed(&e))?;
    let mut out = Export::open_binary(target, env)?;
    out.write(bytes)?;
    out.write(&rest)?;
    out.finish()?;
    let addresses = lines.chunk_by(|a, b| a.address == b.address).count() as u64;
    tell!("{} addresses have source lines", count(addresses));
    Ok(outcome(path, &trace, &[], false))
}

/// Rows in parts that end with an address.
fn chunks<'l>(lines: &'l [SourceLine<'static>]) -> impl Iterator<Item = &'l [SourceLine<'static>]> {
    let mut rest = lines;
    std::iter::from_fn(move || {
        let next = rest.get(ROWS).map(|line| line.address);
        let end = next.map_or(rest.len(), |address| rest.partition_point(|line| line.address <= address));
        let (part, after) = rest.split_at(end);
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_end_with_an_address() {
        let lines: Vec<_> = (0..10_000_u64).map(|row| SourceLine::new(row / 3)).collect();
        let parts: Vec<_> = chunks(&lines).collect();
        assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), lines.len());
        assert!(parts.windows(2).all(|pair| pair[0].last().unwrap().address < pair[1][0].address));
        assert!(parts.len() == 3 && chunks(&[]).next().is_none());
    }
}
