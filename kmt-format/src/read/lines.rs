//! Source lines by address. Spec section "LINE".

use core::cmp::Reverse;
use std::sync::OnceLock;

use crate::tables::SourceLine;

/// Address, chunk, depth and number of a row: of one address the last chunk's first, the innermost function first.
type RowKey = (u64, Reverse<usize>, u16, usize);

/// Chunks of rows, and the rows by address, made when they are first needed.
#[derive(Debug, Clone, Default)]
pub(super) struct LineIndex {
    /// Number of the first row of each chunk.
    chunks: Vec<usize>,
    rows: OnceLock<Vec<RowKey>>,
}

impl LineIndex {
    /// A chunk begins at that row.
    pub fn begin(&mut self, row: usize) {
        self.chunks.push(row);
        self.rows.take();
    }

    /// The rows of `lines` at that address, the innermost function first: those of the last chunk that has some.
    pub fn at<'l, 'd>(
        &self,
        lines: &'l [SourceLine<'d>],
        address: u64,
    ) -> impl Iterator<Item = &'l SourceLine<'d>> {
        let rows = self.rows.get_or_init(|| {
            let chunk = |row: usize| self.chunks.partition_point(|&first| first <= row);
            let mut rows: Vec<RowKey> = lines
                .iter()
                .enumerate()
                .map(|(row, line)| (line.address, Reverse(chunk(row)), line.depth, row))
                .collect();
            rows.sort_unstable();
            rows
        });
        let first = rows.partition_point(|&(at, ..)| at < address);
        let rows = rows.get(first..).unwrap_or_default();
        let chunk = rows.first().map(|&(_, chunk, ..)| chunk);
        let here = rows.iter().take_while(move |&&(at, of, ..)| at == address && Some(of) == chunk);
        here.filter_map(|&(.., row)| lines.get(row))
    }
}

/// It follows from the rows alone.
impl PartialEq for LineIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LineIndex {}
