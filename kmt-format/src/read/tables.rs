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

/// The texts of a table: the heap behind its rows.
struct Texts<'b, 'd> {
    body: &'b Body<'d>,
    start: usize,
    len: usize,
    base: u64,
}

impl<'d> Texts<'_, 'd> {
    fn get<O: Order>(&self, string: &StringRef<O>) -> Result<Cow<'d, [u8]>> {
        let (offset, len) = (string.offset.get() as usize, string.len.get() as usize);
        let is_inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        let start = self.start.checked_add(offset).filter(|_| is_inside);
        let text = start.and_then(|start| self.body.part(start, len as u64));
        text.ok_or_else(|| {
            Error::at(self.base, ErrorKind::Malformed("a text of a table lies outside its heap"))
        })
    }
}

/// Calls `take` with each row `$row` of a table and its texts, and adds the results to a list: all, or none.
macro_rules! table {
    ($list:expr, $row:ty, $body:expr, $base:expr, $budget:expr, $take:expr) => {{
        let (rows, start, heap_len) = rows::<O, $row>($body, $base)?;
        let heap_start = start.saturating_add(rows.len_bytes());
        $budget.take(rows.len().saturating_mul(PER_ENTRY), $base)?;
        let texts = Texts { body: $body, start: heap_start, len: heap_len, base: $base };
        let made = rows.iter().map(|row| $take(row, &texts)).collect::<Result<Vec<_>>>()?;
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
        table!(self.lines, LineRow<O>, body, base, budget, |row: &LineRow<O>, texts: &Texts<'_, 'd>| {
            let (function, file) = (texts.get(&row.function)?, texts.get(&row.file)?);
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
        table!(self.cgroups, CgroupRow<O>, body, base, budget, |row: &CgroupRow<O>, texts: &Texts<'_, 'd>| {
            Ok::<_, Error>(CgroupRecord {
                time: row.time.get(),
                pid: row.pid.get() as i32,
                id: row.id.get(),
                hierarchy: row.hierarchy.get(),
                path: texts.get(&row.path)?,
            })
        })
    }

    pub(super) fn add_sums<O: Order + 'static>(
        &mut self,
        body: &Body<'d>,
        base: u64,
        budget: &mut Budget,
    ) -> Result<()> {
        table!(self.sums, SumsRow<O>, body, base, budget, |row: &SumsRow<O>, texts: &Texts<'_, 'd>| {
            let number = |bit: u16, value: u64| (row.present.get() & 1 << bit != 0).then_some(value);
            Ok::<_, Error>(SiteSums {
                time_first: row.time_first.get(),
                time_last: row.time_last.get(),
                call_site: row.call_site.get(),
                function: texts.get(&row.function)?,
                meaning: Meaning(row.meaning.get()),
                events: number(0, row.events.get()),
                bytes_req: number(1, row.bytes_req.get()),
                bytes_alloc: number(2, row.bytes_alloc.get()),
            })
        })
    }
}
