//! Two boots in one buffer, or in one text, by the times of its events.
//!
//! A persistent ring buffer (Linux 6.12 and later) keeps its events over a reboot, and the next boot appends its own behind
//! them; a log of a serial console has the dumps of several boots. Their times begin at 0 once more, and addresses mean other
//! objects: one report of both would be wrong. Nothing but the step back in time shows it. Each line of a text counts as a sub-buffer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use kmt_common::text::{count, grouped};
use kmt_format::kernel::{ByteOrder, ClockUnit, HeaderPage, SubBuffer, SubBufferItem};

use crate::failure::Failure;
use crate::zero_times;

/// The side of a step back in time that is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Boot {
    /// The boot before the first step
    First,
    /// The boot behind the last step
    Last,
}

/// A step of this length is large, in nanoseconds: clocks of one CPU step back by less.
const LARGE_NS: u64 = 1_000_000_000;
/// Steps of a CPU that are kept.
const STEPS_MAX: usize = 64;
/// A CPU without a step is of the boot whose times are this many times nearer than those of the other one.
const FARTHER: u64 = 8;
/// Events that a text can have at the time 0 by rounding: more are not recorded in half a microsecond.
const ROUNDED_MAX: u64 = 16;
/// Events that each other CPU has at least where one without events stands out.
const EVENTS_OF_OTHERS: u64 = 100;

/// Position of an event of a CPU: number of its sub-buffer, from 1 on, and its number in that, from 0 on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64, pub u64);

impl Position {
    const END: Self = Self(u64::MAX, u64::MAX);
}

/// A large step back in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    before: u64,
    after: u64,
    /// The first event behind it.
    at: Position,
    /// True if one sub-buffer stands out, and the times around it ascend: that may be damage.
    is_doubtful: bool,
}

/// Times of the events of one CPU.
#[derive(Debug, Default)]
struct CpuTimes {
    cpu: u32,
    /// The buffer, for messages.
    name: String,
    events: u64,
    /// Events of time 0.
    at_zero: u64,
    first: u64,
    last: u64,
    /// Position of the next event.
    next: Position,
    /// Last times of the two sub-buffers before this one.
    ends: [Option<u64>; 2],
    steps: Vec<Step>,
}

impl CpuTimes {
    /// The steps that show boots: those without doubt, if there are any.
    fn boot_steps(&self) -> Vec<Step> {
        let certain: Vec<Step> = self.steps.iter().filter(|step| !step.is_doubtful).copied().collect();
        if certain.is_empty() { self.steps.clone() } else { certain }
    }
}

/// Times of the events of all CPUs.
#[derive(Debug)]
pub struct Boots {
    unit: ClockUnit,
    cpus: Vec<CpuTimes>,
    /// Index of the CPU whose events are looked at.
    current: usize,
    /// Of a text: its name, and the index of each CPU.
    text: Option<(String, HashMap<u32, usize>)>,
}

impl Boots {
    /// Of a clock with that unit.
    pub fn new(unit: ClockUnit) -> Self {
        Self { unit, cpus: Vec::new(), current: 0, text: None }
    }

    /// Of a text of that name, whose lines are of any CPU.
    pub fn of_text(unit: ClockUnit, name: String) -> Self {
        Self { text: Some((name, HashMap::new())), ..Self::new(unit) }
    }

    /// Goes to the next line of that CPU in a text; returns the position of its event.
    pub fn next_line(&mut self, cpu: u32) -> Position {
        let new = self.cpus.len();
        let index = self.text.as_mut().map_or(new, |(_, indices)| *indices.entry(cpu).or_insert(new));
        if index == new {
            let name = self.text.as_ref().map_or(String::new(), |(name, _)| name.clone());
            self.begin(cpu, name);
        }
        self.current = index;
        Position(self.sub_buffer(), 0)
    }

    /// Begins the events of the next CPU.
    pub fn begin(&mut self, cpu: u32, name: String) {
        self.current = self.cpus.len();
        self.cpus.push(CpuTimes { cpu, name, ..CpuTimes::default() });
    }

    /// Begins the next sub-buffer of that CPU; returns its number.
    pub fn sub_buffer(&mut self) -> u64 {
        let Some(cpu) = self.cpus.get_mut(self.current) else { return 0 };
        cpu.ends = [cpu.ends[1], Some(cpu.last).filter(|_| cpu.events > 0)];
        cpu.next = Position(cpu.next.0 + 1, 0);
        cpu.next.0
    }

    /// Looks at the time of the next event.
    #[inline]
    pub fn event(&mut self, time: u64) {
        let unit = self.unit;
        let Some(cpu) = self.cpus.get_mut(self.current) else { return };
        if time < cpu.last && is_large(unit, cpu.last, time) {
            cpu.step(time);
        }
        if cpu.next.1 == 0 {
            cpu.begin_sub_buffer(time);
        }
        if cpu.events == 0 {
            cpu.first = time;
        }
        cpu.at_zero += u64::from(time == 0);
        cpu.last = time;
        cpu.events += 1;
        cpu.next.1 += 1;
    }

