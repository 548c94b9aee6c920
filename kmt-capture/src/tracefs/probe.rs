//! A probe at the entry of a function: it shows what kfree_rcu is given. Probes are the whole system's, not an instance's.

use super::dir::TraceDir;
use super::events::Event;
use super::owner::Owner;
use crate::failure::{Failure, Result};

/// File of tracefs that makes probes.
const PROBES: &str = "kprobe_events";
const PREFIX: &str = "kmt_";
/// Name of the event.
pub const NAME: &str = "kvfree_call_rcu";
/// Names that the function had: since 5.9, and before (kernel/rcu/tree.c, mm/slab_common.c).
const FUNCTIONS: [&str; 2] = [NAME, "kfree_call_rcu"];

/// A probe of our own; it is removed when this is dropped. No instance may have its event enabled then.
#[derive(Debug)]
pub struct Probe {
    top: TraceDir,
    group: String,
    /// Definition that was written to make it.
    pub definition: String,
}

impl Probe {
    /// Makes a probe where kfree_rcu hands objects over; `long_size` is that of the kernel.
    ///
    /// # Errors
    ///
    /// The kernel has no probes, or refuses this one; its reason is in the error.
    pub fn at_kfree_rcu(top: &TraceDir, long_size: usize) -> Result<Self> {
        if !top.has(PROBES) {
            return Err(Failure::new("--kfree-rcu: this kernel has no kprobe_events (CONFIG_KPROBE_EVENTS)")
                .hint(
                    "record without it; page events and --snapshot-every also limit the error of live figures (docs/live.md)",
                ));
        }
        let group = group_name(Owner::this());
        let mut refused = None;
        for definition in definitions(&group, long_size) {
            match top.append(PROBES, &format!("{definition}\n")) {
                Ok(()) => return Ok(Self { top: top.clone(), group, definition }),
                Err(failure) => refused = refused.or(Some(failure)),
            }
        }
        Err(refused
            .unwrap_or_else(|| Failure::new("--kfree-rcu: this machine is not supported"))
            .hint("record without it; page events and --snapshot-every also limit the error of live figures (docs/live.md)"))
    }

    /// Event of the probe.
    pub fn event(&self) -> Event {
        Event::new(&self.group, NAME)
    }

    /// How often it was hit and could not be taken: `kprobe_profile`, lines of name, hits and misses. Probes of the same
    /// name are the same there.
    pub fn missed(&self) -> u64 {
        let text = self.top.read("kprobe_profile").unwrap_or_default();
        let misses = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            words.next().filter(|name| *name == NAME)?;
            words.nth(1)?.parse::<u64>().ok()
        };
        text.lines().filter_map(misses).sum()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Err(failure) = remove(&self.top, &self.group) {
            kmt_common::message!("warning: the probe {}/{NAME} could not be removed: {failure}", self.group);
        }
    }
}

fn group_name(owner: Owner) -> String {
    format!("{PREFIX}{}", owner.name().replace('-', "_"))
}

/// Removes the probe of that recorder, which is known to be gone.
pub(super) fn remove_of(top: &TraceDir, owner: Owner) {
    let group = group_name(owner);
    if is_listed(top, &group) {
        let _ = remove(top, &group);
    }
}

/// Removes it; its event may be enabled at the top level, but in no instance.
fn remove(top: &TraceDir, group: &str) -> Result<()> {
    let enable = Event::new(group, NAME).file("enable");
    if top.read(&enable).is_some_and(|state| state.starts_with('1')) {
        top.write(&enable, "0")?;
    }
    top.append(PROBES, &format!("-:{group}/{NAME}\n"))
}

/// The probe, as precise as the kernel takes it: arguments by number are of 4.20 and later, and how to name the return
/// address depends on the machine (Documentation/trace/kprobetrace.rst).
fn definitions(group: &str, long_size: usize) -> Vec<String> {
    let caller = match std::env::consts::ARCH {
        "x86" | "x86_64" => "$stack0",
        "arm" | "aarch64" => "%lr",
        "s390x" => "%r14",
        "riscv64" | "riscv32" => "%ra",
        "powerpc" | "powerpc64" => "%link",
        _ => "",
    };
    let long = if long_size == 8 { "x64" } else { "x32" };
    let mut out = Vec::new();
    for function in FUNCTIONS {
        let plain = format!("p:{group}/{NAME} {function} head=$arg1:{long} object=$arg2:{long}");
        if !caller.is_empty() {
            out.push(format!("{plain} call_site={caller}:{long}"));
        }
        out.push(plain);
    }
    out
}

/// Groups of probes whose recorders are gone.
pub fn orphan_probes(top: &TraceDir) -> Vec<String> {
    let text = top.read(PROBES).unwrap_or_default();
    let mut groups: Vec<String> = text.lines().filter_map(group_of).filter(|g| is_orphan(g)).collect();
    groups.dedup();
    groups
}

/// The group in `p:GROUP/NAME …`.
fn group_of(line: &str) -> Option<String> {
    let (group, rest) = line.split_once(':')?.1.split_once('/')?;
    rest.starts_with(NAME).then(|| group.to_owned())
}

fn is_orphan(group: &str) -> bool {
    let owner = group.strip_prefix(PREFIX).map(|owner| owner.replace('_', "-"));
    owner.and_then(|owner| Owner::parse(&owner)).is_some_and(|owner| !owner.is_alive())
}

fn is_listed(top: &TraceDir, group: &str) -> bool {
    top.read(PROBES).unwrap_or_default().lines().filter_map(group_of).any(|found| found == group)
}

/// Removes the probe of a recorder that is gone, unless another process was faster; false if something still uses it.
pub fn remove_orphan_probe(top: &TraceDir, group: &str) -> bool {
    remove(top, group).is_ok() || !is_listed(top, group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_ours_by_their_group() {
        let this = Owner::this().name().replace('-', "_");
        for (line, group, orphan) in [
            ("p:kmt_4194304_1/kvfree_call_rcu kvfree_call_rcu head=$arg1:x64", Some("kmt_4194304_1"), true),
            ("p:kprobes/myprobe do_sys_open", None, false),
            ("p:kmt/kvfree_call_rcu kvfree_call_rcu", Some("kmt"), false),
            (&format!("p:kmt_{this}/kvfree_call_rcu kvfree_call_rcu"), Some(&*format!("kmt_{this}")), false),
        ] {
            assert_eq!(group_of(line).as_deref(), group, "{line}");
            assert_eq!(group.is_some_and(is_orphan), orphan, "{line}");
        }
    }

    #[test]
    fn a_kernel_without_probes_is_told() {
        let dir = std::env::temp_dir().join(format!("kmt-probe-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let top = TraceDir::at(&dir);
        let said = Probe::at_kfree_rcu(&top, 8).unwrap_err().to_string();
        assert!(said.contains("kprobe_events"), "{said}");
        std::fs::write(dir.join(PROBES), "p:other/x y\n").unwrap();
        std::fs::write(dir.join("kprobe_profile"), "  x 9 9\n  kvfree_call_rcu    526    3\n").unwrap();
        let probe = Probe::at_kfree_rcu(&top, 4).unwrap();
        assert_eq!(probe.missed(), 3);
        let event = probe.event();
        drop(probe);
        let lines = std::fs::read_to_string(dir.join(PROBES)).unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        assert!(
            lines[1].starts_with(&format!("p:{}/{NAME} {NAME} head=$arg1:x32", event.system)),
            "{lines:?}"
        );
        assert_eq!(lines[2], format!("-:{}/{NAME}", event.system));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
