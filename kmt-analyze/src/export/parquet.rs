//! A Parquet data set, laid out so that the captures of a fleet are one data set:
//! TABLE/target=…/build=…/boot=…/FILE.parquet.
//!
//! Tables and columns are those of `tabular`; rows of objects come from the spool of a pass, those of events from the
//! file. Each table is one file in row groups, and files get their names when all of them are complete. Engines that
//! read folders as columns (Hive style) find target, build and boot as columns.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kmt_common::output::{Folders, Output};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::tabular::object::{CALL_SITE, OBJECT, Resolver, call_sites, lives, next, object};
use super::tabular::{ColumnKind, ExportCell, RowsLeft, event};
use super::{ExportOptions, report_trust};
use crate::failure::{Failure, Outcome, Result};
use crate::render::head::is_minimum;
use crate::render::words::escaped;
use crate::reports::common::basis::Input;
use crate::trace::faults::Faults;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Rows of a row group.
const GROUP: usize = 1 << 18;

/// Writes one file for each table.
pub fn run(session: &Session<'_>, options: &ExportOptions) -> Result<Outcome> {
    if options.output == Path::new("-") {
        return Err(Failure::new("a data set is a directory, not a stream").hint("give a directory with -o"));
    }
    let location = ColumnLocation::of(session, options);
    let mut made = Vec::new();
    let written = write(session, options, &location, &mut made);
    if written.is_err() {
        made.iter().for_each(|path| drop(fs::remove_file(path)));
    }
    Ok(outcome(session, &written?))
}

fn write(
    session: &Session<'_>,
    options: &ExportOptions,
    location: &ColumnLocation,
    made: &mut Vec<PathBuf>,
) -> Result<Faults> {
    let force = options.force;
    let mut table = ParquetTable::new(location, "objects", &OBJECT, force)?;
    let mut lives = lives(
        session,
        &options.selection,
        &super::Target { path: table.path.clone(), force: true },
        Input::SlabAllocs,
    )?;
    report_trust(session, &options.selection, &lives.result);
    let names = Resolver::new(session, &lives.result);
    let rows_max = options.rows_max();
    let mut left = RowsLeft(rows_max);
    while let Some(life) = next(&mut lives.objects)?.filter(|_| left.take()) {
        table.push(object(&life, &lives.result, &names))?;
    }
    let mut done = vec![table.finish()?];
    let mut table = ParquetTable::new(location, "call_sites", &CALL_SITE, force)?;
    call_sites(&lives.result, &names, session.losses.any())
        .into_iter()
        .take(rows_max)
        .try_for_each(|row| table.push(row))?;
    done.push(table.finish()?);
    let mut faults = std::mem::take(&mut lives.result.faults);
    if options.events {
        let mut table = ParquetTable::new(location, "events", &event::EVENT, force)?;
        let mut left = RowsLeft(rows_max);
        let mut push = |row| Ok(if left.take() { table.push(row).map(|()| left.0 > 0)? } else { false });
        faults.join(event::each(session, &options.selection, &mut push)?);
        done.push(table.finish()?);
    }
    let mut table = ParquetTable::new(location, "traces", &TRACE, force)?;
    table.push(about(session))?;
    done.push(table.finish()?);
    for (output, path, _folders) in done {
        output.finish()?;
        made.push(path);
    }
    Ok(faults)
}

/// Columns of traces: one row each.
const TRACE: [(&str, ColumnKind); 8] = [
    ("events", ColumnKind::Uint),
    ("lost_events", ColumnKind::Uint),
    ("lost_events_is_minimum", ColumnKind::Bool),
    ("first", ColumnKind::Uint),
    ("last", ColumnKind::Uint),
    ("clock", ColumnKind::Text),
    ("clock_unit", ColumnKind::Text),
    ("kernel", ColumnKind::Text),
];

fn about(session: &Session<'_>) -> Vec<ExportCell> {
    let metadata = session.trace.metadata();
    let number = |n: Option<u64>| n.map_or(ExportCell::Null, ExportCell::Uint);
    let clock = metadata.clock.as_ref().map_or("", |c| c.name.as_str());
    let unit = match session.unit() {
        kmt_format::kernel::ClockUnit::Nanoseconds => "ns",
        kmt_format::kernel::ClockUnit::Ticks => "ticks",
    };
    vec![
        ExportCell::Uint(session.trace.event_count()),
        ExportCell::Uint(session.losses.lost_events()),
        ExportCell::Bool(is_minimum(&session.losses)),
        number(session.first_time()),
        number(session.last_time()),
        ExportCell::text(&escaped(clock.as_bytes())),
        ExportCell::Text(unit.to_owned()),
        ExportCell::text(&metadata.text("uname").map_or(String::new(), |t| escaped(t.as_bytes()))),
    ]
}

/// Folder and name of a trace's files.
struct ColumnLocation {
    root: PathBuf,
    partition: PathBuf,
    file: String,
}

