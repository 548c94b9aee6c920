//! `recover`: the intact contents of a damaged or torn file.

use kmt_common::recovery::report;
use kmt_format::Fault;
use kmt_format::edit::{Rewrite, RewriteOptions};

use super::output_args::OutputArgs;
use crate::env::Env;
use crate::export::output::Export;
use crate::failure::{Failure, Outcome, Result};
use crate::limits;

/// Writes the intact contents as a sound file.
pub fn run(made: &OutputArgs, bytes: &[u8], env: &Env) -> Result<Outcome> {
    let path = &made.file;
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
