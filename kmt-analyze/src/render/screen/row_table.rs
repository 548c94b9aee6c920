//! Tables made of rows of a report: each column brings its heading and its cells.

use super::cell::Cell;
use super::layout::{Column, Table};

/// A table of these rows, which gets its columns one after the other.
#[derive(Debug)]
pub struct RowTable<R> {
    rows: Vec<R>,
    table: Table,
}

impl Table {
    /// A table with a row for each of these.
    pub fn of_rows<R>(title: impl Into<String>, rows: impl IntoIterator<Item = R>) -> RowTable<R> {
        let rows: Vec<R> = rows.into_iter().collect();
        let mut table = Self::new(title, []);
        table.rows = rows.iter().map(|_| Vec::new()).collect();
        RowTable { rows, table }
    }
}

impl<R> RowTable<R> {
    /// Noun of a row and of several, and the number of rows that there are, shown or not.
    #[must_use]
    pub fn of(self, one: &'static str, several: &'static str, rows_total: usize) -> Self {
        Self { table: self.table.of(one, several, rows_total), ..self }
    }

    /// Adds a column.
    #[must_use]
    pub fn column(self, column: Column, cell: impl Fn(&R) -> Cell) -> Self {
        self.columns([column], |row| [cell(row)])
    }

    /// Adds a column if the condition is true.
    #[must_use]
    pub fn column_if(self, is_there: bool, column: Column, cell: impl Fn(&R) -> Cell) -> Self {
        if is_there { self.column(column, cell) } else { self }
    }

    /// Adds columns that other tables have too; the cells are in their order.
    #[must_use]
    pub fn columns<C: IntoIterator<Item = Cell>>(
        mut self,
        columns: impl IntoIterator<Item = Column>,
        cells: impl Fn(&R) -> C,
    ) -> Self {
        self.table.columns.extend(columns);
        self.table.rows.iter_mut().zip(&self.rows).for_each(|(to, row)| to.extend(cells(row)));
        self
    }

    /// Explains a column: the note is shown where the column is.
    #[must_use]
    pub fn explain(mut self, heading: &'static str, note: impl Into<String>) -> Self {
        self.table.explain(heading, note);
        self
    }
}

impl<R> From<RowTable<R>> for Table {
    fn from(RowTable { mut table, .. }: RowTable<R>) -> Self {
        table.rows_total = table.rows_total.max(table.rows.len());
        table
    }
}
