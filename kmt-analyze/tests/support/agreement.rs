//! Whether a dump agrees with the kernel's text of a second instance that recorded the same events.
//!
//! Each instance has its own times, and an event that interrupts another one while that is written to both stands in
//! front of it in one and behind it in the other: lines are compared in order within a window of neighbours.

use std::collections::{BTreeMap, HashSet, VecDeque};

use kmt_format::read::Trace;

/// A line of the kernel's `trace` file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    cpu: u32,
    pid: String,
    comm: String,
    /// Time in microseconds.
    micros: u64,
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
        let (head, rest) = line[at..].split_once(": ")?;
        let (seconds, fraction) = head.rsplit_once(' ')?.1.split_once('.')?;
        let micros = seconds.parse::<u64>().ok()? * 1_000_000 + fraction.parse::<u64>().ok()?;
        let words: Vec<&str> = rest.trim_end().split(' ').map(|word| mask.word(word)).collect();
        Some(Self { cpu, pid: pid.to_owned(), comm: comm.trim().to_owned(), micros, text: words.join(" ") })
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
            Self::Texts => {
                ["page", "name", "gfp_flags", "type", "comm", "oldcomm", "newcomm", "dst_path"].contains(&key)
            }
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
    /// Events that the text has where the file says that some are missing: as many as it says, where it does.
    pub lost: u64,
    /// Events that the file says are missing in front of its first one.
    pub lost_before: u64,
    /// CPUs of which the file says that some are missing in front of the first one, and not how many.
    pub uncounted_before: u64,
    /// Places where the file does not say how many are missing.
    pub uncounted: u64,
    /// Lines of the text that were passed and never matched: events of which the file does not say that they are missing.
    pub left: u64,
    /// Lines whose task has another name of its own in the text: the kernel notes names when tasks are switched only, and
    /// prints the last one.
    pub stale: u64,
    /// Lines whose task has a name in the text that neither the file nor an event of the text gives it.
    pub renamed: u64,
}

/// As many events as an interrupt may write, with the RCU callbacks that it runs.
const WINDOW: usize = 8_192;
const EDGE: usize = 32;
const SAMPLE: usize = 60;
const NEAR_US: u64 = 3_000;

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
    let trace = Trace::open(file).map_err(|e| e.to_string())?;
    let mut sum = Agreement::default();
    let names = trace.metadata().tasks.iter();
    let names: Names = names
        .map(|t| (t.pid.to_string(), String::from_utf8_lossy(&t.comm).into_owned()))
        .chain(theirs.values().flatten().filter_map(named))
        .collect();
    for (cpu, stream) in trace.streams() {
        let mut lines = ours.get(cpu).map_or(&[][..], Vec::as_slice);
        if lines.len() as u64 != stream.event_count() {
            return Err(format!("CPU {cpu}: {} lines of {} events", lines.len(), stream.event_count()));
        }
        let text = theirs.get(cpu).map_or(&[][..], Vec::as_slice);
        let at = |e: String| format!("CPU {cpu}: {e}");
        let mut walk = Walk::start(lines, text, &names).map_err(at)?;
        for (number, (_, info)) in stream.chunks.iter().enumerate() {
            let (chunk, rest) = lines.split_at(info.event_count as usize);
            let at = |e: String| format!("CPU {cpu}, event {}: {e}", info.first_event);
            match number {
                // What was lost before the first event of the file has no neighbour to count from.
                0 => {
                    walk.sum.lost_before = info.loss.counted;
                    walk.sum.uncounted_before = info.loss.uncounted.into();
                }
                _ if info.loss.uncounted => walk.resync(chunk).map_err(at)?,
                _ if info.loss.counted > 0 => walk.skip(info.loss.counted),
                _ => {}
            }
            walk.compare(chunk).map_err(at)?;
            lines = rest;
        }
        let mut found = walk.sum;
        found.left = walk.unexplained() as u64;
        sum.lines += found.lines;
        sum.moved += found.moved;
        sum.lost += found.lost;
        sum.lost_before += found.lost_before;
        sum.uncounted_before += found.uncounted_before;
        sum.uncounted += found.uncounted;
        sum.renamed += found.renamed;
        sum.stale += found.stale;
        sum.left += found.left;
    }
    Ok(sum)
}

