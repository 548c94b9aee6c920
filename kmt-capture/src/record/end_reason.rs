//! Why a recording ended, as a word for the program that started it (`watch`): messages are for people, and `--quiet` has few.

use super::recorder::StopReason;
use super::recorder::room::Bound;

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Its time was over.
    Time,
    /// The file has the size of `--max-size`.
    MaxSize,
    /// The file system is full.
    Disk,
    /// The file is in memory, and little memory is available.
    Memory,
    /// A signal, or another reason.
    Other,
}

const WORDS: [(EndReason, &str); 5] = [
    (EndReason::Time, "time"),
    (EndReason::MaxSize, "max-size"),
    (EndReason::Disk, "disk"),
    (EndReason::Memory, "memory"),
    (EndReason::Other, "other"),
];

impl EndReason {
    /// The reason of a recording that stopped; `full`: events that were left in the ring buffers found no room.
    pub(super) fn of(reason: StopReason, full: Option<Bound>) -> Self {
        let full = if let StopReason::Size(bound) = reason { Some(bound) } else { full };
        match (full, reason) {
            (Some(Bound::Asked), _) => Self::MaxSize,
            (Some(Bound::Disk), _) => Self::Disk,
            (Some(Bound::Memory), _) => Self::Memory,
            (None, StopReason::Time) => Self::Time,
            (None, _) => Self::Other,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        WORDS.iter().find(|(reason, _)| *reason == self).map_or("", |(_, word)| word)
    }

    /// The reason of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        WORDS.iter().find(|(_, of)| *of == word).map(|(reason, _)| *reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_became_full_at_the_end_is_reported_too() {
        assert_eq!(EndReason::of(StopReason::Size(Bound::Asked), Some(Bound::Asked)), EndReason::MaxSize);
        assert_eq!(EndReason::of(StopReason::Time, Some(Bound::Asked)), EndReason::MaxSize);
        assert_eq!(EndReason::of(StopReason::Asked, Some(Bound::Disk)), EndReason::Disk);
        assert_eq!(EndReason::of(StopReason::Time, None), EndReason::Time);
        assert_eq!(EndReason::of(StopReason::Asked, None), EndReason::Other);
        for (reason, word) in WORDS {
            assert_eq!((EndReason::of_word(word), reason.word()), (Some(reason), word));
        }
        assert_eq!(EndReason::of_word(""), None);
    }
}
