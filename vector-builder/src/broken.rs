//! A sound file that is changed by hand.

use crate::bytes::{crc32, number, read};
use crate::file::{File, build};
use crate::model::{Layout, Op};

/// A slot: place, bytes stored, transform, base, offset.
pub(crate) type Slot = (u64, u64, u64, usize, u64);

/// A sound file that is changed by hand: it gets a defect, or something that no reader knows.
pub(crate) struct Broken {
    pub file: File,
    big: bool,
}

impl Broken {
    pub fn new(ops: &[Op], layout: Layout) -> Self {
        Self { file: build(ops, layout), big: layout.big }
    }

    /// Start and end of the `nth` chunk of a kind.
    pub fn chunk(&self, kind: &[u8; 4], nth: usize) -> (usize, usize) {
        let chunk = self.file.chunks.iter().filter(|c| c.kind == *kind).nth(nth).expect("the chunk is there");
        (chunk.offset, chunk.end)
    }

    pub fn put(&mut self, at: usize, value: u64, len: usize) {
        let bytes = number(value, len, self.big);
        self.file.bytes[at..at + len].copy_from_slice(&bytes);
    }

    pub fn number(&self, at: usize, len: usize) -> u64 {
        read(&self.file.bytes, at, len, self.big)
    }

    /// Makes the checksums of a chunk right again.
    pub fn stamp(&mut self, offset: usize, end: usize) {
        let crc = crc32(&self.file.bytes[offset + 64..end]);
        self.put(offset + 48, crc.into(), 4);
        let prefix_len = self.number(offset + 52, 4) as usize;
        if offset + 64 + prefix_len <= end {
            let crc = crc32(&self.file.bytes[offset + 64..offset + 64 + prefix_len]);
            self.put(offset + 56, crc.into(), 4);
        }
        self.seal(offset);
    }

    /// Makes the checksum of a header right again, of a chunk or of the file, and leaves all others.
    pub fn seal(&mut self, offset: usize) {
        let crc = crc32(&self.file.bytes[offset..offset + 60]);
        self.put(offset + 60, crc.into(), 4);
    }

    /// A field of a chunk header; returns where the chunk starts.
    pub fn header(&mut self, kind: &[u8; 4], nth: usize, at: usize, value: u64, len: usize) -> u64 {
        let (offset, end) = self.chunk(kind, nth);
        self.put(offset + at, value, len);
        self.stamp(offset, end);
        offset as u64
    }

    /// A field of a body; returns where the body starts.
    pub fn body(&mut self, kind: &[u8; 4], nth: usize, at: usize, value: u64, len: usize) -> u64 {
        let (offset, end) = self.chunk(kind, nth);
        self.put(offset + 64 + at, value, len);
        self.stamp(offset, end);
        offset as u64 + 64
    }

    /// A field of the file header, and of its copy.
    pub fn file_header(&mut self, at: usize, value: u64, len: usize) {
        for start in [0, 128] {
            self.put(start + at, value, len);
            let crc = crc32(&self.file.bytes[start..start + 60]);
            self.put(start + 60, crc.into(), 4);
        }
        self.stamp(64, 192);
    }

    /// Offset, in the body of an event chunk, that its head gives at `at`.
    pub fn place(&self, nth: usize, at: usize) -> usize {
        let (offset, _) = self.chunk(b"EVNT", nth);
        self.number(offset + 64 + at, 4) as usize
    }

    /// Offset of a slot in the body of the `nth` SCHM chunk: of a field of a class, in one of its three shapes.
    pub fn slot(&self, nth: usize, class: usize, shape: usize, field: usize) -> Option<usize> {
        let (offset, _) = self.chunk(b"SCHM", nth);
        let head = |at: usize, len: usize| self.number(offset + 64 + at, len) as usize;
        let class = class.checked_sub(head(4, 4)).filter(|class| *class < head(12, 4))?;
        let [class_len, field_len, shape_len, slot_len] = [32, 34, 36, 38].map(|at| head(at, 2));
        let shapes_at = head(0, 4) + head(12, 4) * class_len + head(16, 4) * field_len;
        let slots_at = shapes_at + head(20, 4) * shape_len;
        Some(slots_at + (head(shapes_at + (class * 3 + shape) * shape_len + 4, 4) + field) * slot_len)
    }

