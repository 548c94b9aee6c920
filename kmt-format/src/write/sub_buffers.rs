//! Adding sub-buffers to a file: decoded, or as the kernel wrote them.

use super::Writer;
use super::types::{Keep, SubBufferPart, SubBufferSummary};
use crate::Loss;
use crate::error::{Error, Result};
use crate::kernel::{HeaderPage, SubBuffer, SubBufferItem};
use crate::pack::{Summary, VERBATIM_EVENTS_MAX as EVENTS_MAX, class_bit};

/// The layout of a sub-buffer that ends with its bytes: a shorter one than usual gets a chunk of its length, so that it is
/// not padded. A kernel's sub-buffers have up to 8 MiB, and each CPU's last one may hold one event.
fn header_for_len(bytes: &[u8], header: &HeaderPage) -> HeaderPage {
    let here = bytes.len().saturating_sub(header.data_offset);
    HeaderPage { data_size: header.data_size.min(here), ..*header }
}

impl SubBufferSummary {
    /// Summary of a sub-buffer before its first event.
    fn of(sub_buffer: &SubBuffer<'_>) -> Self {
        Self::after(Loss::from(sub_buffer.missed()))
    }

    fn after(loss: Loss) -> Self {
        Self { events: 0, discarded: 0, loss, damage: None, times: None, times_ascend: true, classes: 0 }
    }

    fn add(&mut self, time: u64) {
        self.times_ascend &= self.times.is_none_or(|(_, last)| time >= last);
        self.times = Some((self.times.map_or(time, |(first, _)| first), time));
        self.events += 1;
    }
}

