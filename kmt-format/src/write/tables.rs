//! Writing tables with texts. Spec sections "LINE", "CGRP" and "SUMS".

use std::collections::HashMap;
use zerocopy::{Immutable, IntoBytes};

use super::Writer;
use super::rows::table_head;
use crate::error::Result;
use crate::kernel::with_order;
use crate::raw::{CgroupRow, ChunkKind, LineRow, StringRef, SumsRow};
use crate::tables::{CgroupRecord, SiteSums, SourceLine};

/// The heap of a table: each text once.
#[derive(Default)]
struct TextPool<'t> {
    bytes: Vec<u8>,
    offsets: HashMap<&'t [u8], u32>,
}

impl<'t> TextPool<'t> {
    fn push<O: zerocopy::ByteOrder>(&mut self, text: &'t [u8]) -> StringRef<O> {
        let at = self.bytes.len() as u32;
        let offset = *self.offsets.entry(text).or_insert(at);
        if offset == at {
            self.bytes.extend_from_slice(text);
        }
        StringRef { offset: offset.into(), len: (text.len() as u32).into() }
    }
}

/// The body of a table of these rows.
fn table<'t, O: zerocopy::ByteOrder, T, R: IntoBytes + Immutable>(
    all: &'t [T],
    mut row: impl FnMut(&'t T, &mut TextPool<'t>) -> R,
) -> Vec<u8> {
    let mut texts = TextPool::default();
    let rows: Vec<u8> = all.iter().flat_map(|t| row(t, &mut texts).as_bytes().to_vec()).collect();
    let mut out = table_head::<O, R>(all.len(), texts.bytes.len());
    out.extend(rows);
    out.extend(texts.bytes);
    out
}

fn lines_body<O: zerocopy::ByteOrder>(lines: &[SourceLine<'_>]) -> Vec<u8> {
    table::<O, _, _>(lines, |line, texts| LineRow::<O> {
        address: line.address.into(),
        function: texts.push(&line.function),
        file: texts.push(&line.file),
        line: line.line.into(),
        depth: line.depth.into(),
        reserved: 0.into(),
    })
}

fn cgroups_body<O: zerocopy::ByteOrder>(cgroups: &[CgroupRecord<'_>]) -> Vec<u8> {
    table::<O, _, _>(cgroups, |cgroup, texts| CgroupRow::<O> {
        time: cgroup.time.into(),
        id: cgroup.id.into(),
        pid: (cgroup.pid as u32).into(),
        hierarchy: cgroup.hierarchy.into(),
        path: texts.push(&cgroup.path),
    })
}

fn sums_body<O: zerocopy::ByteOrder>(sums: &[SiteSums<'_>]) -> Vec<u8> {
    table::<O, _, _>(sums, |sum, texts| {
        let numbers = [sum.events, sum.bytes_req, sum.bytes_alloc];
        let bits = numbers.iter().enumerate().filter(|(_, n)| n.is_some()).map(|(bit, _)| 1 << bit);
        let [events, bytes_req, bytes_alloc] = numbers.map(|n| n.unwrap_or(0).into());
        SumsRow::<O> {
            time_first: sum.time_first.into(),
            time_last: sum.time_last.into(),
            call_site: sum.call_site.into(),
            events,
            bytes_req,
            bytes_alloc,
            function: texts.push(&sum.function),
            meaning: sum.meaning.0.into(),
            present: bits.sum::<u16>().into(),
            reserved: 0.into(),
        }
    })
}

impl Writer {
    /// Writes functions and source lines of addresses.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_lines(&mut self, lines: &[SourceLine<'_>]) -> Result<()> {
        let body = with_order!(self.options.order, O => lines_body::<O>(lines));
        self.copyable_chunk(ChunkKind::LINES, &body)
    }

    /// Writes cgroups of tasks.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_cgroups(&mut self, cgroups: &[CgroupRecord<'_>]) -> Result<()> {
        let body = with_order!(self.options.order, O => cgroups_body::<O>(cgroups));
        self.copyable_chunk(ChunkKind::CGROUPS, &body)
    }

    /// Writes totals by call site.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_sums(&mut self, sums: &[SiteSums<'_>]) -> Result<()> {
        let body = with_order!(self.options.order, O => sums_body::<O>(sums));
        self.copyable_chunk(ChunkKind::SUMS, &body)
    }
}
