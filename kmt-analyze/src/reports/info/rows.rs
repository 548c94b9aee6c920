//! Contents, losses and integrity of the file.

use kmt_format::read::{Damage, Trace};
use serde::{Serialize, Serializer};

use super::chunks::{self, StorageRow};
use super::cpus::{ChangeRow, CpuRow};
use crate::render::head::Head;
use crate::reports::common::rows::text;
use crate::trace::faults::Faults;
use crate::trace::session::Session;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InfoRows {
    /// The trace and its clock.
    #[serde(flatten)]
    pub head: Head<CpuRow>,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Mean length of an event in the file, in bytes.
    pub bytes_per_event: f64,
    /// Length of all event chunks in bytes.
    pub event_chunk_bytes: u64,
    /// Format of the file, and sizes of the target.
    pub format: FormatRow,
    /// Kernel of the target.
    pub kernel: KernelRow,
    /// Keys and values of the metadata, in the order of the file.
    #[serde(serialize_with = "as_map")]
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub meta: Vec<(String, String)>,
    /// Number of events by `system:event`.
    #[serde(serialize_with = "as_map")]
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, u64>"))]
    pub events: Vec<(String, u64)>,
    /// Storage of the event chunks.
    pub storage: StorageRow,
    /// Number of symbols.
    pub symbols: usize,
    /// Number of task names.
    pub tasks: usize,
    /// Files of the target.
    pub attachments: Vec<AttachmentRow>,
    /// Changes of the recording by other processes.
    pub changes: Vec<ChangeRow>,
    /// Integrity of the file.
    pub integrity: IntegrityRow,
}

/// Format of the file, and sizes of the target.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FormatRow {
    /// Version of the format: `major.minor`.
    pub version: String,
    /// `little` or `big`.
    pub byte_order: &'static str,
    /// Size of `long` of the target, in bytes.
    pub long_size: usize,
    /// Page size of the target, in bytes; `null`: not recorded.
    pub page_size: Option<u64>,
    /// Identifier of the trace, hexadecimal.
    pub uuid: String,
    /// Number of sound chunks.
    pub chunks: u64,
}

/// Kernel of the target; `null`: not recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KernelRow {
    /// All fields of `uname -a`.
    pub uname: Option<String>,
    /// Release.
    pub release: Option<String>,
    /// Machine.
    pub machine: Option<String>,
}

/// A file of the target.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AttachmentRow {
    /// Name.
    pub name: String,
    /// Length in bytes.
    pub bytes: usize,
}

/// Integrity of the file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IntegrityRow {
    /// True if nothing is damaged or missing, and the file has its end.
    pub sound: bool,
    /// True if the file has its end.
    pub finished: bool,
    /// Events of chunks that are missing from the file.
    pub events_missing: u64,
    /// Number of damaged places, including those beyond the limit of the list.
    pub damages_total: u64,
    /// Damaged places; of those found on opening the file, at most as many as the limit `damages`.
    pub damages: Vec<DamageRow>,
}

/// A damaged place of the file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DamageRow {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes; 0 if no byte range applies.
    pub bytes: u64,
    /// The error.
    pub error: String,
    /// Code of the error.
    pub code: &'static str,
}

/// Serializes pairs as a map; a repeated key has its last value.
fn as_map<S: Serializer, T: Serialize>(pairs: &[(String, T)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// Rows of a file, and the faults of its event chunks.
pub fn compute(session: &Session<'_>) -> (InfoRows, Faults) {
    let trace = session.trace;
    let metadata = trace.metadata();
    let (events, damages) = chunks::read(trace);
    let faults = Faults::from(damages);
    let attachments = metadata.attachments.iter();
    let attachment =
        |name: &str, contents: &[u8]| AttachmentRow { name: name.to_owned(), bytes: contents.len() };
    let rows = InfoRows {
        head: Head::of(trace, &session.losses),
        file_bytes: trace.len_bytes(),
        bytes_per_event: trace.event_bytes() as f64 / trace.event_count().max(1) as f64,
        event_chunk_bytes: trace.event_bytes(),
        format: format(trace),
        kernel: kernel(trace),
        meta: metadata.pairs.iter().map(|(key, value)| (key.clone().into_owned(), text(value))).collect(),
        events,
        storage: StorageRow::of(trace),
        symbols: trace.symbols().map_or(0, |symbols| symbols.len()),
        tasks: metadata.tasks.len(),
        attachments: attachments.map(|a| attachment(&a.name, &a.contents)).collect(),
        changes: session.losses.changes.iter().map(ChangeRow::from).collect(),
        integrity: integrity(trace, &faults),
    };
    (rows, faults)
}

fn format(trace: &Trace<'_>) -> FormatRow {
    let header = trace.header();
    FormatRow {
        version: format!("{}.{}", header.version_major, header.version_minor),
        byte_order: header.order.name(),
        long_size: header.long_size,
        page_size: header.page_size,
        uuid: header.trace_uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
        chunks: trace.chunk_count(),
    }
}

fn kernel(trace: &Trace<'_>) -> KernelRow {
    let metadata = trace.metadata();
    KernelRow {
        uname: metadata.value("uname").map(text),
        release: metadata.value("kernel.release").map(text),
        machine: metadata.value("kernel.machine").map(text),
    }
}

fn integrity(trace: &Trace<'_>, faults: &Faults) -> IntegrityRow {
    let row = |damage: &Damage| DamageRow {
        offset: damage.offset,
        bytes: damage.len,
        error: damage.error.to_string(),
        code: damage.error.code(),
    };
    let damages_total = faults.damaged_places(trace);
    let events_missing =
        trace.streams().values().fold(0u64, |sum, stream| sum.saturating_add(stream.events_missing));
    IntegrityRow {
        sound: damages_total == 0 && trace.is_finished() && events_missing == 0,
        finished: trace.is_finished(),
        events_missing,
        damages_total,
        damages: trace.damages().iter().chain(&faults.damages).map(row).collect(),
    }
}