impl Writer {
    /// Adds the contents of a sub-buffer of `cpu`, as read from `trace_pipe_raw`: its loss, and its events.
    /// Sub-buffers of one CPU come in their order.
    ///
    /// `see` is called once with the time and the record of each event. Where it returns false, the event is left out,
    /// unless the sub-buffer is kept verbatim.
    ///
    /// A verbatim sub-buffer without events adds nothing but its loss; one that has damage, falling times, or more events
    /// than a chunk may hold is decoded at once.
    ///
    /// ```
    /// # use kmt_format::{kernel::HeaderPage, write::{Keep, Writer}, Result};
    /// fn convert(writer: &mut Writer, cpu: u32, raw: &[u8], layout: &HeaderPage) -> Result<u64> {
    ///     let mut events = 0;
    ///     for bytes in raw.chunks(layout.sub_buffer_len()) {
    ///         let found = writer.add_sub_buffer(cpu, bytes, layout, Keep::Decoded, |_, _| true)?;
    ///         if let Some(damage) = found.damage {
    ///             eprintln!("warning: {damage}");
    ///         }
    ///         events += found.events;
    ///     }
    ///     Ok(events)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`add_loss`](Self::add_loss). [Damage](SubBufferSummary::damage), also an event without a format, is no
    /// error: going on with the next sub-buffer keeps what can be kept.
    pub fn add_sub_buffer(
        &mut self,
        cpu: u32,
        bytes: &[u8],
        layout: &HeaderPage,
        keep: Keep,
        mut see: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<SubBufferSummary> {
        let sub_buffer = match SubBuffer::parse(bytes, layout, self.options.order) {
            Ok(sub_buffer) => sub_buffer,
            Err(damage) => return self.damaged(cpu, SubBufferSummary::after(Loss::default()), damage),
        };
        let mut found = SubBufferSummary::of(&sub_buffer);
        let mut seen = 0u64;
        if keep == Keep::Verbatim {
            let see_once = |time, record: &[u8]| {
                seen += 1;
                see(time, record);
            };
            let mut whole = found.clone();
            let summarized = self.summarize(&sub_buffer, &mut whole, see_once);
            if summarized.is_ok() && self.keep_verbatim(cpu, bytes, layout, &whole)? {
                return Ok(whole);
            }
        }
        if !found.loss.is_none() {
            self.add_loss(cpu, found.loss)?;
        }
        // An event that was seen is of a sub-buffer of which nothing is left out.
        let mut keeps = |time, record: &[u8]| {
            let is_new = seen == 0;
            seen = seen.saturating_sub(1);
            let is_kept = !is_new || see(time, record);
            is_kept || keep == Keep::Verbatim
        };
        match self.decode(cpu, &sub_buffer, &mut found, &mut keeps) {
            Ok(()) => Ok(found),
            Err(damage) => self.damaged(cpu, found, damage),
        }
    }

    /// Takes a sub-buffer apart without adding it: `take` gets its loss, if it has one, then each event that can be added, then
    /// its damage as a loss. Events for which it returns false do not count.
    pub fn decode_sub_buffer(
        &mut self,
        bytes: &[u8],
        layout: &HeaderPage,
        mut take: impl FnMut(SubBufferPart<'_>) -> bool,
    ) -> SubBufferSummary {
        let mut found = SubBufferSummary::after(Loss::default());
        let taken = SubBuffer::parse(bytes, layout, self.options.order).and_then(|sub_buffer| {
            found = SubBufferSummary::of(&sub_buffer);
            if !found.loss.is_none() {
                take(SubBufferPart::Loss(found.loss));
            }
            for item in sub_buffer.items() {
                match item? {
                    SubBufferItem::Event { time, record, offset } => {
                        let at = |e: Error| Error::at(offset as u64, e.kind().clone());
                        self.accepts(record).map_err(at)?;
                        if take(SubBufferPart::Event(time, record)) {
                            found.add(time);
                        }
                    }
                    SubBufferItem::Discarded => found.discarded += 1,
                }
            }
            Ok(())
        });
        if let Err(damage) = taken {
            take(SubBufferPart::Loss(Loss::damaged_input()));
            found.loss = found.loss.and(Loss::damaged_input());
            found.damage = Some(damage);
        }
        found
    }

    /// Marks damaged input in the file.
    fn damaged(&mut self, cpu: u32, found: SubBufferSummary, damage: Error) -> Result<SubBufferSummary> {
        let loss = Loss::damaged_input();
        self.add_loss(cpu, loss)?;
        Ok(SubBufferSummary { loss: found.loss.and(loss), damage: Some(damage), ..found })
    }

    /// Adds the events up to the end, or to damage.
    fn decode(
        &mut self,
        cpu: u32,
        sub_buffer: &SubBuffer<'_>,
        found: &mut SubBufferSummary,
        keeps: &mut impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<()> {
        for item in sub_buffer.items() {
            match item? {
                SubBufferItem::Event { time, record, offset } if keeps(time, record) => {
                    let at = |e: Error| Error::at(offset as u64, e.kind().clone());
                    self.add_event(cpu, time, record).map_err(at)?;
                    found.add(time);
                }
                SubBufferItem::Event { .. } => {}
                SubBufferItem::Discarded => found.discarded += 1,
            }
        }
        Ok(())
    }

    /// Adds a sub-buffer that was summarized as it is, with its loss; false, and nothing is added, if it has to be
    /// decoded.
    fn keep_verbatim(
        &mut self,
        cpu: u32,
        bytes: &[u8],
        header: &HeaderPage,
        found: &SubBufferSummary,
    ) -> Result<bool> {
        // The head has 16 bits for each part of the layout; `events/header_page` of real kernels has 8 to 16 there.
        let offsets = [header.timestamp_offset, header.commit_offset, header.commit_size, header.data_offset];
        let fits = found.events <= EVENTS_MAX as u64
            && header.sub_buffer_len() <= HeaderPage::SUB_BUFFER_LEN_MAX
            && offsets.iter().all(|&n| u16::try_from(n).is_ok());
        if !fits || !found.times_ascend {
            return Ok(false);
        }
        if !found.loss.is_none() {
            self.add_loss(cpu, found.loss)?;
        }
        let Some((t_first, _)) = found.times else { return Ok(true) };
        let header = &header_for_len(bytes, header);
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
            stream.sub_buffers.push(bytes, header, found, start);
        }
        Ok(true)
    }

    /// Summary of a sub-buffer, of which `see` gets each event. Its classes get into the file.
    fn summarize(
        &mut self,
        sub_buffer: &SubBuffer<'_>,
        found: &mut SubBufferSummary,
        mut see: impl FnMut(u64, &[u8]),
    ) -> Result<()> {
        for item in sub_buffer.items() {
            match item? {
                SubBufferItem::Event { time, record, offset } => {
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
                SubBufferItem::Discarded => found.discarded += 1,
            }
        }
        Ok(())
    }
}
