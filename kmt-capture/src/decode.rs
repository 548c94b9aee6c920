//! Sub-buffers into a file: shared by `convert` and `record`.

use kmt_format::kernel::{ByteOrder, HeaderPage, Item, SubBuffer};
use kmt_format::write::{Loss, Writer, WriterStats};
use kmt_format::{Error, Result};

/// Byte order of this machine, and of the kernel that runs on it.
pub const NATIVE_ORDER: ByteOrder =
    if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

/// Decodes the sub-buffers of one kernel.
#[derive(Debug)]
pub struct SubBufferDecoder {
    /// Layout of sub-buffers.
    pub header_page: HeaderPage,
    /// Byte order of the target.
    pub order: ByteOrder,
    /// True if sub-buffers are kept as the kernel wrote them.
    pub verbatim: bool,
    /// Sum of the losses that sub-buffers were marked with, and of damaged sub-buffers.
    pub lost: Loss,
}

impl SubBufferDecoder {
    /// A decoder that has seen no loss.
    pub fn new(header_page: HeaderPage, order: ByteOrder, verbatim: bool) -> Self {
        Self { header_page, order, verbatim, lost: Loss::default() }
    }

    /// Adds one sub-buffer to `writer`. `see` is called with the time and the record of every event; where it returns
    /// false, the event is left out, unless sub-buffers are kept as they are.
    ///
    /// # Errors
    ///
    /// Returns an error if the sub-buffer cannot be decoded to its end; the events before that place are in the file.
    pub fn sub_buffer(
        &mut self,
        writer: &mut Writer,
        cpu: u32,
        bytes: &[u8],
        stats: &mut WriterStats,
        mut see: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<()> {
        stats.bytes += bytes.len() as u64;
        stats.sub_buffers += 1;
        // Events that `see` was called for.
        let mut seen_events = 0;
        if self.verbatim {
            let see_once = |time, record: &[u8]| {
                seen_events += 1;
                see(time, record);
            };
            if let Ok(found) = writer.sub_buffer_verbatim_with(cpu, bytes, &self.header_page, see_once) {
                self.lost = self.lost.and(found.loss);
                stats.events += found.events;
                stats.discarded += found.discarded;
                return Ok(());
            }
            // A sub-buffer that cannot be decoded to its end is decoded up to the damage.
        }
        let sub_buffer = SubBuffer::parse(bytes, &self.header_page, self.order)?;
        let loss = Loss::from(sub_buffer.missed());
        if !loss.is_none() {
            self.lost = self.lost.and(loss);
            writer.lost(cpu, loss)?;
        }
        for item in sub_buffer.items() {
            match item? {
                Item::Event { time, record, offset } => {
                    // What was seen before is of a verbatim sub-buffer, which leaves nothing out.
                    let is_kept = match seen_events {
                        0 => see(time, record),
                        _ => {
                            seen_events -= 1;
                            true
                        }
                    };
                    if !is_kept {
                        continue;
                    }
                    writer
                        .event(cpu, time, record)
                        .map_err(|e| Error::at(offset as u64, e.kind().clone()))?;
                    stats.events += 1;
                }
                Item::Discarded => stats.discarded += 1,
            }
        }
        Ok(())
    }

    /// Marks in `writer` that input could not be decoded.
    pub fn damaged(&mut self, writer: &mut Writer, cpu: u32) -> Result<()> {
        let loss = Loss::damaged_input();
        self.lost = self.lost.and(loss);
        writer.lost(cpu, loss)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kmt_format::write::WriterOptions;

    use super::*;

    /// Times of the events that `see` is called for, and the counts.
    fn seen(bytes: &[u8], verbatim: bool) -> (Vec<u64>, WriterStats) {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmt-format/tests/data/x86_64-6.1/tracefs/events");
        let text = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
        let header_page = HeaderPage::parse(&text("header_page")).unwrap();
        let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
        for system in std::fs::read_dir(&root).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
            for event in std::fs::read_dir(system.path()).unwrap().flatten() {
                if let Ok(format) = std::fs::read_to_string(event.path().join("format")) {
                    writer.add_format(system.file_name().to_str().unwrap(), &format).unwrap();
                }
            }
        }
        let mut decoder = SubBufferDecoder::new(header_page, ByteOrder::Little, verbatim);
        let (mut times, mut stats) = (Vec::new(), WriterStats::default());
        let _ = decoder.sub_buffer(&mut writer, 0, bytes, &mut stats, |time, _| {
            times.push(time);
            true
        });
        (times, stats)
    }

    #[test]
    fn each_event_is_seen_once_also_before_damage() {
        let path = "../kmt-format/tests/data/x86_64-6.1/tracefs/per_cpu/cpu0/trace_pipe_raw";
        let raw = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let sound = &raw[..4096];
        let (times, stats) = seen(sound, false);
        assert!(times.len() > 20 && stats.events == times.len() as u64);
        assert_eq!(seen(sound, true), (times.clone(), stats));
        // The middle of the data is not a sequence of events.
        let mut damaged = sound.to_vec();
        damaged[2000..2400].fill(0xff);
        let (before, stats) = seen(&damaged, false);
        assert!(!before.is_empty() && before.len() < times.len());
        assert_eq!(seen(&damaged, true), (before, stats));
    }
}
