//! A change of a recording's settings by another process: the text that a file keeps of it, and the words for it.

/// A file of tracefs that another process wrote while it decided which events were recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// The file, from the directory of the ring buffer on.
    pub file: String,
    /// Value of the setting before.
    pub before: String,
    /// Value of the setting after; equal to `before` if it was written and has its value again.
    pub after: String,
}

impl SettingChange {
    /// A clear of the buffer, by a write to `trace`.
    pub fn clear() -> Self {
        Self { file: "trace".to_owned(), before: String::new(), after: String::new() }
    }

    /// True if events may be missing because of it. Sizes of the buffer lose nothing.
    pub fn loses_events(&self) -> bool {
        !self.file.contains("buffer_")
    }

    /// What happened, in words.
    pub fn describe(&self) -> String {
        let Self { file, before, after } = self;
        match (file.as_str(), before == after) {
            ("trace", _) => "the buffer was cleared".to_owned(),
            (_, true) if after.is_empty() => format!("{file} was written"),
            (_, true) => format!("{file} was written and is {after:?} again"),
            (_, false) => format!("{file} changed from {before:?} to {after:?}"),
        }
    }

    /// Value of a pair `record.changed`: it happened between two times of the trace clock (format-spec/registry.md).
    pub fn to_pair(&self, from: u64, to: u64) -> String {
        format!("{from}\t{to}\t{}\t{}\t{}", self.file, self.before, self.after)
    }

    /// The times and the change of such a value.
    pub fn of_pair(value: &[u8]) -> Option<(u64, u64, Self)> {
        let mut words = std::str::from_utf8(value).ok()?.split('\t');
        let (from, to) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let [file, before, after] = [words.next()?, words.next()?, words.next()?].map(str::to_owned);
        Some((from, to, Self { file, before, after }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_reads_back() {
        let change =
            SettingChange { file: "tracing_on".to_owned(), before: "1".to_owned(), after: String::new() };
        assert_eq!(SettingChange::of_pair(change.to_pair(3, 9).as_bytes()), Some((3, 9, change)));
        assert_eq!(SettingChange::of_pair(b"1\t2\tx\ty"), None);
        assert_eq!(SettingChange::of_pair(b"1\t-2\tx\ty\tz"), None);
    }
}
