//! Version 6: one part after another.

use super::super::cursor::{Cursor, ImportError, Result};
use super::super::tracing_data::TracingData;
use super::TraceDat;
use super::buffers::{BufferInstance, CPUS_MAX, CpuData};

/// Sections after the metadata, or at an option's offset.
enum Tag {
    TraceDatOptions,
    Latency,
    Flyrecord,
}

impl TraceDat<'_> {
    pub(super) fn read_v6(&mut self, mut cursor: Cursor<'_>) -> Result<()> {
        self.data = TracingData::read_in_a_row(&mut cursor, self.bounds)?;
        self.data.read_cmdlines(&mut cursor)?;
        let offset = cursor.offset();
        let cpus = cursor.u32("the number of CPUs")?;
        if cpus > CPUS_MAX {
            return Err(ImportError::at(offset, format!("{cpus} CPUs: more than {CPUS_MAX}")));
        }
        let mut cpus_counted = cpus;
        let mut named = Vec::new();
        loop {
            let offset = cursor.offset();
            match tag(&mut cursor)? {
                Tag::TraceDatOptions => self.v6_options(&mut cursor, &mut named, &mut cpus_counted)?,
                Tag::Latency => return Err(text_only(offset)),
                Tag::Flyrecord => break,
            }
        }
        self.count_cpus(cpus, cursor.offset())?;
        let top = flyrecord(&mut cursor, cpus, String::new())?;
        self.instances.push(top);
        for (offset, name) in named {
            let mut cursor = cursor.seek(offset, "a buffer")?;
            let offset = cursor.offset();
            match tag(&mut cursor)? {
                Tag::TraceDatOptions => {
                    return Err(ImportError::at(offset, "options instead of a buffer"));
                }
                Tag::Latency => return Err(text_only(offset)),
                Tag::Flyrecord => {}
            }
            let cpus = cpus_counted.max(cpus);
            self.count_cpus(cpus, cursor.offset())?;
            self.instances.push(flyrecord(&mut cursor, cpus, name)?);
        }
        Ok(())
    }

    fn v6_options(
        &mut self,
        cursor: &mut Cursor<'_>,
        named: &mut Vec<(u64, String)>,
        cpus: &mut u32,
    ) -> Result<()> {
        for _ in 0..self.bounds.options {
            let id = cursor.u16("an option")?;
            if id == 0 {
                return Ok(());
            }
            let len = cursor.u32("the size of an option")?;
            let offset = cursor.offset();
            let data = cursor.take(len.into(), "an option")?;
            let mut inner = Cursor::new(data, offset, cursor.order);
            match id {
                3 => {
                    let at = inner.u64("the offset of a buffer")?;
                    named.push((at, inner.text("the name of a buffer")?));
                }
                8 => *cpus = inner.u32("a number of CPUs")?.min(CPUS_MAX),
                _ => self.option(id, data, cursor.order),
            }
        }
        Err(self.too_many_options(cursor.offset()))
    }
}

fn text_only(offset: u64) -> ImportError {
    ImportError::at(
        offset,
        "the file has a latency trace, which is text: convert the output of `trace-cmd report` instead",
    )
}

fn tag(cursor: &mut Cursor<'_>) -> Result<Tag> {
    let offset = cursor.offset();
    let bytes = cursor.take(10, "a tag")?;
    match bytes.split(|&b| b == 0).next().unwrap_or_default().trim_ascii_end() {
        b"options" => Ok(Tag::TraceDatOptions),
        b"latency" => Ok(Tag::Latency),
        b"flyrecord" => Ok(Tag::Flyrecord),
        _ => {
            let found = String::from_utf8_lossy(bytes).into_owned();
            Err(ImportError::at(
                offset,
                format!("unknown tag {found:?}; options, latency or flyrecord is needed"),
            ))
        }
    }
}

fn flyrecord(cursor: &mut Cursor<'_>, cpus: u32, name: String) -> Result<BufferInstance> {
    let mut instance =
        BufferInstance { name, clock: None, page_size: None, cpus: Vec::new(), is_compressed: false };
    for cpu in 0..cpus {
        let offset = cursor.u64("the offset of a CPU's data")?;
        let len = cursor.u64("the length of a CPU's data")?;
        instance.cpus.push(CpuData { cpu, offset, len });
    }
    Ok(instance)
}
