//! `convert` of a .kmt file: recovery of its readable parts, and another codec.

use kmt_common::recovery::report;
use kmt_format::edit::{Rewrite, RewriteOptions};
use kmt_format::{Error, ErrorKind, Fault};

use super::ConvertOptions;
use super::opened::INPUTS;
use crate::failure::{Failure, Outcome, Result};
use crate::output::Output;

/// Rewrites a .kmt file.
pub fn rewrite(options: &ConvertOptions, bytes: &[u8], mut output: Output) -> Result<Outcome> {
    let path = &options.input;
    if options.verbatim {
        return Err(Failure::new(format!("{} is not a directory of sub-buffers", path.display()))
            .hint("--verbatim works only with sub-buffers copied from a target"));
    }
    let failed = |e: Error| {
        let what = match e.kind() {
            ErrorKind::NotKmt => format!("{} is not a recording that convert reads", path.display()),
            _ => format!("{}: {e}", path.display()),
        };
        Failure::new(what).hint(match e.fault() {
            Fault::Limit => "--limit NAME=SIZE raises the limit; use it only for a file that you trust",
            _ => INPUTS,
        })
    };
    let rewriting = RewriteOptions::new().compression(options.compression);
    let mut rewrite = Rewrite::new(bytes, options.limits.kmt, rewriting).map_err(failed)?;
    while let Some(bytes) = rewrite.next_bytes().map_err(failed)? {
        output.write(&bytes)?;
    }
    output.finish()?;
    Ok(report(path, rewrite.recovery(), "", options.quiet))
}