/// The task that a line of the text names, and its name. The text ends later than the file: a task that takes
/// another name then has it in all its lines.
fn named(line: &Line) -> Option<(String, String)> {
    let (event, fields) = line.text.split_once(": ").unwrap_or(("", &line.text));
    let field = |key: &str, end: &str| {
        let (_, value) = fields.split_once(key)?;
        Some(value.split_once(end)?.0.to_owned())
    };
    let pid = || fields.strip_prefix("pid=").and_then(|_| field("pid=", " "));
    match event {
        "task_newtask" => Some((pid()?, field(" comm=", " clone_flags=")?)),
        // Without a pid it is the task that runs.
        "task_rename" => Some((pid().unwrap_or(line.pid.clone()), field("newcomm=", " oom_score_adj=")?)),
        _ => None,
    }
}

/// Every name that each task had.
type Names = HashSet<(String, String)>;

struct Walk<'t> {
    text: &'t [Line],
    names: &'t Names,
    start: usize,
    at: usize,
    /// Lines of the text that were passed and not matched yet: those that stand elsewhere among their neighbours, and
    /// the edges of what was lost.
    passed: VecDeque<&'t Line>,
    sum: Agreement,
}

impl<'t> Walk<'t> {
    fn start(ours: &[Line], text: &'t [Line], names: &'t Names) -> Result<Self, String> {
        let mut walk =
            Self { text, names, start: 0, at: 0, passed: VecDeque::new(), sum: Agreement::default() };
        walk.start = walk.find(ours)?;
        walk.at = walk.start;
        Ok(walk)
    }

    /// Lines that were passed, not matched, and are not told to be missing.
    fn unexplained(&self) -> usize {
        (self.at - self.start).saturating_sub((self.sum.lines + self.sum.lost) as usize)
    }

    /// Where in the text from here on these lines start: the first place where nearly all of them stand. Neighbours may
    /// have changed places.
    fn find(&self, ours: &[Line]) -> Result<usize, String> {
        let sample = &ours[..ours.len().min(SAMPLE)];
        let differ_max = sample.len() / 5;
        let fits = |at: usize| {
            let pairs = self.text[at..].iter().zip(sample);
            pairs.filter(|(a, b)| !a.same(b)).take(differ_max + 1).count() <= differ_max
        };
        // An interrupt of many events moves all behind it: the line begins a stretch that has nearly all of them.
        let has_most = |at: usize| {
            let end = self.text.len().min(at + sample.len() + EDGE);
            let mut there: Vec<&Line> = self.text[at..end].iter().collect();
            let mut missing = sample.iter().filter(|line| {
                let place = there.iter().position(|t| t.same(line));
                place.map(|place| there.remove(place)).is_none()
            });
            missing.by_ref().take(differ_max + 1).count() <= differ_max
        };
        // The times are not the same, but they are close: both have the clock mono. Of several places the nearest counts.
        let micros = ours.first().map_or(0, |line| line.micros);
        let distance = |at: usize| self.text.get(at).map_or(u64::MAX, |line| line.micros.abs_diff(micros));
        let near =
            || (self.at..=self.text.len().saturating_sub(sample.len())).filter(|&at| distance(at) < NEAR_US);
        let begins = |at: &usize| self.text.get(*at).zip(ours.first()).is_some_and(|(a, b)| a.same(b));
        near()
            .filter(|&at| fits(at))
            .min_by_key(|&at| distance(at))
            .or_else(|| near().filter(begins).filter(|&at| has_most(at)).min_by_key(|&at| distance(at)))
            .ok_or_else(|| format!("the text does not have {:?}", ours.first()))
    }

