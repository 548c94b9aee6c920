//! `collect`: the events before a crash, from a persistent ring buffer to a .kmt file.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use kmt_common::output::Target;
use kmt_common::{shell, tell};

use super::arm::{self, ArmOptions};
use super::save::{Found, SaveOptions, arm_instead, look, nothing};
use super::system::System;
use crate::convert::{ConvertOptions, Limits, convert};
use crate::failure::{Failure, Outcome, Result};
use crate::record::Symbols;

/// Output of `collect`.
#[derive(Debug, Clone, Default)]
pub struct CollectOptions {
    /// Buffer to save; its folder follows from the output.
    pub save: SaveOptions,
    /// File to write.
    pub output: PathBuf,
    /// True if an existing file is overwritten.
    pub force: bool,
    /// True if the saved ring buffers stay.
    pub keep: bool,
    /// How to arm again afterwards.
    pub arm: Option<ArmOptions>,
}

/// Saves the ring buffers of the last boot, converts them, and arms again on request.
pub fn collect(options: &CollectOptions, system: &System) -> Result<Outcome> {
    if options.output == Path::new("-") {
        return Err(Failure::new("collect writes a file: the ring buffers are saved beside it first")
            .hint("give a file name with -o")
            .usage());
    }
    // Before anything is read: reading empties the buffers.
    Target { path: options.output.clone(), force: options.force }.check()?;
    let save = SaveOptions { folder: folder_of(&options.output), ..options.save.clone() };
    let ready = match (look(&save, system)?, &options.arm) {
        (Found::Events(ready), _) => ready,
        (Found::Nothing(reason), Some(again)) => return arm_instead(&reason, again, system),
        (Found::NotKept(_), Some(again)) => return arm::arm(again, system),
        (Found::Armed(reason), Some(_)) => return Ok(nothing(&reason, save.quiet)),
        (Found::Nothing(failure) | Found::Armed(failure) | Found::NotKept(failure), None) => {
            return Err(failure);
        }
    };
    let saved = ready.save(&save, system)?;
    let converted = convert(&ConvertOptions {
        input: save.folder.clone(),
        output: options.output.clone(),
        force: options.force,
        compression: kmt_format::Compression::None,
        symbols: Symbols::Used,
        verbatim: false,
        quiet: save.quiet,
        instance: None,
        boot: None,
        survivors: None,
        limits: Limits::default(),
    });
    let outcome = match converted {
        Ok(outcome) => outcome,
        Err(failure) => {
            let folder = shell::path(&save.folder);
            tell!("the ring buffers are saved in {folder}: `kmt-capture convert {folder}` converts them");
            return Err(failure);
        }
    };
    ready.finish(&save)?;
    drop(ready);
    if options.keep {
        tell!("the ring buffers stay in {}", save.folder.display());
    } else {
        fs::remove_dir_all(&save.folder).map_err(|e| Failure::io("removing", &save.folder, &e))?;
    }
    if let Some(again) = &options.arm {
        arm::arm(again, system)?;
    }
    Ok(if outcome == Outcome::Done { saved.outcome() } else { outcome })
}

/// The folder of the saved ring buffers, beside the file.
fn folder_of(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".saved");
    name.into()
}
