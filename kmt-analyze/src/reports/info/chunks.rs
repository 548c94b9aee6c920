//! Contents of the event chunks: counts by class, storage, damage.

use std::collections::BTreeMap;

use kmt_format::raw::{ChunkKind, chunk_flags, codecs};
use kmt_format::read::{Damage, Trace};
use serde::Serialize;

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
pub fn read(trace: &Trace<'_>) -> (Vec<(String, u64)>, Vec<Damage>) {
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
