//! Options of `remote`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use kmt_common::quantity;

use super::{RemoteOptions, RootBy};
use crate::record::RecordOptions;
use crate::tracefs::EventSpec;

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
    /// Record with the shell script of `snippet`, where no program runs: only the last events that fit its buffers
    #[arg(long, conflicts_with_all = ["binary", "build"])]
    script: bool,
    /// With --script: ring buffer of each CPU: 4M, 64M. Default: by the memory of the target
    #[arg(short, long, value_name = "SIZE", value_parser = quantity::size_above_zero)]
    buffer_size: Option<u64>,
    /// With --script: events, SYSTEM or SYSTEM:EVENT; may be given several times. Default: kmem
    #[arg(short, long = "event", value_name = "EVENT", value_parser = EventSpec::parse)]
    event: Vec<EventSpec>,
    /// With --script: stop after this time
    #[arg(short, long, value_name = "TIME", value_parser = quantity::seconds)]
    duration: Option<Duration>,
    /// Print the command that builds a program for the target, and end
    #[arg(long, conflicts_with = "binary")]
    build: bool,
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
    /// True if options of the script are given, and the program records: it takes them after `--`.
    pub fn has_options_of_the_script_alone(&self) -> bool {
        let has_any = self.buffer_size.is_some() || self.duration.is_some() || !self.event.is_empty();
        has_any && !self.script
    }

    /// The options, with those of `record` without its name, as words and parsed.
    pub fn options(self, args: Vec<OsString>, mut record: RecordOptions) -> RemoteOptions {
        record.buffer_size = self.buffer_size.or(record.buffer_size);
        record.duration = self.duration.or(record.duration);
        record.events.extend(self.event);
        RemoteOptions {
            host: self.host,
            via: self.via,
            output: self.output,
            force: self.force,
            binary: self.binary,
            script: self.script,
            build: self.build,
            root_by: self.root_by,
            connect_timeout: self.connect_timeout,
            line_timeout: self.line_timeout,
            quiet: self.quiet,
            args,
            record,
        }
    }
}