    /// Looks at a sub-buffer without converting it.
    pub fn look_at(&mut self, bytes: &[u8], layout: &HeaderPage, order: ByteOrder) {
        self.sub_buffer();
        let Ok(sub_buffer) = SubBuffer::parse(bytes, layout, order) else { return };
        for item in sub_buffer.items() {
            match item {
                Ok(SubBufferItem::Event { time, .. }) => self.event(time),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// The buffer of the first CPU that has events, for messages.
    pub fn first_name(&self) -> &str {
        self.active().next().or(self.cpus.first()).map_or("", |cpu| cpu.name.as_str())
    }

    fn active(&self) -> impl Iterator<Item = &CpuTimes> {
        self.cpus.iter().filter(|cpu| cpu.events > 0)
    }

    /// The CPUs whose times show a new boot; empty if there is one boot.
    ///
    /// In buffers, one step without doubt is enough. Steps that may be damage count if most CPUs have them. Lines of a text may
    /// be out of order: there most CPUs have to step back, one of them without doubt.
    fn stepping(&self) -> Vec<&CpuTimes> {
        let found: Vec<&CpuTimes> = self.active().filter(|cpu| !cpu.steps.is_empty()).collect();
        let all = self.active().count();
        let is_certain = found.iter().any(|cpu| cpu.steps.iter().any(|step| !step.is_doubtful));
        let are_most = all > 1 && found.len() * 2 > all;
        let are_boots = match self.text {
            Some(_) => is_certain && found.len() * 2 > all,
            None => is_certain || are_most,
        };
        if are_boots { found } else { Vec::new() }
    }

    /// Why the buffer is not converted as a whole; `None` if it holds one boot.
    pub fn refusal(&self) -> Option<Failure> {
        let found = self.stepping();
        let is_certain = |cpu: &&&CpuTimes| cpu.steps.iter().any(|step| !step.is_doubtful);
        let first = found.iter().find(is_certain).or(found.first())?;
        let step = first.boot_steps().first().copied()?;
        let boots = found.iter().map(|cpu| cpu.boot_steps().len() + 1).max().unwrap_or(2);
        let boots = if boots == 2 { "two boots".to_owned() } else { format!("{boots} boots") };
        let (holder, hint) = match self.text {
            Some(_) => (
                "text",
                "--boot last converts the events of the last boot only, --boot first those of the first; kallsyms and modules have to be of the same boot. If one boot was printed twice, delete one of both",
            ),
            None => (
                "buffer",
                "--boot last converts the events of the last boot only, --boot first those of the first; kallsyms and modules have to be of the same boot",
            ),
        };
        Some(
            Failure::new(format!(
                "{}: the time of CPU {} steps back from {} to {}, and that of {} of {}: the {holder} holds the events of {boots}",
                first.name,
                first.cpu,
                self.shown(step.before),
                self.shown(step.after),
                found.len(),
                count(self.active().count() as u64, "CPU"),
            ))
            .hint(hint),
        )
    }

    fn shown(&self, time: u64) -> String {
        match self.unit {
            ClockUnit::Nanoseconds => format!("{}.{:06} s", time / LARGE_NS, time % LARGE_NS / 1_000),
            ClockUnit::Ticks => format!("tick {time}"),
        }
    }

    /// The part of each CPU that is of one boot, and a note for each CPU of which that is not known; `None` if there is one boot.
    pub fn side(&self, boot: Boot) -> Option<(Side, Vec<String>)> {
        let found = self.stepping();
        let (before, behind) = spans(&found)?;
        let stepping: BTreeSet<u32> = found.iter().map(|cpu| cpu.cpu).collect();
        let mut side = Side::default();
        let mut notes = Vec::new();
        for cpu in &self.cpus {
            let steps = if stepping.contains(&cpu.cpu) { cpu.boot_steps() } else { Vec::new() };
            let part = match (boot, steps.first(), steps.last()) {
                (Boot::First, Some(step), _) => Position::default()..step.at,
                (Boot::Last, _, Some(step)) => step.at..Position::END,
                _ if cpu.events == 0 => Position::default()..Position::END,
                _ => {
                    let (own, other) =
                        if boot == Boot::First { (&before, &behind) } else { (&behind, &before) };
                    match (cpu.distance(own), cpu.distance(other)) {
                        (near, far) if near < far / FARTHER || near == 0 && far > 0 => {
                            Position::default()..Position::END
                        }
                        (far, near) if near < far / FARTHER || near == 0 && far > 0 => {
                            Position::default()..Position::default()
                        }
                        _ => {
                            side.unclear.insert(cpu.cpu);
                            notes.push(format!(
                                "CPU {} has no step back in time: {} from {} to {} may be of either boot and are left out",
                                cpu.cpu,
                                count(cpu.events, "event"),
                                self.shown(cpu.first),
                                self.shown(cpu.last)
                            ));
                            Position::default()..Position::default()
                        }
                    }
                }
            };
            side.parts.insert(cpu.cpu, part);
        }
        Some((side, notes))
    }

    /// Notes on CPUs and times that stand out; on CPUs only if all events are converted.
    pub fn notes(&self, is_whole: bool) -> Vec<String> {
        let empty = if is_whole { self.empty_cpu() } else { None };
        empty.into_iter().chain(zero_times::note(self.at_zero())).collect()
    }

    /// Events of time 0; of a text 0 if rounding explains them.
    pub fn at_zero(&self) -> u64 {
        let events = self.cpus.iter().map(|cpu| cpu.at_zero).fold(0, u64::saturating_add);
        // Times of a text are rounded: those of a clock that begins with the text can be 0 too.
        if self.text.is_some() && events <= ROUNDED_MAX { 0 } else { events }
    }

    /// A single CPU without events beside full ones.
    fn empty_cpu(&self) -> Option<String> {
        let mut empty = self.cpus.iter().filter(|cpu| cpu.events == 0);
        let (one, None) = (empty.next()?, empty.next()) else { return None };
        let least = self.active().map(|cpu| cpu.events).min()?;
        (least >= EVENTS_OF_OTHERS).then(|| {
            format!(
                "CPU {} has no events, and each other CPU has {} or more: its buffer may be lost (7.2 loses that of the boot CPU in a persistent instance whose trace_clock is not local)",
                one.cpu,
                grouped(least)
            )
        })
    }
}

impl CpuTimes {
    /// Time between the events and a span of time; 0 if they overlap.
    fn distance(&self, span: &Range<u64>) -> u64 {
        span.start.saturating_sub(self.last).max(self.first.saturating_sub(span.end))
    }

    /// A large step back to this time. It is doubtful if the sub-buffer before it may be the one that is wrong.
    #[cold]
    fn step(&mut self, after: u64) {
        // Within a sub-buffer the last time is of that one, else of the one before.
        let end = if self.next.1 == 0 { self.ends[0] } else { self.ends[1] };
        let is_doubtful = end.is_some_and(|end| end <= after);
        if self.steps.len() < STEPS_MAX {
            self.steps.push(Step { before: self.last, after, at: self.next, is_doubtful });
        }
    }

    /// A sub-buffer that continues where time was before the step: the one between may be the one that is wrong.
    fn begin_sub_buffer(&mut self, time: u64) {
        let number = self.next.0;
        let step = self.steps.last_mut().filter(|step| step.at.0 + 1 == number && step.before <= time);
        step.into_iter().for_each(|step| step.is_doubtful = true);
    }
}

/// The note on `last_boot_info`, which persistent buffers have: their events may be of an earlier boot than the one that saved
/// them. 7.2 writes `# Current` once all are of the same; 6.12 does not report it.
pub fn last_boot_note(text: &[u8]) -> Option<String> {
    (!text.starts_with(b"# Current")).then(|| {
        "last_boot_info: the events may be of an earlier boot than the one in which they were saved; functions have the right names only if kallsyms and modules are of that boot too, and trace_clock is that of the boot in which they were saved (6.12 shows local for any other)".to_owned()
    })
}

/// Times before the first and behind the last step of these CPUs.
fn spans(found: &[&CpuTimes]) -> Option<(Range<u64>, Range<u64>)> {
    let steps: Vec<(Step, Step)> = found
        .iter()
        .filter_map(|cpu| {
            let steps = cpu.boot_steps();
            Some((*steps.first()?, *steps.last()?))
        })
        .collect();
    let before =
        found.iter().map(|cpu| cpu.first).min()?..steps.iter().map(|(first, _)| first.before).max()?;
    let behind = steps.iter().map(|(_, last)| last.after).min()?..found.iter().map(|cpu| cpu.last).max()?;
    Some((before, behind))
}

fn is_large(unit: ClockUnit, before: u64, after: u64) -> bool {
    match unit {
        ClockUnit::Nanoseconds => before.saturating_sub(after) > LARGE_NS,
        // Ticks of any length.
        ClockUnit::Ticks => after < before / 2,
    }
}

/// The part of each CPU's events that is of one boot.
#[derive(Debug, Clone, Default)]
pub struct Side {
    parts: BTreeMap<u32, Range<Position>>,
    /// CPUs of which it is not known, and whose events are left out.
    pub unclear: BTreeSet<u32>,
}

impl Side {
    /// The part of a CPU.
    pub fn part(&self, cpu: u32) -> Range<Position> {
        self.parts.get(&cpu).cloned().unwrap_or(Position::default()..Position::END)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of the sub-buffers of one CPU.
    type Times<'t> = &'t [&'t [u64]];

    /// Times of each CPU's sub-buffers.
    fn boots(cpus: &[Times<'_>]) -> Boots {
        let mut boots = Boots::new(ClockUnit::Nanoseconds);
        for (cpu, sub_buffers) in cpus.iter().enumerate() {
            boots.begin(cpu as u32, format!("cpu{cpu}"));
            for times in *sub_buffers {
                boots.sub_buffer();
                times.iter().for_each(|time| boots.event(time * 100_000_000));
            }
        }
        boots
    }

    fn is_refused(cpus: &[Times<'_>]) -> bool {
        boots(cpus).refusal().is_some()
    }

    #[test]
    fn a_large_step_back_is_a_new_boot() {
        let ascending: Times<'_> = &[&[400, 410], &[411, 489], &[489, 520]];
        let stepping: Times<'_> = &[&[400, 410], &[411, 489], &[0, 5], &[6, 70]];
        let within: Times<'_> = &[&[400, 410], &[411, 489, 0, 5]];
        let (slight, short): (Times<'_>, Times<'_>) = (&[&[400, 410], &[405, 489]], &[&[489], &[1]]);
        assert!(!is_refused(&[ascending, ascending]) && !is_refused(&[slight]), "half a second back");
        for cpus in [&[stepping, stepping][..], &[stepping, ascending], &[within], &[short]] {
            assert!(is_refused(cpus), "{cpus:?}");
        }
        let text = boots(&[ascending, stepping]).refusal().unwrap().to_string();
        assert!(
            text.contains(
                "cpu1: the time of CPU 1 steps back from 48.900000 s to 0.000000 s, and that of 1 of 2 CPUs"
            ),
            "{text}"
        );
    }

    #[test]
    fn one_sub_buffer_that_stands_out_may_be_damage() {
        let ascending: Times<'_> = &[&[400, 410], &[411, 489], &[489, 520]];
        let (high, low): (Times<'_>, Times<'_>) =
            (&[&[400, 410], &[9_000], &[411, 420]], &[&[400, 410], &[3], &[411, 420]]);
        for stands_out in [high, low] {
            assert!(!is_refused(&[stands_out]) && !is_refused(&[ascending, ascending, stands_out]));
            assert!(is_refused(&[stands_out, stands_out, ascending]), "on most CPUs it is not by chance");
        }
    }

    #[test]
    fn a_side_is_what_is_before_or_behind_the_step() {
        let stepping: Times<'_> = &[&[400, 410], &[411, 489, 0, 5], &[6, 70]];
        let (old, new, either): (Times<'_>, Times<'_>, Times<'_>) =
            (&[&[401, 480]], &[&[72, 74]], &[&[10, 480]]);
        let boots = boots(&[stepping, old, new, either, &[]]);
        let at = Position(2, 2);
        let (all, none) = (Position::default()..Position::END, Position::default()..Position::default());
        let (first, notes) = boots.side(Boot::First).unwrap();
        assert!(notes.len() == 1 && notes[0].contains("CPU 3 has no step"), "{notes:?}");
        let parts = [Position::default()..at, all.clone(), none.clone(), none.clone(), all.clone()];
        (0..5).for_each(|cpu| assert_eq!(first.part(cpu), parts[cpu as usize], "{cpu}"));
        let (last, _) = boots.side(Boot::Last).unwrap();
        let parts = [at..Position::END, none.clone(), all.clone(), none, all];
        (0..5).for_each(|cpu| assert_eq!(last.part(cpu), parts[cpu as usize], "{cpu}"));
        assert_eq!(last.unclear, BTreeSet::from([3]));
    }

    #[test]
    fn one_empty_cpu_and_times_of_0_stand_out() {
        let full: Vec<u64> = (1..200).collect();
        let full: Times<'_> = &[&full];
        let notes = boots(&[&[], full, full]).notes(true);
        assert!(notes.len() == 1 && notes[0].starts_with("CPU 0 has no events"), "{notes:?}");
        let (few, one_zero, zeros): (Times<'_>, Times<'_>, Times<'_>) =
            (&[&[1, 2]], &[&[0, 1]], &[&[0, 0, 0, 1]]);
        for cpus in [&[&[], &[], full][..], &[full], &[&[], few], &[one_zero]] {
            assert!(boots(cpus).notes(true).is_empty(), "{cpus:?}");
        }
        assert!(boots(&[zeros]).notes(true)[0].starts_with("3 events have the time 0"));
    }
}
