//! Samples of memory from before a recording: `watch` keeps them and gives them to its recorder, which stores them in the file.
//! `kmt-analyze timeline --by account` shows them: the day before.
//!
//! A sample is meminfo, and of zoneinfo and vmstat the lines that accounts of memory are made of. They are handed over on standard
//! input, as `NAME BEFORE AFTER LENGTH` and the text, with times of CLOCK_MONOTONIC in nanoseconds: the trace clock `mono`.

use std::collections::VecDeque;
use std::fmt::Write as _;

use kmt_format::write::Writer;

/// Names of the texts, and the words of the lines that are kept; none: all.
const TEXTS: [(&str, &[&str]); 3] = [
    ("meminfo", &[]),
    ("zoneinfo", &["Node", "managed", "count:"]),
    (
        "vmstat",
        &[
            "nr_free_pages",
            "nr_zone_inactive_anon",
            "nr_zspages",
            "nr_memmap_pages",
            "balloon_inflate",
            "balloon_deflate",
        ],
    ),
];

/// Name of the text that has the growth for which a recording was made.
pub const FINDING: &str = "watch.finding";

/// Samples that are kept, and bytes of their texts: a day, if there is one every ten minutes.
const SAMPLES_MAX: usize = 144;
const BYTES_MAX: usize = 512 << 10;
/// Bytes that are read.
pub const LEN_MAX: usize = 2 * BYTES_MAX;

/// Time of a sample: before and after it was read, in nanoseconds.
type Times = (u64, u64);

/// The newest samples, oldest first.
#[derive(Debug, Default)]
pub struct Samples {
    kept: VecDeque<(Times, [String; 3])>,
    bytes: usize,
}

impl Samples {
    /// Keeps a sample: meminfo, zoneinfo and vmstat; an empty one could not be read.
    pub fn keep(&mut self, times: Times, texts: [&str; 3]) {
        let mut number = 0;
        let kept = texts.map(|text| {
            let words = TEXTS.get(number).map_or(&[][..], |(_, words)| words);
            number += 1;
            lines_with(text, words)
        });
        self.bytes += kept.iter().map(String::len).sum::<usize>();
        self.kept.push_back((times, kept));
        while self.kept.len() > SAMPLES_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.kept.pop_front() else { break };
            self.bytes -= oldest.iter().map(String::len).sum::<usize>();
        }
    }

    /// The newest samples whose texts have this number of bytes at most, as they are handed over.
    pub fn text(&self, bytes_max: u64) -> String {
        let mut left = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let fits = self.kept.iter().rev().take_while(|(_, texts)| {
            let bytes = texts.iter().map(String::len).sum();
            left.checked_sub(bytes).map(|rest| left = rest).is_some()
        });
        let fits = fits.count();
        let mut out = String::new();
        for ((before, after), texts) in self.kept.iter().skip(self.kept.len() - fits) {
            for ((name, _), text) in TEXTS.iter().zip(texts).filter(|(_, text)| !text.is_empty()) {
                let _ = write!(out, "{name} {before} {after} {}\n{text}", text.len());
            }
        }
        out
    }
}

/// A growth as it is handed over.
pub fn finding(text: &str, time: u64) -> String {
    format!("{FINDING} {time} {time} {}\n{text}", text.len())
}

/// Time of CLOCK_MONOTONIC, in nanoseconds.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // Of different types on targets of 32 bits.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Lines whose first word is one of these; without words all.
fn lines_with(text: &str, words: &[&str]) -> String {
    if words.is_empty() {
        return text.to_owned();
    }
    let is_kept =
        |line: &&str| line.split_ascii_whitespace().next().is_some_and(|word| words.contains(&word));
    text.split_inclusive('\n').filter(is_kept).collect()
}

