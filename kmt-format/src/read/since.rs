//! Rows of a table by key and time.

use core::cmp::Reverse;
use std::sync::OnceLock;

/// Rows by what they are about and by time, made when they are first needed.
#[derive(Debug, Clone)]
pub(super) struct Since<K>(OnceLock<Vec<(K, u64, u32)>>);

impl<K> Default for Since<K> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<K: Ord + Copy> Since<K> {
    /// Forgets everything: there are more rows.
    pub fn clear(&mut self) {
        self.0.take();
    }

    /// Number of the row that holds for `key` at `time`; `rows` has those that count, in the order of the file.
    ///
    /// Of the rows of `key` the one with the latest time that is not after `time`, and of several with that time the
    /// last one in the file. If all of them are later, the earliest.
    pub fn find<I>(&self, key: K, time: u64, rows: impl FnOnce() -> I) -> Option<usize>
    where
        I: Iterator<Item = (K, u64, u32)>,
    {
        let rows = self.0.get_or_init(|| {
            let mut rows: Vec<(K, u64, u32)> = rows().collect();
            rows.sort_unstable_by_key(|&(key, time, row)| (key, time, Reverse(row)));
            rows.dedup_by_key(|&mut (key, time, _)| (key, time));
            rows
        });
        let after = rows.partition_point(|&(k, since, _)| (k, since) <= (key, time));
        let of_key = |index: usize| rows.get(index).filter(|(k, ..)| *k == key);
        let (.., row) = after.checked_sub(1).and_then(of_key).or_else(|| of_key(after))?;
        Some(*row as usize)
    }
}

/// It follows from the rows alone.
impl<K> PartialEq for Since<K> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<K> Eq for Since<K> {}
