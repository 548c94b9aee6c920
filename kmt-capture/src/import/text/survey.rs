//! A first look at a text: the columns of its lines, and what its pointers tell of the machine. Everything that is decided
//! once for all lines is decided here.

use super::columns::Stamp;
use super::fields::fields_of;
use super::layout::{TextLayout, Votes};
use super::line::parse;
use super::line_types::{TextEvent, TextLine};

/// Properties of a text, from its first events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextSurvey {
    /// Events among them, calls of functions too.
    pub events: u64,
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
}

/// Events that are looked at.
const EVENTS: u64 = 20_000;
/// Fields of each that are looked at.
const PAIRS: usize = 64;

impl TextSurvey {
    /// Looks at the first events.
    pub fn of(text: &[u8]) -> Self {
        let layout = layout(text);
        let (mut events, mut counts, mut has_functions) = (0, 0, false);
        let (mut wide, mut narrow, mut misaligned, mut low, mut pointers) = (0u64, 0u64, 0u64, 0u64, 0u64);
        let mut pairs = Vec::new();
        for line in text.split(|&b| b == b'\n') {
            if events == EVENTS {
                break;
            }
            let TextEvent { name, text, stamp, .. } = match parse(line, &layout).line {
                TextLine::Event(event) => event,
                TextLine::Function(event, ..) | TextLine::Graph(event, _) => {
                    has_functions = true;
                    event
                }
                _ => continue,
            };
            events += 1;
            counts += u64::from(matches!(stamp, Stamp::Count(_)));
            fields_of(name, text, PAIRS, &mut pairs);
            for pair in pairs.iter().filter(|p| p.key == b"ptr" || p.key == b"call_site") {
                has_functions |= pair.key == b"call_site" && pair.value.contains(&b'+');
                let prefixed = pair.value.starts_with(b"0x");
                let digits = pair.value.strip_prefix(b"0x").unwrap_or(pair.value);
                let Some(address) =
                    std::str::from_utf8(digits).ok().and_then(|d| u64::from_str_radix(d, 16).ok())
                else {
                    continue;
                };
                if address > u32::MAX.into() || (!prefixed && digits.len() == 16) {
                    wide += 1;
                } else if digits.len() == 8 {
                    narrow += 1;
                }
                if pair.key == b"ptr" && address > 16 {
                    pointers += 1;
                    misaligned += u64::from(address % 4 != 0);
                    low += u64::from(address <= u32::MAX.into());
                }
            }
        }
        let long_size = if narrow > wide { 4 } else { 8 };
        // Objects are aligned; hashes are not, and have zeros in their upper half on 64-bit kernels.
        let is_hashed = pointers > 0
            && (misaligned * 4 > pointers || long_size == 8 && low == pointers && misaligned > 0);
        Self { events, long_size, is_hashed, has_functions, counts: counts * 2 > events, layout }
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
