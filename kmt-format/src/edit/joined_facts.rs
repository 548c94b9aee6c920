//! Keys, attached files and counters of a recording in several files. Format-spec/registry.md has the keys.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::error::Result;
use crate::kernel::CpuStats;
use crate::read::recovering::Contents;
use crate::read::{CpuCounters, EarlyEnd, Metadata};
use crate::write::{StatsTaken, Writer, WriterStats};

/// Key of the number of a file in its recording.
pub(super) const PART_KEY: &str = "record.part";
/// Keys of which all pairs count.
const SEVERAL: [&str; 5] = [EarlyEnd::KEY, "clock.pair", "record.stop_when", "record.note", "record.changed"];
/// Numbers of each file that add up.
const SUMS: [&str; 4] = ["recorder.events", "recorder.length_ns", "recorder.cpu_ns", "recorder.snapshots_ns"];
/// Values that each file has since the begin of the recording, or that only the last one knows.
const LAST: [&str; 3] = ["recorder.rss_peak_kib", "recorder.filtered_events", "recorder.probe_missed"];

/// Writes the facts of the files of a recording, which are in their order.
pub(super) fn write_facts<'c, 'd: 'c>(
    parts: impl Iterator<Item = &'c Contents<'d>>,
    writer: &mut Writer,
) -> Result<()> {
    let parts: Vec<&Contents<'d>> = parts.collect();
    let facts: Vec<&Metadata<'d>> = parts.iter().map(|contents| &contents.metadata).collect();
    let mut pairs = pairs(&facts);
    for contents in parts.iter().filter(|contents| !contents.finished) {
        let end = EarlyEnd::of(contents);
        pairs.extend(end.map(|end| (EarlyEnd::KEY.to_owned(), end.to_text().into_bytes())));
    }
    let pairs: Vec<(&str, &[u8])> = pairs.iter().map(|(key, value)| (&**key, &**value)).collect();
    writer.add_metadata(&pairs)?;
    files(&facts, writer)?;
    counters(&facts, writer)
}

/// Keys and values: of most keys the first value counts.
fn pairs(parts: &[&Metadata<'_>]) -> Vec<(String, Vec<u8>)> {
    let mut out: Vec<(String, Vec<u8>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut numbers: Vec<&str> = Vec::new();
    for part in parts {
        numbers.extend(part.text(PART_KEY));
        for (key, value) in part.pairs.iter().filter(|(key, _)| key != PART_KEY) {
            let known = places.get(&**key).and_then(|&at| out.get_mut(at));
            match known.filter(|_| !SEVERAL.contains(&&**key)) {
                None => {
                    places.insert(key, out.len());
                    out.push((key.to_string(), value.to_vec()));
                }
                Some((_, known)) if SUMS.contains(&&**key) => {
                    if let (Some(sum), Some(more)) = (number(known), number(value)) {
                        *known = sum.saturating_add(more).to_string().into_bytes();
                    }
                }
                Some((_, known)) if LAST.contains(&&**key) => *known = value.to_vec(),
                Some(_) => {}
            }
        }
    }
    let first = numbers.first().and_then(|part| part.split('-').next());
    let last = numbers.last().and_then(|part| part.split('-').next_back());
    if let (Some(first), Some(last)) = (first, last) {
        out.push((PART_KEY.to_owned(), format!("{first}-{last}").into_bytes()));
    }
    out
}

fn number(value: &[u8]) -> Option<u64> {
    core::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Attached files: the state at the begin is that of the first file, the state at the end that of the last one.
fn files(parts: &[&Metadata<'_>], writer: &mut Writer) -> Result<()> {
    let mut written = HashSet::new();
    for (at, part) in parts.iter().enumerate() {
        let (is_first, is_last) = (at == 0, at.saturating_add(1) == parts.len());
        for file in &part.attachments {
            let (name, contents) = (&*file.name, &*file.contents);
            let is_of_whole =
                (is_first || !name.ends_with(".before")) && (is_last || !name.ends_with(".after"));
            if is_of_whole && (file.times.is_some() || written.insert((name, contents))) {
                writer.add_file_at(name, contents, file.times)?;
            }
        }
    }
    Ok(())
}

/// Counters: those that only grow add up, the others are those of the last file.
fn counters(parts: &[&Metadata<'_>], writer: &mut Writer) -> Result<()> {
    let (mut before, mut after): (BTreeMap<u32, CpuStats>, BTreeMap<u32, CpuStats>) = Default::default();
    let mut written: BTreeMap<u32, WriterStats> = BTreeMap::new();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at.saturating_add(1) == parts.len();
        for (&cpu, counters) in &part.counters {
            let ended = counters.after.or(counters.before);
            add(&mut before, cpu, if is_last { counters.before } else { ended });
            add(&mut after, cpu, if is_last { counters.after } else { ended });
            if let Some(sums) = of_writer(counters) {
                let all = written.entry(cpu).or_default();
                all.events = all.events.saturating_add(sums.events);
                all.bytes = all.bytes.saturating_add(sums.bytes);
                all.sub_buffers = all.sub_buffers.saturating_add(sums.sub_buffers);
                all.sub_buffers_damaged = all.sub_buffers_damaged.saturating_add(sums.sub_buffers_damaged);
                all.discarded = all.discarded.saturating_add(sums.discarded);
            }
        }
    }
    // A recorder that was killed wrote none at the end.
    let ended = |part: &&Metadata<'_>| part.counters.values().any(|counters| counters.after.is_some());
    if !parts.last().is_some_and(ended) {
        after.clear();
    }
    for (taken, rows) in [(StatsTaken::Before, before), (StatsTaken::After, after)] {
        let rows: Vec<(u32, CpuStats)> = rows.into_iter().collect();
        if !rows.is_empty() {
            writer.add_stats(taken, &rows)?;
        }
    }
    let written: Vec<(u32, WriterStats)> = written.into_iter().collect();
    if written.is_empty() { Ok(()) } else { writer.add_writer_stats(&written) }
}

fn add(sums: &mut BTreeMap<u32, CpuStats>, cpu: u32, more: Option<CpuStats>) {
    let Some(mut now) = more else { return };
    if let Some(sum) = sums.get(&cpu) {
        for (to, from) in [
            (&mut now.overrun, sum.overrun),
            (&mut now.commit_overrun, sum.commit_overrun),
            (&mut now.dropped, sum.dropped),
            (&mut now.read, sum.read),
        ] {
            *to = to.zip(from).map(|(to, from)| to.saturating_add(from));
        }
    }
    sums.insert(cpu, now);
}

fn of_writer(counters: &CpuCounters) -> Option<WriterStats> {
    let writer = counters.writer?;
    Some(WriterStats {
        events: writer.events.unwrap_or(0),
        bytes: writer.bytes.unwrap_or(0),
        sub_buffers: writer.sub_buffers.unwrap_or(0),
        sub_buffers_damaged: writer.sub_buffers_damaged.unwrap_or(0),
        discarded: writer.discarded.unwrap_or(0),
    })
}
