//! The program in a folder of the target, or the reason why none runs there.

use std::time::Instant;

use kmt_common::shell::quoted;
use kmt_common::tell;

use super::binary::{self, Binary};
use super::facts::{RemoteFacts, RemoteFolder};
use super::shell::{ANSWER, Shell};
use super::{RemoteOptions, cut_reason};
use crate::failure::{Failure, Result};
use crate::record::line::PROGRAM;

/// The program that records on the target.
pub enum Installed {
    /// The program, in this folder.
    Program(String),
    /// No program runs, for this reason; the script gets this folder.
    Nothing(String, String),
}

/// Brings the program to the target, if it runs there.
pub fn install(shell: &mut Shell, facts: &RemoteFacts, options: &RemoteOptions) -> Result<Installed> {
    let folders = facts.folders();
    let reason = match choose(facts, options)? {
        _ if options.script => "--script".to_owned(),
        Err(reason) => reason,
        Ok(binary) => {
            let need_kib = binary.bytes.len() as u64 / 1024 + 64;
            enough_memory(facts, need_kib)?;
            let has_room = |folder: &&RemoteFolder| folder.free_kib.is_none_or(|free| free >= need_kib);
            let fit: Vec<&RemoteFolder> =
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
    let all: Vec<&RemoteFolder> = folders.iter().collect();
    match shell.folder(&all, false)? {
        Some(folder) => Ok(Installed::Nothing(reason, folder)),
        None => Err(Failure::new(format!("{reason}; and no folder of the target can be written"))
            .hint("mount a tmpfs on the target: mount -t tmpfs none /mnt")),
    }
}

/// The program that fits, or the reason why none does.
fn choose(facts: &RemoteFacts, options: &RemoteOptions) -> Result<std::result::Result<Binary, String>> {
    if let Some(reason) = facts.unfit() {
        return Ok(Err(reason));
    }
    let machine = facts.program_machine().unwrap_or(&facts.machine);
    let missing = || {
        let same = match machine == std::env::consts::ARCH {
            true => "; this program is not static: a target with the same libraries runs it with --binary",
            false => "",
        };
        let folders = binary::folders();
        format!(
            "no static kmt-capture for {machine} was found (file kmt-capture-{machine} in {folders}){same}"
        )
    };
    Ok(binary::find(machine, options.binary.as_deref())?.ok_or_else(missing))
}

fn enough_memory(facts: &RemoteFacts, need_kib: u64) -> Result<()> {
    let need_kib = need_kib + facts.memory_min_kib();
    match facts.available_kib {
        Some(available) if available < need_kib => Err(Failure::new(format!(
            "the target has {available} KiB of memory available, and recording needs {need_kib} KiB"
        ))
        .hint("end programs on the target")),
        _ => Ok(()),
    }
}

fn no_room(folders: &[RemoteFolder], need_kib: u64) -> Failure {
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
    facts: &RemoteFacts,
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
            b"unwatch\nchmod 700 ",
            &*program,
            b"; v=$(",
            &program,
            b" --version 2>&1 < /dev/null | sed -n 1p); watch; say version \"$v\"",
        ]
        .concat(),
    )?;
    let version = shell.answer("version", Some(Instant::now() + ANSWER))?;
    if version.starts_with("kmt-capture ") {
        return Ok(None);
    }
    shell.run(&[b"unwatch\nrm -f ".as_slice(), &program, b"; watch"].concat())?;
    Ok(Some(format!("{} does not run on the target: {}", binary.path.display(), cut_reason(&version))))
}