/// Writes samples that were handed over into the file; returns how many texts there were. The rest behind a damaged one is left out.
pub fn write(writer: &mut Writer, text: &[u8]) -> kmt_format::Result<usize> {
    let (mut rest, mut count) = (text.get(..LEN_MAX).unwrap_or(text), 0);
    while let Some((name, times, contents, next)) = next(rest) {
        writer.add_file_at(name, contents, times)?;
        rest = next;
        count += 1;
    }
    Ok(count)
}

/// The next text: its name, times and contents, and what is behind it.
fn next(text: &[u8]) -> Option<(&'static str, Times, &[u8], &[u8])> {
    let end = text.iter().position(|&byte| byte == b'\n')?;
    let (head, rest) = (std::str::from_utf8(text.get(..end)?).ok()?, text.get(end + 1..)?);
    let mut words = head.split(' ');
    let word = words.next()?;
    let mut names = TEXTS.iter().map(|(name, _)| *name).chain([FINDING]);
    let name = names.find(|name| *name == word)?;
    let times = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let len: usize = words.next()?.parse().ok()?;
    Some((name, times, rest.get(..len)?, rest.get(len..)?))
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::ByteOrder;
    use kmt_format::read::Trace;
    use kmt_format::write::WriterOptions;

    use super::*;

    const ZONEINFO: &str = "Node 0, zone DMA\n  per-node stats\n      nr_inactive_anon 5\n        managed  3840\n  pagesets\n    cpu: 0\n              count:    7\n              high:     8\n";

    #[test]
    fn samples_get_into_the_file_with_their_times() {
        let mut samples = Samples::default();
        samples.keep((5, 6), ["MemTotal: 9 kB\n", ZONEINFO, "nr_free_pages 3\nnr_dirty 4\nnr_zspages 0\n"]);
        samples.keep((15, 16), ["MemTotal: 8 kB\n", "", ""]);
        let text = finding("growing\n", 20) + &samples.text(u64::MAX);
        let options = WriterOptions::new(ByteOrder::Little, 8).page_size(4_096);
        let mut writer = Writer::new(options).unwrap();
        assert_eq!(write(&mut writer, text.as_bytes()).unwrap(), 5);
        assert_eq!(write(&mut writer, b"meminfo 1 2 99\nshort").unwrap(), 0);
        assert_eq!(write(&mut writer, b"other 1 2 1\nx").unwrap(), 0);
        let bytes = writer.finish().unwrap();
        let trace = Trace::open(&bytes).unwrap();
        let files = trace.metadata().attachments.iter();
        let files: Vec<_> = files
            .map(|file| (&*file.name, file.times, String::from_utf8_lossy(&file.contents).into_owned()))
            .collect();
        let zones = "Node 0, zone DMA\n        managed  3840\n              count:    7\n";
        let expected = [
            (FINDING, Some((20, 20)), "growing\n".to_owned()),
            ("meminfo", Some((5, 6)), "MemTotal: 9 kB\n".to_owned()),
            ("zoneinfo", Some((5, 6)), zones.to_owned()),
            ("vmstat", Some((5, 6)), "nr_free_pages 3\nnr_zspages 0\n".to_owned()),
            ("meminfo", Some((15, 16)), "MemTotal: 8 kB\n".to_owned()),
        ];
        assert_eq!(files, expected);
        assert!(samples.text(15).starts_with("meminfo 15 16 15\n") && samples.text(14).is_empty());
    }

    #[test]
    fn the_newest_samples_are_kept_within_the_memory() {
        let (mut samples, long) = (Samples::default(), "x".repeat(BYTES_MAX / 10));
        (0..500).for_each(|time| samples.keep((time, time), ["MemTotal: 9 kB\n", "", ""]));
        assert_eq!((samples.kept.len(), samples.kept[0].0.0), (SAMPLES_MAX, 500 - SAMPLES_MAX as u64));
        (0..50).for_each(|time| samples.keep((time, time), [&long, "", ""]));
        assert_eq!(samples.kept.len(), 10);
        assert_eq!(samples.bytes, samples.kept.iter().map(|(_, texts)| texts[0].len()).sum::<usize>());
    }
}
