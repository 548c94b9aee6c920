//! The ring buffer mapped into our memory: `mmap` of `trace_pipe_raw`, Linux 6.10 and later.
//!
//! Source: `include/uapi/linux/trace_mmap.h`, `ring_buffer_map_get_reader` in kernel/trace/ring_buffer.c, 6.12 to 7.2.

use std::fs::File;
use std::io;
use std::sync::atomic::{Ordering, fence};

use kmt_format::kernel::{ByteOrder, HeaderPage, SubBuffer};
use memmap2::{Mmap, MmapOptions};
use rustix::ioctl::{NoArg, ioctl, opcode};

/// `TRACE_MMAP_IOCTL_GET_READER`.
const GET_READER: rustix::ioctl::Opcode = opcode::none(b'R', 0x20);

/// Places in `struct trace_buffer_meta`.
mod meta {
    pub const PAGE_SIZE: usize = 0;
    pub const SUB_BUFFER_LEN: usize = 8;
    pub const SUB_BUFFERS: usize = 12;
    pub const READER_ID: usize = 24;
    pub const READER_READ: usize = 28;
    pub const LEN: usize = 80;
}

/// A mapped ring buffer, and how far it was read.
#[derive(Debug)]
pub struct Mapped {
    map: Mmap,
    header: HeaderPage,
    order: ByteOrder,
    meta_len: usize,
    /// Which sub-buffer is the reader's, and up to where it was taken.
    reader: Option<(u32, usize)>,
    /// The kernel was asked for the reader's sub-buffer, and what it said was not looked at.
    is_asked: bool,
}

impl Mapped {
    /// Maps the buffer; `None` where the kernel does not offer it.
    pub fn new(file: &File, header: &HeaderPage, order: ByteOrder) -> Option<Self> {
        let first = map(file, header.sub_buffer_len().max(meta::LEN))?;
        let number = |at| order.uint_at(&first, at, 4).unwrap_or(0) as usize;
        let (meta_len, len, count) =
            (number(meta::PAGE_SIZE), number(meta::SUB_BUFFER_LEN), number(meta::SUB_BUFFERS));
        if len != header.sub_buffer_len() || meta_len < meta::LEN || count < 2 {
            return None;
        }
        let map = map(file, count.checked_mul(len)?.checked_add(meta_len)?)?;
        // A 32-bit program on a 64-bit kernel can map but not ask: tracefs has no compat_ioctl.
        let is_asked = match get_reader(file) {
            Ok(()) => true,
            Err(rustix::io::Errno::AGAIN) => false,
            Err(_) => return None,
        };
        Some(Self { map, header: *header, order, meta_len, reader: None, is_asked })
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    fn number(&self, at: usize) -> u32 {
        self.order.uint_at(&self.map, at, 4).unwrap_or(0) as u32
    }

    /// The sub-buffer as `read` would give it, with the events committed since the last call. `None` if there is nothing.
    pub fn next<'b>(&'b mut self, file: &File, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        if !core::mem::take(&mut self.is_asked) {
            match get_reader(file) {
                Ok(()) => {}
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        fence(Ordering::Acquire);
        let (id, read) = (self.number(meta::READER_ID), self.number(meta::READER_READ) as usize);
        // A sub-buffer comes back to the reader only after others were there.
        let taken = self.reader.filter(|(last, taken)| *last == id && *taken <= read).map_or(0, |(_, t)| t);
        if read <= taken {
            return Ok(None);
        }
        self.take(id, taken, read, buffer).map(Some)
    }

    /// Copies the bytes `from..to` of the reader's sub-buffer behind a header of their own.
    fn take<'b>(&mut self, id: u32, from: usize, to: usize, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "the mapped ring buffer is inconsistent");
        let len = self.header.sub_buffer_len();
        let start =
            (id as usize).checked_mul(len).and_then(|at| at.checked_add(self.meta_len)).ok_or_else(bad)?;
        let page = start.checked_add(len).and_then(|end| self.map.get(start..end)).ok_or_else(bad)?;
        let data = self.header.data_offset;
        let commit =
            self.order.uint_at(page, self.header.commit_offset, self.header.commit_size).ok_or_else(bad)?;
        // What was lost stands in the flags of a sub-buffer that was not begun yet, and behind its data.
        const FLAGS: u64 = 0xc000_0000;
        let flags = if from == 0 { commit & FLAGS } else { 0 };
        let counted = if flags == 0 { 0 } else { self.header.commit_size };
        let end = to.saturating_add(counted).min(self.header.data_size);
        let stamp = self.order.uint_at(page, self.header.timestamp_offset, 8).ok_or_else(bad)?;
        let stamp =
            if from == 0 { stamp } else { self.time_at(page, stamp, from, buffer).ok_or_else(bad)? };
        self.head(buffer, stamp, flags | (to - from) as u64).ok_or_else(bad)?;
        let bytes = page.get(data.saturating_add(from)..data.saturating_add(end)).ok_or_else(bad)?;
        put(buffer, data, bytes).ok_or_else(bad)?;
        self.reader = Some((id, to));
        Ok(buffer)
    }

    /// Writes time and commit word of a sub-buffer.
    fn head(&self, buffer: &mut [u8], stamp: u64, commit: u64) -> Option<()> {
        buffer.fill(0);
        let mut word = Vec::with_capacity(8);
        self.order.push(&mut word, stamp, 8);
        put(buffer, self.header.timestamp_offset, &word)?;
        word.clear();
        self.order.push(&mut word, commit, self.header.commit_size);
        put(buffer, self.header.commit_offset, &word)
    }

    /// Time behind the first `len` bytes of a sub-buffer, from which the rest of it counts.
    fn time_at(&self, page: &[u8], stamp: u64, len: usize, buffer: &mut [u8]) -> Option<u64> {
        self.head(buffer, stamp, len as u64)?;
        let data = self.header.data_offset;
        put(buffer, data, page.get(data..data.checked_add(len)?)?)?;
        let mut items = SubBuffer::parse(buffer, &self.header, self.order).ok()?.items();
        items.by_ref().try_for_each(|item| item.map(|_| ())).ok()?;
        Some(items.time())
    }
}

fn put(buffer: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    buffer.get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
    Some(())
}

/// Moves the reader on: behind what it has read, or to the next sub-buffer.
fn get_reader(file: &File) -> rustix::io::Result<()> {
    // SAFETY: the command has no argument, so that the kernel writes to no memory of ours but the map, which is shared
    // with it and read only through slices of plain bytes.
    unsafe { ioctl(file, NoArg::<GET_READER>::new()) }
}

fn map(file: &File, len: usize) -> Option<Mmap> {
    // SAFETY: the map is shared with the kernel, which writes to it while we look. It is only read, through slices of
    // plain bytes, each access checked: a torn or changed number can make decoding fail, not break memory safety. The
    // kernel hands out sub-buffers that it does not write to but for appending behind what it has committed.
    unsafe { MmapOptions::new().len(len).map(file) }.ok()
}
