//! Sizes of tables in debug information, which libraries read as a whole, without reading them into memory.
//!
//! gimli reads a table of abbreviations, directories or files into vectors. These functions walk over the same bytes
//! and return the memory that the vectors take. Only `check` calls them, for each table once.

use gimli::{EndianSlice, Reader as _, RunTimeEndian, constants as dw};

use super::limits::cost;

type Reader<'s> = EndianSlice<'s, RunTimeEndian>;

/// What a table takes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Bytes in memory.
    pub memory: u64,
    /// Steps to read it.
    pub steps: u64,
    /// Attributes of the abbreviation that has most.
    pub attributes_max: u64,
}

/// Cost of a table of abbreviations; one with a fault ends there, as it does for gimli.
pub fn abbreviations(mut table: Reader<'_>) -> Cost {
    let mut sum = Cost::default();
    let whole = table.len() as u64;
    // The end of the section ends a table, too.
    while let Ok(Some(attributes)) = abbreviation(&mut table) {
        sum.memory += cost::ABBREVIATION;
        sum.attributes_max = sum.attributes_max.max(attributes);
        sum.memory += if attributes > 5 { attributes.saturating_mul(cost::ATTRIBUTE) } else { 0 };
    }
    sum.steps = whole - table.len() as u64;
    sum
}

/// The number of attributes of an abbreviation; `None`: the end of a table.
fn abbreviation(table: &mut Reader<'_>) -> gimli::Result<Option<u64>> {
    if table.is_empty() || table.read_uleb128()? == 0 {
        return Ok(None);
    }
    let (_tag, _has_children) = (table.read_uleb128()?, table.read_u8()?);
    let mut attributes = 0;
    loop {
        let (name, form) = (table.read_uleb128()?, table.read_uleb128()?);
        if (name, form) == (0, 0) {
            return Ok(Some(attributes));
        }
        if form == u64::from(dw::DW_FORM_implicit_const.0) {
            table.read_sleb128()?;
        }
        attributes += 1;
    }
}

/// Cost of the tables of directories and files before a program of lines.
pub fn line_header(section: Reader<'_>) -> Cost {
    let mut sum = Cost::default();
    // A wrong header ends where gimli ends, too.
    let _ = add_line_header(section, &mut sum);
    sum
}

fn add_line_header(mut section: Reader<'_>, sum: &mut Cost) -> gimli::Result<()> {
    let (len, format) = section.read_initial_length()?;
    let mut rest = section.split(len)?;
    let version = rest.read_u16()?;
    if version >= 5 {
        rest.skip(2)?;
    }
    let header_len = rest.read_length(format)?;
    rest.truncate(header_len)?;
    rest.skip(if version >= 4 { 5 } else { 4 })?;
    let opcode_base = rest.read_u8()?;
    rest.skip(usize::from(opcode_base.saturating_sub(1)))?;
    let mut row = |bytes: u64| {
        sum.memory = sum.memory.saturating_add(bytes);
        sum.steps += 1;
    };
    if version >= 5 {
        for bytes in [cost::DIRECTORY, cost::FILE] {
            let forms = forms(&mut rest)?;
            for _ in 0..rest.read_uleb128()? {
                forms.iter().try_for_each(|form| skip(&mut rest, *form, format))?;
                row(bytes);
            }
        }
        return Ok(());
    }
    while !rest.read_null_terminated_slice()?.is_empty() {
        row(cost::DIRECTORY);
    }
    while !rest.read_null_terminated_slice()?.is_empty() {
        for _ in 0..3 {
            rest.read_uleb128()?;
        }
        row(cost::FILE);
    }
    Ok(())
}

/// Forms of the parts of a row; without any, a row has no bytes, and their number no limit.
fn forms(rest: &mut Reader<'_>) -> gimli::Result<Vec<gimli::DwForm>> {
    let mut forms = Vec::new();
    for _ in 0..rest.read_u8()? {
        rest.read_uleb128()?;
        forms.push(gimli::DwForm(rest.read_uleb128_u16()?));
    }
    if forms.is_empty() { Err(gimli::Error::MissingFileEntryFormatPath) } else { Ok(forms) }
}

