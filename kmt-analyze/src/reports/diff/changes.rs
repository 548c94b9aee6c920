//! Rows of one figure, the largest change first.

use super::DiffOptions;
use super::difference::Difference;
use super::figures::NameRow;

/// Rows of one figure.
#[derive(Debug)]
pub struct Changes {
    /// Those beyond noise, or all; the largest change first.
    pub rows: Vec<NameRow>,
    /// Number of them, including those beyond the limit.
    pub total: usize,
}

impl Changes {
    /// Of all rows.
    pub fn of(rows: &[NameRow], figure: fn(&NameRow) -> &Difference, options: &DiffOptions) -> Self {
        let mut found: Vec<&NameRow> =
            rows.iter().filter(|row| options.all || figure(row).is_real()).collect();
        let change = |row: &NameRow| figure(row).change().abs();
        let is_real = |row: &NameRow| figure(row).is_real();
        found.sort_by(|a, b| is_real(b).cmp(&is_real(a)).then(change(b).total_cmp(&change(a))));
        let rows = found.iter().take(options.output.rows()).map(|row| (*row).clone());
        Self { rows: rows.collect(), total: found.len() }
    }
}
