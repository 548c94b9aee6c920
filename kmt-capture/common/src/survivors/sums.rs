//! Sums of the folded lives of an interval: by the parts of their events that repeat.

use std::hash::{BuildHasher, RandomState};

use kmt_format::fold::{FoldedInterval, FoldedRow, FoldedSums, bin_of};
use kmt_format::kernel::ByteOrder;
use kmt_format::write::FOLD_ROWS_MAX;

use super::pending::PendingTable;
use super::plan::Plan;

/// One life that is folded.
pub struct FoldedLife<'r> {
    /// Records of its allocation and of its free.
    pub records: [&'r [u8]; 2],
    /// Their plans.
    pub plans: [&'r Plan; 2],
    /// Length, in the clock's unit.
    pub length: u64,
    /// True if the free came from another CPU.
    pub cross_cpu: bool,
    /// True if it came from another CPU, task or interrupt level.
    pub elsewhere: bool,
    /// A millisecond in the clock's unit.
    pub millisecond: u64,
}

#[derive(Debug, Default)]
struct Row {
    /// [`NULL`] for frees of NULL.
    alloc: u32,
    free: u32,
    sums: FoldedSums,
    bins: Vec<(u32, u32)>,
}

/// In place of a sample: there is no allocation.
const NULL: u32 = u32::MAX;
/// log2 of the samples that are found by the first word of what repeats: the table has 8 KiB.
const RECENT_LOG2: u32 = 11;

/// The sums of an interval.
#[derive(Debug)]
pub struct IntervalSums {
    /// Events that rows are like, with their id first.
    samples: Vec<Vec<u8>>,
    sample_of_hash: PendingTable,
    /// By the first word of what repeats, the sample that was found last, + 1; 0: none.
    recent: Vec<u32>,
    rows: Vec<Row>,
    row_of_samples: PendingTable,
    factor: u64,
    memory: usize,
    order: ByteOrder,
}

impl IntervalSums {
    /// Without lives, of a target of that byte order.
    pub fn new(order: ByteOrder) -> Self {
        Self {
            samples: Vec::new(),
            sample_of_hash: PendingTable::default(),
            recent: vec![0; 1 << RECENT_LOG2],
            rows: Vec::new(),
            row_of_samples: PendingTable::default(),
            factor: RandomState::new().hash_one(0u8) | 1,
            memory: 0,
            order,
        }
    }

    /// Adds a life; false if it needs a row beyond [`FOLD_ROWS_MAX`].
    pub fn add(&mut self, life: &FoldedLife<'_>) -> bool {
        let alloc = self.sample(life.records[0], life.plans[0]);
        let free = self.sample(life.records[1], life.plans[1]);
        let Some(number) = self.row(alloc, free) else { return false };
        let Some(row) = self.rows.get_mut(number) else { return false };
        row.sums.add(life.length, life.cross_cpu, life.elsewhere, life.millisecond);
        let bin = bin_of(life.length);
        match row.bins.binary_search_by_key(&bin, |bin| bin.0) {
            Ok(at) => {
                if let Some((_, count)) = row.bins.get_mut(at) {
                    *count = count.saturating_add(1);
                }
            }
            Err(at) => {
                row.bins.insert(at, (bin, 1));
                self.memory += 8;
            }
        }
        true
    }

    /// Adds a free of NULL; false if it needs a row beyond [`FOLD_ROWS_MAX`].
    pub fn add_null(&mut self, record: &[u8], plan: &Plan) -> bool {
        let free = self.sample(record, plan);
        let row = self.row(NULL, free).and_then(|number| self.rows.get_mut(number));
        row.map(|row| row.sums.count = row.sums.count.saturating_add(1)).is_some()
    }

    /// Index of the row with these samples; `None` beyond [`FOLD_ROWS_MAX`].
    fn row(&mut self, alloc: u32, free: u32) -> Option<usize> {
        let key = u64::from(alloc) << 32 | u64::from(free);
        if let Some(number) = self.row_of_samples.get(key) {
            return Some(number as usize);
        }
        if self.rows.len() >= FOLD_ROWS_MAX {
            return None;
        }
        let number = self.rows.len();
        self.rows.push(Row { alloc, free, ..Row::default() });
        self.row_of_samples.insert(key, number as u32);
        self.memory += size_of::<Row>() + 32;
        Some(number)
    }

    /// Number of the sample that a record is like.
    #[inline]
    fn sample(&mut self, record: &[u8], plan: &Plan) -> u32 {
        let word = plan.first_word(record, self.order);
        let at = ((word ^ word >> 32).wrapping_mul(self.factor) >> (u64::BITS - RECENT_LOG2)) as usize;
        let recent = self.recent.get(at).and_then(|number| number.checked_sub(1));
        if let Some((number, sample)) = recent.and_then(|number| Some((number, self.like(number)?))) {
            if sample.get(..2) == record.get(..2) && plan.repeats(record, sample, self.order) {
                return number;
            }
        }
        let number = self.find_sample(record, plan);
        if let Some(recent) = self.recent.get_mut(at) {
            *recent = number + 1;
        }
        number
    }

    /// The record of a sample.
    #[inline]
    fn like(&self, number: u32) -> Option<&[u8]> {
        self.samples.get(number as usize).map(Vec::as_slice)
    }

    /// Number of the sample that a record is like, or of a new one.
    fn find_sample(&mut self, record: &[u8], plan: &Plan) -> u32 {
        let id = record.get(..2).unwrap_or_default();
        let mut hash = self.hash(id, record, plan);
        while let Some(number) = self.sample_of_hash.get(hash) {
            let is_same = self.like(number).is_some_and(|sample| {
                let parts = plan.repeating(sample, self.order);
                sample.get(..2) == Some(id) && parts.eq(plan.repeating(record, self.order))
            });
            if is_same {
                return number;
            }
            hash = hash.wrapping_add(1);
        }
        let number = self.samples.len() as u32;
        self.samples.push(record.to_vec());
        self.sample_of_hash.insert(hash, number);
        self.memory += record.len() + 64;
        number
    }

    fn hash(&self, id: &[u8], record: &[u8], plan: &Plan) -> u64 {
        let mut hash = id.iter().fold(self.factor, |hash, &byte| hash << 8 ^ u64::from(byte));
        let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(self.factor).rotate_left(29);
        for part in plan.repeating(record, self.order) {
            let words = part.chunks_exact(8);
            let rest =
                words.remainder().iter().fold(part.len() as u64, |word, &byte| word << 8 | u64::from(byte));
            words.filter_map(|word| word.try_into().ok()).for_each(|word| mix(u64::from_le_bytes(word)));
            mix(rest);
        }
        hash
    }

    /// Memory, in bytes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The rows of the interval, which are taken.
    pub fn take(&mut self, interval: FoldedInterval) -> FoldedInterval {
        let taken = std::mem::replace(self, Self::new(self.order));
        let sample = |number: u32| taken.samples.get(number as usize).cloned().unwrap_or_default();
        let rows = taken.rows.into_iter().map(|row| FoldedRow {
            alloc: (row.alloc != NULL).then(|| sample(row.alloc)),
            free: sample(row.free),
            sums: row.sums,
            bins: row.bins,
        });
        let mut interval = interval;
        interval.rows = rows.collect();
        interval
    }
}