    /// Changes the slot of a field in one of the three shapes of a class, in all SCHM chunks.
    pub fn set_slot(&mut self, (class, shape, field): (usize, usize, usize), slot: Slot) {
        let (place, stored, transform, base, offset) = slot;
        for nth in 0..self.file.chunks.iter().filter(|c| c.kind == *b"SCHM").count() {
            let Some(at) = self.slot(nth, class, shape, field) else { continue };
            for (i, value) in [place, stored, transform, base as u64].into_iter().enumerate() {
                self.body(b"SCHM", nth, at + i, value, 1);
            }
            self.body(b"SCHM", nth, at + 4, offset, 4);
        }
    }

    /// Changes a part of the row of a field, in all SCHM chunks that define its class.
    pub fn set_field(&mut self, (class, field): (usize, usize), at: usize, value: u64, len: usize) {
        for nth in 0..self.file.chunks.iter().filter(|c| c.kind == *b"SCHM").count() {
            let (offset, _) = self.chunk(b"SCHM", nth);
            let head = |at: usize, len: usize| self.number(offset + 64 + at, len) as usize;
            let (first, count) = (head(4, 4), head(12, 4));
            let Some(row) = class.checked_sub(first).filter(|row| *row < count) else { continue };
            let fields_at = head(0, 4) + count * head(32, 2);
            let first_field = head(head(0, 4) + row * head(32, 2) + 8, 4);
            let field_len = head(34, 2);
            self.body(b"SCHM", nth, fields_at + (first_field + field) * field_len + at, value, len);
        }
    }

    /// Gives a body without a codec another length; its chunk keeps its own.
    pub fn resize(&mut self, kind: &[u8; 4], nth: usize, len: usize) -> u64 {
        self.header(kind, nth, 24, len as u64, 8);
        self.header(kind, nth, 32, len as u64, 8)
    }

    /// What a body without a codec has behind its prefix.
    pub fn rest(&self, kind: &[u8; 4], nth: usize) -> Vec<u8> {
        let (offset, _) = self.chunk(kind, nth);
        let [prefix_len, body_len] =
            [(52, 4), (24, 8)].map(|(at, len)| self.number(offset + at, len) as usize);
        self.file.bytes[offset + 64 + prefix_len..offset + 64 + body_len].to_vec()
    }

    /// Stores other bytes behind the prefix of a body, with a codec and a filter; its decoded length stays. The chunks
    /// behind it move, so that counts of a trailer no longer hold.
    pub fn store(&mut self, kind: &[u8; 4], nth: usize, codec: u64, stored: &[u8]) -> u64 {
        let (offset, end) = self.chunk(kind, nth);
        let prefix_len = self.number(offset + 52, 4) as usize;
        let body_len = prefix_len + stored.len();
        let new_end = (offset + 64 + body_len).next_multiple_of(64);
        let mut bytes = stored.to_vec();
        bytes.resize(new_end - offset - 64 - prefix_len, 0);
        self.file.bytes.splice(offset + 64 + prefix_len..end, bytes);
        for chunk in self.file.chunks.iter_mut().filter(|c| c.end >= end) {
            chunk.offset = if chunk.offset > offset { chunk.offset - end + new_end } else { offset };
            chunk.end = chunk.end - end + new_end;
        }
        self.put(offset + 13, codec, 1);
        self.put(offset + 16, (new_end - offset) as u64, 8);
        self.put(offset + 24, body_len as u64, 8);
        self.stamp(offset, new_end);
        offset as u64
    }

    /// Gives the file header another length, without a trailer that counts; the copy of it stays.
    pub fn lengthen_header(&mut self, len: usize) {
        self.put(16, len as u64, 4);
        self.file.bytes.splice(60..64, vec![0; len - 60]);
        let crc = crc32(&self.file.bytes[..len - 4]);
        self.put(len - 4, crc.into(), 4);
        for chunk in &mut self.file.chunks {
            (chunk.offset, chunk.end) = (chunk.offset + len - 64, chunk.end + len - 64);
        }
    }

    /// Removes a chunk; the others keep their numbers.
    pub fn remove(&mut self, kind: &[u8; 4], nth: usize) {
        let (start, end) = self.chunk(kind, nth);
        self.file.bytes.drain(start..end);
        self.file.chunks.retain(|c| c.offset != start);
        for chunk in self.file.chunks.iter_mut().filter(|c| c.offset > start) {
            (chunk.offset, chunk.end) = (chunk.offset - (end - start), chunk.end - (end - start));
        }
    }
}
