//! Chunks of folded lives: sums in place of the events of objects that died young. Spec section "FOLD".
//!
//! A row has the number of lives whose allocations are alike and whose frees are alike; one event of each kind is in the chunk,
//! laid out as in a chunk of events, without time, address, CPU and task. Bins are those of [`bin_of`](crate::fold::bin_of).

use core::ops::Range;
use std::borrow::Cow;
use zerocopy::ByteOrder as Order;

use super::cast::{TableRows, head_len, struct_at};
use super::{ChunkRef, EventChunk, Header, Schema};
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::fold::{FoldedSums, check_row, event_sum};
use crate::kernel::with_order;
use crate::limits::within_at;
use crate::raw::{FoldBin, FoldCpu, FoldHead, FoldRow, NULL_FREES, fold_flags};

/// Fields of the head of a chunk of folded lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoldInfo {
    /// Number of the interval: the first one of the file has 0.
    pub number: u64,
    /// Begin of the interval, in the clock's unit.
    pub t_begin: u64,
    /// End of the interval; the next one begins there.
    pub t_end: u64,
    /// Longest life that was folded, in the clock's unit.
    pub threshold: u64,
    /// True if lives were left as events in part of the interval, because the memory for folding was used up.
    pub written_through: bool,
    /// Number of rows.
    pub rows: u32,
    /// Events that were folded, with their stacks: the sum of those of all CPUs, which is checked when the chunk is read.
    pub events: u64,
}

/// The folded lives of one interval, checked from end to end.
#[derive(Debug, Clone)]
pub struct FoldChunk<'d> {
    info: FoldInfo,
    events: EventChunk<'d>,
    rows: Vec<Row>,
    bins: Vec<(u32, u32)>,
    cpus: Vec<(u32, u64)>,
}

#[derive(Debug, Clone)]
struct Row {
    alloc: u32,
    free: u32,
    sums: FoldedSums,
    bins: Range<usize>,
}

/// Lives whose allocations are alike and whose frees are alike; or frees of NULL that are alike.
#[derive(Debug, Clone, Copy)]
pub struct FoldedLives<'c> {
    chunk: &'c FoldChunk<'c>,
    row: &'c Row,
}

impl<'c> FoldedLives<'c> {
    /// Index of the event like their allocations in [`FoldChunk::events`], unless these are frees of NULL; and of that like
    /// their frees.
    pub fn indices(&self) -> (Option<usize>, usize) {
        let alloc = (self.row.alloc != NULL_FREES).then_some(self.row.alloc as usize);
        (alloc, self.row.free as usize)
    }

    /// The events of which rows have the indices.
    pub(super) fn events(&self) -> &'c EventChunk<'c> {
        &self.chunk.events
    }

    /// Counts and lengths.
    pub fn sums(&self) -> &'c FoldedSums {
        &self.row.sums
    }

    /// Bins with their counts; a bin may come more than once, and then its counts add up.
    pub fn bins(&self) -> impl Iterator<Item = (u32, u32)> + use<'c> {
        self.chunk.bins.get(self.row.bins.clone()).unwrap_or_default().iter().copied()
    }
}

impl<'d> FoldChunk<'d> {
    /// Fields of the head.
    pub fn info(&self) -> &FoldInfo {
        &self.info
    }

