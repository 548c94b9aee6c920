//! Options of commands that write a .kmt file.

use std::path::PathBuf;

use kmt_common::compress::Compress;

use crate::export::output::Target;

/// Options of commands that write a .kmt file.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// The .kmt file
    pub file: PathBuf,
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

impl OutputArgs {
    /// The file to write.
    pub fn target(&self) -> Target {
        Target { path: self.output.clone(), force: self.force }
    }
}
