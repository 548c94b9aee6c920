//! Debug information within its limits: what addr2line and gimli read as a whole is counted before they do.
//!
//! gimli and addr2line read tables of a unit as a whole, and a small file can describe large ones. Before they do, the
//! entries of units, abbreviations, ranges and files are counted with `tables` and `walk`, and charged to the budget of
//! `limits`. `lines` looks addresses up in the units that passed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gimli::{
    AttributeValue, DebugInfoOffset, Dwarf, DwarfSections, EndianSlice, Reader as _, Section, Unit, UnitType,
};

use super::image::Image;
use super::limits::{Budget, Place, cost, text_steps};
use super::tables::{self, Cost};
use super::walk::{Counted, Reader, in_units};
use crate::failure::Result;
use crate::sort_rows::SortRows;

/// Debug information whose units can be read, and functions of the addresses that [`Checked::look_up`] has counted.
pub struct Checked<'i, 's> {
    pub dwarf: Arc<Dwarf<Reader<'s>>>,
    budget: &'i Budget<'i>,
    /// Ranges of addresses of units, by their ends.
    ranges: Vec<UnitRange>,
    /// Units that were counted as a whole.
    read: BTreeSet<usize>,
    /// Steps to find the end of a text.
    text_steps: u64,
    /// Attributes of the entry that has most.
    attributes_max: u64,
}

struct UnitRange {
    end: u64,
    begin: u64,
    /// The lowest `begin` from here on.
    begin_min: u64,
    unit: usize,
}

/// Attributes of an abbreviation that are many.
const WIDE: u64 = 64;

/// Ranges by the unit that a table of them names.
type RangesByUnit = BTreeMap<usize, Vec<(u64, u64)>>;

