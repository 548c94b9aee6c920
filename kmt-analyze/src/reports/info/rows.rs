//! Rows of `info`: contents, losses and integrity of the file.
//!
//! The event chunks are walked for counts by class, storage and damage; losses of each CPU are those of `trace/losses`.

use std::collections::BTreeMap;

use kmt_format::kernel::CpuStats;
use kmt_format::raw::{ChunkKind, chunk_flags, codecs};
use kmt_format::read::{Damage, Trace};
use serde::{Serialize, Serializer};

use crate::render::head::{CpuHead, Head};
use crate::reports::common::rows::text;
use crate::trace::faults::{Change, Faults};
use crate::trace::losses::{CpuLosses, LossPlace};
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
    let (events, damages) = read_chunks(trace);
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

/// Counts of event chunks by storage.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StorageRow {
    /// Chunks without compression.
    pub plain: u64,
    /// Chunks compressed with lz4.
    pub lz4: u64,
    /// Chunks compressed with zstd.
    pub zstd: u64,
    /// Chunks that hold sub-buffers as the kernel wrote them.
    pub verbatim: u64,
    /// Chunks of a torn file, without a checksum over the data of the target.
    pub unverified: u64,
}

impl StorageRow {
    /// Of the event chunks of a trace.
    pub fn of(trace: &Trace<'_>) -> Self {
        let mut out = Self::default();
        for (chunk, _) in trace.streams().values().flat_map(|stream| &stream.chunks) {
            match chunk.codec & 15 {
                codecs::LZ4 => out.lz4 += 1,
                codecs::ZSTD => out.zstd += 1,
                _ => out.plain += 1,
            }
            out.verbatim += u64::from(chunk.kind == ChunkKind::SUB_BUFFERS);
            out.unverified += u64::from(chunk.flags & chunk_flags::UNVERIFIED != 0);
        }
        out
    }
}

/// Reads every event chunk: events by `system:event` in the order of the classes, and damage.
fn read_chunks(trace: &Trace<'_>) -> (Vec<(String, u64)>, Vec<Damage>) {
    let mut classes: BTreeMap<usize, u64> = BTreeMap::new();
    let mut damages = Vec::new();
    for (chunk, _) in trace.streams().values().flat_map(|stream| &stream.chunks) {
        match trace.read(chunk) {
            Ok(read) => {
                let mut by_descriptor = vec![0u64; read.descriptor_count()];
                read.records().for_each(|record| {
                    if let Some(events) = by_descriptor.get_mut(usize::from(record.descriptor)) {
                        *events += 1;
                    }
                });
                for (descriptor, events) in by_descriptor.into_iter().enumerate() {
                    let shape = read.shape_of(descriptor).and_then(|shape| trace.schema().shape(shape));
                    if let Some(shape) = shape {
                        *classes.entry(shape.class).or_default() += events;
                    }
                }
            }
            Err(error) => damages.push(Damage::new(chunk.offset, chunk.total_len, error)),
        }
    }
    let name = |class| {
        let class = trace.schema().class(class);
        class.map_or_else(String::new, |class| format!("{}:{}", class.system, class.name))
    };
    (classes.into_iter().map(|(class, events)| (name(class), events)).collect(), damages)
}

/// Events of one CPU, and its losses.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuRow {
    /// Counts of all events and of all lost ones.
    #[serde(flatten)]
    pub head: CpuHead,
    /// Counters of the kernel; `null`: not recorded.
    pub stats: Option<StatsRow>,
    /// Lost events that the kernel counted in its sub-buffers.
    pub lost_events_counted_in_place: u64,
    /// Number of places where the kernel did not count.
    pub uncounted_places: usize,
    /// Events lost at these places together, by the overrun counter; `null`: not recorded, or no such place.
    pub lost_events_at_uncounted_places: Option<u64>,
    /// Lost events without a position in the trace: dropped events mark no sub-buffer.
    pub lost_events_unplaced: u64,
    /// Places where events are missing.
    pub losses: Vec<LossRow>,
}

/// Counters of the kernel's ring buffer of one CPU; `null`: not recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatsRow {
    /// Events not yet read.
    pub entries: Option<u64>,
    /// Events overwritten before they were read.
    pub overrun: Option<u64>,
    /// Events lost in nested interrupts.
    pub commit_overrun: Option<u64>,
    /// Events refused because the buffer was full.
    pub dropped_events: Option<u64>,
    /// Events read.
    pub read_events: Option<u64>,
}

/// A place where events are missing.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LossRow {
    /// Time of the event before it, in the clock's unit; `null`: the start of the trace.
    pub after: Option<u64>,
    /// Time of the event after it; `null`: the end of the trace.
    pub before: Option<u64>,
    /// Events lost there as the kernel counted them; `null`: not counted.
    pub lost_events: Option<u64>,
    /// True if the kernel did not count all of them.
    pub uncounted: bool,
    /// True if part of the input was damaged there.
    pub damaged_input: bool,
    /// Events of chunks that are missing from the file.
    pub events_missing: u64,
    /// True if the recording ended unexpectedly there.
    pub early_end: bool,
    /// True if the kernel lost them before the first event of the file: before the recorded time.
    pub before_first: bool,
}

/// A setting of tracefs that another process wrote while it was recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeRow {
    /// It happened after this time, in the clock's unit.
    pub from: u64,
    /// And before this time.
    pub to: u64,
    /// The file, from the directory of the ring buffer on.
    pub file: String,
    /// Value of the setting before.
    pub old_value: String,
    /// Value of the setting after; equal to `old_value` if it was written and had its value again.
    pub new_value: String,
}

impl From<&Change> for ChangeRow {
    fn from(change: &Change) -> Self {
        let Change { from, to, setting } = change.clone();
        Self { from, to, file: setting.file, old_value: setting.before, new_value: setting.after }
    }
}

impl From<&CpuLosses> for CpuRow {
    fn from(losses: &CpuLosses) -> Self {
        Self {
            head: CpuHead::from(losses),
            stats: losses.stats.as_ref().map(StatsRow::from),
            lost_events_counted_in_place: losses.counted(),
            uncounted_places: losses.uncounted_places(),
            lost_events_at_uncounted_places: losses.lost_at_uncounted_places(),
            lost_events_unplaced: losses.unplaced(),
            losses: losses.places.iter().map(LossRow::from).collect(),
        }
    }
}

impl From<&CpuStats> for StatsRow {
    fn from(stats: &CpuStats) -> Self {
        Self {
            entries: stats.entries,
            overrun: stats.overrun,
            commit_overrun: stats.commit_overrun,
            dropped_events: stats.dropped,
            read_events: stats.read,
        }
    }
}

impl From<&LossPlace> for LossRow {
    fn from(loss: &LossPlace) -> Self {
        Self {
            after: loss.after,
            before: loss.before,
            lost_events: (!(loss.uncounted || loss.is_early_end) || loss.counted > 0).then_some(loss.counted),
            uncounted: loss.uncounted,
            damaged_input: loss.damaged_input,
            events_missing: loss.events_missing,
            early_end: loss.is_early_end,
            before_first: loss.is_before_first,
        }
    }
}
