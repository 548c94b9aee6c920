//! Going on with a finished file: more chunks after its end, and a new index and trailer.

use std::borrow::Cow;

use super::rewrite::summary;
use crate::Limits;
use crate::codec::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::raw::{ALIGNMENT, ChunkKind};
use crate::read::recovering::{Contents, Found, Step, Taken, Walker, header_anywhere};
use crate::read::{EarlyEnd, EventsInfo};
use crate::write::framing::{Framer, IndexEntry};
use crate::write::{Writer, WriterOptions};

impl Writer {
    /// A writer that continues `file`: symbols that were fetched later, another recording of the same boot.
    ///
    /// Its bytes are to be appended to the file; nothing in the file changes, so that a file whose appending was cut
    /// short still holds what it held. Event classes have to be added again.
    ///
    /// ```
    /// use kmt_format::{Compression, Limits, read::Trace, write::Writer};
    /// # let mut file = kmt_format::example()?;
    /// let mut writer = Writer::append_to(&file, Limits::default(), Compression::None)?;
    /// writer.add_metadata(&[("note", b"looked at later")])?;
    /// let more = writer.finish()?;
    /// file.extend(more);
    /// assert_eq!(Trace::open(&file)?.metadata().text("note"), Some("looked at later"));
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the file is damaged or does not end at the end of a chunk; [`Rewrite`](super::Rewrite)
    /// makes such a file whole.
    pub fn append_to(file: &[u8], limits: Limits, compression: Compression) -> Result<Self> {
        if !compression.is_available() {
            return Err(Error::new(ErrorKind::CodecNotBuilt { codec: "zstd" }));
        }
        let (header, damage) = header_anywhere(file)?;
        let unsound =
            || Error::new(ErrorKind::Usage("a damaged file cannot be appended to; recover it first"));
        if damage.is_some() {
            return Err(unsound());
        }
        let options = WriterOptions::new(header.order, header.long_size)
            .align_u64(header.align_u64)
            .page_size(header.page_size)
            .trace_uuid(header.trace_uuid)
            .compression(compression)
            .folded(header.folded);
        let mut framer = Framer::start_of(header.order, header.trace_uuid, compression);
        framer.file_len = file.len() as u64;
        let mut contents = Contents::new(header, None, limits, true);
        let mut walker = Walker::new(&header, limits);
        loop {
            let at = usize::try_from(walker.position()).unwrap_or(usize::MAX);
            let rest = file.get(at..).unwrap_or_default();
            let chunk = match walker.step(rest, true) {
                Step::Found(Found::Chunk(chunk)) => chunk,
                Step::End => break,
                _ => return Err(unsound()),
            };
            let info = match contents.chunk(&chunk, Cow::Borrowed(chunk.stored_in(file)))? {
                Taken::Damaged(_) => return Err(unsound()),
                Taken::Events(_) => {
                    framer.event_count = framer
                        .event_count
                        .saturating_add(contents.last_info(&chunk).map_or(0, |i| u64::from(i.event_count)));
                    framer.event_bytes = framer.event_bytes.saturating_add(chunk.total_len);
                    contents.last_info(&chunk).unwrap_or(EventsInfo::NONE)
                }
                Taken::Folded(_) | Taken::Other => EventsInfo::NONE,
            };
            if chunk.cpu.is_none() {
                framer.loose_sequence = framer.loose_sequence.max(chunk.sequence.wrapping_add(1));
            }
            let header: [u8; ALIGNMENT] = rest.first_chunk().copied().ok_or_else(unsound)?;
            framer.index.push(IndexEntry { offset: chunk.offset, header, summary: summary(&info) });
            framer.chunk_count = framer.chunk_count.saturating_add(1);
            if chunk.kind == ChunkKind::TRAILER && chunk.total_len != (ALIGNMENT as u64).saturating_mul(2) {
                return Err(Error::at(chunk.offset, ErrorKind::Usage("the trailer is of a later version")));
            }
        }
        framer.next_fold = contents.folds.last().map_or(0, |(_, info)| info.number.saturating_add(1));
        let mut writer = Self::with_framer(options, framer);
        let end = if contents.finished { None } else { EarlyEnd::of(&contents) };
        writer.continue_file(
            contents.schema.class_count(),
            contents.streams.iter().filter_map(|(cpu, stream)| {
                let (chunk, info) = stream.chunks.last()?;
                Some((
                    *cpu,
                    chunk.sequence.wrapping_add(1),
                    info.first_event.saturating_add(info.event_count.into()),
                    info.t_last,
                ))
            }),
        );
        if let Some(end) = end {
            writer.add_metadata(&[(EarlyEnd::KEY, end.to_text().as_bytes())])?;
        }
        Ok(writer)
    }
}
