//! `remote`: records on another machine through a shell, and shows the findings here.
//!
//! One connection does all: facts about the target come first, then the program or the script goes there, over the standard
//! input of the shell, and the recording comes back while it is made. The other side is not trusted: lengths are bounded, its
//! text is escaped, and nothing but the output and a folder of this run is written.

pub mod args;
mod binary;
mod checksum;
mod connection;
mod facts;
mod findings;
mod install;
mod messages;
mod progress;
mod recording;
mod script;
mod shell;
mod space;
mod stream;
mod verdict;
mod ways;
mod words;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kmt_common::tell;

use self::connection::Connection;
use self::facts::RemoteFacts;
use self::install::Installed;
pub use self::shell::RootBy;
use self::shell::Shell;
use crate::convert::{ConvertOptions, Limits, convert};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Target, print};
use crate::record::{RecordOptions, Symbols, default_name};

/// Target, output and recording.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Host for ssh.
    pub host: Option<String>,
    /// Command that gives a shell on the target.
    pub via: Option<String>,
    /// File; `None`: a name from host and time.
    pub output: Option<PathBuf>,
    /// True if an existing file is overwritten.
    pub force: bool,
    /// Program for the target.
    pub binary: Option<PathBuf>,
    /// True if the shell script records.
    pub script: bool,
    /// True if only the command is wanted that builds a program for the target.
    pub build: bool,
    /// The way to become root there.
    pub root_by: Option<RootBy>,
    /// Time for the shell on the target to answer at all.
    pub connect_timeout: Duration,
    /// Silence of the line after which the target gives up.
    pub line_timeout: Duration,
    /// True if only problems are reported.
    pub quiet: bool,
    /// Options of `record`, as they were given.
    pub args: Vec<OsString>,
    /// The same, parsed.
    pub record: RecordOptions,
}

/// Records on a target, and prints the findings.
pub fn remote(options: &RemoteOptions) -> Result<Outcome> {
    let force = options.force;
    if options.script && script::left_out(&options.record) {
        return Err(Failure::new("the shell script cannot record with these options")
            .hint("give only --event without filters, --buffer-size, --clock and --duration; or give a program for this target with --binary"));
    }
    if let Some(path) = &options.output {
        Target { path: path.clone(), force }.check()?;
    }
    let mut shell =
        Shell::greet(Connection::open(&command(options)?, options.quiet)?, options.connect_timeout)?;
    let facts = root_facts(&mut shell, options.root_by)?;
    if !options.quiet {
        tell!("{}", facts.describe());
    }
    let again = ways::again(options.host.as_deref(), options.via.as_deref());
    if options.build {
        return print(format!("{}\n", ways::build(&facts, &again)?).as_bytes());
    }
    shell.define(options.line_timeout)?;
    let path = options.output.clone().unwrap_or_else(|| PathBuf::from(default_name(&facts.host)));
    let outcome = match install::install(&mut shell, &facts, options)? {
        Installed::Program(folder) => recording::record(&mut shell, &folder, options, &path)?,
        Installed::Nothing(reason, _) if !options.script => return Err(ways::none(&reason, &facts, &again)),
        Installed::Nothing(_, folder) => script::record(&mut shell, &facts, &folder, options, &path)?,
    };
    let (sent, received) = (shell.line.sent >> 10, shell.line.received >> 10);
    shell.line.messages.progress.clear();
    drop(shell);
    if !options.quiet {
        tell!("connection: {sent} KiB sent, {received} KiB received");
        findings::print(&path);
    }
    Ok(outcome)
}

/// The command that gives a shell.
fn command(options: &RemoteOptions) -> Result<Vec<String>> {
    if let Some(host) = &options.host {
        return Ok(["ssh", "-T", "--", host, "sh"].map(str::to_owned).to_vec());
    }
    let via = options.via.as_deref().unwrap_or_default();
    words::split(via)
        .map_err(|reason| Failure::new(format!("--via {via:?}: {reason}")).hint("such as --via 'adb shell'"))
}

/// Facts about the target, once the shell is root's.
fn root_facts(shell: &mut Shell, by: Option<RootBy>) -> Result<RemoteFacts> {
    let facts = shell.facts()?;
    let user = facts.uid.map_or_else(|| "an unknown user".to_owned(), |uid| format!("user {uid}"));
    match (facts.uid, by) {
        (Some(0), _) => Ok(facts),
        (_, Some(by)) => {
            shell.become_root(by)?;
            let facts = shell.facts()?;
            match facts.uid {
                Some(0) => Ok(facts),
                _ => {
                    Err(Failure::new(format!("the shell on the target is still that of {user}, not of root")))
                }
            }
        }
        _ => Err(Failure::new(format!("the shell on the target is that of {user}: only root can record"))
            .hint("log in as root, or give --root-by sudo, doas or su; none of them may ask for a password")),
    }
}

/// Converts the files or the part of a recording that came.
fn convert_received(input: &Path, output: &Path, options: &RemoteOptions) -> Result<Outcome> {
    convert(&ConvertOptions {
        input: input.to_owned(),
        output: output.to_owned(),
        force: options.force,
        compression: options.record.compression,
        symbols: Symbols::Used,
        verbatim: options.record.verbatim,
        quiet: options.quiet,
        instance: None,
        boot: None,
        survivors: None,
        limits: Limits::default(),
    })
}

/// At most 200 characters of a text of the target.
fn cut_reason(text: &str) -> String {
    text.chars().take(200).collect()
}
