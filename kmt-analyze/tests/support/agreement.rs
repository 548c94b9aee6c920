//! Whether a dump agrees with the kernel's text of a second instance that recorded the same events.
//!
//! Each instance has its own times, and an event that interrupts another one while that is written to both stands in
//! front of it in one and behind it in the other: lines are compared in order within a window of neighbours.

use std::collections::{BTreeMap, VecDeque};

use kmt_format::Limits;
use kmt_format::read::Trace;

/// A line of the kernel's `trace` file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    cpu: u32,
    pid: String,
    comm: String,
    text: String,
}

impl Line {
    fn parse(line: &str, mask: Mask) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let (at, cpu) = line.match_indices('[').find_map(|(at, _)| {
            let cpu = line.get(at + 1..at + 4)?.parse().ok()?;
            line.get(at + 4..)?.starts_with("] ").then_some((at, cpu))
        })?;
        let (comm, pid) = line[..at].trim_end().rsplit_once('-')?;
        let (_, rest) = line[at..].split_once(": ")?;
        let words: Vec<&str> = rest.trim_end().split(' ').map(|word| mask.word(word)).collect();
        Some(Self { cpu, pid: pid.to_owned(), comm: comm.trim().to_owned(), text: words.join(" ") })
    }

    fn same(&self, other: &Self) -> bool {
        self.pid == other.pid && self.text == other.text
    }
}

/// What the kernel's text does not tell as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    /// Only `page=`, which no ring buffer holds.
    Nothing,
    /// Pointers, which it hashes.
    Pointers,
    /// Texts and names of flags: with real pointers kernels like 6.1 print none of them.
    Texts,
}

impl Mask {
    fn word(self, word: &str) -> &str {
        let Some((key, _)) = word.split_once('=') else { return word };
        let hidden = match self {
            Self::Nothing => key == "page",
            Self::Pointers => ["page", "ptr"].contains(&key),
            Self::Texts => ["page", "name", "gfp_flags", "comm", "oldcomm", "newcomm", "dst_path"].contains(&key),
        };
        if hidden { key } else { word }
    }
}

/// What was compared.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// Lines of both sides that are equal.
    pub lines: u64,
    /// Lines that stood among their neighbours in another order.
    pub moved: u64,
    /// Events that the file says are missing, and that the text has there.
    pub lost: u64,
    /// Places where the file does not say how many.
    pub uncounted: u64,
    /// Lines whose task has another name in the text, where that knows one.
    pub renamed: u64,
}

const WINDOW: usize = 96;
const RUN: usize = 6;

/// Compares the dump of `file` with the text, CPU by CPU, over the time of the file.
pub fn agree(file: &[u8], dump: &str, text: &str, mask: Mask) -> Result<Agreement, String> {
    let by_cpu = |text: &str| {
        let mut cpus: BTreeMap<u32, Vec<Line>> = BTreeMap::new();
        for line in text.lines().filter_map(|line| Line::parse(line, mask)) {
            cpus.entry(line.cpu).or_default().push(line);
        }
        cpus
    };
    let (ours, theirs) = (by_cpu(dump), by_cpu(text));
    let trace = Trace::open(file, Limits::default()).map_err(|e| e.to_string())?;
    let mut sum = Agreement::default();
    for (cpu, stream) in trace.streams() {
        let mut lines = ours.get(cpu).map_or(&[][..], Vec::as_slice);
        if lines.len() as u64 != stream.event_count() {
            return Err(format!("CPU {cpu}: {} lines of {} events", lines.len(), stream.event_count()));
        }
        let text = theirs.get(cpu).map_or(&[][..], Vec::as_slice);
        let mut walk = Walk::start(lines, text).map_err(|e| format!("CPU {cpu}: {e}"))?;
        for (_, info) in &stream.chunks {
            let (chunk, rest) = lines.split_at(info.event_count as usize);
            let at = |e: String| format!("CPU {cpu}, event {}: {e}", info.first_event);
            if info.loss.uncounted {
                walk.resync(chunk).map_err(at)?;
            } else if info.loss.counted > 0 {
                walk.skip(info.loss.counted);
            }
            walk.compare(chunk).map_err(at)?;
            lines = rest;
        }
        let found = walk.sum;
        sum.lines += found.lines;
        sum.moved += found.moved;
        sum.lost += found.lost;
        sum.uncounted += found.uncounted;
        sum.renamed += found.renamed;
    }
    Ok(sum)
}

struct Walk<'t> {
    text: &'t [Line],
    at: usize,
    /// Lines of the text that were passed and not matched yet.
    passed: VecDeque<&'t Line>,
    sum: Agreement,
}

impl<'t> Walk<'t> {
    fn start(ours: &[Line], text: &'t [Line]) -> Result<Self, String> {
        let mut walk = Self { text, at: 0, passed: VecDeque::new(), sum: Agreement::default() };
        walk.at = walk.find(ours)?;
        Ok(walk)
    }

    /// Where in the text from here on these lines start.
    fn find(&self, ours: &[Line]) -> Result<usize, String> {
        if ours.is_empty() {
            return Ok(self.at);
        }
        let run = RUN.min(ours.len());
        (0..=(ours.len() - run).min(WINDOW))
            .find_map(|skip| {
                let wanted = &ours[skip..skip + run];
                let windows = self.text[self.at..].windows(run);
                let found = windows.enumerate().find(|(_, w)| w.iter().zip(wanted).all(|(a, b)| a.same(b)));
                (self.at + found?.0).checked_sub(skip)
            })
            .ok_or_else(|| format!("the text does not have {:?}", ours[0]))
    }

    fn resync(&mut self, ours: &[Line]) -> Result<(), String> {
        self.at = self.find(ours)?;
        self.passed.clear();
        self.sum.uncounted += 1;
        Ok(())
    }

    fn skip(&mut self, lost: u64) {
        self.at += (lost as usize).saturating_sub(self.passed.len());
        self.passed.clear();
        self.sum.lost += lost;
    }

    fn compare(&mut self, ours: &[Line]) -> Result<(), String> {
        for line in ours {
            if let Some(place) = self.passed.iter().position(|p| p.same(line)) {
                self.sum.moved += 1;
                let found = self.passed.remove(place);
                self.matched(line, found);
                continue;
            }
            loop {
                let Some(next) = self.text.get(self.at) else {
                    return Err(format!("the text ends before {line:?}; not matched: {:?}", self.passed));
                };
                self.at += 1;
                if next.same(line) {
                    self.matched(line, Some(next));
                    break;
                }
                self.passed.push_back(next);
                if self.passed.len() > WINDOW {
                    return Err(format!("{line:?} is not in the text near {:?}", self.passed.front()));
                }
            }
        }
        Ok(())
    }

    fn matched(&mut self, ours: &Line, theirs: Option<&Line>) {
        self.sum.lines += 1;
        let renamed = theirs.is_some_and(|t| t.comm != ours.comm && t.comm != "<...>");
        self.sum.renamed += u64::from(renamed);
    }
}
