//! Accounts over time: at the begin and the end of a recording, and at each reading meanwhile.
//!
//! Texts that the recorder read meanwhile (`record --snapshot-every`) have the times before and after it; those of one reading have
//! the same times. Those that `kmt-capture watch` took before the recording are in the file before its begin. An account that any reading lacks is unknown at all of them: its memory would move into the rest and back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kmt_common::failure::Result;
use kmt_format::read::{Attachment, Metadata};

use super::{Balance, Doubt, SavedText, SavedTexts, Texts, attached};

/// Texts of a reading meanwhile. The other texts do not change.
const MEANWHILE: [&str; 3] = ["meminfo", "zoneinfo", "vmstat"];

/// Accounts at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Time after it was read, by the trace's clock.
    pub time: u64,
    pub balance: Balance,
}

/// All readings of a recording.
#[derive(Debug, Default)]
pub struct Readings {
    /// By time.
    pub readings: Vec<Reading>,
    /// Readings that are left out, as they cannot be parsed.
    pub unread: usize,
    /// The message of the first of these.
    pub first_fault: Option<String>,
}

/// A recording, as far as its readings need it.
pub struct Recording<'m, 'd> {
    /// Name of the recording, for messages.
    pub name: String,
    pub metadata: &'m Metadata<'d>,
    pub page_size: Option<u64>,
    /// Times of the first event and of the last one: the begin was read before, the end after them.
    pub span: (u64, u64),
}

impl Readings {
    /// Readings of a recording, or those of a part of its time.
    pub fn of(recording: &Recording<'_, '_>, window: Option<(u64, u64)>) -> Self {
        let mut all = Self::default();
        let parsed = |saved: &SavedTexts<'_>| Texts::parse(&recording.name, saved, recording.page_size);
        let [begin, end] = ["before", "after"].map(|when| {
            let saved = attached(recording.metadata, when);
            saved.contains_key("meminfo").then(|| parsed(&saved))
        });
        let (begin, end) = match [begin, end].map(|texts| all.taken(texts?)) {
            [Some(begin), Some(end)] => {
                let (begin, end) = Texts::of_two(begin, end);
                (Some(begin), Some(end))
            }
            [begin, end] => (begin, end),
        };
        let mut read = |texts: BTreeMap<(u64, u64), SavedTexts<'_>>| {
            let mut readings = Vec::new();
            for ((until, _), saved) in texts {
                let Some(mut texts) = all.taken(parsed(&saved)) else { continue };
                begin.as_ref().or(end.as_ref()).into_iter().for_each(|known| texts.complete(known));
                readings.push(Reading { time: until, balance: Balance::of(&texts) });
            }
            readings
        };
        let attachments = recording.metadata.attachments.as_slice();
        let start = attachments.iter().position(|attachment| attachment.name == "meminfo.before");
        let (earlier, later) = attachments.split_at(start.unwrap_or(0));
        let (earlier, readings) = (read(meanwhile(earlier)), read(meanwhile(later)));
        // Readings may be before the first event and after the last one.
        let (first, last) = recording.span;
        let first = readings.first().map_or(first, |reading| reading.time.min(first));
        let first = earlier.last().map_or(first, |reading| reading.time.max(first));
        let last = readings.last().map_or(last, |reading| reading.time.max(last));
        let at = |time: u64, texts: &Texts| Reading { time, balance: Balance::of(texts) };
        let begin = begin.iter().map(|texts| at(first, texts));
        let end = end.iter().map(|texts| at(last, texts));
        let is_in = |reading: &Reading| window.is_none_or(|(from, to)| (from..=to).contains(&reading.time));
        all.readings = earlier.into_iter().chain(begin).chain(readings).chain(end).filter(is_in).collect();
        all.align();
        all
    }

    /// The texts; a fault is counted.
    fn taken(&mut self, texts: Result<Texts>) -> Option<Texts> {
        match texts {
            Ok(texts) => Some(texts),
            Err(fault) => {
                self.unread += 1;
                self.first_fault.get_or_insert_with(|| fault.to_string());
                None
            }
        }
    }

    /// Makes accounts comparable: known at all times or at none. A part that is elsewhere at all times is at most the smallest.
    fn align(&mut self) {
        let accounts = self.readings.first().map_or(0, |reading| reading.balance.amounts.len());
        for index in 0..accounts {
            let amounts =
                || self.readings.iter().map(|reading| reading.balance.amounts.get(index).copied().flatten());
            let is_known = amounts().all(|amount| amount.is_some());
            let least = amounts().flatten().map(|amount| amount.doubtful).min().unwrap_or(0);
            for reading in &mut self.readings {
                let Some(slot) = reading.balance.amounts.get_mut(index) else { continue };
                *slot = slot.filter(|_| is_known);
                if let Some(amount) = slot.as_mut().filter(|amount| amount.doubt == Doubt::Constant) {
                    amount.doubtful = least;
                }
            }
        }
    }
}

