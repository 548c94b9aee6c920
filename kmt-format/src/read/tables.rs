//! Reading tables with texts. Spec sections "LINE", "CGRP" and "SUMS".

use std::borrow::Cow;
use zerocopy::ByteOrder as Order;

use super::Metadata;
use super::body::Body;
use super::metadata::{PER_ENTRY, rows};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Budget;
use crate::raw::{CgroupRow, LineRow, StringRef, SumsRow};
use crate::schema::Meaning;
use crate::tables::{CgroupRecord, SiteSums, SourceLine};

/// The texts of a table: the heap after its rows.
struct Texts<'b, 'd> {
    body: &'b Body<'d>,
    budget: &'b mut Budget,
    start: usize,
    len: usize,
    base: u64,
}

impl<'d> Texts<'_, 'd> {
    /// The texts of a row, after their bytes were charged as memory: rows may share a text, which each has as its own copy
    /// where the body was encoded, and which readers work through for each row.
    fn of_row<O: Order, const N: usize>(
        &mut self,
        strings: [&StringRef<O>; N],
    ) -> Result<[Cow<'d, [u8]>; N]> {
        let mut memory = PER_ENTRY;
        for string in strings {
            self.start_of(string)?;
            memory = memory.saturating_add(string.len.get() as usize);
        }
        self.budget.take(memory, self.base)?;
        let mut texts = [const { Cow::Borrowed([].as_slice()) }; N];
        for (text, string) in texts.iter_mut().zip(strings) {
            let part = self.body.part(self.start_of(string)?, string.len.get().into());
            *text = part.ok_or_else(|| self.outside())?;
        }
        Ok(texts)
    }

    /// Start of a text in the body, which it does not exceed.
    fn start_of<O: Order>(&self, string: &StringRef<O>) -> Result<usize> {
        let (offset, len) = (string.offset.get() as usize, string.len.get() as usize);
        let is_inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        self.start.checked_add(offset).filter(|_| is_inside).ok_or_else(|| self.outside())
    }

    fn outside(&self) -> Error {
        Error::at(self.base, ErrorKind::Malformed("a text of a table lies outside its heap"))
    }
}

/// Calls `take` with each row `$row` of a table and its texts, and adds the results to a list: all, or none.
macro_rules! table {
    ($list:expr, $row:ty, $body:expr, $base:expr, $budget:expr, $take:expr) => {{
        let (rows, start, heap_len) = rows::<O, $row>($body, $base)?;
        let heap_start = start.saturating_add(rows.len_bytes());
        let mut texts = Texts { body: $body, budget: $budget, start: heap_start, len: heap_len, base: $base };
        let made = rows.iter().map(|row| $take(row, &mut texts)).collect::<Result<Vec<_>>>()?;
        $list.extend(made);
        Ok(())
    }};
}

impl<'d> Metadata<'d> {
    pub(super) fn add_lines<O: Order + 'static>(
        &mut self,
        body: &Body<'d>,
        base: u64,
        budget: &mut Budget,
    ) -> Result<()> {
        self.line_index.begin(self.lines.len());
        table!(self.lines, LineRow<O>, body, base, budget, |row: &LineRow<O>, texts: &mut Texts<'_, 'd>| {
            let [function, file] = texts.of_row([&row.function, &row.file])?;
            let (address, line, depth) = (row.address.get(), row.line.get(), row.depth.get());
            Ok::<_, Error>(SourceLine { address, function, file, line, depth })
        })
    }

    pub(super) fn add_cgroups<O: Order + 'static>(
        &mut self,
        body: &Body<'d>,
        base: u64,
        budget: &mut Budget,
    ) -> Result<()> {
        self.in_cgroups.clear();
        table!(
            self.cgroups,
            CgroupRow<O>,
            body,
            base,
            budget,
            |row: &CgroupRow<O>, texts: &mut Texts<'_, 'd>| {
                let [path] = texts.of_row([&row.path])?;
                Ok::<_, Error>(CgroupRecord {
                    time: row.time.get(),
                    pid: row.pid.get() as i32,
                    id: row.id.get(),
                    hierarchy: row.hierarchy.get(),
                    path,
                })
            }
        )
    }

    pub(super) fn add_sums<O: Order + 'static>(
        &mut self,
        body: &Body<'d>,
        base: u64,
        budget: &mut Budget,
    ) -> Result<()> {
        table!(self.sums, SumsRow<O>, body, base, budget, |row: &SumsRow<O>, texts: &mut Texts<'_, 'd>| {
            let number = |bit: u16, value: u64| (row.present.get() & 1 << bit != 0).then_some(value);
            let [function] = texts.of_row([&row.function])?;
            Ok::<_, Error>(SiteSums {
                time_first: row.time_first.get(),
                time_last: row.time_last.get(),
                call_site: row.call_site.get(),
                function,
                meaning: Meaning(row.meaning.get()),
                events: number(0, row.events.get()),
                bytes_req: number(1, row.bytes_req.get()),
                bytes_alloc: number(2, row.bytes_alloc.get()),
            })
        })
    }
}
