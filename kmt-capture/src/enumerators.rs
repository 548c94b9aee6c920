//! Values of enumerators that print fmts name: the kernel's own description of its types has them.
//!
//! Print fmts have the names of enumerators as they are in C, unless a kernel's TRACE_DEFINE_ENUM replaces them by numbers.
//! /sys/kernel/btf/vmlinux (Documentation/bpf/btf.rst, 5.2 to 7.2) has them all; a copy of it may be beside saved buffers
//! and in a trace.dat. It has some megabytes, so it is read in pieces: the offsets of the names in its strings, then the
//! enumerators with these names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use kmt_format::kernel::ByteOrder;
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::schema::EventClass;

/// First bytes of a description of types, in its byte order.
const MAGIC: u64 = 0xeb9f;
/// Longest header, and longest strings and types that are read, in bytes.
const HEADER_MAX: u64 = 4_096;
const PART_MAX: u64 = 64 << 20;
const BUFFER_LEN: usize = 64 << 10;

/// Notes the names in the print fmt of a class that have no value.
pub fn note(env: &PrintEnv<'_>, system: &str, format: &str, long_size: usize) {
    if let Ok(class) = EventClass::from_format(system, format, long_size) {
        EventText::new(&class, env);
    }
}

/// The value for the key `constants`: those of the names that the running kernel describes.
pub fn of_this_kernel(names: &BTreeSet<String>) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    found(&mut BufReader::with_capacity(BUFFER_LEN, File::open("/sys/kernel/btf/vmlinux").ok()?), names)
}

/// Values of a description in memory, of any byte order, for the names in these print fmts: system and format.
#[cfg(feature = "convert")]
pub fn of_formats<'f>(
    btf: &[u8],
    formats: impl Iterator<Item = (&'f str, &'f str)>,
    (order, long_size): (ByteOrder, usize),
) -> Option<String> {
    let env = PrintEnv::new(order, long_size);
    formats.for_each(|(system, format)| note(&env, system, format, long_size));
    found(&mut std::io::Cursor::new(btf), &env.unknown_names())
}

fn found(btf: &mut (impl BufRead + Seek), names: &BTreeSet<String>) -> Option<String> {
    let values = values(btf, names)?;
    let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Some(pairs.join(" ")).filter(|text| !text.is_empty())
}

/// Values of enumerators with these names; `None` if the description cannot be read.
fn values<'n>(
    btf: &mut (impl BufRead + Seek),
    names: &'n BTreeSet<String>,
) -> Option<BTreeMap<&'n str, i64>> {
    let mut header = [0; 24];
    btf.read_exact(&mut header).ok()?;
    let is_of = |order: &ByteOrder| order.uint_at(&header, 0, 2) == Some(MAGIC);
    let order = [ByteOrder::Little, ByteOrder::Big].into_iter().find(is_of)?;
    let word = |at| order.uint_at(&header, at, 4);
    let header_len = word(4)?;
    if !(24..=HEADER_MAX).contains(&header_len) {
        return None;
    }
    let (types, types_len, strings, strings_len) = (word(8)?, word(12)?, word(16)?, word(20)?);
    btf.seek(SeekFrom::Start(header_len + strings)).ok()?;
    let offsets = offsets(btf.take(strings_len.min(PART_MAX)), names);
    btf.seek(SeekFrom::Start(header_len + types)).ok()?;
    Some(enumerators(btf.take(types_len.min(PART_MAX)), &offsets, order))
}

/// Offsets of names in the strings.
fn offsets(mut strings: impl BufRead, names: &BTreeSet<String>) -> BTreeMap<u64, &str> {
    let (mut found, mut offset, mut string) = (BTreeMap::new(), 0, Vec::new());
    while found.len() < names.len() {
        string.clear();
        let Ok(len @ 1..) = strings.read_until(0, &mut string) else { break };
        let text = std::str::from_utf8(string.strip_suffix(&[0]).unwrap_or(&string)).unwrap_or_default();
        if let Some(name) = names.get(text) {
            found.insert(offset, name.as_str());
        }
        offset += len as u64;
    }
    found
}

