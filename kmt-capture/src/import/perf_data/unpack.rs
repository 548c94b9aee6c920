//! Compressed records: one Zstandard stream through all of them, in which records may be cut anywhere.

use kmt_format::kernel::ByteOrder;

#[cfg(feature = "zstd")]
use super::super::bounds::raise;
use super::super::cursor::{Cursor, ImportError, Result};
use super::super::inflate::Inflating;
use super::records::{Record, Records};

/// Bytes that are decompressed before records are looked for in them.
#[cfg(feature = "zstd")]
const STEP: usize = 1 << 17;

/// The stream.
pub struct Unpack {
    order: ByteOrder,
    /// Budget for all compressed records, in bytes.
    #[cfg_attr(not(feature = "zstd"), allow(dead_code))]
    inflating: Inflating,
    /// Limit for one compressed record, in bytes.
    #[cfg_attr(not(feature = "zstd"), allow(dead_code))]
    record_len_max: u64,
    #[cfg(feature = "zstd")]
    decoder: Option<zstd::stream::raw::Decoder<'static>>,
    /// Decompressed bytes that no record was made of yet.
    held: Vec<u8>,
    /// Where bytes are decompressed to.
    #[cfg(feature = "zstd")]
    room: Vec<u8>,
}

impl Unpack {
    /// At the start of a file whose compressed records may hold `inflated_max` bytes together, one `record_len_max`.
    pub fn new(order: ByteOrder, inflated_max: u64, record_len_max: u64) -> Self {
        Self {
            order,
            inflating: Inflating::new("the compressed records", inflated_max),
            record_len_max,
            #[cfg(feature = "zstd")]
            decoder: None,
            held: Vec::new(),
            #[cfg(feature = "zstd")]
            room: Vec::new(),
        }
    }

    /// Decompresses what a record holds and shows the records in it.
    #[cfg(feature = "zstd")]
    pub fn feed(
        &mut self,
        record: &Record<'_>,
        see: &mut dyn FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()> {
        use zstd::stream::raw::{InBuffer, Operation, OutBuffer};
        let failed = |e: std::io::Error| ImportError::at(record.offset, format!("decompressing: {e}"));
        let packed = self.packed(record)?;
        if self.decoder.is_none() {
            self.decoder = Some(zstd::stream::raw::Decoder::new().map_err(failed)?);
            self.room.resize(STEP, 0);
        }
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let mut input = InBuffer::around(packed);
        let before = self.inflating.used();
        loop {
            let mut output = OutBuffer::around(&mut self.room[..]);
            decoder.run(&mut input, &mut output).map_err(failed)?;
            let made = output.pos();
            self.inflating.take(made as u64, record.offset)?;
            if self.inflating.used().saturating_sub(before) > self.record_len_max {
                let (most, remedy) = (self.record_len_max, raise("compressed_record"));
                let what = format!("more than {most} bytes in one compressed record; {remedy}");
                return Err(ImportError::at(record.offset, what));
            }
            self.held.extend_from_slice(self.room.get(..made).unwrap_or_default());
            let used = whole(&self.held, self.order, record.offset, see)?;
            self.held.drain(..used);
            if made < STEP && input.pos >= packed.len() {
                return Ok(());
            }
            if made == 0 {
                return Err(ImportError::at(record.offset, "the compressed records end too early"));
            }
        }
    }

    /// Without Zstandard.
    #[cfg(not(feature = "zstd"))]
    pub fn feed(&mut self, record: &Record<'_>, _: &mut dyn FnMut(&Record<'_>) -> Result<()>) -> Result<()> {
        let _ = (self.packed(record)?, self.order, &self.held, whole);
        Err(ImportError::at(record.offset, "compressed with zstd; this kmt-capture was built without zstd"))
    }

    fn packed<'r>(&self, record: &Record<'r>) -> Result<&'r [u8]> {
        if record.kind == Record::COMPRESSED {
            return Ok(record.body);
        }
        let mut cursor = Cursor::new(record.body, record.offset, self.order);
        let len = cursor.u64("the size of compressed data")?;
        cursor.take(len, "compressed data")
    }

    /// Bytes that are left of a record that did not come to its end.
    pub fn left(&self) -> usize {
        self.held.len()
    }
}

/// Shows all whole records in `bytes`, and returns how many bytes they have.
fn whole(
    bytes: &[u8],
    order: ByteOrder,
    offset: u64,
    see: &mut dyn FnMut(&Record<'_>) -> Result<()>,
) -> Result<usize> {
    const SIZE_OFFSET: usize = 6;
    let mut used = 0usize;
    while let Some(size) = order.uint_at(bytes, used.saturating_add(SIZE_OFFSET), 2) {
        let len = (size as usize).max(8);
        let Some(one) = bytes.get(used..used.saturating_add(len)) else { break };
        let mut records = Records::new(Cursor::new(one, offset, order));
        if let Some(mut record) = records.next_record().map_err(|f| ImportError::at(offset, f.what))? {
            record.offset = offset;
            see(&record)?;
        }
        used = used.saturating_add(len);
    }
    Ok(used)
}
