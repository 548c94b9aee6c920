//! Events that the headers of a text promise, against its lines.
//!
//! The kernel prints the number of entries before the first of them (`print_event_info`, kernel/trace/trace.c): of all
//! CPUs, also in the files of one CPU (per_cpu/cpuN/trace). A line is an entry, stacks too. More lines than promised are
//! no fault: new events can follow while the text is read.

use std::collections::BTreeSet;

use kmt_common::text::grouped;

use crate::import::text::{EntryCounts, TextLine};

/// Numbers of a header of traceconv, which are the same in each file (`kFtraceHeader`,
/// src/traceconv/trace_to_systrace.cc of Perfetto): no count.
const PERFETTO: (u64, u64) = (30_624, 30_624);

/// Entries that a header promises and the text lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shortage {
    /// Entries by the header.
    pub promised: u64,
    /// Lines that can be entries, and losses that the text counts.
    pub found: u64,
}

impl Shortage {
    /// Entries without a line.
    pub fn missing(&self) -> u64 {
        self.promised.saturating_sub(self.found)
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            promised: self.promised.saturating_add(other.promised),
            found: self.found.saturating_add(other.found),
        }
    }

    /// The shortage in words.
    pub fn note(self) -> Option<String> {
        let entries = if self.promised == 1 { "entry" } else { "entries" };
        let lost = if self.missing() == 1 { "entry is" } else { "entries are" };
        (self.missing() > 0).then(|| {
            format!(
                "the header of the text counts {} {entries} of the buffer, and the text has {}: it ends early, or lines were left out (by a filter, or it is the file of one CPU); the {} missing {lost} counted, of unknown CPUs. If a filter left out only other kinds of events, delete the line `# entries-in-buffer` of the text",
                grouped(self.promised),
                grouped(self.found),
                grouped(self.missing())
            )
        })
    }
}

/// Lines behind one header, or behind those of several files of single CPUs.
#[derive(Debug, Default)]
struct Section {
    /// Entries by its header; of several files, the smallest number. `None`: no header, or one without counts.
    promised: Option<u64>,
    /// Lines that can be entries, and losses that the text counts.
    found: u64,
    /// True if lines are not entries one by one, or losses have no count.
    is_uncertain: bool,
}

impl Section {
    fn shortage(&self) -> Option<Shortage> {
        let promised = self.promised.filter(|_| !self.is_uncertain)?;
        let shortage = Shortage { promised, found: self.found };
        (shortage.missing() > 0).then_some(shortage)
    }

    /// Both as one.
    fn and(&self, other: &Self) -> Self {
        Self {
            promised: self.promised.min(other.promised),
            found: self.found.saturating_add(other.found),
            is_uncertain: self.is_uncertain | other.is_uncertain,
        }
    }
}

/// Headers and entries of a text.
#[derive(Debug, Default)]
pub struct TextSections {
    /// Files of single CPUs before the one that is being read, and their CPUs.
    before: Option<(Section, BTreeSet<u32>)>,
    /// Lines behind the last header.
    section: Section,
    /// CPU of its entries; `None`: no entry yet.
    cpu: Option<u32>,
    /// True if its entries are of several CPUs.
    is_of_several: bool,
    /// Header that was read last.
    last: Option<EntryCounts>,
}

impl TextSections {
    /// Counts a line. Returns the shortage of the lines before it, and the number of entries that were overwritten before the
    /// next line.
    pub fn line(&mut self, line: &TextLine<'_>) -> (Option<Shortage>, u64) {
        match *line {
            TextLine::Event(event) | TextLine::Function(event, ..) => return (self.entry(event.cpu), 0),
            TextLine::Written(counts) => return self.header(counts),
            // One line of this tracer can be a begin and an end, and some are left out (`funcgraph-irqs`).
            TextLine::Graph(..) | TextLine::LogGap | TextLine::Lost(_, None) => {
                self.section.is_uncertain = true
            }
            TextLine::Lost(_, Some(count)) => self.section.found = self.section.found.saturating_add(count),
            // It may be an entry.
            TextLine::Other => self.section.found = self.section.found.saturating_add(1),
            TextLine::Frame(_) | TextLine::Chain(..) | TextLine::Comm(_) | TextLine::Remark => {}
        }
        (None, 0)
    }

