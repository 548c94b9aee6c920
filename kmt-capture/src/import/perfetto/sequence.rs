//! State of a sequence of packets: symbols, descriptors of events, and the last event of each CPU.

use std::collections::{BTreeMap, HashMap};

use super::super::bounds::Bounds;
use super::super::cursor::{ImportError, Result};
use super::layout::Kind;
use super::wire::{Message, Value};

/// Bytes of a symbol's name that are kept; kernels have 512.
const SYMBOL_MAX: usize = 512;

/// Header of a packet.
#[derive(Debug, Default)]
pub struct Packet {
    /// Sequence; 0: none.
    pub sequence: u32,
    /// True if symbols of earlier packets are not valid any more.
    pub is_cleared: bool,
    /// True if packets of the sequence were lost before it, or if it is the first one.
    pub is_after_drop: bool,
    /// True if it is of another machine, such as the host of a virtual one.
    pub is_of_other_machine: bool,
}

impl Packet {
    /// Field of a bundle of events.
    pub const BUNDLE: u32 = 1;
    /// Field of interned data.
    pub const INTERNED: u32 = 12;

    /// Of a packet. Its sequence comes after its data, and the last value of a field counts.
    pub fn of(message: Message<'_>) -> Result<Self> {
        let mut packet = Self::default();
        for field in message.fields() {
            let field = field?;
            let Value::Number(number) = field.value else { continue };
            match field.number {
                10 => packet.sequence = number as u32,
                13 => packet.is_cleared |= number & 1 != 0,
                41 => packet.is_cleared |= number != 0,
                42 => packet.is_after_drop = number != 0,
                98 => packet.is_of_other_machine = number != 0,
                _ => {}
            }
        }
        Ok(packet)
    }
}

/// State of a CPU in a sequence.
#[derive(Debug, Default)]
pub struct CpuState {
    /// True if there was a bundle.
    pub is_known: bool,
    /// Time of the last event.
    pub last: u64,
    /// Number of the drops of the sequence that are marked on this CPU.
    pub drops: u64,
    /// Number of the damages of the file that are marked on this CPU.
    pub damages: u64,
}

/// An event that is described in the trace.
#[derive(Debug)]
pub struct Described {
    /// Group, which is the kernel's system; "" if unknown.
    pub group: String,
    /// Name.
    pub name: String,
    /// Number, name and kind of each field.
    pub fields: Vec<(u32, String, Kind)>,
    bytes: Vec<u8>,
}

/// State of a sequence.
#[derive(Debug, Default)]
pub struct Sequence {
    /// Number of drops so far.
    pub drops: u64,
    /// Of each CPU.
    pub cpus: BTreeMap<u32, CpuState>,
    symbols: HashMap<u64, Vec<u8>>,
    symbols_len: u64,
    /// True from a drop on, until symbols are valid again.
    is_without_symbols: bool,
    described: HashMap<u32, Described>,
    described_len: u64,
}

impl Sequence {
    /// Begins a packet. `is_first`: there was none before.
    pub fn begin(&mut self, packet: &Packet, is_first: bool) {
        // The first packet of a sequence is marked as if there were a drop before it.
        if packet.is_after_drop && !is_first {
            self.drops += 1;
            self.is_without_symbols = true;
        }
        if packet.is_cleared {
            self.is_without_symbols = false;
        }
        if self.is_without_symbols || packet.is_cleared {
            self.symbols.clear();
            self.symbols_len = 0;
        }
    }

    /// Adds the symbols of interned data.
    pub fn intern(&mut self, data: Message<'_>, bounds: &Bounds) -> Result<()> {
        if self.is_without_symbols {
            return Ok(());
        }
        for_symbols(data, &mut |number, name| {
            self.symbols_len += name.len() as u64 + 16;
            if self.symbols_len <= bounds.kallsyms {
                self.symbols.insert(number, name.to_vec());
            }
        })
    }