/// Texts read meanwhile, by the times around each reading, the later one first.
fn meanwhile<'m>(attachments: &'m [Attachment<'_>]) -> BTreeMap<(u64, u64), SavedTexts<'m>> {
    let mut all: BTreeMap<(u64, u64), SavedTexts<'m>> = BTreeMap::new();
    for attachment in attachments {
        let Some((from, to)) = attachment.times.filter(|(from, to)| from <= to) else { continue };
        let Some(name) = MEANWHILE.into_iter().find(|name| *name == attachment.name) else { continue };
        let bytes = Cow::Borrowed(attachment.contents.as_ref());
        let text = SavedText { path: format!("{name} (read meanwhile)"), bytes };
        all.entry((to, from)).or_default().insert(name, text);
    }
    all.retain(|_, saved| saved.contains_key("meminfo"));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::accounts::ACCOUNTS;

    fn meminfo(free: u64, percpu: u64) -> Vec<u8> {
        format!("MemTotal: 1000 kB\nMemFree: {free} kB\nPercpu: {percpu} kB\nVmallocUsed: 9 kB\nKernelStack: 4 kB\n")
            .into_bytes()
    }

    fn found(attachments: Vec<Attachment<'static>>, window: Option<(u64, u64)>) -> Readings {
        let mut metadata = Metadata::default();
        metadata.attachments = attachments;
        let recording =
            Recording { name: "x".to_owned(), metadata: &metadata, page_size: Some(4096), span: (10, 90) };
        Readings::of(&recording, window)
    }

    fn attachment(name: &str, times: Option<(u64, u64)>, contents: Vec<u8>) -> Attachment<'static> {
        let mut made = Attachment::new(name.to_owned(), contents);
        made.times = times;
        made
    }

    fn all() -> Vec<Attachment<'static>> {
        let zones =
            b"Node 0, zone DMA\n  pages free 3\n  managed 250\n  pagesets\n    cpu: 0\n      count: 5\n"
                .to_vec();
        vec![
            attachment("config", None, b"CONFIG_VMAP_STACK=y\n".to_vec()),
            attachment("meminfo.after", None, meminfo(300, 30)),
            attachment("meminfo.before", None, meminfo(600, 20)),
            attachment("zoneinfo.before", None, zones.clone()),
            attachment("zoneinfo.after", None, zones),
            attachment("meminfo", Some((50, 52)), meminfo(400, 40)),
            attachment("meminfo", Some((30, 32)), meminfo(500, 25)),
            attachment("meminfo", Some((70, 72)), b"MemTotal 5\n".to_vec()),
            attachment("vmstat", Some((60, 62)), b"nr_free_pages 5\n".to_vec()),
            attachment("meminfo", None, meminfo(1, 1)),
        ]
    }

    #[test]
    fn readings_are_in_the_order_of_time_with_the_ends() {
        let readings = found(all(), None);
        let index = |key: &str| ACCOUNTS.iter().position(|account| account.key == key).unwrap();
        let amount = |reading: &Reading, key: &str| reading.balance.amounts[index(key)];
        let free = |reading: &Reading| (reading.time, amount(reading, "free").unwrap().most >> 10);
        let times: Vec<(u64, u64)> = readings.readings.iter().map(free).collect();
        assert_eq!(times, [(10, 600), (32, 500), (52, 400), (90, 300)]);
        assert_eq!(readings.unread, 1);
        assert!(readings.first_fault.unwrap().contains("line 1"), "of the broken text");
        for reading in &readings.readings {
            assert_eq!(amount(reading, "percpu").unwrap().doubtful, 20 << 10, "the smallest");
            assert_eq!(amount(reading, "cpu_lists"), None, "two readings have no zoneinfo");
            // config is of all readings.
            assert_eq!(amount(reading, "vmalloc").unwrap().most, 5 << 10);
        }
        let window = found(all(), Some((20, 60)));
        assert_eq!(window.readings.iter().map(|reading| reading.time).collect::<Vec<_>>(), [32, 52]);
        assert!(found(Vec::new(), None).readings.is_empty());
        // Areas of the end are of the begin, too.
        let mut areas = all();
        areas.retain(|attachment| attachment.name != "config");
        let stacks = b"0xa-0xb 20480 dup_task_struct+0x1/0x2 pages=4 vmalloc\n".to_vec();
        areas.push(attachment("vmallocinfo.after", None, stacks));
        for reading in &found(areas, None).readings {
            let vmalloc = amount(reading, "vmalloc").unwrap();
            assert_eq!((vmalloc.most, vmalloc.doubtful), (5 << 10, 0), "{}", reading.time);
        }
        // Samples that were taken before the recording.
        let day = [5, 7].map(|time| attachment("meminfo", Some((time - 1, time)), meminfo(700 - time, 25)));
        let times = found([day.to_vec(), all()].concat(), None).readings;
        let times: Vec<(u64, u64)> = times.iter().map(free).collect();
        assert_eq!(times, [(5, 695), (7, 693), (10, 600), (32, 500), (52, 400), (90, 300)]);
        let late = [all(), vec![attachment("meminfo", Some((95, 97)), meminfo(350, 25))]].concat();
        let times = found(late, None).readings.into_iter().map(|reading| reading.time);
        assert_eq!(times.collect::<Vec<_>>(), [10, 32, 52, 97, 97], "behind the last event");
    }
}
