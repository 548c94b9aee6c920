//! Chunks that a damaged file still holds, from the text alone: steps 1 to 6 of section Recovery.

use super::naive::{Bytes, crc32};

const NO_CPU: u64 = 0xffff_ffff;
const EVENT_BODY_LEN: u64 = 64 << 20;

/// Limits that vectors change.
#[derive(Clone, Copy)]
pub struct ScanLimits {
    pub streams: u64,
    pub records: u64,
    pub chunk_len: u64,
}

/// A file header that passes its checks.
#[derive(Clone, Copy)]
pub struct Header<'a> {
    pub bytes: &'a [u8],
    pub big: bool,
    pub long: usize,
}

/// A chunk that is whole, or the head of one that is not.
pub struct Item<'a> {
    pub at: usize,
    pub header: Bytes<'a>,
    /// The body as it is stored, or as much as there is of it.
    pub stored: Vec<u8>,
    pub is_whole: bool,
}

#[derive(Default)]
pub struct Scan<'a> {
    pub items: Vec<Item<'a>>,
    /// Index of the torn chunk.
    pub torn: Option<usize>,
    pub is_damaged: bool,
}

impl<'a> Header<'a> {
    /// The header, or a copy of it; true if it is a copy.
    pub fn anywhere(data: &'a [u8]) -> Option<(Self, bool)> {
        if let Some(header) = Self::at_start(data) {
            return Some((header, false));
        }
        let is_copy = |at: &usize| {
            data.get(*at..at + 12).is_some_and(|chunk| chunk.starts_with(b"KMTC") && chunk.ends_with(b"HDRC"))
        };
        let mut places = (64..=65_536).step_by(64).filter(is_copy);
        places.find_map(|at| Some((Self::at_start(data.get(at + 64..)?)?, true)))
    }

    fn at_start(data: &'a [u8]) -> Option<Self> {
        let big = match data.get(8..12)? {
            [4, 3, 2, 1] => false,
            [1, 2, 3, 4] => true,
            _ => return None,
        };
        let all = Bytes { data, big };
        if data.len() < 64 || data[..8] != *b"\x89KMT\r\n\x1a\n" || all.number(12, 2) != 1 {
            return None;
        }
        let len = all.u32(16);
        if !(64..=65_536).contains(&len) || len % 64 != 0 || len > data.len() {
            return None;
        }
        let is_right = all.u32(len - 4) as u32 == crc32(&data[..len - 4]);
        let is_known = all.u32(20) <= 1 && matches!(data[30], 4 | 8) && data[34] <= 30;
        (is_right && is_known).then(|| Self { bytes: &data[..len], big, long: data[30].into() })
    }

    /// The sound chunk header that stands there.
    fn chunk(&self, data: &'a [u8], at: usize) -> Option<Bytes<'a>> {
        let header = Bytes { data: data.get(at..at + 64)?, big: self.big };
        let is_start = header.data[..4] == *b"KMTC" && header.data[4..8] == self.bytes[40..44];
        (is_start && header.u32(60) as u32 == crc32(&header.data[..60])).then_some(header)
    }

    /// The first place from there on where a sound chunk header stands, or the end.
    fn next(&self, data: &'a [u8], from: usize) -> usize {
        (from..data.len()).find(|&at| self.chunk(data, at).is_some()).unwrap_or(data.len())
    }
}

impl Item<'_> {
    pub fn kind(&self) -> &[u8] {
        &self.header.data[8..12]
    }

    pub fn is_events(&self) -> bool {
        matches!(self.kind(), b"EVNT" | b"RAWP")
    }

    pub fn cpu(&self) -> u32 {
        self.header.u32(40) as u32
    }

    pub fn sequence(&self) -> u64 {
        self.header.number(44, 4)
    }

    /// The checks for opening an event chunk, but that of its sequence.
    pub fn has_good_head(&self) -> bool {
        let head_len = if self.kind() == b"EVNT" { 96 } else { 72 };
        let prefix_len = self.header.u32(52);
        let prefix = self.stored.get(..prefix_len);
        let lengths = self.header.number(24, 8).max(self.header.number(32, 8));
        prefix.is_some_and(|prefix| crc32(prefix) == self.header.u32(56) as u32)
            && prefix_len >= head_len
            && self.header.number(40, 4) != NO_CPU
            && lengths <= EVENT_BODY_LEN
    }

    pub fn head(&self) -> Bytes<'_> {
        Bytes { data: &self.stored, big: self.header.big }
    }
}

fn has_good_lengths(header: &Bytes<'_>, chunk_len: u64) -> bool {
    let [total, body_len] = [16, 24].map(|at| header.number(at, 8));
    total % 64 == 0
        && (64..=chunk_len).contains(&total)
        && body_len <= total - 64
        && header.number(52, 4) <= body_len
}

pub fn scan<'a>(file: &Header<'a>, data: &'a [u8], chunk_len: u64) -> Scan<'a> {
    let mut out = Scan::default();
    let mut at = file.bytes.len().min(data.len());
    while at < data.len() {
        at = match file.chunk(data, at).filter(|header| has_good_lengths(header, chunk_len)) {
            Some(header) => out.chunk(file, data, at, header),
            None => {
                out.is_damaged = true;
                file.next(data, at + 1)
            }
        };
    }
    out
}

impl<'a> Scan<'a> {
    /// Takes in a chunk with good lengths; returns where to continue.
    fn chunk(&mut self, file: &Header<'a>, data: &'a [u8], at: usize, header: Bytes<'a>) -> usize {
        let [total, body_len] = [16, 24].map(|at| header.number(at, 8) as usize);
        let (rest, crc) = (&data[at + 64..], header.u32(48) as u32);
        let mut item = Item { at, header, stored: Vec::new(), is_whole: true };
        if rest.get(..total - 64).is_some_and(|bytes| crc32(bytes) == crc) {
            item.stored = rest[..body_len].to_vec();
            self.items.push(item);
            return at + total;
        }
        self.is_damaged = true;
        item.stored = rest[..body_len.min(rest.len())].to_vec();
        let mut padded = item.stored.clone();
        padded.resize(total - 64, 0);
        if body_len <= rest.len() && total - 64 - body_len < 64 && crc32(&padded) == crc {
            self.items.push(item);
            return file.next(data, at + 64 + body_len);
        }
        item.is_whole = false;
        if item.is_events() && item.has_good_head() {
            if total - 64 > rest.len() {
                self.torn = Some(self.items.len());
            }
            self.items.push(item);
        }
        file.next(data, at + 1)
    }
}