    /// Name of the symbol of that number.
    pub fn symbol(&self, number: u64) -> Option<&[u8]> {
        self.symbols.get(&number).map(Vec::as_slice)
    }

    /// The event of that number.
    pub fn described(&self, number: u32) -> Option<&Described> {
        self.described.get(&number)
    }

    /// Adds the description of an event; mostly it is the one that is there already.
    pub fn describe(&mut self, message: Message<'_>, bounds: &Bounds) -> Result<()> {
        let (mut number, mut group, mut description) = (None, None, None);
        for field in message.fields() {
            let field = field?;
            match (field.number, field.value) {
                (1, Value::Number(id)) => number = u32::try_from(id).ok(),
                (2, Value::Message(descriptor)) => description = Some(descriptor),
                (3, Value::Message(name)) => group = Some(name),
                _ => {}
            }
        }
        let (Some(number), Some(description)) = (number, description) else { return Ok(()) };
        if self.described.get(&number).is_some_and(|had| had.bytes == message.bytes()) {
            return Ok(());
        }
        let group = group.map(text).unwrap_or_default();
        let described = Described::of(group, description, message.bytes(), bounds)?;
        let len = message.bytes().len() as u64 * 4 + 64;
        if let Some(had) = self.described.insert(number, described) {
            self.described_len -= had.bytes.len() as u64 * 4 + 64;
        }
        self.described_len += len;
        if self.described_len > bounds.formats {
            let fact = format!("the descriptors of events need more than {} bytes", bounds.formats);
            self.described.clear();
            self.described_len = 0;
            return Err(ImportError::at(message.offset(), fact));
        }
        Ok(())
    }
}

/// Shows each symbol of interned data: its number and its name.
pub fn for_symbols(data: Message<'_>, see: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
    const KERNEL_SYMBOLS: u32 = 26;
    for field in data.fields() {
        let field = field?;
        let Some(row) = field.message().filter(|_| field.number == KERNEL_SYMBOLS) else { continue };
        let (mut number, mut name) = (None, None);
        for field in row.fields() {
            let field = field?;
            match (field.number, field.value) {
                (1, Value::Number(id)) => number = Some(id),
                (2, Value::Message(text)) => name = Some(text.bytes()),
                _ => {}
            }
        }
        if let (Some(number), Some(name)) = (number, name.filter(|name| !name.is_empty())) {
            see(number, name.get(..name.len().min(SYMBOL_MAX)).unwrap_or_default());
        }
    }
    Ok(())
}

impl Described {
    fn of(group: String, descriptor: Message<'_>, bytes: &[u8], bounds: &Bounds) -> Result<Self> {
        let mut described = Self { group, name: String::new(), fields: Vec::new(), bytes: bytes.to_vec() };
        for field in descriptor.fields() {
            let field = field?;
            match (field.number, field.message()) {
                (1, Some(name)) => described.name = text(name),
                (2, Some(row)) if (described.fields.len() as u64) < bounds.pairs => {
                    let (mut name, mut number, mut kind) = (String::new(), 0, 0);
                    for field in row.fields() {
                        let field = field?;
                        match (field.number, field.value) {
                            (1, Value::Message(word)) => name = text(word),
                            (3, Value::Number(id)) => number = u32::try_from(id).unwrap_or(0),
                            (5, Value::Number(id)) => kind = id,
                            _ => {}
                        }
                    }
                    described.fields.push((number, name, kind_of(kind)));
                }
                _ => {}
            }
        }
        Ok(described)
    }
}

/// Kind of a field by its type in a descriptor.
fn kind_of(number: u64) -> Kind {
    match number {
        9 | 12 => Kind::Text,
        3 | 5 => Kind::S64,
        8 => Kind::Truth,
        _ => Kind::U64,
    }
}

/// A name.
pub fn text(message: Message<'_>) -> String {
    /// Far longer than any name.
    const LONGEST: usize = 256;
    let bytes = message.bytes();
    String::from_utf8_lossy(bytes.get(..bytes.len().min(LONGEST)).unwrap_or_default()).into_owned()
}
