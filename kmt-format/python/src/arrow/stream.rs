//! A trace as a stream of batches.

use std::collections::HashMap;
use std::sync::Arc;

use kmt::owned::{OwnedEvents, OwnedTrace, Step};
use kmt_format::read::Event;

use super::column::Column;
use super::data::{Data, Type};
use super::ffi::Batches;
use super::plan::{Cell, Plan, Source};
use crate::value::{Kind, numbers};

/// Bytes of text and arrays at which a batch ends: a file can have an array of a chunk's length in each of its events.
const VARIABLE_MAX: usize = 256 << 20;

/// The batches of a table.
pub struct Stream {
    events: OwnedEvents,
    plan: Arc<Plan>,
    columns: Vec<Column>,
    batch_rows: usize,
    /// Rows of the current batch, and its bytes of text and arrays.
    rows: usize,
    variable: usize,
    /// Index of each class's name and of each address's symbol, in the dictionaries of the current batch.
    names: Vec<Option<i32>>,
    symbols: HashMap<(usize, u64), i32>,
}

impl Stream {
    pub fn new(trace: &Arc<OwnedTrace>, plan: Arc<Plan>, batch_rows: usize) -> Self {
        Self {
            events: OwnedEvents::new(trace),
            columns: plan.columns.iter().map(|(_, source)| Column::new(source.kind())).collect(),
            names: vec![None; plan.classes.len()],
            plan,
            batch_rows,
            rows: 0,
            variable: 0,
            symbols: HashMap::new(),
        }
    }

    /// Adds the current event, if it is one of those wanted.
    fn add(&mut self) {
        let Some(event) = self.events.event() else { return };
        let class_index = event.class_index();
        let Some(class) = self.plan.classes.get(class_index).and_then(Option::as_ref) else { return };
        let row = self.rows;
        for ((_, source), column) in self.plan.columns.iter().zip(&mut self.columns) {
            match source {
                Source::Number => column.push_number(row, self.events.number()),
                Source::Time => column.push_number(row, event.time()),
                Source::Cpu => column.push_number(row, event.cpu().into()),
                Source::Pid => column.push_number(row, event.pid() as u64),
                Source::Comm => {
                    let comm = self.events.trace().comm(event.pid(), event.time());
                    comm.into_iter().for_each(|comm| column.push_bytes(row, comm));
                }
                Source::Event => {
                    let known = self.names.get(class_index).copied().flatten();
                    let index = known.unwrap_or_else(|| column.index_of(class.name.as_bytes()));
                    if let Some(place) = self.names.get_mut(class_index) {
                        *place = Some(index);
                    }
                    column.push_index(row, index);
                }
                Source::StackOf => {
                    self.events.stack_of().into_iter().for_each(|of| column.push_number(row, of))
                }
                Source::DuplicateCallSite => {
                    let site = self.events.duplicate_call_site();
                    site.into_iter().for_each(|address| column.push_number(row, address))
                }
                // These are the last ones.
                Source::Field(_) | Source::Symbol => break,
            }
        }
        for cell in &class.cells {
            self.variable += add_field(&mut self.columns, row, event, cell);
            if let (Some(column), Some(address)) = (cell.symbol_column, event.uint(cell.field)) {
                let Some(column_of) = self.columns.get_mut(column) else { continue };
                let trace = self.events.trace();
                let index = self.symbols.entry((column, address));
                let index = *index.or_insert_with(|| column_of.index_of(&trace.symbol(address)));
                column_of.push_index(row, index);
            }
        }
        self.rows += 1;
    }

    fn batch(&mut self) -> Option<Data> {
        let rows = core::mem::take(&mut self.rows);
        self.variable = 0;
        self.symbols.clear();
        self.names.fill(None);
        (rows > 0).then(|| {
            let children = self.columns.iter_mut().map(|column| column.take(rows)).collect();
            Data { children, ..Data::new(rows, vec![None]) }
        })
    }
}

/// Puts a field into its column; how many bytes of text or array that were.
fn add_field(columns: &mut [Column], row: usize, event: &Event<'_>, cell: &Cell) -> usize {
    let Some(column) = columns.get_mut(cell.column) else { return 0 };
    match cell.kind {
        Kind::Bool | Kind::Number { .. } => {
            event.uint(cell.field).into_iter().for_each(|number| column.push_number(row, number));
            0
        }
        Kind::Text => event.text(cell.field).map_or(0, |text| {
            column.push_bytes(row, text);
            text.len()
        }),
        Kind::Bytes => event.bytes(cell.field).map_or(0, |bytes| {
            column.push_bytes(row, bytes);
            bytes.len()
        }),
        Kind::List { width, signed } => event.bytes(cell.field).map_or(0, |bytes| {
            column.push_list(row, numbers(bytes, width, signed, event.order()));
            bytes.len()
        }),
    }
}

impl Batches for Stream {
    fn schema(&self) -> Type {
        self.plan.schema()
    }

    fn next(&mut self) -> Option<Data> {
        while self.rows < self.batch_rows && self.variable < VARIABLE_MAX {
            match self.events.advance() {
                Step::Event => self.add(),
                Step::Loss => {}
                Step::End => break,
            }
        }
        self.batch()
    }
}
