//! Adding sub-buffers to a file: decoded, or as the kernel wrote them.

use super::Writer;
use super::types::SubBufferSummary;
use crate::Loss;
use crate::error::{Error, Result};
use crate::kernel::{HeaderPage, Item, SubBuffer};
use crate::pack::{Summary, VERBATIM_EVENTS_MAX as EVENTS_MAX, class_bit};

/// The layout of a sub-buffer that ends with its bytes: a shorter one than usual gets a chunk of its length, so that it is
/// not padded. A kernel's sub-buffers have up to 8 MiB, and each CPU's last one may hold one event.
fn as_long_as(bytes: &[u8], header: &HeaderPage) -> HeaderPage {
    let here = bytes.len().saturating_sub(header.data_offset);
    HeaderPage { data_size: header.data_size.min(here), ..*header }
}

impl SubBufferSummary {
    /// Summary of a sub-buffer before its first event.
    fn of(sub_buffer: &SubBuffer<'_>) -> Self {
        let loss = Loss::from(sub_buffer.missed());
        Self { events: 0, discarded: 0, loss, times: None, rises: true, classes: 0 }
    }

    fn add(&mut self, time: u64) {
        self.rises &= self.times.is_none_or(|(_, last)| time >= last);
        self.times = Some((self.times.map_or(time, |(first, _)| first), time));
        self.events += 1;
    }
}

impl Writer {
    /// Adds the contents of a sub-buffer of `cpu`, as read from `trace_pipe_raw`: its loss, and its events.
    /// Sub-buffers of one CPU come in their order.
    ///
    /// ```
    /// # use kmt_format::{kernel::HeaderPage, write::Writer, Result};
    /// fn convert(writer: &mut Writer, cpu: u32, raw: &[u8], layout: &HeaderPage) -> Result<u64> {
    ///     let mut events = 0;
    ///     for bytes in raw.chunks(layout.sub_buffer_len()) {
    ///         events += writer.sub_buffer(cpu, bytes, layout)?.events;
    ///     }
    ///     Ok(events)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the sub-buffer cannot be decoded to its end, or has an event without a format. The events
    /// before that place are in the file then, with a note of [damaged input](Loss::damaged_input) after them: going on
    /// with the next sub-buffer keeps what can be kept.
    pub fn sub_buffer(&mut self, cpu: u32, bytes: &[u8], header: &HeaderPage) -> Result<SubBufferSummary> {
        let added = self.add_sub_buffer(cpu, bytes, header);
        if added.is_err() {
            self.lost(cpu, Loss::damaged_input())?;
        }
        added
    }

    fn add_sub_buffer(&mut self, cpu: u32, bytes: &[u8], header: &HeaderPage) -> Result<SubBufferSummary> {
        let sub_buffer = SubBuffer::parse(bytes, header, self.options.order)?;
        let mut found = SubBufferSummary::of(&sub_buffer);
        if !found.loss.is_none() {
            self.lost(cpu, found.loss)?;
        }
        for item in sub_buffer.items() {
            match item? {
                Item::Event { time, record, offset } => {
                    let at = |e: Error| Error::at(offset as u64, e.kind().clone());
                    self.event(cpu, time, record).map_err(at)?;
                    found.add(time);
                }
                Item::Discarded => found.discarded += 1,
            }
        }
        Ok(found)
    }

    /// Adds a sub-buffer of `cpu` as the kernel wrote it, with its loss: hardly any work on the target,
    /// and three times the bytes. [`read::Trace`](crate::read::Trace) decodes it when it is read.
    ///
    /// A sub-buffer without events adds nothing; one with more events than a chunk may hold is decoded at once.
    ///
    /// # Errors
    ///
    /// Returns an error, and adds nothing, if the sub-buffer cannot be decoded to its end.
    pub fn sub_buffer_verbatim(
        &mut self,
        cpu: u32,
        bytes: &[u8],
        header: &HeaderPage,
    ) -> Result<SubBufferSummary> {
        self.sub_buffer_verbatim_with(cpu, bytes, header, |_, _| {})
    }

    /// The same, and calls `see` with the time and the record of each event, so that the caller need not decode the
    /// sub-buffer again.
    ///
    /// # Errors
    ///
    /// Those of [`sub_buffer_verbatim`](Self::sub_buffer_verbatim); `see` was called for the events before the damage.
    pub fn sub_buffer_verbatim_with(
        &mut self,
        cpu: u32,
        bytes: &[u8],
        header: &HeaderPage,
        see: impl FnMut(u64, &[u8]),
    ) -> Result<SubBufferSummary> {
        let sub_buffer = SubBuffer::parse(bytes, header, self.options.order)?;
        let found = self.summarize(&sub_buffer, see)?;
        if found.loss != Loss::default() {
            self.lost(cpu, found.loss)?;
        }
        let Some((t_first, _)) = found.times else { return Ok(found) };
        // The head has 16 bits for each part of the layout; `events/header_page` of real kernels has 8 to 16 there.
        let offsets = [header.timestamp_offset, header.commit_offset, header.commit_size, header.data_offset];
        let fits = found.events <= EVENTS_MAX as u64
            && header.sub_buffer_len() <= HeaderPage::SUB_BUFFER_LEN_MAX
            && offsets.iter().all(|&n| u16::try_from(n).is_ok());
        if !fits || !found.rises {
            for item in sub_buffer.items() {
                if let Item::Event { time, record, .. } = item? {
                    self.event(cpu, time, record)?;
                }
            }
            return Ok(found);
        }
        let header = &as_long_as(bytes, header);
        let index = self.stream(cpu)?;
        let len_max = self.limits.chunk_len;
        let must_close = self.streams.get(index).is_some_and(|(_, s)| {
            s.builder.record_count() > 0
                || s.sub_buffers.must_close_before(header, len_max, found.events as usize, t_first)
        });
        if must_close {
            self.close_chunk(cpu)?;
        }
        if let Some((_, stream)) = self.streams.get_mut(index) {
            let loss =
                if stream.sub_buffers.is_empty() { stream.builder.take_loss() } else { Loss::default() };
            let start = Summary { t_base: t_first, loss, ..stream.builder.summary() };
            stream.sub_buffers.push(bytes, header, &found, start);
        }
        Ok(found)
    }

    /// Summary of a sub-buffer, of which `see` gets each event. Its classes get into the file.
    fn summarize(
        &mut self,
        sub_buffer: &SubBuffer<'_>,
        mut see: impl FnMut(u64, &[u8]),
    ) -> Result<SubBufferSummary> {
        let mut found = SubBufferSummary::of(sub_buffer);
        for item in sub_buffer.items() {
            match item? {
                Item::Event { time, record, offset } => {
                    let at = |e: Error| Error::at(offset as u64, e.kind().clone());
                    let id = self.options.order.uint_at(record, 0, 2).unwrap_or(0) as u16;
                    let index = self.plan_index(id).map_err(at)?;
                    if let Some(plan) = self.plans.get(index) {
                        plan.check_len(record).map_err(at)?;
                        found.classes |= class_bit(plan.index);
                        if self.code.is_on() {
                            self.code.add_record(plan, record, self.options.order, self.options.long_size);
                        }
                    }
                    found.add(time);
                    see(time, record);
                }
                Item::Discarded => found.discarded += 1,
            }
        }
        Ok(found)
    }
}
