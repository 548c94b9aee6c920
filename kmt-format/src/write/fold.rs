//! Writing folded lives. Spec section "FOLD".

use std::collections::HashMap;

use zerocopy::IntoBytes;

use super::Writer;
use super::framing::ChunkId;
use crate::error::{Error, ErrorKind, Result};
use crate::fold::{FoldedInterval, FoldedRow, check_row, event_sum};
use crate::kernel::with_order;
use crate::pack::{BodyLayout, ClassRepeats, EventChunkBuilder, RecordPlan, ValuePlan};
use crate::raw::{
    ChunkHeader, ChunkKind, FoldBin, FoldCpu, FoldHead, FoldRow, NULL_FREES, chunk_flags, fold_flags,
};

/// Rows of one interval at most. Each has at most two events of its own, and a chunk has at most 65,000 descriptors.
pub const ROWS_MAX: usize = 32_000;

/// The events that rows are like, each once.
struct Samples {
    builder: EventChunkBuilder,
    indices: HashMap<Vec<u8>, u32>,
}

impl Writer {
    /// Writes the lives that were folded in one interval. Intervals come in the order of their numbers, each once, also where
    /// nothing was folded.
    ///
    /// # Errors
    ///
    /// Returns an error if the options do not say that lives may be folded, if there are more than 32,000 rows, or if a record has
    /// no format or is shorter than its fields, or if a reader would refuse the interval: its number was used, its end is before
    /// its begin, or the numbers of a row do not fit together.
    pub fn add_fold(&mut self, interval: &FoldedInterval) -> Result<()> {
        if !self.options.folded {
            return Err(Error::new(ErrorKind::Usage("the options of the writer say that nothing is folded")));
        }
        if interval.rows.len() > ROWS_MAX {
            return Err(Error::new(ErrorKind::Usage(
                "an interval has more than 32,000 rows of folded lives",
            )));
        }
        check(interval, self.framer.next_fold).map_err(|what| Error::new(ErrorKind::Usage(what)))?;
        let builder = EventChunkBuilder::new(self.options.order, self.options.long_size, usize::MAX);
        let mut samples = Samples { builder, indices: HashMap::new() };
        let mut indices = Vec::with_capacity(interval.rows.len());
        for row in &interval.rows {
            let alloc = match &row.alloc {
                Some(alloc) => self.sample(&mut samples, alloc)?,
                None => NULL_FREES,
            };
            indices.push((alloc, self.sample(&mut samples, &row.free)?));
        }
        self.write_schema()?;
        self.write_new_symbols()?;
        let mut body = with_order!(self.options.order, O => tables::<O>(interval, &indices));
        samples.builder.take_body(&mut body);
        let start = self.framer.start();
        self.framer.out.extend_from_slice(&body);
        let layout = BodyLayout { prefix_len: size_of::<FoldHead<zerocopy::LE>>(), ..BodyLayout::plain() };
        let id = ChunkId {
            kind: ChunkKind::FOLD,
            flags: chunk_flags::CRITICAL,
            stream: ChunkHeader::<zerocopy::LE>::NO_STREAM,
            sequence: self.framer.next_loose(),
        };
        self.framer.next_fold = interval.number.saturating_add(1);
        self.framer.frame(start, id, &layout)
    }

    /// Index of the event like that record.
    fn sample(&mut self, samples: &mut Samples, record: &[u8]) -> Result<u32> {
        let id = self.options.order.uint_at(record, 0, 2).unwrap_or(0) as u16;
        let index = self.plan_index(id)?;
        let plan = self.plans.get(index).ok_or_else(|| Error::new(ErrorKind::UnknownEventId { id }))?;
        plan.check_len(record)?;
        let record = repeating(plan, record);
        if let Some(&index) = samples.indices.get(&record) {
            return Ok(index);
        }
        let index = samples.builder.record_count() as u32;
        samples.builder.push(plan, &mut ClassRepeats::default(), 0, &record)?;
        if self.code.is_on() {
            self.code.add_record(plan, &record, self.options.order, self.options.long_size);
        }
        samples.indices.insert(record, index);
        Ok(index)
    }
}

