//! The target as the saved files describe it, and missing facts.

use kmt_format::kernel::{
    ByteOrder, HeaderPage, KernelVersion, OrderVote, TraceClock, Uname, page_size_from_snapshots,
    vote_byte_order,
};

use super::directory::{CpuFiles, Directory};
use crate::failure::{Failure, Result};

/// Sub-buffers of each CPU that vote on the byte order.
const ORDER_SAMPLES: usize = 16;

/// The target as its files describe it.
#[derive(Debug)]
pub struct Target {
    /// Layout of sub-buffers.
    pub header_page: HeaderPage,
    /// Byte order.
    pub order: ByteOrder,
    /// Output of `uname -a`.
    pub uname_text: Option<String>,
    /// Page size in bytes, and how it is known.
    pub page_size: Option<(u64, &'static str)>,
    /// The trace clock.
    pub clock: Option<TraceClock>,
    /// Missing facts and their consequences, a sentence each.
    pub notes: Vec<String>,
}

impl Target {
    /// Reads the files that exist. `knows_id` is true for an event id with a format.
    pub fn read(directory: &Directory, cpus: &[CpuFiles], knows_id: impl Fn(u16) -> bool) -> Result<Self> {
        let header_page = header_page(directory)?;
        let order = byte_order(directory, cpus, &header_page, knows_id)?;
        let mut notes = Vec::new();
        let uname_text = match directory.target_text("uname")? {
            Some(text) => Some(text),
            None => directory.target_text("version")?,
        };
        let uname = uname_text.as_deref().and_then(Uname::parse);
        if uname.is_none() {
            notes.push("no uname: flag columns and widths follow the newest kernel".to_owned());
        }
        let page_size = page_size(directory, &header_page, uname.as_ref())?;
        match page_size {
            None => notes.push("no pagesize: the page size is assumed to be 4096 bytes".to_owned()),
            Some((size, how)) if how != "pagesize" => {
                notes.push(format!("no pagesize: {size} bytes, from {how}"))
            }
            Some(_) => {}
        }
        let clock = directory.text("trace_clock")?.as_deref().and_then(TraceClock::parse);
        if clock.is_none() {
            notes.push("no trace_clock: time stamps are assumed to be in nanoseconds".to_owned());
        }
        if cpus.iter().any(|c| c.stats.is_none()) {
            notes.push("no stats: only losses marked in sub-buffers are known".to_owned());
        }
        for (name, consequence) in [
            ("saved_cmdlines", "tasks have no names"),
            ("trace_options", "text options are assumed to be the kernel's defaults"),
        ] {
            if directory.bytes(name)?.is_none() {
                notes.push(format!("no {name}: {consequence}"));
            }
        }
        Ok(Self { header_page, order, uname_text, page_size, clock, notes })
    }
}

fn header_page(directory: &Directory) -> Result<HeaderPage> {
    let path = directory.root().join("events/header_page");
    let hint = "copy events/header_page of the traced kernel: it has the size of sub-buffers and of long";
    let text = directory
        .text("events/header_page")?
        .ok_or_else(|| Failure::new(format!("{} is missing", path.display())).hint(hint))?;
    HeaderPage::parse(&text).map_err(|e| Failure::new(format!("{}: {e}", path.display())).hint(hint))
}

/// Byte order by votes of the first sub-buffers of every CPU.
fn byte_order(
    directory: &Directory,
    cpus: &[CpuFiles],
    header_page: &HeaderPage,
    knows_id: impl Fn(u16) -> bool,
) -> Result<ByteOrder> {
    let mut strict = OrderVote::default();
    let mut lenient = OrderVote::default();
    for cpu in cpus {
        let mut raw = directory.raw(cpu, header_page.sub_buffer_len())?;
        let mut sub_buffer = vec![0; header_page.sub_buffer_len()];
        for _ in 0..ORDER_SAMPLES {
            let (_, len) = raw.next(&mut sub_buffer).map_err(|e| Failure::io("reading", &cpu.raw, &e))?;
            if len == 0 {
                break;
            }
            let sample = sub_buffer.get(..len).unwrap_or_default();
            vote_byte_order(&mut strict, sample, header_page, &knows_id);
            vote_byte_order(&mut lenient, sample, header_page, |_| true);
        }
    }
    // Where no event has a format the lengths alone decide, so that the missing format can be named.
    strict.winner().or(lenient.winner()).ok_or_else(|| {
        let bytes: u64 = cpus.iter().map(|c| c.raw_len).sum();
        if bytes == 0 {
            Failure::new(format!(
                "the ring buffers are empty: all {} trace_pipe_raw files have length 0",
                cpus.len()
            ))
            .hint("read trace_pipe_raw before the buffer is cleared; its events can be read only once")
        } else {
            Failure::new("no sub-buffer has events, so the byte order is unknown").hint(
                "the buffers were empty when they were copied, or events/header_page is from another kernel \
                 or for another size of sub-buffers",
            )
        }
    })
}

/// The page size recorded on the target; else computed from other files. Sub-buffers were pages before 6.8.
fn page_size(
    directory: &Directory,
    header_page: &HeaderPage,
    uname: Option<&Uname>,
) -> Result<Option<(u64, &'static str)>> {
    if let Some(size) = directory.target_text("pagesize")?.and_then(|t| t.trim().parse::<u64>().ok()) {
        return Ok(Some((size, "pagesize")).filter(|_| size.is_power_of_two()));
    }
    for when in [".before", ".after", ""] {
        let pair = directory
            .target_text(&format!("meminfo{when}"))?
            .zip(directory.target_text(&format!("vmstat{when}"))?);
        if let Some(size) = pair.and_then(|(meminfo, vmstat)| page_size_from_snapshots(&meminfo, &vmstat)) {
            return Ok(Some((size, "meminfo and vmstat")));
        }
    }
    let version = uname.and_then(Uname::version);
    let sub_buffer_is_page = version.is_some_and(|v| v < KernelVersion::new(6, 8))
        && directory.bytes("buffer_subbuf_size_kb")?.is_none();
    Ok(sub_buffer_is_page.then_some((header_page.sub_buffer_len() as u64, "the size of a sub-buffer")))
}