    /// Events of which rows have the indices.
    pub fn events(&self) -> &EventChunk<'d> {
        &self.events
    }

    /// The rows.
    pub fn lives(&self) -> impl Iterator<Item = FoldedLives<'_>> {
        self.rows.iter().map(|row| FoldedLives { chunk: self, row })
    }

    /// By CPU: events that were folded, with their stacks.
    pub fn cpus(&self) -> &[(u32, u64)] {
        &self.cpus
    }

    /// The same, with copies of the bytes that are borrowed.
    pub(super) fn into_owned(self) -> FoldChunk<'static> {
        let Self { info, events, rows, bins, cpus } = self;
        FoldChunk { info, events: events.into_owned(), rows, bins, cpus }
    }

    /// Fields of the head, which must be in the prefix. A longer head may end behind it.
    pub(super) fn head(prefix: &[u8], chunk: &ChunkRef, header: &Header) -> Result<FoldInfo> {
        let bad = |what| Error::at(chunk.body_offset(), ErrorKind::Malformed(what));
        with_order!(header.order, O => {
            let head = struct_at::<FoldHead<O>>(prefix, 0, chunk.body_offset());
            let head = head.map_err(|_| bad("the head of folded lives is not in its prefix"))?;
            if (head.head_len.get() as usize) < size_of::<FoldHead<O>>() {
                return Err(bad("the head of the body has an invalid length"));
            }
            if head.t_end.get() < head.t_begin.get() {
                return Err(bad("an interval of folded lives ends before it begins"));
            }
            Ok(info(head))
        })
    }

    pub(super) fn parse(
        body: Cow<'d, [u8]>,
        chunk: &ChunkRef,
        header: &Header,
        schema: &Schema,
        limits: &Limits,
    ) -> Result<Self> {
        with_order!(header.order, O => Self::parse_in_order::<O>(body, chunk, header, schema, limits))
    }

    fn parse_in_order<O: Order + 'static>(
        body: Cow<'d, [u8]>,
        chunk: &ChunkRef,
        header: &Header,
        schema: &Schema,
        limits: &Limits,
    ) -> Result<Self> {
        let base = chunk.body_offset();
        let found = Self::head(&body, chunk, header)?;
        let head = struct_at::<FoldHead<O>>(&body, 0, base)?;
        head_len::<FoldHead<O>>(head.head_len.get(), &body, base)?;
        let count =
            |name, what, count: u32, limit: u32| within_at(base, name, what, count.into(), limit.into());
        count("records", "the number of rows of folded lives", head.row_count.get(), limits.records)?;
        count("streams", "the number of CPUs of folded lives", head.cpu_count.get(), limits.streams)?;
        let [row_len, cpu_len, bin_len] =
            [head.row_len, head.cpu_len, head.bin_len].map(|len| len.get() as usize);
        TableRows::<FoldRow<O>>::check_len(row_len, base)?;
        TableRows::<FoldCpu<O>>::check_len(cpu_len, base)?;
        TableRows::<FoldBin<O>>::check_len(bin_len, base)?;
        let (at, count) = (head.rows_offset.get() as usize, head.row_count.get() as usize);
        let rows = TableRows::<FoldRow<O>>::at(&body, at, count, row_len, base)?;
        let (at, count) = (head.cpus_offset.get() as usize, head.cpu_count.get() as usize);
        let cpus = TableRows::<FoldCpu<O>>::at(&body, at, count, cpu_len, base)?;
        let (at, count) = (head.bins_offset.get() as usize, head.bin_count.get() as usize);
        let bins = TableRows::<FoldBin<O>>::at(&body, at, count, bin_len, base)?;
        let rows: Vec<Row> = rows.iter().map(row).collect();
        let cpus = cpus.iter().map(|row| (row.cpu.get(), row.events.get())).collect();
        let bins: Vec<(u32, u32)> = bins.iter().map(|bin| (bin.bin.get(), bin.count.get())).collect();
        let events_at = head.events_offset.get();
        let outside = "the events of folded lives lie outside their chunk";
        let events =
            part(body, events_at as usize).ok_or_else(|| Error::at(base, ErrorKind::Malformed(outside)))?;
        // Errors in the events have their own place in the file.
        let place = ChunkRef { offset: chunk.offset.saturating_add(events_at.into()), ..*chunk };
        let events = EventChunk::parse(events, &place, header, Some(schema), limits, 0)?;
        let chunk = Self { info: found, events, rows, bins, cpus };
        chunk.check().map_err(|what| Error::at(base, ErrorKind::Malformed(what)))?;
        Ok(chunk)
    }

    /// Checks the number of events, that indices are inside, that each bin belongs to one row at most, and the counts of each row.
    fn check(&self) -> core::result::Result<(), &'static str> {
        if event_sum(&self.cpus) != self.info.events {
            return Err("the events of the CPUs of folded lives do not add up to their number");
        }
        let events = self.events.info().event_count;
        let mut last_end = 0;
        for row in &self.rows {
            let of_null = row.alloc == NULL_FREES;
            if row.alloc >= events && !of_null || row.free >= events {
                return Err("a row of folded lives has an event that its chunk lacks");
            }
            if row.bins.start < last_end {
                return Err("two rows of folded lives share bins");
            }
            last_end = row.bins.end;
            let bins = self.bins.get(row.bins.clone());
            let bins = bins.ok_or("a row of folded lives has bins that its chunk lacks")?;
            check_row(&row.sums, bins, of_null)?;
        }
        Ok(())
    }
}

fn row<O: Order>(row: &FoldRow<O>) -> Row {
    let first = row.first_bin.get() as usize;
    Row {
        alloc: row.alloc.get(),
        free: row.free.get(),
        sums: FoldedSums {
            count: row.count.get(),
            cross_cpu: row.cross_cpu.get(),
            elsewhere: row.elsewhere.get(),
            length_sum: row.length_sum.get(),
            length_max: row.length_max.get(),
            over_ms: row.over_ms.get(),
            over_s: row.over_s.get(),
        },
        bins: first..first.saturating_add(row.bin_count.get() as usize),
    }
}

fn info<O: Order>(head: &FoldHead<O>) -> FoldInfo {
    FoldInfo {
        number: head.number.get(),
        t_begin: head.t_begin.get(),
        t_end: head.t_end.get(),
        threshold: head.threshold.get(),
        written_through: head.flags.get() & fold_flags::WRITTEN_THROUGH != 0,
        rows: head.row_count.get(),
        events: head.event_count.get(),
    }
}

/// What follows an offset of a body.
fn part(body: Cow<'_, [u8]>, offset: usize) -> Option<Cow<'_, [u8]>> {
    match body {
        Cow::Borrowed(bytes) => bytes.get(offset..).map(Cow::Borrowed),
        Cow::Owned(mut bytes) => (offset <= bytes.len()).then(|| Cow::Owned(bytes.split_off(offset))),
    }
}