impl<'i, 's> Checked<'i, 's> {
    /// Counts the units, with their tables of abbreviations and files and their ranges.
    pub fn open(image: &'i Image<'_>, sections: &'s DwarfSections<Cow<'_, [u8]>>) -> Result<Self> {
        let mut dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, image.endian()));
        let texts = [
            dwarf.debug_str.reader().slice(),
            dwarf.debug_line_str.reader().slice(),
            dwarf.debug_info.reader().slice(),
            dwarf.debug_line.reader().slice(),
        ];
        let text_steps = texts.into_iter().map(text_steps).max().unwrap_or(0);
        let budget = &image.budget;
        let attributes_max = count_abbreviations(&dwarf, budget)?;
        // Many units may have one table of abbreviations.
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let (ranges, read) = (Vec::new(), BTreeSet::new());
        let mut checked = Self { dwarf: Arc::new(dwarf), budget, ranges, read, text_steps, attributes_max };
        checked.count_units()?;
        checked.sort_ranges();
        Ok(checked)
    }

    fn counted(&self) -> Counted<'_, 's> {
        Counted {
            dwarf: &self.dwarf,
            budget: self.budget,
            text_steps: self.text_steps,
            attributes_max: self.attributes_max,
        }
    }

    /// Counts units, and lists their ranges as addr2line does. One with a fault is skipped there, too, or ends the list.
    fn count_units(&mut self) -> Result<()> {
        let dwarf = self.dwarf.clone();
        let (tabled, mut tables) = (self.tabled()?, BTreeMap::new());
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let offset = header.offset().as_debug_info_offset().map_or(0, |offset| offset.0);
            let has_ranges = !matches!(
                header.type_(),
                UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial
            );
            let Some(lists) = self.count_root(&header, offset, &mut tables)? else { continue };
            // Wide abbreviations make many attributes of few bytes.
            let passes = 1 + self.attributes_max / WIDE;
            let bytes = header.length_including_self() as u64;
            self.budget.steps(bytes.saturating_mul(passes), in_units(offset))?;
            let Ok(unit) = dwarf.unit(header) else { continue };
            for list in lists {
                self.counted().ranges(&unit, list, cost::RANGE, in_units(offset))?;
            }
            if has_ranges {
                self.add_ranges(&unit, offset, tabled.get(&offset))?;
            }
        }
        Ok(())
    }

    /// Counts the tables of files of a unit, and returns its lists of ranges; `None`: it has no first entry.
    fn count_root(
        &self,
        header: &gimli::UnitHeader<Reader<'s>>,
        offset: usize,
        tables: &mut BTreeMap<usize, Cost>,
    ) -> Result<Option<Vec<AttributeValue<Reader<'s>>>>> {
        let Ok(abbreviations) = self.dwarf.abbreviations(header) else { return Ok(None) };
        let Ok(mut entries) = header.entries_raw(&abbreviations, None) else { return Ok(None) };
        let mut first = None;
        while first.is_none() && !entries.is_empty() {
            let Ok(abbreviation) = entries.read_abbreviation() else { return Ok(None) };
            first = abbreviation;
        }
        let Some(first) = first else { return Ok(None) };
        let mut lists = Vec::new();
        self.budget.steps(first.attributes().len() as u64 + 2 * self.text_steps, in_units(offset))?;
        for spec in first.attributes() {
            let Ok(attribute) = entries.read_attribute(*spec) else { break };
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(at)) => {
                    let section = self.dwarf.debug_line.reader();
                    let cost = *tables.entry(at.0).or_insert_with(|| {
                        let bytes = section.slice().get(at.0..).unwrap_or_default();
                        tables::line_header(EndianSlice::new(bytes, section.endian()))
                    });
                    take(self.budget, cost, Place { section: ".debug_line", offset: at.0 as u64 })?;
                }
                (gimli::DW_AT_ranges, value) => lists.push(value),
                _ => {}
            }
        }
        Ok(Some(lists))
    }

    /// Ranges of .debug_aranges.
    fn tabled(&self) -> Result<RangesByUnit> {
        let mut found = RangesByUnit::new();
        let mut headers = self.dwarf.debug_aranges.headers();
        while let Ok(Some(header)) = headers.next() {
            let unit = header.debug_info_offset().0;
            let place = Place { section: ".debug_aranges", offset: header.offset().0 as u64 };
            let mut entries = header.entries();
            self.budget.memory(cost::RANGE, place)?;
            // Faults of single entries are skipped.
            while let Some(entry) = entries.next().transpose() {
                self.budget.memory(cost::RANGE, place)?;
                let Ok(entry) = entry else { continue };
                let range = entry.range();
                found.entry(unit).or_default().push((range.begin, range.end));
            }
        }
        Ok(found)
    }

    /// Adds the ranges of a unit: of its entry, of the table, or of its lines if it has no others.
    fn add_ranges(
        &mut self,
        unit: &Unit<Reader<'s>>,
        offset: usize,
        tabled: Option<&Vec<(u64, u64)>>,
    ) -> Result<()> {
        let mut ranges: Vec<(u64, u64)> = tabled.into_iter().flatten().copied().collect();
        if let Ok(mut own) = self.dwarf.unit_ranges(unit) {
            while let Ok(Some(range)) = own.next() {
                ranges.push((range.begin, range.end));
            }
        }
        ranges.retain(|(begin, end)| begin < end);
        if ranges.is_empty() {
            ranges = self.counted().sequences(unit, offset)?;
        }
        self.budget.memory(cost::RANGE, in_units(offset))?;
        let range = |(begin, end)| UnitRange { end, begin, begin_min: begin, unit: offset };
        self.ranges.extend(ranges.into_iter().map(range));
        Ok(())
    }

    fn sort_ranges(&mut self) {
        self.ranges.sort_rows_by_key(|range| range.end);
        let mut begin_min = u64::MAX;
        for range in self.ranges.iter_mut().rev() {
            begin_min = begin_min.min(range.begin);
            range.begin_min = begin_min;
        }
    }

    /// Counts the units of addresses that will be looked up, and the ranges that each of these look-ups passes.
    pub fn look_up(&mut self, probes: impl Iterator<Item = u64>) -> Result<()> {
        const STEPS_OF_UNIT: u64 = 16;
        let mut found = BTreeSet::new();
        for probe in probes {
            let first = self.ranges.partition_point(|range| range.end <= probe);
            let rest = self.ranges.get(first..).unwrap_or_default();
            for range in rest.iter().take_while(|range| range.begin_min <= probe) {
                let is_here = range.begin <= probe;
                self.budget.steps(if is_here { STEPS_OF_UNIT } else { 1 }, in_units(range.unit))?;
                if is_here {
                    found.insert(range.unit);
                }
            }
        }
        for offset in found {
            if self.read.insert(offset) {
                self.count_unit(offset)?;
            }
        }
        Ok(())
    }

    fn count_unit(&self, offset: usize) -> Result<()> {
        let header = self.dwarf.debug_info.header_from_offset(DebugInfoOffset(offset));
        let Ok(unit) = header.and_then(|header| self.dwarf.unit(header)) else { return Ok(()) };
        self.counted().lines(&unit, offset)?;
        self.counted().functions(&unit, offset)
    }

    /// Counts memory of a result.
    pub fn memory(&self, bytes: usize, offset: usize) -> Result<()> {
        self.budget.memory(bytes as u64, in_units(offset))
    }

    /// Counts steps of a result.
    pub fn steps(&self, steps: usize, offset: usize) -> Result<()> {
        self.budget.steps(steps as u64, in_units(offset))
    }
}

/// Counts units, and each table of abbreviations once: units share it. Returns the attributes of the widest abbreviation.
fn count_abbreviations(dwarf: &Dwarf<Reader<'_>>, budget: &Budget<'_>) -> Result<u64> {
    let (mut counted, mut attributes_max) = (BTreeSet::new(), 0);
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let unit = header.offset().as_debug_info_offset().map_or(0, |offset| offset.0);
        budget.memory(cost::UNIT, in_units(unit))?;
        let offset = header.debug_abbrev_offset().0;
        if !counted.insert(offset) {
            continue;
        }
        let section = dwarf.debug_abbrev.reader();
        let table = section.slice().get(offset..).unwrap_or_default();
        let cost = tables::abbreviations(EndianSlice::new(table, section.endian()));
        take(budget, cost, Place { section: ".debug_abbrev", offset: offset as u64 })?;
        attributes_max = attributes_max.max(cost.attributes_max);
    }
    Ok(attributes_max)
}

fn take(budget: &Budget<'_>, cost: Cost, place: Place) -> Result<()> {
    budget.steps(cost.steps, place)?;
    budget.memory(cost.memory, place)
}