    /// Begins a section. Returns the shortage of the one before it, and the number of entries that were overwritten before
    /// the first line of the new one.
    fn header(&mut self, counts: EntryCounts) -> (Option<Shortage>, u64) {
        let is_repeated = self.last.replace(counts) == Some(counts);
        // Files of one buffer have the same numbers, unless it is in use: its entries were overwritten once.
        let overwritten = if is_repeated { 0 } else { counts.written.saturating_sub(counts.held) };
        let promised = Some(counts.held).filter(|_| (counts.held, counts.written) != PERFETTO);
        let is_of_one_cpu = self.section.promised.is_some() && promised.is_some() && !self.is_of_several;
        let shortage = if is_of_one_cpu { None } else { self.shortage() };
        let section = std::mem::replace(&mut self.section, Section { promised, ..Section::default() });
        let cpu = self.cpu.take();
        self.is_of_several = false;
        if is_of_one_cpu {
            let (files, mut cpus) = match self.before.take() {
                Some((files, cpus)) => (files.and(&section), cpus),
                None => (section, BTreeSet::new()),
            };
            cpus.extend(cpu);
            self.before = Some((files, cpus));
        } else {
            self.before = None;
        }
        (shortage, overwritten)
    }

    /// Counts a line that is an entry. Returns the shortage of the files before it, if this one is of another recording.
    fn entry(&mut self, cpu: u32) -> Option<Shortage> {
        self.section.found = self.section.found.saturating_add(1);
        if self.cpu == Some(cpu) {
            return None;
        }
        self.is_of_several |= self.cpu.is_some();
        self.cpu = Some(cpu);
        let is_of_another =
            |(_, cpus): &mut (Section, BTreeSet<u32>)| self.is_of_several || cpus.contains(&cpu);
        self.before.take_if(is_of_another).and_then(|(files, _)| files.shortage())
    }

    /// Shortage of the section that was read last.
    pub fn shortage(&self) -> Option<Shortage> {
        match &self.before {
            Some((files, _)) => files.and(&self.section).shortage(),
            None => self.section.shortage(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sections: &mut TextSections, held: u64, written: u64) -> (Option<u64>, u64) {
        let (shortage, overwritten) = sections.header(EntryCounts { held, written });
        (shortage.map(|shortage| shortage.missing()), overwritten)
    }

    fn entries(sections: &mut TextSections, cpus: &[u32]) {
        cpus.iter().for_each(|&cpu| assert_eq!(sections.entry(cpu), None));
    }

    fn missing(sections: &TextSections) -> Option<u64> {
        sections.shortage().map(|shortage| shortage.missing())
    }

    #[test]
    fn files_of_single_cpus_are_one_part() {
        let mut sections = TextSections::default();
        for (cpus, overwritten) in [(&[0, 0, 0][..], 4), (&[], 0), (&[2, 2], 0)] {
            assert_eq!(header(&mut sections, 5, 9), (None, overwritten));
            entries(&mut sections, cpus);
        }
        assert_eq!(missing(&sections), None);
    }

    #[test]
    fn a_cpu_that_has_had_its_file_is_of_another_recording() {
        for cpus in [&[0, 0][..], &[1, 2]] {
            let mut sections = TextSections::default();
            header(&mut sections, 5, 5);
            entries(&mut sections, &[0, 0]);
            assert_eq!(header(&mut sections, 2, 2), (None, 0));
            let shortages: Vec<Shortage> = cpus.iter().filter_map(|&cpu| sections.entry(cpu)).collect();
            assert_eq!(shortages, [Shortage { promised: 5, found: 2 }], "{cpus:?}");
            assert_eq!(missing(&sections), None);
        }
    }

    #[test]
    fn parts_of_all_cpus_are_compared_one_by_one() {
        let mut sections = TextSections::default();
        entries(&mut sections, &[0, 1]);
        assert_eq!((missing(&sections), header(&mut sections, 4, 4)), (None, (None, 0)));
        entries(&mut sections, &[0, 1]);
        assert_eq!(missing(&sections), Some(2));
        assert_eq!(header(&mut sections, 3, 3), (Some(2), 0));
        entries(&mut sections, &[1, 0, 1, 1]);
        assert_eq!(missing(&sections), None, "new events follow while it is read");
    }

    /// Found by mutations of a text.
    #[test]
    fn counts_of_a_damaged_text_do_not_overflow() {
        let mut sections = TextSections::default();
        header(&mut sections, 5, 5);
        assert_eq!(sections.line(&TextLine::Lost(1, Some(u64::MAX))), (None, 0));
        entries(&mut sections, &[0, 1]);
        sections.line(&TextLine::Other);
        assert_eq!(missing(&sections), None);
    }

    #[test]
    fn what_is_no_count_is_not_compared() {
        let mut sections = TextSections::default();
        header(&mut sections, 30_624, 30_624);
        entries(&mut sections, &[0, 1]);
        assert_eq!(missing(&sections), None);
        let counted = vec![TextLine::Lost(1, Some(2)), TextLine::Other];
        for lines in [vec![TextLine::Lost(1, None)], vec![TextLine::LogGap], counted] {
            header(&mut sections, 5, 5);
            entries(&mut sections, &[0, 1]);
            assert_eq!(missing(&sections), Some(3));
            for line in lines {
                assert_eq!(sections.line(&line), (None, 0));
            }
            assert_eq!(missing(&sections), None);
        }
    }
}
