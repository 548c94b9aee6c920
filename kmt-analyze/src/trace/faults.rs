//! Faults of a file that were found when its events were read: damaged chunks, and limits that were exceeded; and changes of the
//! recording by other processes.
//!
//! Damage that is found when the file is opened is in the trace; screens, standard error and JSON count both. Changes are pairs
//! `record.changed` (format-spec/registry.md).

use std::collections::HashSet;

use kmt_common::setting_change::SettingChange;
use kmt_format::read::{Damage, Metadata, Trace};
use kmt_format::{Error, ErrorKind};

/// Faults of a pass over the events.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Event chunks that could not be read.
    pub damages: Vec<Damage>,
    /// Limits that were exceeded; what is beyond them is counted as unknown.
    pub limits: Vec<Error>,
}

impl Faults {
    /// Damage, and the limit that was exceeded, if one was.
    pub fn new(damages: Vec<Damage>, limit: Option<ErrorKind>) -> Self {
        Self { damages, limits: limit.map(Error::new).into_iter().collect() }
    }

    /// Number of damaged places of the file.
    pub fn damaged_places(&self, trace: &Trace<'_>) -> u64 {
        trace.damage_count().saturating_add(self.damages.len() as u64)
    }

    /// Names of the limits that were exceeded.
    pub fn limit_names(&self) -> Vec<&'static str> {
        let name = |error: &Error| match error.kind() {
            ErrorKind::LimitExceeded { name, .. } => Some(*name),
            _ => None,
        };
        self.limits.iter().filter_map(name).collect()
    }

    /// True if there is neither damage nor an exceeded limit.
    pub fn is_empty(&self) -> bool {
        self.damages.is_empty() && self.limits.is_empty()
    }

    /// Adds the faults of another pass over the same file: what both found is one fault.
    pub fn join(&mut self, other: Self) {
        let known: HashSet<u64> = self.damages.iter().map(|damage| damage.offset).collect();
        self.damages.extend(other.damages.into_iter().filter(|damage| !known.contains(&damage.offset)));
        let known = self.limit_names();
        self.limits.extend(other.limits.into_iter().filter(
            |error| !matches!(error.kind(), ErrorKind::LimitExceeded { name, .. } if known.contains(name)),
        ));
    }
}

impl From<Vec<Damage>> for Faults {
    fn from(damages: Vec<Damage>) -> Self {
        Self::new(damages, None)
    }
}

impl From<&[Damage]> for Faults {
    fn from(damages: &[Damage]) -> Self {
        damages.to_vec().into()
    }
}

/// Changes that are read.
const CHANGES_MAX: usize = 1_024;

/// A setting of the ring buffer that another process wrote while it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Times of the trace clock between which it happened.
    pub from: u64,
    pub to: u64,
    /// What happened.
    pub setting: SettingChange,
}

impl Change {
    /// All changes, in the order of the file.
    pub fn all(metadata: &Metadata<'_>) -> Vec<Self> {
        let pairs = metadata.pairs.iter().filter(|(key, _)| key == "record.changed");
        let changes = pairs.filter_map(|(_, value)| SettingChange::of_pair(value)).take(CHANGES_MAX);
        changes.map(|(from, to, setting)| Self { from, to, setting }).collect()
    }

    /// True if events may be missing because of it.
    pub fn loses_events(&self) -> bool {
        self.setting.loses_events()
    }

    /// Times at which events may be missing because of a change: until the setting has its value again.
    pub fn spans(changes: &[Self]) -> Vec<(u64, u64)> {
        let mut spans = Vec::new();
        // The first change of each file that is not undone, by file.
        let mut open: std::collections::BTreeMap<&str, &Self> = std::collections::BTreeMap::new();
        for change in changes.iter().filter(|change| change.loses_events()) {
            let Self { from, to, setting: SettingChange { file, before, after } } = change;
            match open.get(file.as_str()) {
                Some(first) if first.setting.before == *after => {
                    spans.push((first.from, *to));
                    open.remove(file.as_str());
                }
                Some(_) => {}
                None if before == after => spans.push((*from, *to)),
                None => drop(open.insert(file, change)),
            }
        }
        spans.extend(open.values().map(|change| (change.from, u64::MAX)));
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_that_two_passes_found_are_counted_once() {
        let damage = |offset| Damage::new(offset, 64, Error::new(ErrorKind::Usage("damaged")));
        let limit = |found| ErrorKind::LimitExceeded { name: "texts", what: "the length", found, limit: 1 };
        let mut faults = Faults::new(vec![damage(64), damage(256)], Some(limit(2)));
        faults.join(Faults::new(vec![damage(256), damage(512)], Some(limit(9))));
        let offsets: Vec<u64> = faults.damages.iter().map(|damage| damage.offset).collect();
        assert_eq!((offsets, faults.limit_names()), (vec![64, 256, 512], vec!["texts"]));
    }

    #[test]
    fn events_may_be_missing_until_a_setting_has_its_value_again() {
        let lines = [
            "10\t20\ttracing_on\t1\t0",
            "11\t21\tevents/kmem/kfree/enable\t1\t1",
            "30\t40\ttracing_on\t0\t1",
            "50\t60\ttrace_clock\tmono\tboot",
            "70\t80\ttrace_clock\tboot\tlocal",
            "70\t80\tbuffer_size_kb\t8\t4",
        ];
        let parsed = lines.iter().map(|line| SettingChange::of_pair(line.as_bytes()).unwrap());
        let changes: Vec<Change> = parsed.map(|(from, to, setting)| Change { from, to, setting }).collect();
        assert_eq!(Change::spans(&changes), [(11, 21), (10, 40), (50, u64::MAX)]);
    }
}
