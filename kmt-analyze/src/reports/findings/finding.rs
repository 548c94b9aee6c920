//! One finding: who, where, how much, how sure, and the command that shows more.
//!
//! `growth` and `facts` make findings of the rows of other reports. `rows` puts growth first, by its rate, and `text` shows
//! the sentences. The sentence is made with the finding, in two forms, because JSON and screens have the same words.

use serde::{Serialize, Serializer};

use super::growing::Growing;
use crate::reports::common::View;

/// A fact that matters: who, where, how much, how sure, and the command that shows more.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// `slab_growth`, `page_growth`, `unseen_growth`, `possible_growth`, `waste`, `wait`, `page_failures`, `slab_failures`.
    pub finding: &'static str,
    /// One or two sentences.
    #[cfg_attr(test, schemars(with = "String"))]
    pub sentence: Sentence,
    /// Share at stake in percent.
    pub share_percent: f64,
    /// The whole of which that is a share.
    pub share_of: &'static str,
    /// Share at stake in percent, but for growth at its rate over the whole recording: its bytes are old objects only.
    pub at_stake_percent: f64,
    /// Bytes at stake; `null`: the finding is about time or events.
    pub bytes: Option<u64>,
    /// Growth in bytes a second, or in 10^9 ticks.
    pub bytes_per_second: Option<u64>,
    /// Time at stake, in the clock's unit.
    pub time: Option<u64>,
    /// Events at stake.
    pub events: Option<u64>,
    /// True of growth of page cache and of memory of processes, which ends with them.
    pub of_user_memory: bool,
    /// Of growth: who allocates it, and where; `null`: the finding is not of growth.
    pub growing: Option<Growing>,
    /// Rule that makes it a finding.
    pub threshold: &'static str,
    /// Command that shows more, without the file.
    pub command: &'static str,
}

/// The sentence of a finding. JSON has that for people, beside the numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Sentence {
    /// With sizes as people read them.
    human: String,
    /// With exact sizes, for screens with `--bytes`.
    exact: String,
}

impl Serialize for Sentence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.human.serialize(serializer)
    }
}

impl Finding {
    /// The sentence, with exact sizes where they are asked for.
    pub fn said(&self, view: &View) -> &str {
        if view.look.exact_bytes { &self.sentence.exact } else { &self.sentence.human }
    }

    /// A finding of that kind with its rule and command. `sentence` makes it with human and with exact sizes.
    pub fn new(
        finding: &'static str,
        threshold: &'static str,
        command: &'static str,
        view: &View,
        sentence: impl Fn(&View) -> String,
    ) -> Self {
        let mut exact = *view;
        exact.look.exact_bytes = true;
        Self {
            finding,
            sentence: Sentence { human: sentence(view), exact: sentence(&exact) },
            share_percent: 0.0,
            share_of: "",
            at_stake_percent: 0.0,
            bytes: None,
            bytes_per_second: None,
            time: None,
            events: None,
            of_user_memory: false,
            growing: None,
            threshold,
            command,
        }
    }

    /// This finding with the share at stake.
    #[must_use]
    pub fn share(self, part: u64, whole: u64, share_of: &'static str) -> Self {
        let share_percent = (100.0 * part as f64 / whole.max(1) as f64).min(100.0);
        Self { share_percent, share_of, at_stake_percent: share_percent, ..self }
    }

    /// This finding of growth, with the share at stake at its rate over `length`, in the clock's unit.
    #[must_use]
    pub fn over(self, length: u64) -> Self {
        let seconds = length as f64 / 1e9;
        let at_rate = self.bytes_per_second.unwrap_or(0) as f64 * seconds;
        let times = (at_rate / self.bytes.unwrap_or(0).max(1) as f64).max(1.0);
        Self { at_stake_percent: (self.share_percent * times).min(100.0), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_counts_at_its_rate_over_the_recording() {
        let found = Finding::new("slab_growth", "", "leaks", &View::plain(), |_| String::new());
        // 2 MiB of 10 MiB, grown in 4 s of 16 s.
        let found = Finding { bytes: Some(2 << 20), bytes_per_second: Some(1 << 19), ..found };
        let found = found.share(2 << 20, 10 << 20, "slab bytes").over(16_000_000_000);
        assert_eq!((found.share_percent, found.at_stake_percent), (20.0, 80.0));
        let shorter = found.clone().over(1_000_000_000);
        assert_eq!(shorter.at_stake_percent, 20.0, "never less than its share");
        assert_eq!(found.over(u64::MAX).at_stake_percent, 100.0);
    }
}