/// Enumerators with names at these offsets. Reading ends at a kind of type that is not known, of whose length nothing is
/// known either.
fn enumerators<'n>(
    mut types: impl Read,
    names: &BTreeMap<u64, &'n str>,
    order: ByteOrder,
) -> BTreeMap<&'n str, i64> {
    let mut found = BTreeMap::new();
    let mut head = [0; 12];
    while found.len() < names.len() && types.read_exact(&mut head).is_ok() {
        let info = order.uint_at(&head, 4, 4).unwrap_or(0);
        let (kind, count, is_signed) = (info >> 24 & 0x1f, info & 0xffff, info >> 31 == 1);
        let size = match kind {
            // INT, VAR, DECL_TAG
            1 | 14 | 17 => (4, 1),
            // PTR, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FLOAT, TYPE_TAG
            2 | 7..=12 | 16 | 18 => (0, 0),
            // ARRAY
            3 => (12, 1),
            // STRUCT, UNION, DATASEC, ENUM64
            4 | 5 | 15 | 19 => (12, count),
            // ENUM, FUNC_PROTO
            6 | 13 => (8, count),
            _ => break,
        };
        for _ in 0..size.1 {
            let mut member = [0; 12];
            let Some(member) = member.get_mut(..size.0) else { break };
            if types.read_exact(member).is_err() {
                break;
            }
            let number = |at| order.uint_at(member, at, 4).unwrap_or(0);
            let Some(name) = names.get(&number(0)).filter(|_| matches!(kind, 6 | 19)) else { continue };
            let value = match (kind, is_signed) {
                (6, true) => i64::from(number(4) as u32 as i32),
                (6, false) => number(4) as i64,
                _ => (number(8) << 32 | number(4)) as i64,
            };
            found.entry(*name).or_insert(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A description with an INT, a STRUCT of one member, an ENUM and an ENUM64.
    fn described(order: ByteOrder) -> Vec<u8> {
        let strings = b"\0int\0I_DIRTY\0A_NEGATIVE\0LARGE\0OTHER\0";
        let at = |name: &[u8]| strings.windows(name.len()).position(|w| w == name).unwrap() as u64;
        let mut types = Vec::new();
        let mut words = |words: &[u64]| words.iter().for_each(|word| order.push(&mut types, *word, 4));
        words(&[at(b"int"), 1 << 24, 4, 0x0100_0020]);
        words(&[0, 4 << 24 | 1, 4, at(b"OTHER"), 1, 0]);
        words(&[0, 1 << 31 | 6 << 24 | 2, 4, at(b"I_DIRTY"), 16, at(b"A_NEGATIVE"), (-3i64) as u32 as u64]);
        words(&[0, 19 << 24 | 1, 8, at(b"LARGE"), 5, 1]);
        let mut out = Vec::new();
        order.push(&mut out, MAGIC, 2);
        out.extend([1, 0]);
        for word in [24, 0, types.len() as u64, types.len() as u64, strings.len() as u64] {
            order.push(&mut out, word, 4);
        }
        out.extend(types);
        out.extend(strings);
        out
    }

    fn names_of(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn enumerators_of_any_byte_order_have_their_values() {
        let names = names_of(&["I_DIRTY", "A_NEGATIVE", "LARGE", "OTHER", "jiffies"]);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let found = values(&mut Cursor::new(described(order)), &names).unwrap();
            let found: Vec<(&str, i64)> = found.into_iter().collect();
            assert_eq!(found, [("A_NEGATIVE", -3), ("I_DIRTY", 16), ("LARGE", (1 << 32) + 5)], "{order:?}");
        }
    }

    #[cfg(feature = "convert")]
    #[test]
    fn names_of_print_fmts_have_values_of_a_copy() {
        let format = "name: e\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:int state;\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \"%s\", __print_flags(REC->state, \"|\", {I_DIRTY, \"D\"}, {2, \"T\"})\n";
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let formats = [("writeback", format)].into_iter();
            assert_eq!(of_formats(&described(order), formats, (order, 8)).as_deref(), Some("I_DIRTY=16"));
        }
        assert_eq!(of_formats(b"no", [("writeback", format)].into_iter(), (ByteOrder::Little, 8)), None);
    }

    #[test]
    fn a_cut_or_changed_description_gives_what_is_there() {
        let names = names_of(&["I_DIRTY", "LARGE"]);
        let whole = described(ByteOrder::Little);
        for len in 0..whole.len() {
            let _ = values(&mut Cursor::new(&whole[..len]), &names);
        }
        for at in 0..whole.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] ^= change;
                let _ = values(&mut Cursor::new(changed), &names);
            }
        }
        assert!(values(&mut Cursor::new(b"ELF"), &names).is_none());
    }

    #[test]
    fn names_without_a_value_are_those_of_enumerators() {
        let format = "name: e\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:int state;\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \"%s\", __print_flags(REC->state, \"|\", {I_DIRTY, \"D\"}, {2, \"T\"})\n";
        let env = PrintEnv::new(ByteOrder::NATIVE, 8);
        note(&env, "writeback", format, 8);
        assert_eq!(env.unknown_names(), names_of(&["I_DIRTY"]));
    }
}