/// Checks what a reader checks.
fn check(interval: &FoldedInterval, next: u64) -> core::result::Result<(), &'static str> {
    if interval.number < next {
        return Err("intervals of folded lives are written in the order of their numbers");
    }
    if interval.t_end < interval.t_begin {
        return Err("an interval of folded lives ends before it begins");
    }
    interval.rows.iter().try_for_each(|row| check_row(&row.sums, &row.bins, row.alloc.is_none()))
}

/// A record without what is of one event alone: task, CPU and address.
fn repeating(plan: &RecordPlan, record: &[u8]) -> Vec<u8> {
    let mut record = record.to_vec();
    let mut clear = |start: u32, len: u32| {
        let end = (start + len) as usize;
        if let Some(bytes) = record.get_mut(start as usize..end) {
            bytes.fill(0);
        }
    };
    plan.context.iter().for_each(|segment| clear(segment.offset, segment.len));
    if let ValuePlan::Field(load) = plan.value {
        let segment = load.segment();
        clear(segment.offset, segment.len);
    }
    record
}

/// Head and tables of a body; the events follow.
fn tables<O: zerocopy::ByteOrder>(interval: &FoldedInterval, indices: &[(u32, u32)]) -> Vec<u8> {
    let bin_count = interval.rows.iter().map(|row| row.bins.len()).sum::<usize>();
    let rows_offset = size_of::<FoldHead<O>>();
    let cpus_offset = rows_offset + interval.rows.len() * size_of::<FoldRow<O>>();
    let bins_offset = cpus_offset + interval.cpus.len() * size_of::<FoldCpu<O>>();
    let events_offset = (bins_offset + bin_count * size_of::<FoldBin<O>>()).next_multiple_of(16);
    let head = FoldHead::<O> {
        head_len: (size_of::<FoldHead<O>>() as u32).into(),
        flags: if interval.written_through { fold_flags::WRITTEN_THROUGH } else { 0 }.into(),
        number: interval.number.into(),
        t_begin: interval.t_begin.into(),
        t_end: interval.t_end.into(),
        threshold: interval.threshold.into(),
        row_count: (interval.rows.len() as u32).into(),
        row_len: (size_of::<FoldRow<O>>() as u32).into(),
        cpu_count: (interval.cpus.len() as u32).into(),
        cpu_len: (size_of::<FoldCpu<O>>() as u32).into(),
        bin_count: (bin_count as u32).into(),
        bin_len: (size_of::<FoldBin<O>>() as u32).into(),
        rows_offset: (rows_offset as u32).into(),
        cpus_offset: (cpus_offset as u32).into(),
        bins_offset: (bins_offset as u32).into(),
        events_offset: (events_offset as u32).into(),
        event_count: event_sum(&interval.cpus).into(),
    };
    let mut out = head.as_bytes().to_vec();
    let mut first_bin = 0;
    for (row, &(alloc, free)) in interval.rows.iter().zip(indices) {
        out.extend_from_slice(fold_row::<O>(row, (alloc, free), first_bin).as_bytes());
        first_bin += row.bins.len() as u32;
    }
    for &(cpu, events) in &interval.cpus {
        out.extend_from_slice(
            FoldCpu::<O> { cpu: cpu.into(), reserved: 0.into(), events: events.into() }.as_bytes(),
        );
    }
    for &(bin, count) in interval.rows.iter().flat_map(|row| &row.bins) {
        out.extend_from_slice(FoldBin::<O> { bin: bin.into(), count: count.into() }.as_bytes());
    }
    out.resize(events_offset, 0);
    out
}

fn fold_row<O: zerocopy::ByteOrder>(
    row: &FoldedRow,
    (alloc, free): (u32, u32),
    first_bin: u32,
) -> FoldRow<O> {
    FoldRow {
        alloc: alloc.into(),
        free: free.into(),
        count: row.sums.count.into(),
        cross_cpu: row.sums.cross_cpu.into(),
        elsewhere: row.sums.elsewhere.into(),
        length_sum: row.sums.length_sum.into(),
        length_max: row.sums.length_max.into(),
        over_ms: row.sums.over_ms.into(),
        over_s: row.sums.over_s.into(),
        first_bin: first_bin.into(),
        bin_count: (row.bins.len() as u32).into(),
    }
}