    fn resync(&mut self, ours: &[Line]) -> Result<(), String> {
        let found = self.find(ours)?;
        self.sum.uncounted += 1;
        self.sum.lost += (found - self.at + self.unexplained()) as u64;
        self.pass_to(found);
        Ok(())
    }

    fn skip(&mut self, lost: u64) {
        self.sum.lost += lost;
        self.pass_to(self.start + (self.sum.lines + self.sum.lost) as usize);
    }

    /// Goes on at `at`. Only the edges of what is passed can be among our lines.
    fn pass_to(&mut self, at: usize) {
        let at = at.clamp(self.at, self.text.len());
        let edge = at.saturating_sub(EDGE).max(self.at);
        self.passed.extend(&self.text[edge..at]);
        while self.passed.len() > 2 * EDGE {
            self.passed.pop_front();
        }
        self.at = at;
    }

    fn compare(&mut self, ours: &[Line]) -> Result<(), String> {
        for line in ours {
            let is_next = self.text.get(self.at).is_some_and(|next| next.same(line));
            let place = self.passed.iter().position(|p| p.same(line)).filter(|_| !is_next);
            if let Some(place) = place {
                self.sum.moved += 1;
                let found = self.passed.remove(place);
                self.matched(line, found);
                continue;
            }
            loop {
                let Some(next) = self.text.get(self.at) else {
                    return Err(format!(
                        "the text ends before {line:?}; not matched: {:?}",
                        self.passed.back()
                    ));
                };
                self.at += 1;
                if next.same(line) {
                    self.matched(line, Some(next));
                    break;
                }
                self.passed.push_back(next);
                if self.unexplained() > WINDOW {
                    return Err(format!("{line:?} is not in the text near {:?}", self.passed.front()));
                }
            }
        }
        Ok(())
    }

    fn matched(&mut self, ours: &Line, theirs: Option<&Line>) {
        self.sum.lines += 1;
        let Some(theirs) = theirs.filter(|t| t.comm != ours.comm && t.comm != "<...>") else { return };
        if self.names.contains(&(theirs.pid.clone(), theirs.comm.clone())) {
            self.sum.stale += 1;
        } else {
            self.sum.renamed += 1;
        }
    }
}

/// The text of the reference ends later than the recording.
#[test]
fn a_task_may_take_a_name_after_the_end_of_the_file() {
    let line = |text: &str| Line::parse(text, Mask::Nothing).unwrap();
    let new =
        line("   cc-7 [001] d..2. 5.000001: task_newtask: pid=9 comm=a b clone_flags=0 oom_score_adj=0");
    assert_eq!(named(&new), Some(("9".into(), "a b".into())));
    let rename =
        line("   cc-7 [001] d..2. 5.000001: task_rename: pid=8 oldcomm=cc newcomm=x y oom_score_adj=0");
    assert_eq!(named(&rename), Some(("8".into(), "x y".into())));
    let own = line("   cc-7 [001] d..2. 5.000001: task_rename: oldcomm=cc newcomm=ld oom_score_adj=0");
    assert_eq!(named(&own), Some(("7".into(), "ld".into())));
}

/// Fifteen events of an interrupt stand early in one and late in the other.
#[test]
fn a_long_interrupt_does_not_hide_where_lines_start() {
    let line = |number: u64, micros: u64| Line {
        cpu: 0,
        pid: "7".into(),
        comm: "cc".into(),
        micros,
        text: format!("kfree: call_site=f ptr={number:x}"),
    };
    let (names, task): (Names, Vec<u64>) = (Names::new(), (1000..1200).collect());
    let with_interrupt = |place: usize| -> Vec<Line> {
        let numbers = task[..place].iter().copied().chain(1..=15).chain(task[place..].iter().copied());
        numbers.zip(5_000..).map(|(number, micros)| line(number, micros)).collect()
    };
    let (ours, text) = (with_interrupt(5), with_interrupt(45));
    assert_eq!(Walk::start(&ours, &text, &names).map(|walk| walk.start), Ok(0));
    assert!(Walk::start(&ours, &text[1..], &names).is_err(), "its first line is not there");
}
