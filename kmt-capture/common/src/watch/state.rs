//! State of a watch over restarts, as lines of text: levels of the last 8 days, and growth that was reported in this boot.
//!
//! ```text
//! kmt-watch 1
//! boot BOOT_ID
//! time UNIX_SECONDS
//! open SECONDS
//! level KIND KIB,KIB,...,- NAME
//! reported KIND BEGIN_KIB GROWN_KIB NAME
//! ```
//!
//! `-` is an unknown level; the last one is that of the 6 hours that are open since `open` before `time`. NAME is empty for kinds without names. Lines that cannot be parsed are counted and skipped.

use std::fmt::Write as _;

use super::sample::Kind;
use super::watcher::{Reported, Watcher};

/// First line of the file.
const HEAD: &str = "kmt-watch 1";
/// Levels of a line that are read.
const LEVELS_MAX: usize = 64;
/// Growths that are read.
const REPORTED_MAX: usize = 512;

impl Watcher {
    /// The state as text. `boot` identifies the boot, `unix` is the time of day in seconds.
    pub fn state(&self, boot: &str, unix: u64) -> String {
        let open = self.history.open_seconds();
        let mut out = format!("{HEAD}\nboot {boot}\ntime {unix}\nopen {open}\n");
        for series in self.history.series().iter().filter(|series| !series.kind.is_load()) {
            let levels = series.levels();
            let known = levels.iter().skip_while(|level| level.is_none());
            let known: Vec<String> = known.map(|level| shown(*level)).collect();
            if !known.is_empty() {
                let _ = writeln!(out, "level {} {} {}", series.kind.key(), known.join(","), series.name);
            }
        }
        for known in &self.reported {
            let (key, begin, grown) = (known.kind.key(), known.begin_kib, known.grown_kib);
            let _ = writeln!(out, "reported {key} {begin} {grown} {}", known.name);
        }
        out
    }

    /// Takes over a state, before the first sample. Returns the number of lines that cannot be parsed.
    pub fn restore(&mut self, text: &str, boot: &str, unix: u64) -> usize {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return 1;
        }
        let (mut is_this_boot, mut ago, mut open, mut damaged) = (false, 0u64, 0u64, 0);
        // What was reported comes first: after a reboot, levels that a leak had reached are none to return to.
        let (reported, others): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| line.starts_with("reported "));
        let ends = others.iter().take_while(|line| !line.starts_with("level "));
        let ends = ends.count();
        let (head, levels) = others.split_at(ends);
        for line in head.iter().chain(&reported).chain(levels).copied() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let is_parsed = match word {
                "boot" => {
                    is_this_boot = rest == boot;
                    true
                }
                "time" => rest.parse::<u64>().map(|time| ago = unix.saturating_sub(time)).is_ok(),
                "open" => rest.parse().map(|seconds| open = seconds).is_ok(),
                "level" => self.restore_level(rest, ago.saturating_add(open), is_this_boot).is_some(),
                "reported" => self.restore_reported(rest).is_some(),
                _ => false,
            };
            damaged += usize::from(!is_parsed);
        }
        if !is_this_boot {
            self.reported.clear();
        }
        damaged
    }

    fn restore_level(&mut self, rest: &str, since: u64, is_this_boot: bool) -> Option<()> {
        let mut words = rest.splitn(3, ' ');
        let (kind, levels, name) = (Kind::of_key(words.next()?)?, words.next()?, words.next()?);
        let level = |text: &str| if text == "-" { Some(None) } else { text.parse::<i64>().ok().map(Some) };
        let levels: Option<Vec<Option<i64>>> = levels.split(',').take(LEVELS_MAX).map(level).collect();
        let mut levels = levels?;
        let leaked = self.reported.iter().find(|known| known.kind == kind && known.name == name);
        if let Some(leaked) = leaked.filter(|_| !is_this_boot) {
            levels.iter_mut().flatten().for_each(|level| *level = (*level).min(leaked.begin_kib));
        }
        self.history.restore(kind, name, &levels, since).then_some(())
    }

    fn restore_reported(&mut self, rest: &str) -> Option<()> {
        let mut words = rest.splitn(4, ' ');
        let kind = Kind::of_key(words.next()?)?;
        let (begin_kib, grown_kib) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let name = words.next()?.to_owned();
        if self.reported.len() < REPORTED_MAX {
            self.reported.push(Reported { kind, name, begin_kib, grown_kib });
        }
        Some(())
    }
}

fn shown(level: Option<i64>) -> String {
    level.map_or_else(|| "-".to_owned(), |kib| kib.to_string())
}
