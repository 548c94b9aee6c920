//! The command line.

use std::io::Write;
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use kmt_format::Compression;

use crate::convert::{Options, convert};
use crate::failure::{Failure, Outcome, Result};

/// Turn a Linux kernel's trace ring buffers into .kmt files.
#[derive(Parser)]
#[command(
    name = "kmt-capture",
    version,
    about,
    arg_required_else_help = true,
    after_help = "EXAMPLES:\n  \
        kmt-capture convert saved/ -o trace.kmt      from files copied off a target\n  \
        kmt-capture convert saved/ -o - | ssh host 'cat > trace.kmt'\n  \
        kmt-capture convert broken.kmt -o whole.kmt  what a damaged file still holds\n  \
        kmt-capture convert big.kmt -o small.kmt --compress zstd\n  \
        kmt-capture completions bash > /etc/bash_completion.d/kmt-capture\n\n\
        EXIT CODES: 0 done, 1 failed, 2 usage, 3 done but events were lost or input was damaged"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Convert saved ring buffers to a .kmt file
    ///
    /// INPUT is a directory laid out like tracefs (events/header_page, events/SYSTEM/EVENT/format,
    /// per_cpu/cpuN/trace_pipe_raw; with stats, trace_clock, trace_options, saved_cmdlines, saved_tgids and
    /// printk_formats where there are such), or the directory that holds it as tracefs/. The files kallsyms, modules,
    /// uname, cmdline, pagesize, slabinfo.before, slabinfo.after and so on are looked for in it and beside it.
    ///
    /// INPUT may also be a .kmt file: it is written anew, with the codec asked for. What is damaged is left out, what
    /// was torn is used as far as it goes, and what is missing is counted.
    Convert(ConvertArgs),
    /// Print a completion script
    Completions {
        /// The shell that it is for
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(clap::Args)]
struct ConvertArgs {
    /// Directory with saved ring buffers, or a .kmt file
    input: PathBuf,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE.kmt")]
    output: PathBuf,
    /// Overwrite FILE.kmt if it exists
    #[arg(long)]
    force: bool,
    /// How to store the file: as it is, to be read in place; lz4, a third; zstd, a quarter
    #[arg(long, value_enum, default_value_t = Compress::None)]
    compress: Compress,
    /// Keep sub-buffers as the kernel wrote them: three times the bytes, hardly any work
    #[arg(long)]
    verbatim: bool,
    /// Do not print what was converted
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Compress {
    None,
    Lz4,
    Zstd,
}

impl From<Compress> for Compression {
    fn from(compress: Compress) -> Self {
        match compress {
            Compress::None => Self::None,
            Compress::Lz4 => Self::Lz4,
            Compress::Zstd => Self::Zstd,
        }
    }
}

/// Parses the command line and does what it says.
pub fn run() -> Result<Outcome> {
    match Cli::parse().command {
        Command::Convert(args) => {
            let compression = args.compress.into();
            let ConvertArgs { input, output, force, verbatim, quiet, .. } = args;
            convert(&Options { input, output, force, compression, verbatim, quiet })
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kmt-capture", &mut script);
            print(&script)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .map_err(|e| Failure::new(format!("rendering the manual page: {e}")))?;
            print(&page)
        }
    }
}

/// A reader that went away is no failure.
fn print(text: &[u8]) -> Result<Outcome> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("writing to standard output: {error}")))
        }
        _ => Ok(Outcome::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
