//! Notation of numbers: decided for each field from all values of a text, as one value alone can be read in several ways.

use super::args::Arg;

/// How a field writes numbers that have no `0x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// Hexadecimal.
    Hex,
    /// Decimal.
    Decimal,
    /// `FUNCTION+0x1/0x2`, and hexadecimal where the value is not a function.
    Name,
}

/// Fields with numbers that reports use; the first three are addresses.
const FIELDS: [&[u8]; 11] = [
    b"call_site",
    b"ptr",
    b"page",
    b"pfn",
    b"bytes_req",
    b"bytes_alloc",
    b"order",
    b"migratetype",
    b"node",
    b"gfp_flags",
    b"accounted",
];
const ADDRESSES: usize = 3;

/// Lists of names of fields.
type Lists = &'static [&'static [&'static [u8]]];

/// Fields without which an event tells nothing: of each list, one. A text may leave out a field of all events of a name; where
/// some have it, it is missing in the others.
const NEEDED: [(&[u8], Lists); 9] = [
    (b"kmalloc", ALLOCATED),
    (b"kmalloc_node", ALLOCATED),
    (b"kmem_cache_alloc", ALLOCATED),
    (b"kmem_cache_alloc_node", ALLOCATED),
    (b"kfree", &[&[b"ptr"]]),
    (b"kmem_cache_free", &[&[b"ptr"]]),
    (b"mm_page_alloc", &[&[b"pfn", b"page"], &[b"order"]]),
    (b"mm_page_free", &[&[b"pfn", b"page"], &[b"order"]]),
    (b"mm_page_free_batched", &[&[b"pfn", b"page"]]),
];
const ALLOCATED: Lists = &[&[b"ptr"], &[b"bytes_req"], &[b"bytes_alloc"]];

/// Bits of the lists of fields that an event of that name has, and of those that it lacks.
fn needed(event: &[u8], args: &[Arg<'_>]) -> (u8, u8) {
    let lists = NEEDED.iter().find(|(name, _)| *name == event).map_or(&[][..], |(_, lists)| lists);
    lists.iter().zip(0..).fold((0, 0), |(has, lacks), (list, bit)| {
        let is_there = args.iter().any(|arg| list.contains(&arg.name));
        if is_there { (has | 1 << bit, lacks) } else { (has, lacks | 1 << bit) }
    })
}

/// The notation of each field of a text, and the fields that its events have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notations {
    fields: [Notation; FIELDS.len()],
    /// Bits of [`needed`] that some event of each name has.
    has: [u8; NEEDED.len()],
}

/// Those of kernels: addresses are hexadecimal.
impl Default for Notations {
    fn default() -> Self {
        let fields = std::array::from_fn(|at| if at < ADDRESSES { Notation::Hex } else { Notation::Decimal });
        Self { fields, has: [0; NEEDED.len()] }
    }
}

impl Notations {
    /// The notation of a field.
    pub(super) fn of(&self, field: &[u8]) -> Notation {
        index(field).and_then(|at| self.fields.get(at)).copied().unwrap_or(Notation::Decimal)
    }

    /// True if an event lacks a field that others of its name have, and without which it tells nothing.
    pub(super) fn lacks(&self, event: &[u8], args: &[Arg<'_>]) -> bool {
        let has = NEEDED.iter().zip(self.has).find(|((name, _), _)| *name == event).map_or(0, |(_, has)| has);
        needed(event, args).1 & has != 0
    }
}

/// True if reports use the numbers of that field.
pub(super) fn has_number(field: &[u8]) -> bool {
    index(field).is_some()
}

fn index(field: &[u8]) -> Option<usize> {
    FIELDS.iter().position(|&name| name == field)
}

/// Values of all fields of a text.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    values: [Values; FIELDS.len()],
    has: [u8; NEEDED.len()],
}

/// Values of one field that have no `0x`.
#[derive(Debug, Default)]
struct Values {
    /// All of them.
    numbers: u64,
    /// With a letter of a hexadecimal number.
    lettered: u64,
    /// With zeros before: padded hexadecimal numbers, as `%p` prints them.
    padded: u64,
    /// Not the hexadecimal address of any kernel, but a decimal one.
    decimal: u64,
    /// `FUNCTION+0x1`.
    functions: u64,
    /// Some different long numbers without letters.
    long: Vec<u64>,
}

/// Different long numbers of which none has a letter if they are decimal: else the chance is below 1 in 10^9.
const LONG: usize = 8;
const LONG_DIGITS: usize = 6;

impl Evidence {
    /// Adds the fields of an event.
    pub(super) fn event(&mut self, event: &[u8], args: &[Arg<'_>]) {
        if let Some((_, has)) = NEEDED.iter().zip(&mut self.has).find(|((name, _), _)| *name == event) {
            *has |= needed(event, args).0;
        }
        args.iter().for_each(|arg| self.add(arg.name, arg.value));
    }

    /// Adds a value.
    fn add(&mut self, field: &[u8], value: &[u8]) {
        if let Some(values) = index(field).and_then(|at| self.values.get_mut(at)) {
            values.add(value);
        }
    }

    /// The notations that the values have.
    pub(super) fn notations(&self) -> Notations {
        let mut notations = Notations { has: self.has, ..Notations::default() };
        for (number, (notation, values)) in notations.fields.iter_mut().zip(&self.values).enumerate() {
            *notation = if number < ADDRESSES { values.of_address() } else { values.of_number() };
        }
        notations
    }
}

impl Values {
    fn add(&mut self, value: &[u8]) {
        if value.contains(&b'+') {
            self.functions += 1;
        }
        if value.is_empty() || !value.iter().all(u8::is_ascii_hexdigit) {
            return;
        }
        self.numbers += 1;
        let is_padded = value.len() > 1 && value.starts_with(b"0");
        if !value.iter().all(u8::is_ascii_digit) {
            self.lettered += 1;
        } else if is_padded {
            self.padded += 1;
        } else if let Some(number) = super::columns::number(value) {
            // Addresses of 64-bit kernels have the first bit set.
            let is_decimal = value.len() > 16 || value.len() == 16 && value.first() < Some(&b'8');
            self.decimal += u64::from(is_decimal);
            if value.len() >= LONG_DIGITS && self.long.len() < LONG && !self.long.contains(&number) {
                self.long.push(number);
            }
        }
    }

    fn of_address(&self) -> Notation {
        let is_long =
            self.padded == 0 && self.long.len() >= LONG && self.lettered.saturating_mul(64) <= self.numbers;
        if self.decimal > self.lettered + self.padded || is_long {
            Notation::Decimal
        } else if self.functions > self.numbers {
            Notation::Name
        } else {
            Notation::Hex
        }
    }

    /// Of few letters, damage is the reason.
    fn of_number(&self) -> Notation {
        let is_hex = self.lettered > 0 && self.lettered.saturating_mul(16) >= self.numbers;
        if is_hex { Notation::Hex } else { Notation::Decimal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notation(field: &str, values: &[&str]) -> Notation {
        let mut evidence = Evidence::default();
        values.iter().for_each(|value| evidence.add(field.as_bytes(), value.as_bytes()));
        evidence.notations().of(field.as_bytes())
    }

    #[test]
    fn addresses() {
        use Notation::{Decimal, Hex, Name};
        assert_eq!(notation("ptr", &[]), Hex);
        assert_eq!(notation("ptr", &["80554994", "12345678"]), Hex);
        assert_eq!(notation("ptr", &["16", "18446744073709551600"]), Decimal);
        assert_eq!(notation("ptr", &["9800000000012345"]), Hex, "mips64");
        assert_eq!(notation("ptr", &["0000000012345678"]), Hex, "hashes");
        // 32-bit kernels: decided by many values.
        let decimal: Vec<String> = (0..8u32).map(|n| (3_221_225_472 + n * 64).to_string()).collect();
        let decimal: Vec<&str> = decimal.iter().map(String::as_str).collect();
        assert_eq!(notation("ptr", &decimal), Decimal);
        assert_eq!(notation("ptr", &[&decimal[..], &["c1234567"]].concat()), Hex);
        assert_eq!(notation("ptr", &["80554994"; 20]), Hex, "one value many times");
        assert_eq!(notation("call_site", &["f+0x1/0x2", "g+0x1", "add"]), Name);
    }

    #[test]
    fn numbers() {
        use Notation::{Decimal, Hex};
        assert_eq!(notation("bytes_req", &["20", "40"]), Decimal);
        assert_eq!(notation("bytes_req", &["20", "40", "2c", "80"]), Hex);
        assert_eq!(notation("bytes_req", &[&["64"; 100][..], &["5b"]].concat()), Decimal, "damage");
        assert_eq!(notation("gfp_flags", &["GFP_KERNEL", "cc0"]), Hex);
    }
}
