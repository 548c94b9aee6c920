//! `trace.dat`, versions 6 and 7: where the parts are.
//!
//! Source: trace-cmd 3.4, `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt` and `trace-cmd.dat.v7.5.txt`.

mod buffers;
mod v6;
mod v7;

pub use buffers::{BufferInstance, CpuData, SubBuffers};

use super::bounds::{Bounds, raise};
use super::cursor::{Cursor, ImportError, Result};
use super::inflate::{Codec, Inflating};
use super::tracing_data::{Start, TracingData};
use kmt_format::kernel::ByteOrder;

use self::buffers::CPUS_MAX;

/// A `trace.dat`, all but its events.
#[derive(Debug)]
pub struct TraceDat<'d> {
    bytes: &'d [u8],
    /// Start of the file.
    pub start: Start,
    /// How parts are compressed, if some are.
    pub codec: Option<Codec>,
    /// The target's files.
    pub data: TracingData,
    /// Other facts.
    pub options: TraceDatOptions,
    /// Buffers, the top level first.
    pub instances: Vec<BufferInstance>,
    /// Facts that were left out, with the reason.
    pub notes: Vec<String>,
    /// Bytes of sections read, which are held in memory.
    sections: Inflating,
    /// Bytes of events that were decompressed.
    inflating: Inflating,
    /// CPUs of all buffers.
    cpus: usize,
    /// How much is taken in.
    bounds: Bounds,
}

/// Facts from the options of a trace.dat.
#[derive(Debug, Default, Clone)]
pub struct TraceDatOptions {
    /// `uname`.
    pub uname: Option<String>,
    /// Contents of `trace_clock`.
    pub trace_clock: Option<String>,
    /// `stats` of each CPU, in the order of the CPUs.
    pub cpu_stats: Vec<String>,
    /// Version of trace-cmd.
    pub version: Option<String>,
    /// Names and texts that are kept as they are.
    pub kept: Vec<(&'static str, String)>,
    /// Contents of `/proc/modules`.
    pub modules: Option<Vec<u8>>,
    /// Contents of the kernel's BTF.
    pub btf: Option<Vec<u8>>,
    /// Contents of `last_boot_info`.
    pub last_boot_info: Option<Vec<u8>>,
}

impl<'d> TraceDat<'d> {
    fn too_many_options(&self, offset: u64) -> ImportError {
        ImportError::at(offset, format!("more than {} options; {}", self.bounds.options, raise("options")))
    }

    /// Reads everything but the events. All compressed parts together may hold `inflated_max` bytes, those that are not
    /// events a quarter of it; other parts what `bounds` say.
    ///
    /// # Errors
    ///
    /// Returns the offset at which the file contradicts its format.
    pub fn open(bytes: &'d [u8], inflated_max: u64, bounds: Bounds) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, 0, ByteOrder::Little);
        let start = Start::read(&mut cursor)?;
        let mut file = Self {
            bytes,
            codec: None,
            data: TracingData::new(bounds),
            options: TraceDatOptions::default(),
            instances: Vec::new(),
            notes: Vec::new(),
            sections: Inflating::new("the file's sections", inflated_max / 4),
            inflating: Inflating::new("the file's compressed events", inflated_max),
            cpus: 0,
            bounds,
            start,
        };
        match file.start.version.as_str() {
            "6" => file.read_v6(cursor)?,
            "7" => file.read_v7(cursor)?,
            other => {
                let what = format!("trace.dat version {other:?}; only 6 and 7 are supported");
                return Err(ImportError::at(super::tracing_data::MAGIC.len() as u64, what));
            }
        }
        if file.instances.is_empty() {
            return Err(ImportError::at(
                bytes.len() as u64,
                "the file ends without a buffer: the recording was interrupted, or the file has text only",
            ));
        }
        Ok(file)
    }

    /// Counts the CPUs of a buffer before they are read: buffers whose descriptions overlap have more than fit.
    fn count_cpus(&mut self, count: u32, offset: u64) -> Result<()> {
        /// Bytes that describe one CPU.
        const CPU_LEN: u64 = 16;
        self.cpus = self.cpus.saturating_add(count as usize);
        let most = (self.bytes.len() as u64 / CPU_LEN).max(u64::from(CPUS_MAX));
        if self.cpus as u64 > most {
            return Err(ImportError::at(
                offset,
                format!("{} CPUs of all buffers: more than fit into the file", self.cpus),
            ));
        }
        Ok(())
    }

    /// Takes in one option.
    fn option(&mut self, id: u16, data: &[u8], order: ByteOrder) {
        let text = || String::from_utf8_lossy(data).trim_end_matches(['\0', '\n']).to_owned();
        match id {
            2 => self.options.cpu_stats.push(text()),
            4 => self.options.trace_clock = Some(text()),
            5 => self.options.uname = Some(text()),
            9 => self.options.version = Some(text()),
            1 => self.options.kept.push(("date", text())),
            7 => self.options.kept.push(("offset", text())),
            11 => {
                let id = order.uint(data.get(..8).unwrap_or_default());
                self.options.kept.push(("trace_id", format!("{id:#x}")));
            }
            12 => self.notes.push("times of this guest are not converted to times of its host".to_owned()),
            14 => self.notes.push("TSC times stay in ticks and are not converted to nanoseconds".to_owned()),
            _ => {}
        }
    }
}
