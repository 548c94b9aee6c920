//! A second recovery, from the text alone: steps 10 to 14 of section Recovery, and the missing events.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::naive::{Bytes, KNOWN};
use super::naive_codecs::decoded;
use super::naive_opened::Opened;
use super::naive_scan::{Item, ScanLimits};
use serde_json::{Value as Json, json};

/// The file that a recovery makes, as the key `recovered` of the vectors has it.
pub fn recovered(data: &[u8], limits: ScanLimits) -> Json {
    let Some(old) = Opened::new(data, limits) else { return Json::Null };
    let kinds = vec!["HDRC".to_owned()];
    let mut recovery = Recovery { old, kinds, heads: Vec::new(), events: Vec::new() };
    recovery.write();
    recovery.json()
}

struct Recovery<'a> {
    old: Opened<'a>,
    kinds: Vec<String>,
    heads: Vec<Json>,
    events: Vec<Json>,
}

impl Recovery<'_> {
    /// Steps 10 to 14.
    fn write(&mut self) {
        let items = std::mem::take(&mut self.old.scan.items);
        let mut written = BTreeSet::new();
        let mut is_new = |item: &Item<'_>| written.insert((item.header.u32(48), item.header.number(24, 8)));
        let schemas: Vec<&Item<'_>> =
            self.old.taken.iter().map(|&i| &items[i]).filter(|item| item.kind() == b"SCHM").collect();
        let (mut has_events, mut last) = (false, BTreeMap::new());
        let torn = self
            .old
            .scan
            .torn
            .filter(|&torn| self.is_behind(&items, torn) && self.old.has_room(&items[torn]));
        if let Some(torn) = torn {
            self.old.count(&items[torn]);
        }
        for (index, item) in items.iter().enumerate() {
            let kind = item.kind().escape_ascii().to_string();
            if !item.is_whole {
                self.write_head(&items, index, &mut last);
                continue;
            }
            if !self.old.taken.contains(&index) {
                continue;
            }
            match item.kind() {
                b"HDRC" | b"INDX" | b"TRLR" => {}
                b"EVNT" | b"RAWP" => {
                    if !std::mem::replace(&mut has_events, true) {
                        let new = schemas.iter().filter(|schema| is_new(schema)).count();
                        self.kinds.extend(vec!["SCHM".to_owned(); new]);
                    }
                    self.write_events(&items, index);
                }
                b"FOLD" => {
                    if !std::mem::replace(&mut has_events, true) {
                        let new = schemas.iter().filter(|schema| is_new(schema)).count();
                        self.kinds.extend(vec!["SCHM".to_owned(); new]);
                    }
                    if self.old.can_read_fold(item) {
                        self.kinds.push(kind);
                    } else {
                        self.old.scan.is_damaged = true;
                    }
                }
                b"SCHM" if !is_new(item) => {}
                other if !KNOWN.contains(&other) && item.header.data[12] & 2 == 0 => {}
                _ => self.kinds.push(kind),
            }
        }
        if let Some(torn) = torn {
            self.write_torn(&items, torn);
        }
        self.kinds.extend(schemas.last().map(|_| "SCHM".to_owned()));
        if self.old.scan.is_damaged || self.missing() != 0 || self.old.trailer.is_none() {
            self.kinds.push("META".to_owned());
        }
        self.kinds.extend(["INDX", "TRLR"].map(str::to_owned));
    }

    /// True if the torn chunk is the last one of its CPU.
    fn is_behind(&self, items: &[Item<'_>], torn: usize) -> bool {
        let last = self.old.streams.get(&items[torn].cpu()).and_then(|list| list.last());
        last.is_none_or(|&last| items[last].sequence() < items[torn].sequence())
    }

    fn write_events(&mut self, items: &[Item<'_>], index: usize) {
        let item = &items[index];
        let read = catch_unwind(AssertUnwindSafe(|| {
            let times = self.old.times(item, &decoded(item.header, &item.stored, self.old.header.long));
            let head = item.head();
            assert_eq!(times.len() as u64, head.number(40, 4));
            assert!(times.last().is_none_or(|&last| last == head.number(24, 8)));
            times
        }));
        match read {
            Ok(times) => {
                let (head, kind) = (item.head(), item.kind().escape_ascii().to_string());
                self.push(item, kind, 0, times.len() as u64, [head.number(16, 8), head.number(24, 8)]);
                self.events.extend(times.iter().map(|time| json!([item.cpu(), time])));
            }
            Err(_) => {
                self.old.scan.is_damaged = true;
                self.write_loss(items, index);
            }
        }
    }

    /// Step 13 for a chunk that is not whole.
    fn write_head(&mut self, items: &[Item<'_>], index: usize, last: &mut BTreeMap<u32, u64>) {
        let item = &items[index];
        let chunks = self.old.streams.get(&item.cpu()).map_or(&[][..], Vec::as_slice);
        let before = chunks.iter().rfind(|&&other| other < index);
        let torn = self.old.scan.torn.filter(|&torn| items[torn].cpu() == item.cpu());
        let behind = chunks.iter().copied().find(|&other| other > index).or(torn);
        let is_in_order = before.is_none_or(|&other| items[other].sequence() < item.sequence())
            && behind.is_none_or(|other| item.sequence() < items[other].sequence())
            && last.get(&item.cpu()).is_none_or(|&last| last < item.sequence());
        if is_in_order && self.old.has_room(item) {
            last.insert(item.cpu(), item.sequence());
            let end = item.head().number(32, 8).saturating_add(item.head().number(40, 4));
            let next = self.old.next.entry(item.cpu()).or_default();
            *next = (*next).max(end);
            self.write_loss(items, index);
        }
    }

    fn write_loss(&mut self, items: &[Item<'_>], index: usize) {
        let item = &items[index];
        if loss_of(item.head()) == (0, 0) {
            return;
        }
        let chunks = self.old.streams.get(&item.cpu()).map_or(&[][..], Vec::as_slice);
        let before = chunks.iter().rfind(|&&other| other < index);
        let time = before.map_or(item.head().number(16, 8), |&other| items[other].head().number(24, 8));
        self.push(item, "EVNT".to_owned(), 8, 0, [time, time]);
    }

    /// Step 12, or else 13.
    fn write_torn(&mut self, items: &[Item<'_>], index: usize) {
        let item = &items[index];
        let body = item.head();
        let (count, records, stride) = (body.u32(40), body.u32(68), 8 + self.old.header.long);
        if item.kind() == b"EVNT" && item.header.data[13] == 0 && has_tables_before(body, records) {
            for taken in (1..=count.min(self.old.limits.records as usize)).rev() {
                let Some(cut) = item.stored.get(..records + taken * stride) else { continue };
                let mut cut = cut.to_vec();
                let number =
                    if body.big { (taken as u32).to_be_bytes() } else { (taken as u32).to_le_bytes() };
                cut[40..44].copy_from_slice(&number);
                let Ok(times) = catch_unwind(AssertUnwindSafe(|| self.old.times(item, &cut))) else {
                    continue;
                };
                self.push(item, "EVNT".to_owned(), 8, taken as u64, [times[0], times[taken - 1]]);
                self.events.extend(times.iter().map(|time| json!([item.cpu(), time])));
                return;
            }
        }
        self.write_loss(items, index);
    }

    fn push(&mut self, item: &Item<'_>, kind: String, flags: u8, count: u64, times: [u64; 2]) {
        let (flags, loss) = (item.header.data[12] | flags, loss_of(item.head()));
        let first_event = item.head().number(32, 8);
        let [first, last] = times;
        self.kinds.push(kind);
        self.heads.push(json!([
            item.cpu(),
            item.sequence(),
            flags,
            first_event,
            count,
            first,
            last,
            loss.0,
            loss.1
        ]));
    }

    fn missing(&self) -> u64 {
        let all = self
            .old
            .trailer
            .unwrap_or_else(|| self.old.next.values().fold(0, |sum, n| sum.saturating_add(*n)));
        all.saturating_sub(self.events.len() as u64)
    }

    fn json(&self) -> Json {
        let missing = json!([self.missing(), self.old.trailer.is_some()]);
        json!({"chunks": self.kinds, "heads": self.heads, "events": self.events, "missing": missing})
    }
}

/// Flags and number of lost events by their meaning.
fn loss_of(head: Bytes<'_>) -> (u32, u64) {
    let flags = head.u32(4) as u32;
    let counted = if flags & 1 == 1 { head.number(8, 8) } else { 0 };
    let uncounted = u32::from(flags & !0xd != 0) << 1;
    (u32::from(counted > 0) | uncounted | flags & 0xc, counted)
}

/// True if all tables of an EVNT body, and the data of descriptors, end in front of the records.
fn has_tables_before(body: Bytes<'_>, records: usize) -> bool {
    let lens = [body.u32(52) * 8, body.u32(44) * 4, body.u32(48) * body.number(82, 2) as usize, body.u32(76)];
    let ends = [56, 60, 64, 72].map(|at| body.u32(at)).into_iter().zip(lens);
    if body.data.len() < records || ends.into_iter().any(|(at, len)| len > 0 && at + len > records) {
        return false;
    }
    (0..body.u32(44)).all(|i| {
        let at = body.u32(body.u32(60) + 4 * i);
        at + 4 <= records && at + 4 + body.number(at + 2, 2) as usize <= records
    })
}
