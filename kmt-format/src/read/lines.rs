//! Source lines by address. Spec section "LINE".

use core::cmp::Reverse;
use std::sync::OnceLock;

use super::Metadata;
use crate::tables::SourceLine;

/// Address, chunk, depth and number of a row: of one address the last chunk's first, the innermost function first.
type Place = (u64, Reverse<usize>, u16, usize);

/// Which chunk a row is from, and the rows by address, made when they are first needed.
#[derive(Debug, Clone, Default)]
pub(super) struct LineIndex {
    /// Number of the first row of each chunk.
    chunks: Vec<usize>,
    rows: OnceLock<Vec<Place>>,
}

impl LineIndex {
    /// A chunk begins at that row.
    pub fn begin(&mut self, row: usize) {
        self.chunks.push(row);
        self.rows.take();
    }
}

/// It follows from the rows alone.
impl PartialEq for LineIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LineIndex {}

impl Metadata<'_> {
    /// Functions and source lines of that address, the innermost first: the rows of the last chunk that has some.
    pub fn lines_at(&self, address: u64) -> impl Iterator<Item = &SourceLine<'_>> {
        let rows = self.line_index.rows.get_or_init(|| {
            let chunk = |row: usize| self.line_index.chunks.partition_point(|&first| first <= row);
            let lines = self.lines.iter().enumerate();
            let mut rows: Vec<Place> =
                lines.map(|(row, line)| (line.address, Reverse(chunk(row)), line.depth, row)).collect();
            rows.sort_unstable();
            rows
        });
        let first = rows.partition_point(|&(at, ..)| at < address);
        let rows = rows.get(first..).unwrap_or_default();
        let chunk = rows.first().map(|&(_, chunk, ..)| chunk);
        let here = rows.iter().take_while(move |&&(at, of, ..)| at == address && Some(of) == chunk);
        here.filter_map(|&(.., row)| self.lines.get(row))
    }
}
