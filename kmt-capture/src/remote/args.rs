//! Options of `remote`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use kmt_common::quantity;

use super::{RemoteOptions, RootBy};
use crate::record::RecordOptions;

/// Options of the command line.
#[derive(clap::Args)]
pub struct RemoteArgs {
    /// Host to log in to with ssh, as root: root@board
    #[arg(required_unless_present = "via")]
    host: Option<String>,
    /// Another command that gives a shell on the target: 'adb shell', 'docker exec -i NAME sh'
    #[arg(long, value_name = "COMMAND", conflicts_with = "host")]
    via: Option<String>,
    /// File to write; - is standard output. Default: kmt-HOST-TIME.kmt
    #[arg(short, long, value_name = "FILE|-")]
    output: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(long)]
    force: bool,
    /// Program to send; default: the one for the target's machine, beside this program or in lib/kmt/targets
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Become root on the target with this command, without a password
    #[arg(long, value_enum, value_name = "COMMAND")]
    root_by: Option<RootBy>,
    /// Give up if the shell on the target does not answer within this time, in which a password may be typed
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds, default_value = "2min")]
    connect_timeout: Duration,
    /// The target stops and cleans up if the connection is silent for this time
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds, default_value = "1s")]
    line_timeout: Duration,
    /// Print only warnings and errors
    #[arg(short, long)]
    quiet: bool,
    /// `record` and its options
    #[arg(last = true, value_name = "record OPTIONS")]
    pub record: Vec<OsString>,
}

impl RemoteArgs {
    /// The options, with those of `record` without its name, as words and parsed.
    pub fn options(self, args: Vec<OsString>, record: RecordOptions) -> RemoteOptions {
        let Self { host, via, output, force, binary, root_by, connect_timeout, line_timeout, quiet, .. } =
            self;
        RemoteOptions {
            host,
            via,
            output,
            force,
            binary,
            root_by,
            connect_timeout,
            line_timeout,
            quiet,
            args,
            record,
        }
    }
}
