//! Options of `arm` and `collect` on the command line.

use std::path::PathBuf;

use super::SIDECAR;
use super::arm::ArmOptions;
#[cfg(feature = "convert")]
use super::collect::CollectOptions;
use super::save::SaveOptions;
use super::system::System;
use crate::failure::{Outcome, Result};
use crate::record::{EventArgs, Preset, RecordOptions};

/// Options of `arm`.
#[derive(clap::Args)]
pub struct ArmArgs {
    #[command(flatten)]
    events: EventArgs,
    /// Persistent instance, if there are several
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// File for facts that the buffer does not keep over a crash
    #[arg(long, value_name = "FILE", default_value = SIDECAR)]
    sidecar: PathBuf,
    /// Discard events of the last boot that were not collected
    #[arg(long)]
    discard: bool,
    /// Stop recording, discard the events of this boot, and remove the sidecar: before a planned reboot
    #[arg(long, conflicts_with_all = ["preset", "event", "stack", "discard"])]
    off: bool,
    /// Where tracefs is mounted, if not at /sys/kernel/tracing
    #[arg(long, value_name = "DIR")]
    tracefs: Option<PathBuf>,
    /// Print only warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

impl ArmArgs {
    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        let is_off = self.off;
        let (options, system) = (self.options(), System::default());
        if is_off { super::arm::off(&options, &system) } else { super::arm::arm(&options, &system) }
    }

    fn options(self) -> ArmOptions {
        ArmOptions {
            selection: self.events.into(),
            instance: self.instance,
            sidecar: Some(self.sidecar),
            is_discarding: self.discard,
            tracefs: self.tracefs,
            quiet: self.quiet,
        }
    }
}

/// Options of `collect`.
#[derive(clap::Args)]
pub struct CollectArgs {
    /// File to write
    #[cfg(feature = "convert")]
    #[arg(short, long, value_name = "FILE.kmt", required_unless_present = "save")]
    output: Option<PathBuf>,
    /// Only save the ring buffers and the facts about them to this new folder, for `convert` on any machine
    #[cfg_attr(feature = "convert", arg(long, value_name = "DIR", conflicts_with_all = ["output", "force", "keep"]))]
    #[cfg_attr(not(feature = "convert"), arg(long, value_name = "DIR", required = true))]
    save: Option<PathBuf>,
    /// Overwrite FILE.kmt if it exists
    #[cfg(feature = "convert")]
    #[arg(long)]
    force: bool,
    /// Keep the saved ring buffers, in the folder FILE.kmt.saved
    #[cfg(feature = "convert")]
    #[arg(long)]
    keep: bool,
    /// The boot before ran the running kernel: use its formats and its symbols if the sidecar is missing
    #[arg(long)]
    same_kernel: bool,
    /// Arm again afterwards, with the default events; also if there is nothing to collect
    #[arg(long)]
    arm: bool,
    /// With --arm: a set of events instead of the default ones
    #[arg(short, long, value_enum, value_name = "NAME", requires = "arm")]
    preset: Option<Preset>,
    /// Persistent instance, if there are several
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// File that `arm` wrote
    #[arg(long, value_name = "FILE", default_value = SIDECAR)]
    sidecar: PathBuf,
    /// Where tracefs is mounted, if not at /sys/kernel/tracing
    #[arg(long, value_name = "DIR")]
    tracefs: Option<PathBuf>,
    /// Print only warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

impl CollectArgs {
    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        let system = System::default();
        let arm = self.arm.then(|| ArmOptions {
            selection: RecordOptions { preset: self.preset, task_events: true, ..RecordOptions::default() },
            instance: self.instance.clone(),
            sidecar: Some(self.sidecar.clone()),
            is_discarding: false,
            tracefs: self.tracefs.clone(),
            quiet: self.quiet,
        });
        let save = SaveOptions {
            folder: self.save.clone().unwrap_or_default(),
            instance: self.instance,
            sidecar: Some(self.sidecar),
            is_same_kernel: self.same_kernel,
            tracefs: self.tracefs,
            quiet: self.quiet,
        };
        #[cfg(feature = "convert")]
        if let Some(output) = self.output {
            let options = CollectOptions { save, output, force: self.force, keep: self.keep, arm };
            return super::collect::collect(&options, &system);
        }
        super::save::save_only(&save, arm.as_ref(), &system)
    }
}
