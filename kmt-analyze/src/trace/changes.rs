//! Changes of a recording by other processes: pairs `record.changed` (format-spec/registry.md).

use kmt_common::setting_change::SettingChange;
use kmt_format::read::Metadata;

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
