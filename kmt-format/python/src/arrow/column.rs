//! Columns while they grow.

use std::collections::HashMap;

use super::data::{Buffer, Data, Type};
use crate::value::Kind;

/// Distinct texts of a column beyond which its dictionary begins anew with the next batch.
const TEXTS_KEPT: usize = 1 << 18;

/// A column while it grows. Rows that were passed over are null.
#[derive(Debug)]
pub struct Column {
    length: usize,
    /// One bit a row, from the first null on.
    validity: Option<Vec<u8>>,
    null_count: usize,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    Bits(Vec<u8>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Texts { indices: Vec<i32>, texts: Texts },
    Bytes { ends: Vec<i32>, bytes: Vec<u8> },
    List { ends: Vec<i32>, items: Box<Column> },
}

/// Distinct texts, each once.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<Box<[u8]>, i32>,
    ends: Vec<i32>,
    bytes: Vec<u8>,
}

impl Column {
    pub fn new(kind: Kind) -> Self {
        let cells = match kind {
            Kind::Bool => Cells::Bits(Vec::new()),
            Kind::Number { width: 1, .. } => Cells::U8(Vec::new()),
            Kind::Number { width: 2, .. } => Cells::U16(Vec::new()),
            Kind::Number { width: 4, .. } => Cells::U32(Vec::new()),
            Kind::Number { .. } => Cells::U64(Vec::new()),
            Kind::Text => Cells::Texts { indices: Vec::new(), texts: Texts::default() },
            Kind::Bytes => Cells::Bytes { ends: vec![0], bytes: Vec::new() },
            Kind::List { width, signed } => {
                let items = Box::new(Self::new(Kind::Number { width, signed }));
                Cells::List { ends: vec![0], items }
            }
        };
        Self { length: 0, validity: None, null_count: 0, cells }
    }

    /// A number, in a column of numbers, of which it keeps the lower bytes.
    pub fn push_number(&mut self, row: usize, number: u64) {
        self.begin(row);
        match &mut self.cells {
            Cells::Bits(bits) => set_bit(bits, row, number != 0),
            Cells::U8(items) => items.push(number as u8),
            Cells::U16(items) => items.push(number as u16),
            Cells::U32(items) => items.push(number as u32),
            Cells::U64(items) => items.push(number),
            Cells::Texts { .. } | Cells::Bytes { .. } | Cells::List { .. } => return,
        }
        self.end(true);
    }

    /// Bytes or text, in a column of such.
    pub fn push_bytes(&mut self, row: usize, value: &[u8]) {
        self.begin(row);
        match &mut self.cells {
            Cells::Texts { indices, texts } => indices.push(texts.number(value)),
            Cells::Bytes { ends, bytes } => {
                bytes.extend_from_slice(value);
                ends.push(bytes.len() as i32);
            }
            _ => return,
        }
        self.end(true);
    }

    /// A text by its index, in a column of texts.
    pub fn push_index(&mut self, row: usize, index: i32) {
        self.begin(row);
        if let Cells::Texts { indices, .. } = &mut self.cells {
            indices.push(index);
            self.end(true);
        }
    }

    /// The index of a text, for [`Column::push_index`] until the batch is taken.
    pub fn index_of(&mut self, text: &[u8]) -> i32 {
        match &mut self.cells {
            Cells::Texts { texts, .. } => texts.number(text),
            _ => 0,
        }
    }

    /// Numbers, in a column of lists.
    pub fn push_list(&mut self, row: usize, numbers: impl Iterator<Item = u64>) {
        self.begin(row);
        if let Cells::List { ends, items } = &mut self.cells {
            for number in numbers {
                items.push_number(items.length, number);
            }
            ends.push(items.length as i32);
            self.end(true);
        }
    }

    /// Rows from the last one to `row` are null.
    fn begin(&mut self, row: usize) {
        while self.length < row {
            match &mut self.cells {
                Cells::Bits(bits) => set_bit(bits, self.length, false),
                Cells::U8(items) => items.push(0),
                Cells::U16(items) => items.push(0),
                Cells::U32(items) => items.push(0),
                Cells::U64(items) => items.push(0),
                Cells::Texts { indices, .. } => indices.push(0),
                Cells::Bytes { ends, bytes } => ends.push(bytes.len() as i32),
                Cells::List { ends, items } => ends.push(items.length as i32),
            }
            self.end(false);
        }
    }

