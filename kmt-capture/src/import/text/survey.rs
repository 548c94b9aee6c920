//! A first look at a text: the columns of its lines, and what its pointers tell of the machine. Everything that is decided
//! once for all lines is decided here.

use super::columns::{Stamp, number};
use super::fields::{event_name, fields_of};
use super::layout::{TextLayout, Votes};
use super::line::parse;
use super::line_types::{TextEvent, TextLine};
use super::notation::{Evidence, Notation, Notations};
use super::torn::could_be_event;

/// A text is mostly torn if this many times as many lines look like events as can be read.
const TORN_MAX: u64 = 16;

/// Properties of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextSurvey {
    /// Events that were looked at, calls of functions too.
    pub events: u64,
    /// Lines that look like events and cannot be read.
    pub torn: u64,
    /// Size of a `long`, in bytes.
    pub long_size: usize,
    /// True if pointers are hashes of addresses, as kernels print them since 4.15 by default.
    pub is_hashed: bool,
    /// True if call sites are functions by name, not addresses.
    pub has_functions: bool,
    /// True if times are in another unit than seconds.
    pub counts: bool,
    /// Columns of its lines.
    pub layout: TextLayout,
    /// How its fields write numbers.
    pub notations: Notations,
}

/// Events that are looked at.
const EVENTS: u64 = 20_000;
/// Of the lines behind them, one in this number.
const STEP: usize = 16;
/// Fields of each that are looked at.
const PAIRS: usize = 64;

impl TextSurvey {
    /// True if hardly any of its lines can be read.
    pub fn is_mostly_torn(&self) -> bool {
        self.events <= self.torn / TORN_MAX
    }

    /// Looks at the first events, and at some of the others.
    pub fn of(text: &[u8]) -> Self {
        let layout = layout(text);
        let (mut events, mut torn, mut counts, mut has_functions) = (0, 0, 0, false);
        let mut evidence = Evidence::default();
        let mut pointers = PointerVotes::default();
        let mut pairs = Vec::new();
        for (number, line) in text.split(|&b| b == b'\n').enumerate() {
            if events >= EVENTS && number % STEP != 0 {
                continue;
            }
            let TextEvent { name, text, stamp, .. } = match parse(line, &layout).line {
                TextLine::Event(event) => event,
                TextLine::Function(event, ..) | TextLine::Graph(event, _) => {
                    has_functions = true;
                    event
                }
                TextLine::Other => {
                    torn += u64::from(could_be_event(line));
                    continue;
                }
                _ => continue,
            };
            events += 1;
            counts += u64::from(matches!(stamp, Stamp::Count(_)));
            fields_of(name, text, PAIRS, &mut pairs);
            evidence.event(event_name(name), &pairs);
            for pair in &pairs {
                has_functions |= pair.name == b"call_site" && pair.value.contains(&b'+');
                if pair.name == b"ptr" || pair.name == b"call_site" {
                    pointers.add(pair.value, pair.name == b"ptr");
                }
            }
        }
        let notations = evidence.notations();
        let (long_size, is_hashed) = pointers.machine(&notations);
        Self {
            events,
            torn,
            long_size,
            is_hashed,
            has_functions,
            counts: counts * 2 > events,
            layout,
            notations,
        }
    }
}

/// What pointers tell of the machine, by notation: hexadecimal and decimal.
#[derive(Debug, Default)]
struct PointerVotes {
    /// Pointers to objects.
    objects: [Widths; 2],
    /// Call sites.
    sites: [Widths; 2],
}

#[derive(Debug, Default, Clone, Copy)]
struct Widths {
    wide: u64,
    narrow: u64,
    misaligned: u64,
    low: u64,
    pointers: u64,
}

impl PointerVotes {
    fn add(&mut self, value: &[u8], is_object: bool) {
        let votes = if is_object { &mut self.objects } else { &mut self.sites };
        let prefixed = value.starts_with(b"0x");
        let digits = value.strip_prefix(b"0x").unwrap_or(value);
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        let [hex, decimal] = votes;
        if let Ok(address) = u64::from_str_radix(digits, 16) {
            hex.add(address, !prefixed && digits.len() == 16, digits.len() == 8);
            if prefixed {
                decimal.add(address, false, digits.len() == 8);
            }
        }
        if let Some(address) = number(value) {
            decimal.add(address, false, digits.len() >= 9);
        }
    }

    /// Size of a `long`, and whether pointers are hashes.
    fn machine(&self, notations: &Notations) -> (usize, bool) {
        let of = |votes: &[Widths; 2], field: &[u8]| {
            let [hex, decimal] = *votes;
            if notations.of(field) == Notation::Decimal { decimal } else { hex }
        };
        let (objects, sites) = (of(&self.objects, b"ptr"), of(&self.sites, b"call_site"));
        let (wide, narrow) = (objects.wide + sites.wide, objects.narrow + sites.narrow);
        // A long address is cut by nothing but damage, which is rare; a short one by tools.
        let long_size = if narrow > wide.saturating_mul(16) { 4 } else { 8 };
        let Widths { misaligned, low, pointers, .. } = objects;
        // Objects are aligned; hashes are not, and have zeros in their upper half on 64-bit kernels.
        let is_hashed = pointers > 0
            && (misaligned * 4 > pointers || long_size == 8 && low == pointers && misaligned > 0);
        (long_size, is_hashed)
    }
}

impl Widths {
    fn add(&mut self, address: u64, is_wide: bool, is_narrow: bool) {
        if address > u32::MAX.into() || is_wide {
            self.wide += 1;
        } else if is_narrow {
            self.narrow += 1;
        }
        if address > 16 {
            self.pointers += 1;
            self.misaligned += u64::from(address % 4 != 0);
            self.low += u64::from(address <= u32::MAX.into());
        }
    }
}

/// The columns that most of the first events have.
fn layout(text: &[u8]) -> TextLayout {
    let mut votes = Votes::default();
    for line in text.split(|&b| b == b'\n') {
        if votes.lines() == EVENTS {
            break;
        }
        votes.add(line);
    }
    votes.layout()
}