impl ColumnLocation {
    fn of(session: &Session<'_>, options: &ExportOptions) -> Self {
        let metadata = session.trace.metadata();
        let uname = metadata.text("uname").map(str::to_owned);
        let host = uname.as_deref().and_then(|u| u.split_ascii_whitespace().nth(1));
        let target = options.name.as_deref().or(metadata.text("host")).or(host).unwrap_or("unknown");
        let build = metadata.text("kernel.release").unwrap_or("unknown");
        let uuid: String = session.trace.header().trace_uuid.iter().map(|b| format!("{b:02x}")).collect();
        let boot = metadata.text("boot_id").map_or(uuid.as_str(), str::trim);
        let part = |key: &str, value: &str| format!("{key}={}", escaped_value(value));
        let partition =
            PathBuf::from(part("target", target)).join(part("build", build)).join(part("boot", boot));
        Self { root: options.output.clone(), partition, file: format!("{uuid}.parquet") }
    }
}

/// A value in the name of a folder, as Hive writes it: %XX except for letters, digits and some marks.
fn escaped_value(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'~') {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    // These names have another meaning for folders.
    if out.is_empty() || out == "." || out == ".." { "unknown".to_owned() } else { out }
}

/// A file being written.
struct ParquetTable {
    columns: &'static [(&'static str, ColumnKind)],
    writer: SerializedFileWriter<File>,
    rows: Vec<Vec<ExportCell>>,
    // Before `folders`: these can be removed after the output.
    output: Output,
    folders: Folders,
    path: PathBuf,
}

impl ParquetTable {
    fn new(
        location: &ColumnLocation,
        name: &str,
        columns: &'static [(&'static str, ColumnKind)],
        force: bool,
    ) -> Result<Self> {
        let folder = location.root.join(name).join(&location.partition);
        let folders = Folders::make(&folder)?;
        let target = super::Target { path: folder.join(&location.file), force };
        let output = target.open()?;
        let file = output.file()?;
        let fields = columns.iter().map(|&(name, kind)| column_type(name, kind).map(Arc::new));
        let schema = fields
            .collect::<std::result::Result<Vec<_>, _>>()
            .and_then(|fields| Type::group_type_builder("row").with_fields(fields).build());
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("kmt-analyze ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = schema
            .and_then(|schema| SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)))
            .map_err(|e| failed(&target.path, &e))?;
        Ok(Self { columns, writer, rows: Vec::new(), output, folders, path: target.path })
    }

    fn push(&mut self, row: Vec<ExportCell>) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() >= GROUP { self.group() } else { Ok(()) }
    }

    /// Writes a row group, column by column.
    fn group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let columns = self.columns;
        let mut write = || -> std::result::Result<(), ParquetError> {
            let mut group = self.writer.next_row_group()?;
            for (number, (_, kind)) in columns.iter().enumerate() {
                let Some(mut column) = group.next_column()? else { break };
                let cells = rows.iter().filter_map(|row| row.get(number));
                let levels: Vec<i16> =
                    cells.clone().map(|cell| i16::from(*cell != ExportCell::Null)).collect();
                match kind {
                    ColumnKind::Int | ColumnKind::Uint | ColumnKind::Address => {
                        let values: Vec<i64> = cells.filter_map(number_of).collect();
                        column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                    }
                    ColumnKind::Bool => {
                        let values: Vec<bool> = cells
                            .filter_map(
                                |cell| if let ExportCell::Bool(truth) = cell { Some(*truth) } else { None },
                            )
                            .collect();
                        column.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
                    }
                    ColumnKind::Text => {
                        let values: Vec<ByteArray> = cells
                            .filter_map(|cell| {
                                if let ExportCell::Text(text) = cell {
                                    Some(text.as_str().into())
                                } else {
                                    None
                                }
                            })
                            .collect();
                        column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                    }
                }
                column.close()?;
            }
            group.close().map(|_| ())
        };
        write().map_err(|e| failed(&self.path, &e))
    }

    /// Completes the file; it is renamed when all tables are complete.
    fn finish(mut self) -> Result<(Output, PathBuf, Folders)> {
        if !self.rows.is_empty() {
            self.group()?;
        }
        let closed = self.writer.close();
        closed.map_err(|e| failed(&self.path, &e))?;
        Ok((self.output, self.path, self.folders))
    }
}

fn failed(path: &Path, error: &ParquetError) -> Failure {
    Failure::new(format!("writing {}: {error}", path.display()))
}

fn number_of(cell: &ExportCell) -> Option<i64> {
    match cell {
        ExportCell::Int(number) => Some(*number),
        ExportCell::Uint(number) | ExportCell::Address(number) => Some(*number as i64),
        _ => None,
    }
}

fn column_type(name: &str, kind: ColumnKind) -> std::result::Result<Type, ParquetError> {
    let integer = |is_signed| Some(LogicalType::Integer { bit_width: 64, is_signed });
    let (physical, logical) = match kind {
        // Amounts are far below 2^63, and every engine has signed integers.
        ColumnKind::Int | ColumnKind::Uint => (Physical::INT64, integer(true)),
        ColumnKind::Address => (Physical::INT64, integer(false)),
        ColumnKind::Bool => (Physical::BOOLEAN, None),
        ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_make_safe_folders() {
        assert_eq!(escaped_value("6.1.0-50_amd64"), "6.1.0-50_amd64");
        assert_eq!(escaped_value("../a=b c"), "..%2Fa%3Db%20c");
        assert_eq!(escaped_value(".."), "unknown");
    }
}