    fn end(&mut self, is_valid: bool) {
        if !is_valid {
            self.null_count += 1;
        }
        if self.validity.is_none() && !is_valid {
            let mut bits = vec![0xff; self.length / 8];
            bits.extend((self.length % 8 != 0).then(|| (1u8 << (self.length % 8)) - 1));
            self.validity = Some(bits);
        }
        if let Some(bits) = &mut self.validity {
            set_bit(bits, self.length, is_valid);
        }
        self.length += 1;
    }

    /// The column up to `rows`; it begins anew, and keeps its dictionary.
    pub fn take(&mut self, rows: usize) -> Data {
        self.begin(rows);
        let validity = self.validity.take().map(Buffer::U8);
        let null_count = core::mem::take(&mut self.null_count);
        let length = core::mem::take(&mut self.length);
        let plain = |buffer| vec![buffer];
        let mut data = Data::new(length, Vec::new());
        let rest = match &mut self.cells {
            Cells::Bits(bits) => plain(Buffer::U8(core::mem::take(bits))),
            Cells::U8(items) => plain(Buffer::U8(core::mem::take(items))),
            Cells::U16(items) => plain(Buffer::U16(core::mem::take(items))),
            Cells::U32(items) => plain(Buffer::U32(core::mem::take(items))),
            Cells::U64(items) => plain(Buffer::U64(core::mem::take(items))),
            Cells::Texts { indices, texts } => {
                data.dictionary = Some(Box::new(texts.data()));
                plain(Buffer::I32(core::mem::take(indices)))
            }
            Cells::Bytes { ends, bytes } => {
                vec![Buffer::I32(core::mem::replace(ends, vec![0])), Buffer::U8(core::mem::take(bytes))]
            }
            Cells::List { ends, items } => {
                let count = items.length;
                data.children = vec![items.take(count)];
                plain(Buffer::I32(core::mem::replace(ends, vec![0])))
            }
        };
        data.null_count = null_count;
        data.buffers = core::iter::once(validity).chain(rest.into_iter().map(Some)).collect();
        data
    }
}

impl Texts {
    fn number(&mut self, text: &[u8]) -> i32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.ends.len() as i32;
        // Arrow's text is UTF-8.
        self.bytes.extend_from_slice(String::from_utf8_lossy(text).as_bytes());
        self.ends.push(self.bytes.len() as i32);
        self.numbers.insert(text.into(), number);
        number
    }

    /// The dictionary. It only grows from batch to batch, unless it is too large to be copied each time.
    fn data(&mut self) -> Data {
        let (length, offsets) =
            (self.ends.len(), core::iter::once(0).chain(self.ends.iter().copied()).collect());
        let bytes = self.bytes.clone();
        if length > TEXTS_KEPT {
            *self = Self::default();
        }
        Data::new(length, vec![None, Some(Buffer::I32(offsets)), Some(Buffer::U8(bytes))])
    }
}

fn set_bit(bits: &mut Vec<u8>, index: usize, value: bool) {
    if bits.len() <= index / 8 {
        bits.resize(index / 8 + 1, 0);
    }
    if let Some(byte) = bits.get_mut(index / 8) {
        *byte |= u8::from(value) << (index % 8);
    }
}

/// The type of a column of that kind.
pub fn type_of(kind: Kind, name: &str) -> Type {
    let number = |width, signed| match (width, signed) {
        (1, false) => "C",
        (1, true) => "c",
        (2, false) => "S",
        (2, true) => "s",
        (4, false) => "I",
        (4, true) => "i",
        (_, false) => "L",
        (_, true) => "l",
    };
    match kind {
        Kind::Bool => Type::plain("b", name),
        Kind::Number { width, signed } => Type::plain(number(width, signed), name),
        Kind::Text => Type::texts(name),
        Kind::Bytes => Type::plain("z", name),
        Kind::List { width, signed } => {
            let items = Type::plain(number(width, signed), "item");
            Type { children: vec![items], ..Type::plain("+l", name) }
        }
    }
}
