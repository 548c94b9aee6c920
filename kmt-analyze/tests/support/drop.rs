//! Taking sub-buffers out of saved ring buffers, as an overwritten ring would have lost them.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use kmt_format::kernel::ByteOrder;

/// Header and length of the sub-buffers of 64-bit kernels with pages of 4 KiB: a time stamp, a commit word, data.
const HEADER: usize = 16;
const LEN: usize = 4096;

/// How losses fall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// Each sub-buffer by chance.
    Random,
    /// So many in a row.
    Bursts(usize),
    /// A reader that takes one sub-buffer after the other at its own pace, out of a ring of so many: losses follow load.
    SlowReader(usize),
}

/// Takes about one of ten sub-buffers away, marks the next ones, and counts what is lost in `stats`.
pub fn sub_buffers(tracefs: &Path, trial: u64) {
    sub_buffers_in(tracefs, trial, Pattern::Random, 0.1, ByteOrder::Little);
}

/// Takes about that share of the sub-buffers away in a pattern.
pub fn sub_buffers_in(tracefs: &Path, trial: u64, pattern: Pattern, share: f64, order: ByteOrder) {
    let mut random = Random(trial.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for cpu in fs::read_dir(tracefs.join("per_cpu")).unwrap().map(|e| e.unwrap().path()) {
        let raw = cpu.join("trace_pipe_raw");
        let bytes = fs::read(&raw).unwrap();
        let times: Vec<u64> = bytes.chunks_exact(LEN).map(|s| order.uint(&s[..8])).collect();
        let keeps = keeps(&times, pattern, share, &mut random);
        let mut kept = Vec::new();
        let (mut pending, mut lost) = (0u64, 0u64);
        for (sub_buffer, keep) in bytes.chunks_exact(LEN).zip(keeps) {
            if !keep {
                pending += events(sub_buffer, order);
                lost += events(sub_buffer, order);
                continue;
            }
            let mut sub_buffer = sub_buffer.to_vec();
            if pending > 0 {
                mark(&mut sub_buffer, pending, order);
                pending = 0;
            }
            kept.extend(sub_buffer);
        }
        fs::write(&raw, kept).unwrap();
        count(&cpu.join("stats"), lost);
    }
}

/// Bit 31 of the commit word: events are missing; bit 30: their number stands behind the data.
fn mark(sub_buffer: &mut [u8], missing: u64, order: ByteOrder) {
    let end = HEADER + committed(sub_buffer, order);
    let mut commit = order.uint(&sub_buffer[8..16]) | 1 << 31;
    if end + 8 <= LEN {
        commit |= 1 << 30;
        put(&mut sub_buffer[end..end + 8], missing, order);
    }
    put(&mut sub_buffer[8..16], commit, order);
}

fn put(place: &mut [u8], value: u64, order: ByteOrder) {
    let mut bytes = Vec::new();
    order.push(&mut bytes, value, 8);
    place.copy_from_slice(&bytes);
}

/// Which sub-buffers stay; the first one always does, and so does the last: the newest is never overwritten.
fn keeps(times: &[u64], pattern: Pattern, share: f64, random: &mut Random) -> Vec<bool> {
    let mut keeps = vec![true; times.len()];
    match pattern {
        Pattern::Random => keeps.iter_mut().skip(1).for_each(|keep| *keep = random.fraction() >= share),
        Pattern::Bursts(len) => {
            let mut left = 0;
            for keep in keeps.iter_mut().skip(1) {
                if left == 0 && random.fraction() < share / len as f64 {
                    left = len;
                }
                *keep = left == 0;
                left = left.saturating_sub(1);
            }
        }
        Pattern::SlowReader(ring) => {
            let (Some(first), Some(last)) = (times.first(), times.last()) else { return keeps };
            // At its pace the reader manages what is to stay, beginning at some time.
            let pace = (last - first) as f64 / (times.len() as f64 * (1.0 - share)).max(1.0);
            let mut next = *first as f64 + pace * random.fraction();
            let mut waiting: VecDeque<usize> = VecDeque::new();
            for (index, &time) in times.iter().enumerate() {
                while next < time as f64 {
                    waiting.pop_front();
                    next += pace * (0.5 + random.fraction());
                }
                waiting.push_back(index);
                if waiting.len() > ring {
                    let oldest = waiting.pop_front().unwrap_or_default();
                    keeps[oldest] = oldest == 0;
                }
            }
        }
    }
    if let Some(last) = keeps.last_mut() {
        *last = true;
    }
    keeps
}

/// Counts what is lost as overrun.
fn count(stats: &Path, lost: u64) {
    let text = fs::read_to_string(stats).unwrap();
    let count = |line: &str, by: i64| {
        let (name, number) = line.split_once(": ").unwrap();
        format!("{name}: {}", number.trim().parse::<i64>().unwrap() + by)
    };
    let lines = text.lines().map(|line| match line {
        l if l.starts_with("entries:") => count(l, -(lost as i64)),
        l if l.starts_with("overrun:") => count(l, lost as i64),
        l => l.to_owned(),
    });
    fs::write(stats, lines.map(|l| l + "\n").collect::<String>()).unwrap();
}

fn committed(sub_buffer: &[u8], order: ByteOrder) -> usize {
    order.uint(&sub_buffer[8..16]) as usize & 0x3fff_ffff
}

/// Events of a sub-buffer (kernel/trace/ring_buffer.c: type_len in the low five bits of each header, in the high ones of
/// big-endian machines).
fn events(sub_buffer: &[u8], order: ByteOrder) -> u64 {
    let word = |at: usize| order.uint(&sub_buffer[at..at + 4]) as usize;
    let (mut at, mut count) = (HEADER, 0);
    while at < HEADER + committed(sub_buffer, order) {
        let header = word(at);
        let (kind, delta) = match order {
            ByteOrder::Little => (header & 31, header >> 5),
            ByteOrder::Big => (header >> 27, header & 0x07ff_ffff),
        };
        at += match kind {
            29 if delta == 0 => break,
            29 => 4 + word(at + 4),
            30 | 31 => 8,
            0 => {
                count += 1;
                4 + word(at + 4).next_multiple_of(4)
            }
            words => {
                count += 1;
                4 + 4 * words
            }
        };
    }
    count
}

/// A linear congruential generator: the same losses in every run.
struct Random(u64);

impl Random {
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}
