//! Conditions that the recorder reads: numbers of /proc/meminfo, and the kernel's pressure stall information.
//!
//! A condition on memory holds once: it has to be false again before it can end another wait.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags};

use super::{Condition, Pressure, pressure_file};
use crate::failure::{Failure, Result};

/// Bytes of /proc/meminfo that are read; it has 1.5 KiB on 7.2.
const MEMINFO_LEN: usize = 8 << 10;

/// A condition on a number of /proc/meminfo.
#[derive(Debug)]
struct Bound {
    text: String,
    key: String,
    is_below: bool,
    bytes: u64,
    /// False after it held, until it does not.
    is_armed: bool,
}

/// Conditions that are read while the recorder waits.
#[derive(Debug, Default)]
pub struct Polls {
    meminfo: Option<File>,
    bounds: Vec<Bound>,
    /// Pressure: the file stays open, which keeps the kernel's trigger.
    pressure: Vec<(String, File)>,
}

impl Polls {
    /// Those of `conditions` that the recorder reads. `is_again`: one that holds now has ended a wait already.
    ///
    /// # Errors
    ///
    /// This kernel cannot do it, or a condition holds already.
    pub fn new(conditions: &[Condition], is_again: bool) -> Result<Self> {
        let mut polls = Self::default();
        for condition in conditions {
            match condition {
                Condition::Memory { key, is_below, bytes } => {
                    let (key, text) = (key.clone(), condition.to_string());
                    polls.bounds.push(Bound {
                        text,
                        key,
                        is_below: *is_below,
                        bytes: *bytes,
                        is_armed: true,
                    });
                }
                Condition::Pressure(pressure) => {
                    polls.pressure.push((condition.to_string(), watch(condition, pressure)?));
                }
                _ => {}
            }
        }
        if !polls.bounds.is_empty() {
            let path = Path::new("/proc/meminfo");
            polls.meminfo = Some(File::open(path).map_err(|e| Failure::io("opening", path, &e))?);
            polls.check(&polls.read_meminfo(), is_again)?;
        }
        Ok(polls)
    }

    /// Refuses keys that meminfo does not have, and conditions that hold already; after another wait these wait until they
    /// do not hold.
    fn check(&mut self, meminfo: &str, is_again: bool) -> Result<()> {
        for bound in &mut self.bounds {
            let refused = |what: String| Failure::new(format!("--stop-when {:?}: {what}", bound.text));
            let Some(now) = bytes_of(meminfo, &bound.key) else {
                return Err(refused(format!("/proc/meminfo has no {}", bound.key))
                    .hint("give a key of /proc/meminfo, such as MemAvailable, Slab or SUnreclaim"));
            };
            let holds = bound.holds(now);
            if holds && !is_again {
                let other = if bound.is_below { "smaller" } else { "larger" };
                return Err(refused(format!("it holds already: {} is {}", bound.key, bound.shown(now)))
                    .hint(format!("give a {other} size")));
            }
            bound.is_armed = !holds;
        }
        Ok(())
    }

    fn read_meminfo(&self) -> String {
        let mut text = vec![0; MEMINFO_LEN];
        let len = self.meminfo.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        text.truncate(len);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// A condition on memory that holds now, with the number.
    pub fn memory(&mut self) -> Option<String> {
        if self.bounds.is_empty() {
            return None;
        }
        let text = self.read_meminfo();
        self.memory_in(&text)
    }

    fn memory_in(&mut self, meminfo: &str) -> Option<String> {
        let mut found = None;
        for bound in &mut self.bounds {
            let Some(now) = bytes_of(meminfo, &bound.key) else { continue };
            let holds = bound.holds(now);
            if holds && bound.is_armed && found.is_none() {
                found = Some(format!("{} ({} was {})", bound.text, bound.key, bound.shown(now)));
            }
            bound.is_armed = !holds;
        }
        found
    }

    /// What `poll` waits for, in the order that [`Polls::pressed`] expects.
    pub fn fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.pressure.iter().map(|(_, file)| PollFd::from_borrowed_fd(file.as_fd(), PollFlags::PRI))
    }

    /// Conditions on pressure that hold, and those whose cgroup is gone, by the results of `poll`.
    pub fn pressed(&self, results: &[PollFlags]) -> (Vec<String>, Vec<String>) {
        let with = |flag: PollFlags| {
            let found = self.pressure.iter().zip(results).filter(move |(_, flags)| flags.contains(flag));
            found.map(|((text, _), _)| text.clone()).collect::<Vec<String>>()
        };
        let gone = with(PollFlags::ERR);
        (with(PollFlags::PRI).into_iter().filter(|text| !gone.contains(text)).collect(), gone)
    }

    /// No longer waits for conditions whose cgroup is gone: `poll` would return at once.
    pub fn leave_out(&mut self, gone: &[String]) {
        self.pressure.retain(|(text, _)| !gone.contains(text));
    }
}

impl Bound {
    fn holds(&self, now: u64) -> bool {
        if self.is_below { now < self.bytes } else { now > self.bytes }
    }

