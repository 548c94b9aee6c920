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
mod progress;
mod script;
mod shell;
mod stream;
mod words;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kmt_common::tell;

use self::binary::Binary;
use self::connection::Connection;
use self::facts::{Facts, Folder};
pub use self::shell::RootBy;
use self::shell::Shell;
use self::stream::{Bounds, Ended, receive};
use self::words::quoted;
use crate::convert::{ConvertOptions, Limits, convert};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, Target};
use crate::record::line::PROGRAM;
use crate::record::{RecordOptions, Symbols, default_name};

/// Time for the first answer of the program, and for the status of one that has ended.
const ANSWER: Duration = Duration::from_secs(30);

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
    /// The way to become root there.
    pub root_by: Option<RootBy>,
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
    if let Some(path) = &options.output {
        Target { path: path.clone(), force }.check()?;
    }
    let mut shell = Shell::greet(Connection::open(&command(options)?, options.quiet)?)?;
    let facts = root_facts(&mut shell, options.root_by)?;
    if !options.quiet {
        tell!("{}", facts.describe());
    }
    shell.define(options.line_timeout)?;
    let path = options.output.clone().unwrap_or_else(|| PathBuf::from(default_name(&facts.host)));
    let outcome = match install(&mut shell, &facts, options)? {
        Installed::Program(folder) => record(&mut shell, &folder, options, &path)?,
        Installed::Nothing(reason, folder) => {
            tell!("{reason}: recording with the shell script");
            if script::left_out(&options.record) {
                return Err(Failure::new("the shell script cannot record with these options")
                    .hint("give only --event without filters, --buffer-size, --clock and --duration; or give a program for this target with --binary"));
            }
            script::record(&mut shell, &facts, &folder, options, &path)?
        }
    };
    let (sent, received) = (shell.line.sent >> 10, shell.line.received >> 10);
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
fn root_facts(shell: &mut Shell, by: Option<RootBy>) -> Result<Facts> {
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

/// What records on the target.
enum Installed {
    /// The program, in this folder.
    Program(String),
    /// No program runs, for this reason; the script gets this folder.
    Nothing(String, String),
}

/// Brings the program to the target, as far as it runs there.
fn install(shell: &mut Shell, facts: &Facts, options: &RemoteOptions) -> Result<Installed> {
    let folders = facts.folders();
    let reason = match choose(facts, options)? {
        Err(reason) => reason,
        Ok(binary) => {
            let need_kib = binary.bytes.len() as u64 / 1024 + 64;
            enough_memory(facts, need_kib)?;
            let has_room = |folder: &&Folder| folder.free_kib.is_none_or(|free| free >= need_kib);
            let fit: Vec<&Folder> =
                folders.iter().filter(|folder| folder.may_execute).filter(has_room).collect();
            match shell.folder(&fit, true)? {
                Some(folder) => match try_program(shell, facts, &folder, &binary, options.quiet)? {
                    None => return Ok(Installed::Program(folder)),
                    Some(reason) => return Ok(Installed::Nothing(reason, folder)),
                },
                None if folders.iter().any(|folder| has_room(&folder)) => {
                    "programs cannot run in any folder of the target that can be written (noexec, SELinux)"
                        .to_owned()
                }
                None => return Err(no_room(&folders, need_kib)),
            }
        }
    };
    let all: Vec<&Folder> = folders.iter().collect();
    match shell.folder(&all, false)? {
        Some(folder) => Ok(Installed::Nothing(reason, folder)),
        None => Err(Failure::new(format!("{reason}; and no folder of the target can be written"))
            .hint("mount a tmpfs on the target: mount -t tmpfs none /mnt")),
    }
}

/// The program that fits, or the reason why none does.
fn choose(facts: &Facts, options: &RemoteOptions) -> Result<std::result::Result<Binary, String>> {
    if let Some(reason) = facts.unfit() {
        return Ok(Err(reason));
    }
    let machine = facts.program_machine().unwrap_or(&facts.machine);
    Ok(binary::find(machine, options.binary.as_deref())?.ok_or_else(|| {
        format!("there is no static kmt-capture for {machine} (looked for kmt-capture-{machine})")
    }))
}

fn enough_memory(facts: &Facts, need_kib: u64) -> Result<()> {
    let need_kib = need_kib + facts.memory_min_kib();
    match facts.available_kib {
        Some(available) if available < need_kib => Err(Failure::new(format!(
            "the target has {available} KiB of memory available, and recording needs {need_kib} KiB"
        ))
        .hint("end programs on the target")),
        _ => Ok(()),
    }
}

fn no_room(folders: &[Folder], need_kib: u64) -> Failure {
    let found: Vec<String> = folders
        .iter()
        .map(|folder| {
            format!(
                "{}: {}",
                folder.path,
                folder.free_kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{kib} KiB"))
            )
        })
        .collect();
    let found = if found.is_empty() { "none can be written".to_owned() } else { found.join(", ") };
    Failure::new(format!("no folder of the target has {need_kib} KiB of free space ({found})"))
        .hint("mount a tmpfs on the target: mount -t tmpfs none /mnt")
}

/// Sends the program and starts it once. Returns the reason if it does not run.
fn try_program(
    shell: &mut Shell,
    facts: &Facts,
    folder: &str,
    binary: &Binary,
    quiet: bool,
) -> Result<Option<String>> {
    let program = quoted(format!("{folder}/{PROGRAM}").as_bytes());
    let time = shell.send(&format!("{folder}/{PROGRAM}"), &binary.bytes, binary.sum, facts)?;
    if !quiet {
        tell!(
            "sent {}, {} KiB in {:.1} s, to {folder}",
            binary.path.display(),
            binary.bytes.len() >> 10,
            time.as_secs_f64()
        );
    }
    shell.run(
        &[
            b"near\nchmod 700 ",
            &*program,
            b"; v=$(",
            &program,
            b" --version 2>&1 < /dev/null | sed -n 1p); alone; say version \"$v\"",
        ]
        .concat(),
    )?;
    let version = shell.answer("version", Some(Instant::now() + ANSWER))?;
    if version.starts_with("kmt-capture ") {
        return Ok(None);
    }
    shell.run(&[b"near\nrm -f ".as_slice(), &program, b"; alone"].concat())?;
    Ok(Some(format!("{} does not run on the target: {}", binary.path.display(), cut_reason(&version))))
}

/// Runs the recorder, and receives the file.
fn record(shell: &mut Shell, folder: &str, options: &RemoteOptions, path: &Path) -> Result<Outcome> {
    let mut output = Output::record(path, options.force)?;
    shell.run(&recorder(folder, options))?;
    let bounds = Bounds { duration: options.record.duration, max_size: options.record.max_size };
    let ended = match receive(&mut shell.line, &mut output, bounds) {
        Ok(ended) => ended,
        Err(failure) => {
            shell.line.close();
            return save(output, options, path).and(Err(failure));
        }
    };
    let reason = match ended {
        Ended::Complete => {
            output.finish()?;
            return status_of(shell);
        }
        Ended::Cut(reason) => reason,
        Ended::Text => {
            let status = shell.answer("status", Some(Instant::now() + ANSWER))?;
            let reason = format!("recording failed on the target (status {})", cut_reason(&status));
            if output.is_empty() {
                return Err(Failure::new(reason));
            }
            reason
        }
    };
    shell.line.close();
    tell!("warning: the recording is cut: {reason}");
    save(output, options, path)
}

/// Outcome of a recorder that has sent the whole file.
fn status_of(shell: &mut Shell) -> Result<Outcome> {
    // If only the last word of the shell is missing, what the recorder reported may be, too.
    let Ok(status) = shell.answer("status", Some(Instant::now() + ANSWER)) else {
        return Ok(Outcome::Incomplete);
    };
    Ok(match status.trim().parse() {
        Ok(0) => Outcome::Done,
        Ok(3) => Outcome::Incomplete,
        Ok(status) => Outcome::Command(status),
        Err(_) => return Err(shell.lies("a status")),
    })
}

/// The command that records on the target.
fn recorder(folder: &str, options: &RemoteOptions) -> Vec<u8> {
    let timeout = format!("{}ms", options.line_timeout.as_millis());
    let mut words: Vec<Vec<u8>> =
        [&format!("{folder}/{PROGRAM}"), "record", "-o", "-", "--line", folder, "--line-timeout", &timeout]
            .map(|word| word.as_bytes().to_vec())
            .to_vec();
    if options.quiet {
        words.push(b"--quiet".to_vec());
    }
    let own = options.args.iter().take_while(|word| *word != "--");
    if !own.clone().any(|word| word.as_bytes().starts_with(b"--compress")) {
        words.extend([b"--compress".to_vec(), b"lz4".to_vec()]);
    }
    words.extend(options.args.iter().map(|word| word.as_bytes().to_vec()));
    let words: Vec<Vec<u8>> = words.iter().map(|word| quoted(word)).collect();
    // The status may not get out of a line that is silent: the shell ends all the same.
    [b"near\n".as_slice(), &words.join(&b' '), b"; r=$?; alone; say status $r; near; exit"].concat()
}

/// Makes a complete file of a recording that was cut.
fn save(output: Output, options: &RemoteOptions, path: &Path) -> Result<Outcome> {
    let Some(part) = output.unfinished().map(Path::to_owned).filter(|_| !output.is_empty()) else {
        return Ok(Outcome::Incomplete);
    };
    drop(output);
    let saved = convert(&ConvertOptions {
        input: part.clone(),
        output: path.to_owned(),
        force: options.force,
        compression: options.record.compression,
        symbols: Symbols::Used,
        verbatim: options.record.verbatim,
        quiet: options.quiet,
        instance: None,
        limits: Limits::default(),
    });
    match saved {
        Ok(_) => {
            let _ = std::fs::remove_file(&part);
            Ok(Outcome::Incomplete)
        }
        Err(failure) => {
            Err(Failure::new(format!("{failure}; the bytes that came are in {}", part.display())))
        }
    }
}

/// At most 200 characters of a text of the target.
fn cut_reason(text: &str) -> String {
    text.chars().take(200).collect()
}
