//! Events whose id has no format: kept as bytes, and counted for each id.

use std::collections::BTreeMap;

use kmt_common::text::count;

/// Ids that a note names.
const NAMED_MAX: usize = 8;

/// Counts of the events of an input that have no format.
#[derive(Debug, Default)]
pub struct Undecoded {
    /// Ids that have a format; empty until the first event.
    known: Vec<bool>,
    counts: BTreeMap<u16, u64>,
}

impl Undecoded {
    /// Before the first event. `knows_id` is true for an id with a format.
    pub fn begin(&mut self, knows_id: impl Fn(u16) -> bool) {
        if self.known.is_empty() {
            self.known = (0..=u16::MAX).map(knows_id).collect();
        }
    }

    /// Counts the event if its id has no format.
    #[inline]
    pub fn see(&mut self, id: u64) {
        if !self.known.get(id as usize).copied().unwrap_or(true) {
            *self.counts.entry(id as u16).or_default() += 1;
        }
    }

    /// Number of events without a format.
    pub fn events(&self) -> u64 {
        self.counts.values().fold(0, |sum, &events| sum.saturating_add(events))
    }

    /// Ids without a format, the most frequent first, with the number of their events; `None`: there are none.
    pub fn listed(&self) -> Option<String> {
        let mut ids: Vec<(u64, u16)> = self.counts.iter().map(|(&id, &events)| (events, id)).collect();
        ids.sort_by_key(|&(events, id)| (std::cmp::Reverse(events), id));
        let named = ids.iter().take(NAMED_MAX);
        let mut words: Vec<String> =
            named.map(|&(events, id)| format!("id {id} ({})", count(events, "event"))).collect();
        let more = ids.len().saturating_sub(NAMED_MAX);
        words.extend((more > 0).then(|| format!("and {}", count(more as u64, "more id"))));
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// The note on them; `None`: there are none.
    pub fn note(&self) -> Option<String> {
        let listed = self.listed()?;
        Some(format!(
            "no format of {listed}: these events could not be decoded; they are in the file as bytes, as unknown:event_ID; with events/*/*/format of the same boot they can be decoded"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_is_counted_and_the_most_frequent_are_named() {
        let mut undecoded = Undecoded::default();
        undecoded.begin(|id| id < 100);
        assert_eq!(undecoded.note(), None);
        [7, 500, 501, 501, 99].into_iter().for_each(|id| undecoded.see(id));
        assert_eq!(undecoded.events(), 3);
        assert_eq!(undecoded.listed().as_deref(), Some("id 501 (2 events), id 500 (1 event)"));
        (600..620).for_each(|id| undecoded.see(id));
        assert!(undecoded.listed().unwrap().ends_with("id 605 (1 event), and 14 more ids"));
    }
}
