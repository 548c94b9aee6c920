//! Chunks of a damaged file that a recovery may use, from the text alone: steps 7 and 8 of section Recovery.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::naive::{Bytes, Class, File, KNOWN, Shape, crc32, schema};
use super::naive_codecs::decoded;
use super::naive_events::events;
use super::naive_folds::fold;
use super::naive_metadata;
use super::naive_raw::sub_buffers;
use super::naive_scan::{Header, Item, Scan, ScanLimits, scan};
use serde_json::Map;

pub struct Opened<'a> {
    pub header: Header<'a>,
    pub scan: Scan<'a>,
    /// Indices of the chunks that count, by CPU.
    pub streams: BTreeMap<u32, Vec<usize>>,
    /// Indices of all chunks that were taken.
    pub taken: BTreeSet<usize>,
    /// event_count of the trailer, if the file is finished.
    pub trailer: Option<u64>,
    /// Number that the next event of a CPU has.
    pub next: BTreeMap<u32, u64>,
    /// Most CPUs that count.
    pub limits: ScanLimits,
    /// Lowest number that the next interval of folded lives may have.
    next_fold: u64,
    classes: BTreeMap<usize, Class>,
    shapes: BTreeMap<usize, Shape>,
}

impl<'a> Opened<'a> {
    /// `None` if the file is refused.
    pub fn new(data: &'a [u8], limits: ScanLimits) -> Option<Self> {
        let (header, is_copy) = Header::anywhere(data)?;
        let mut opened = Self {
            header,
            scan: scan(&header, data, limits.chunk_len),
            streams: BTreeMap::new(),
            taken: BTreeSet::new(),
            trailer: None,
            next: BTreeMap::new(),
            limits,
            next_fold: 0,
            classes: BTreeMap::new(),
            shapes: BTreeMap::new(),
        };
        opened.scan.is_damaged |= is_copy;
        opened.open(data)?;
        Some(opened)
    }

    /// Steps 7 and 8; `None` if the file is refused.
    fn open(&mut self, data: &[u8]) -> Option<()> {
        let items = std::mem::take(&mut self.scan.items);
        let (mut events_len, mut counts) = (0, (0u64, 0, 0));
        for (index, item) in items.iter().enumerate().filter(|(_, item)| item.is_whole) {
            let (total, raw_len) = (item.header.number(16, 8), item.header.number(32, 8));
            counts.0 += 1;
            self.trailer = None;
            let is_known = KNOWN.contains(&item.kind());
            if !is_known && item.header.data[12] & 1 != 0 {
                return None;
            }
            if item.is_events() && raw_len <= 64 << 20 {
                events_len += raw_len;
                if events_len > (64 << 20) + 16 * (item.at as u64 + total) {
                    return None;
                }
            }
            let is_right = match item.is_events() {
                true => self.add_events(index, item, &items),
                false if item.kind() == b"FOLD" => self.add_fold(item),
                false => !is_known || catch_unwind(AssertUnwindSafe(|| self.open_other(item))).is_ok(),
            };
            if !is_right {
                self.scan.is_damaged = true;
                continue;
            }
            self.taken.insert(index);
            if item.kind() == b"TRLR" {
                let body = item.head();
                self.trailer = Some(body.number(16, 8));
                counts = (counts.0, body.number(4, 4), body.number(8, 8));
            }
        }
        if self.trailer.is_some() && (counts.0, data.len() as u64) != (counts.1, counts.2) {
            self.scan.is_damaged = true;
        }
        self.scan.items = items;
        Some(())
    }

    fn add_events(&mut self, index: usize, item: &Item<'a>, items: &[Item<'a>]) -> bool {
        let last = self.streams.get(&item.cpu()).and_then(|list| list.last());
        let rises = last.is_none_or(|&last| items[last].sequence() < item.sequence());
        if item.has_good_head() && self.has_room(item) && rises {
            self.streams.entry(item.cpu()).or_default().push(index);
            self.count(item);
            return true;
        }
        false
    }

    /// The checks for opening a chunk of folded lives.
    fn add_fold(&mut self, item: &Item<'_>) -> bool {
        let (body, prefix_len) = (item.head(), item.header.u32(52));
        let is_announced = self.header.bytes[if self.header.big { 23 } else { 20 }] & 1 == 1;
        let has_prefix = prefix_len >= 88 && crc32(&item.stored[..prefix_len]) == item.header.u32(56) as u32;
        let is_right = is_announced
            && has_prefix
            && body.u32(0) >= 88
            && body.number(16, 8) <= body.number(24, 8)
            && body.number(8, 8) >= self.next_fold;
        if is_right {
            self.next_fold = body.number(8, 8) + 1;
        }
        is_right
    }

    /// True if the folded lives of a chunk can be read.
    pub fn can_read_fold(&self, item: &Item<'_>) -> bool {
        let read = || {
            let body = decoded(item.header, &item.stored, self.header.long);
            let body = Bytes { data: &body, big: self.header.big };
            let mut file = File { big: self.header.big, long: self.header.long, ..File::default() };
            fold(body, &self.classes, &self.shapes, &mut file);
        };
        catch_unwind(AssertUnwindSafe(read)).is_ok()
    }

    /// A chunk of another known kind; panics if it is damaged.
    fn open_other(&mut self, item: &Item<'_>) {
        if item.header.data[13] == 0 {
            assert_eq!(item.header.number(24, 8), item.header.number(32, 8));
        }
        let body = decoded(item.header, &item.stored, self.header.long);
        let body = Bytes { data: &body, big: self.header.big };
        match item.kind() {
            b"SCHM" => schema(body, &mut self.classes, &mut self.shapes),
            kind => naive_metadata::chunk(&String::from_utf8_lossy(kind), body, &mut Map::new()),
        }
    }

    pub fn count(&mut self, item: &Item<'_>) {
        let next = self.next.entry(item.cpu()).or_default();
        *next = (*next).max(item.head().number(32, 8)).saturating_add(item.head().number(40, 4));
    }

    /// Times of the events of a body; panics if they cannot be read.
    pub fn times(&self, item: &Item<'_>, body: &[u8]) -> Vec<u64> {
        let body = Bytes { data: body, big: self.header.big };
        let mut file = File { big: self.header.big, long: self.header.long, ..File::default() };
        match item.kind() {
            b"EVNT" => events(body, item.cpu(), &self.classes, &self.shapes, &mut file),
            _ => sub_buffers(body, item.cpu(), &self.classes, &mut file),
        }
        let times: Vec<u64> =
            file.events.remove(&item.cpu()).unwrap_or_default().iter().map(|e| e.time).collect();
        let base = body.number(16, 8);
        assert!(times.first().is_none_or(|&first| first == base));
        assert!(times.windows(2).all(|w| w[0].wrapping_sub(base) <= w[1].wrapping_sub(base)));
        times
    }

    /// True if the CPU of a chunk counts already, or may.
    pub fn has_room(&self, item: &Item<'_>) -> bool {
        self.next.contains_key(&item.cpu()) || self.next.len() < self.limits.streams as usize
    }
}