/// Skips a value; all forms that gimli reads in these tables have bytes.
fn skip(rest: &mut Reader<'_>, form: gimli::DwForm, format: gimli::Format) -> gimli::Result<()> {
    let len = match form {
        dw::DW_FORM_block1 => usize::from(rest.read_u8()?),
        dw::DW_FORM_block2 => usize::from(rest.read_u16()?),
        dw::DW_FORM_block4 => rest.read_u32()? as usize,
        dw::DW_FORM_block => usize::try_from(rest.read_uleb128()?).unwrap_or(usize::MAX),
        dw::DW_FORM_data1 | dw::DW_FORM_flag | dw::DW_FORM_strx1 => 1,
        dw::DW_FORM_data2 | dw::DW_FORM_strx2 => 2,
        dw::DW_FORM_strx3 => 3,
        dw::DW_FORM_data4 | dw::DW_FORM_strx4 => 4,
        dw::DW_FORM_data8 => 8,
        dw::DW_FORM_data16 => 16,
        dw::DW_FORM_udata | dw::DW_FORM_strx | dw::DW_FORM_GNU_str_index | dw::DW_FORM_sdata => {
            rest.skip_leb128()?;
            0
        }
        dw::DW_FORM_string => {
            rest.read_null_terminated_slice()?;
            0
        }
        dw::DW_FORM_sec_offset
        | dw::DW_FORM_strp
        | dw::DW_FORM_strp_sup
        | dw::DW_FORM_GNU_strp_alt
        | dw::DW_FORM_line_strp => usize::from(format.word_size()),
        _ => return Err(gimli::Error::UnknownForm(form)),
    };
    rest.skip(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> Reader<'_> {
        EndianSlice::new(bytes, RunTimeEndian::Little)
    }

    #[test]
    fn abbreviations_are_counted_to_the_end_of_their_table() {
        let one = [1, 0x11, 0, 3, 8, 0, 0];
        let six = [2, 0x2e, 1, 1, 11, 1, 11, 1, 11, 1, 11, 1, 11, 1, 0x21, 5, 0, 0];
        let bytes = [&one[..], &six, &[0], &one].concat();
        let expected = 2 * cost::ABBREVIATION + 6 * cost::ATTRIBUTE;
        assert_eq!(abbreviations(reader(&bytes)), Cost { memory: expected, steps: 26, attributes_max: 6 });
        assert_eq!(abbreviations(reader(&bytes[..12])).memory, cost::ABBREVIATION);
    }

    #[test]
    fn rows_of_files_are_counted() {
        let header = |version: u8, tables: &[u8]| {
            let fixed: &[u8] = if version < 4 { &[1, 1, 0, 1, 1] } else { &[1, 1, 1, 0, 1, 1] };
            let address: &[u8] = if version < 5 { &[] } else { &[8, 0] };
            let len = (fixed.len() + tables.len()) as u32;
            let rest = [&[version, 0][..], address, &len.to_le_bytes(), fixed, tables].concat();
            [&(rest.len() as u32).to_le_bytes()[..], &rest].concat()
        };
        let old = b"d\0e\0\0a.c\0\x01\x00\x00b.c\0\x01\x00\x00\0";
        let new = [&[1, 1, 8, 2][..], b"d\0e\0", &[2, 1, 8, 2, 11, 2], b"a\0\x01b\0\x01"].concat();
        for (version, tables) in [(2, &old[..]), (3, old), (4, old), (5, &new)] {
            let found = line_header(reader(&header(version, tables)));
            let memory = 2 * cost::DIRECTORY + 2 * cost::FILE;
            assert_eq!(found, Cost { memory, steps: 4, attributes_max: 0 }, "version {version}");
        }
        // 2^63 rows without bytes.
        let none = [&[0][..], &[0xff; 8], &[0x7f]].concat();
        assert_eq!(line_header(reader(&header(5, &none))), Cost::default());
    }
}
