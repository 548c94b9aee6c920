//! Chunks of a file besides its events, into another file of the same trace.

use crate::error::Result;
use crate::pack::Summary;
use crate::raw::{ChunkKind, chunk_flags};
use crate::read::Trace;
use crate::write::Writer;
use crate::write::framing::ChunkId;

use super::rewrite::frame_of;

/// Copies clock, keys, attached files, symbols, names of tasks, source lines, cgroups and totals of a file as they are stored.
/// Events, classes and counters are left to the caller, and so are chunks of unknown kinds that are not safe to copy.
///
/// # Errors
///
/// Returns an error if a chunk cannot be framed.
pub fn copy_besides_events(trace: &Trace<'_>, writer: &mut Writer) -> Result<()> {
    for chunk in trace.chunks() {
        let is_copied = match chunk.kind {
            ChunkKind::CLOCK
            | ChunkKind::META
            | ChunkKind::FILE
            | ChunkKind::SYMBOLS
            | ChunkKind::TASKS
            | ChunkKind::LINES
            | ChunkKind::CGROUPS
            | ChunkKind::SUMS => true,
            kind => !kind.is_known() && chunk.flags & chunk_flags::SAFE_TO_COPY != 0,
        };
        let stored = chunk.stored_in(trace.data());
        // Damage is listed by the trace.
        if !is_copied || chunk.body(stored).is_err() {
            continue;
        }
        let framer = writer.framer();
        let sequence = framer.next_loose();
        let id =
            ChunkId { kind: chunk.kind, flags: chunk.flags, stream: chunk.cpu.unwrap_or(u32::MAX), sequence };
        framer.stored_chunk(&frame_of(&chunk, id), stored, Summary::default());
    }
    Ok(())
}
