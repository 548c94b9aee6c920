//! The content of a unit: its functions, lines and ranges are counted before addr2line reads them.
//!
//! The entries of a unit are read one by one and counted: functions, inlined functions with their depth, ranges, lines
//! and paths. Budgets are in `limits`. `check` calls it for the units of the looked-up addresses only, since a vmlinux
//! has thousands of units.

use gimli::{Abbreviation, Attribute, AttributeValue, Dwarf, EndianSlice, RunTimeEndian, Unit};

use super::limits::{Budget, INLINED_DEPTH_MAX, Place, cost};
use crate::failure::Result;

pub type Reader<'s> = EndianSlice<'s, RunTimeEndian>;

/// Entries that are followed for a function's name: addr2line 0.25 stops at 16.
const NAME_ENTRIES: u64 = 16;

/// A place in the units.
pub fn in_units(offset: usize) -> Place {
    Place { section: ".debug_info", offset: offset as u64 }
}

/// Debug information whose content is counted.
pub struct Counted<'c, 's> {
    pub dwarf: &'c Dwarf<Reader<'s>>,
    pub budget: &'c Budget<'c>,
    /// Steps to find the end of a text.
    pub text_steps: u64,
    /// Attributes of the entry that has most.
    pub attributes_max: u64,
}

/// Depths of the functions, and of the inlined ones, that are open at an entry.
#[derive(Default)]
struct Open {
    functions: Vec<isize>,
    inlined: Vec<isize>,
}

impl Open {
    fn close(&mut self, depth: isize) {
        for depths in [&mut self.functions, &mut self.inlined] {
            while depths.last().is_some_and(|last| *last >= depth) {
                depths.pop();
            }
        }
    }
}

impl<'s> Counted<'_, 's> {
    /// Counts a list of ranges, each of which has a cost. Entries that select a base are ranges here.
    pub fn ranges(
        &self,
        unit: &Unit<Reader<'s>>,
        list: AttributeValue<Reader<'s>>,
        cost: u64,
        place: Place,
    ) -> Result<()> {
        let Ok(Some(offset)) = self.dwarf.attr_ranges_offset(unit, list) else { return Ok(()) };
        let Ok(mut entries) = self.dwarf.raw_ranges(unit, offset) else { return Ok(()) };
        while let Ok(Some(_)) = entries.next() {
            self.budget.steps(1, place)?;
            self.budget.memory(cost, place)?;
        }
        Ok(())
    }

    /// Counts the lines of a unit, and the paths of its files.
    pub fn lines(&self, unit: &Unit<Reader<'s>>, offset: usize) -> Result<()> {
        let Some(program) = &unit.line_program else { return Ok(()) };
        let place = in_units(offset);
        let header = program.header();
        let bytes = header.raw_program_buf().len() as u64;
        self.budget.steps(bytes, place)?;
        self.budget.memory(bytes.saturating_mul(cost::LINE), place)?;
        let len = |text| self.dwarf.attr_string(unit, text).map_or(0, |text| text.len());
        let directory = unit.comp_dir.map_or(0, |directory| directory.len());
        for file in header.file_names() {
            self.budget.steps(1 + 2 * self.text_steps, place)?;
            let path = directory + file.directory(header).map_or(0, len) + len(file.path_name());
            // A path is made in a text that grows.
            self.budget.memory(cost::PATH + 2 * path as u64, place)?;
        }
        Ok(())
    }

    /// Ranges of the lines of a unit, which are counted.
    pub fn sequences(&self, unit: &Unit<Reader<'s>>, offset: usize) -> Result<Vec<(u64, u64)>> {
        self.lines(unit, offset)?;
        let Some(program) = unit.line_program.clone() else { return Ok(Vec::new()) };
        let (mut rows, mut found, mut begin) = (program.rows(), Vec::new(), None);
        while let Ok(Some((_, row))) = rows.next_row() {
            if !row.end_sequence() {
                begin.get_or_insert(row.address());
            } else if let Some(begin) = begin.take() {
                self.budget.memory(cost::RANGE, in_units(offset))?;
                found.push((begin, row.address()));
            }
        }
        Ok(found)
    }

    /// Counts the functions of a unit, and the functions that are inlined in them. A fault ends the unit, as it does for
    /// addr2line.
    pub fn functions(&self, unit: &Unit<Reader<'s>>, offset: usize) -> Result<()> {
        let Ok(mut entries) = unit.entries_raw(None) else { return Ok(()) };
        let mut open = Open::default();
        while !entries.is_empty() {
            let (at, depth) = (offset.saturating_add(entries.next_offset().0), entries.next_depth());
            let Ok(read) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = read else {
                self.budget.steps(1, in_units(at))?;
                continue;
            };
            open.close(depth);
            // Those around a function are skipped over it.
            let again = 1 + open.functions.len() as u64;
            let attributes = 1 + abbreviation.attributes().len() as u64;
            self.budget.steps(attributes.saturating_mul(again), in_units(at))?;
            if matches!(abbreviation.tag(), gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine) {
                self.function(unit, entries.clone(), abbreviation, in_units(at))?;
                let is_inlined = abbreviation.tag() == gimli::DW_TAG_inlined_subroutine;
                if is_inlined { &mut open.inlined } else { &mut open.functions }.push(depth);
            }
            if open.inlined.len() > INLINED_DEPTH_MAX {
                let why = format!("has functions inlined more than {INLINED_DEPTH_MAX} levels deep");
                return Err(self.budget.beyond(in_units(at), why));
            }
            if entries.skip_attributes(abbreviation.attributes()).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn function(
        &self,
        unit: &Unit<Reader<'s>>,
        mut entries: gimli::EntriesRaw<'_, '_, Reader<'s>>,
        abbreviation: &Abbreviation,
        place: Place,
    ) -> Result<()> {
        self.budget.memory(cost::FUNCTION, place)?;
        for spec in abbreviation.attributes() {
            let Ok(attribute) = entries.read_attribute(*spec) else { break };
            self.attribute(unit, &attribute, place)?;
        }
        Ok(())
    }

    fn attribute(
        &self,
        unit: &Unit<Reader<'s>>,
        attribute: &Attribute<Reader<'s>>,
        place: Place,
    ) -> Result<()> {
        match attribute.name() {
            gimli::DW_AT_ranges => self.ranges(unit, attribute.value(), cost::FUNCTION_RANGE, place),
            gimli::DW_AT_low_pc => self.budget.memory(cost::FUNCTION_RANGE, place),
            gimli::DW_AT_name | gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                self.budget.steps(self.text_steps, place)
            }
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                self.budget.steps(NAME_ENTRIES * (self.attributes_max + self.text_steps), place)
            }
            _ => Ok(()),
        }
    }
}
