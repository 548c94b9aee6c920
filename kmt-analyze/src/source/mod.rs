//! Functions, files and lines of addresses: kept in a file, or looked up in debug information.
//!
//! The input of a look-up is a kernel with its modules and a set of addresses; its output is one list of frames for each address.
//! Without the feature `dwarf` only the table of the file is left.

#[cfg(feature = "dwarf")]
mod dwarf;
mod frame;
mod inferred;
mod modules;
mod table;
mod tree;
mod wrappers;

#[cfg(feature = "dwarf")]
pub use dwarf::{Budget, Checked, Reader, cost, image, look_up, roots};
pub use frame::{Directory, Frame, PATH_MAX, paths_above};
pub use modules::ModulePaths;
#[cfg(feature = "dwarf")]
pub use modules::directory_of;
pub use table::SourceTable;
#[cfg(feature = "dwarf")]
pub use tree::{FILES_MAX, bytes, named};
pub use wrappers::Wrappers;

use std::collections::BTreeMap;
use std::path::PathBuf;

use kmt_common::shell;
use kmt_format::read::SymbolTable;
use kmt_format::tables::SourceLine;

use crate::failure::{Failure, Result};

/// Refuses: built without the feature `dwarf`.
#[cfg(not(feature = "dwarf"))]
pub fn look_up(
    _: &Target<'_>,
    _: &SourceArgs,
    _: &crate::files::Files,
    _: &std::collections::BTreeSet<u64>,
) -> Result<LookedUp> {
    Err(Failure::new("this program was built without the reader of debug information")
        .hint("cargo build with the feature dwarf has it; a file of `symbolize` needs none"))
}

/// Heading of its options.
pub const SOURCE: &str = "Source lines";

/// Debug information on the command line.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = SOURCE)]
pub struct SourceArgs {
    /// The traced kernel's vmlinux with debug information: reports have files and lines
    #[arg(long, value_name = "FILE", global = true)]
    pub vmlinux: Option<PathBuf>,
    /// Directory of the traced kernel's modules with debug information, searched with all directories below it
    #[arg(long, value_name = "DIR", global = true)]
    pub modules: Option<PathBuf>,
    /// Directory of debug information as distributions install it, such as /usr/lib/debug; kernel and modules are found by
    /// their build ids
    #[arg(long, value_name = "DIR", global = true)]
    pub debug_dir: Option<PathBuf>,
    /// The traced kernel's System.map: names of functions for a trace without them
    #[arg(long, value_name = "FILE", global = true)]
    pub system_map: Option<PathBuf>,
    /// Where the kernel's source was when it was built: begins of paths that are left out [default: what stands before
    /// init/main.c]
    #[arg(long, value_name = "DIR", global = true)]
    pub source_root: Option<String>,
    /// Show directories with at most N parts: 2 for fs/ext4
    #[arg(long, value_name = "N", global = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub depth: Option<u16>,
    /// Functions that allocate for their callers, one a line; the line of an allocation is that of the function above them
    #[arg(long, value_name = "FILE", global = true)]
    pub wrappers: Option<PathBuf>,
}

impl SourceArgs {
    /// True if debug information is given.
    pub fn is_given(&self) -> bool {
        self.vmlinux.is_some() || self.modules.is_some() || self.debug_dir.is_some()
    }

    /// The debug information, as a shell would be given it.
    pub fn options(&self) -> impl Iterator<Item = String> {
        let paths = [
            ("--vmlinux", &self.vmlinux),
            ("--modules", &self.modules),
            ("--debug-dir", &self.debug_dir),
            ("--system-map", &self.system_map),
            ("--wrappers", &self.wrappers),
        ];
        let paths = paths
            .into_iter()
            .filter_map(|(name, path)| Some(format!("{name} {}", shell::path(path.as_ref()?))));
        paths.chain(self.source_root.iter().map(|root| shell::option("--source-root", root)))
    }

    /// A directory, cut to the parts that are shown.
    pub fn cut<'p>(&self, dir: &'p str) -> &'p str {
        let parts = usize::from(self.depth.unwrap_or(u16::MAX));
        let end = dir.match_indices('/').nth(parts - 1).map(|(at, _)| at);
        end.and_then(|end| dir.get(..end)).unwrap_or(dir)
    }

    /// The rules on wrappers.
    pub fn rules(&self) -> Result<Wrappers> {
        let Some(path) = &self.wrappers else { return Ok(Wrappers::default()) };
        let text = std::fs::read_to_string(path).map_err(|e| Failure::io("reading", path, &e))?;
        Ok(Wrappers::parse(&text))
    }
}

/// The traced kernel, as its file describes it.
#[cfg_attr(not(feature = "dwarf"), allow(dead_code))]
pub struct Target<'d> {
    pub symbols: &'d SymbolTable<'d>,
    /// Release of the kernel, such as 6.1.0-18-amd64.
    pub release: Option<&'d str>,
    /// Build ids in hexadecimal, of the kernel ("") and of modules.
    pub build_ids: BTreeMap<&'d str, &'d str>,
}

/// Lines of addresses.
#[derive(Debug, Default)]
pub struct LookedUp {
    pub lines: Vec<SourceLine<'static>>,
    /// Messages on addresses without a line, with the reason.
    pub notes: Vec<String>,
}