    /// Bytes in the unit of the condition, rounded away from its size: what holds is not shown as equal.
    fn shown(&self, now: u64) -> String {
        let units = [("G", 30, 100.0), ("M", 20, 10.0)];
        let unit = units.iter().find(|(_, bits, _)| self.bytes % (1 << bits) == 0);
        let Some((unit, bits, parts)) = unit else { return format!("{}K", now >> 10) };
        let value = now as f64 / (1_u64 << bits) as f64 * parts;
        let value = if now < self.bytes { value.floor() } else { value.ceil() };
        format!("{}{unit}", value / parts)
    }
}

/// A number of /proc/meminfo in bytes.
fn bytes_of(meminfo: &str, key: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// Sets a trigger of the kernel on pressure (`psi_write`, kernel/sched/psi.c).
fn watch(condition: &Condition, pressure: &Pressure) -> Result<File> {
    let path = pressure_file(pressure.cgroup.as_deref());
    let refused = |action: &str, error: &std::io::Error, hint: &str| {
        let what = format!("--stop-when {:?}: {action} {}", condition.to_string(), path.display());
        Failure::os(what, error).hint(hint)
    };
    let mut file = File::options().read(true).write(true).open(&path).map_err(|error| {
        refused("opening", &error, match pressure.cgroup {
            None => "pressure needs Linux 5.2 or later with CONFIG_PSI, and psi=1 at boot if CONFIG_PSI_DEFAULT_DISABLED is set",
            Some(_) => "give the path of a cgroup of version 2 below /sys/fs/cgroup; cgroups of version 1 have no memory.pressure",
        })
    })?;
    // With its end: the kernel overwrites the last byte.
    file.write_all(format!("{}\0", pressure.to_kernel()).as_bytes()).map_err(|error| {
        refused(
            "setting a trigger on",
            &error,
            "without CAP_SYS_RESOURCE the window has to be a multiple of 2 s: psi:some:100ms/2s",
        )
    })?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polls(conditions: &[&str]) -> Polls {
        let bounds = conditions.iter().map(|text| {
            let Ok(Condition::Memory { key, is_below, bytes }) = Condition::parse(text) else {
                panic!("{text}")
            };
            Bound { text: (*text).to_owned(), key, is_below, bytes, is_armed: true }
        });
        Polls { bounds: bounds.collect(), ..Polls::default() }
    }

    fn meminfo(available_kib: u64, slab_kib: u64) -> String {
        format!("MemTotal: 8000000 kB\nMemAvailable: {available_kib} kB\nSlab:  {slab_kib} kB\n")
    }

    #[test]
    fn a_condition_on_memory_holds_once_until_it_does_not() {
        let mut polls = polls(&["MemAvailable<1M", "slab>1M"]);
        polls.check(&meminfo(1024, 1024), false).unwrap();
        assert_eq!(polls.memory_in(&meminfo(1024, 1024)), None, "neither below nor above");
        let found = polls.memory_in(&meminfo(1023, 1024));
        assert_eq!(found.as_deref(), Some("MemAvailable<1M (MemAvailable was 0.9M)"));
        assert_eq!(polls.memory_in(&meminfo(1000, 1024)), None, "still");
        let found = polls.memory_in(&meminfo(1000, 1025));
        assert_eq!(found.as_deref(), Some("slab>1M (Slab was 1.1M)"));
        assert_eq!(polls.memory_in(&meminfo(2000, 1)), None);
        assert!(polls.memory_in(&meminfo(1000, 1)).is_some());
    }

    #[test]
    fn a_number_has_the_unit_of_the_condition() {
        for (condition, kib, text) in [
            ("MemAvailable<22875M", 23_420_152, "22871.2M"),
            ("MemAvailable<4G", (4 << 20) - 1, "3.99G"),
            ("slab>10M", (10 << 10) + 1, "10.1M"),
            ("slab>1500K", 1501, "1501K"),
        ] {
            assert_eq!(polls(&[condition]).bounds[0].shown(kib << 10), text, "{condition}");
        }
    }

    #[test]
    fn a_condition_that_holds_already_is_refused_at_first_and_waits_later() {
        let refusal = polls(&["MemAvailable<1M"]).check(&meminfo(1000, 1), false).unwrap_err();
        assert!(refusal.what().contains("it holds already: MemAvailable is 0.9M"), "{refusal}");
        assert_eq!(refusal.remedy(), Some("give a smaller size"));
        let mut again = polls(&["MemAvailable<1M"]);
        again.check(&meminfo(1000, 1), true).unwrap();
        assert_eq!(again.memory_in(&meminfo(1000, 1)), None);
        assert_eq!(again.memory_in(&meminfo(2000, 1)), None);
        assert!(again.memory_in(&meminfo(1000, 1)).is_some());
        let refusal = polls(&["Nothing>1M"]).check(&meminfo(1, 1), false).unwrap_err();
        assert!(refusal.what().contains("/proc/meminfo has no Nothing"), "{refusal}");
    }

    #[test]
    fn pressure_that_cannot_be_watched_is_refused_with_a_remedy() {
        let condition = Condition::parse("psi:some:100ms/2s:kmt-no-such-group").unwrap();
        let refusal = Polls::new(&[condition], false).unwrap_err();
        assert!(refusal.what().contains("kmt-no-such-group/memory.pressure"), "{refusal}");
        assert!(refusal.remedy().is_some_and(|remedy| remedy.contains("cgroup of version 2")), "{refusal}");
    }
}
