//! Fields of protobuf messages.

use super::super::cursor::{ImportError, Result};

/// Highest number of a field.
const NUMBER_MAX: u64 = (1 << 29) - 1;

/// Bytes of a message, and their place in the file.
#[derive(Debug, Clone, Copy)]
pub struct Message<'d> {
    bytes: &'d [u8],
    offset: u64,
    /// True if the bytes were decompressed: their offset is that of the compressed part.
    is_inflated: bool,
}

/// Value of a field.
#[derive(Debug, Clone, Copy)]
pub enum Value<'d> {
    /// An integer, an enum or a bool. A negative one is sign-extended.
    Number(u64),
    /// Eight or four bytes: nothing that is read here has this type.
    Fixed,
    /// A message, text or packed numbers.
    Message(Message<'d>),
}

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub struct Field<'d> {
    /// Number of the field.
    pub number: u32,
    /// Value of the field.
    pub value: Value<'d>,
}

impl<'d> Field<'d> {
    /// The integer, if it is one.
    pub fn uint(&self) -> Option<u64> {
        if let Value::Number(number) = self.value { Some(number) } else { None }
    }

    /// The message, if it is one.
    pub fn message(&self) -> Option<Message<'d>> {
        if let Value::Message(message) = self.value { Some(message) } else { None }
    }
}

impl<'d> Message<'d> {
    /// Of bytes at that offset of the file.
    pub fn new(bytes: &'d [u8], offset: u64) -> Self {
        Self { bytes, offset, is_inflated: false }
    }

    /// Of bytes that were decompressed from a part at that offset.
    pub fn inflated(bytes: &'d [u8], offset: u64) -> Self {
        Self { bytes, offset, is_inflated: true }
    }

    /// The bytes.
    pub fn bytes(self) -> &'d [u8] {
        self.bytes
    }

    /// Offset in the file.
    pub fn offset(self) -> u64 {
        self.offset
    }

    /// The fields, in their order. After an error there are no more.
    pub fn fields(self) -> Fields<'d> {
        Fields { message: self, at: 0 }
    }

    /// The last number of that field.
    pub fn last(self, number: u32) -> Result<Option<u64>> {
        let mut last = None;
        for field in self.fields() {
            let field = field?;
            if field.number == number {
                last = field.uint().or(last);
            }
        }
        Ok(last)
    }
}

/// Fields of a message.
#[derive(Debug)]
pub struct Fields<'d> {
    message: Message<'d>,
    at: usize,
}

impl<'d> Fields<'d> {
    /// Offset in the file of the next field.
    pub fn offset(&self) -> u64 {
        let at = if self.message.is_inflated { 0 } else { self.at as u64 };
        self.message.offset.saturating_add(at)
    }

    /// The next varint; it need not be minimal. Bits beyond the 64th are dropped.
    fn varint(&mut self) -> Result<u64> {
        /// Bytes of the longest one.
        const LONGEST: usize = 10;
        let rest = self.message.bytes.get(self.at..).unwrap_or_default();
        let mut value = 0u64;
        for (count, &byte) in rest.iter().take(LONGEST).enumerate() {
            value |= u64::from(byte & 0x7f).checked_shl(7 * count as u32).unwrap_or(0);
            if byte < 0x80 {
                self.at = self.at.saturating_add(count + 1);
                return Ok(value);
            }
        }
        let what =
            if rest.len() < LONGEST { "a number is cut off" } else { "a number has more than 10 bytes" };
        Err(ImportError::at(self.offset(), what))
    }

    fn bytes(&mut self, len: u64, number: u64) -> Result<Message<'d>> {
        let rest = self.message.bytes.get(self.at..).unwrap_or_default();
        let Some(bytes) = usize::try_from(len).ok().and_then(|len| rest.get(..len)) else {
            let left = rest.len();
            return Err(ImportError::at(
                self.offset(),
                format!("field {number} needs {len} bytes, {left} are left"),
            ));
        };
        let message = Message { bytes, offset: self.offset(), is_inflated: self.message.is_inflated };
        self.at = self.at.saturating_add(bytes.len());
        Ok(message)
    }

    fn field(&mut self) -> Result<Field<'d>> {
        let offset = self.offset();
        let tag = self.varint()?;
        let number = tag >> 3;
        if number == 0 || number > NUMBER_MAX {
            return Err(ImportError::at(offset, format!("{number} is not the number of a field")));
        }
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.bytes(8, number).map(|_| Value::Fixed)?,
            2 => {
                let len = self.varint()?;
                Value::Message(self.bytes(len, number)?)
            }
            5 => self.bytes(4, number).map(|_| Value::Fixed)?,
            other => {
                return Err(ImportError::at(offset, format!("field {number} has the wire type {other}")));
            }
        };
        Ok(Field { number: number as u32, value })
    }
}

impl<'d> Iterator for Fields<'d> {
    type Item = Result<Field<'d>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.message.bytes.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.message.bytes.len();
        }
        Some(field)
    }
}

/// The numbers of a repeated field: packed or one by one.
pub fn numbers(field: &Field<'_>, mut see: impl FnMut(u64)) -> Result<()> {
    match field.value {
        Value::Number(number) => see(number),
        Value::Message(message) => {
            let mut fields = message.fields();
            while fields.at < message.bytes.len() {
                see(fields.varint()?);
            }
        }
        Value::Fixed => {}
    }
    Ok(())
}

/// True if a file that begins so is a trace: the fields of its first packet have numbers and types that they can have,
/// and another packet follows.
pub fn is_trace(start: &[u8]) -> bool {
    const PACKET: u8 = 0x0a;
    // A text can begin with an empty line; it has no bytes such as the tags of numbers.
    if !start.iter().any(|b| matches!(b, 0..=8 | 14..=26)) {
        return false;
    }
    let mut trace = Message::new(start, 0).fields();
    loop {
        if start.get(trace.at) != Some(&PACKET) {
            return false;
        }
        trace.at += 1;
        // The beginning may end within a length.
        let Ok(len) = trace.varint() else { return start.len() - trace.at < 10 };
        let end = usize::try_from(len).ok().and_then(|len| trace.at.checked_add(len)).unwrap_or(usize::MAX);
        let rest = start.get(trace.at..end.min(start.len())).unwrap_or_default();
        let is_cut = end > start.len();
        if !rest.is_empty() || is_cut {
            let follows = start.get(end).is_none_or(|&next| next == PACKET);
            return could_be_packet(rest, is_cut) && follows;
        }
        if end == start.len() {
            return true;
        }
        trace.at = end;
    }
}

/// True if all fields of a packet have a number and a type that they can have. The last one of a packet that is cut may
/// lack its end.
fn could_be_packet(packet: &[u8], is_cut: bool) -> bool {
    /// Highest number of a field of a packet.
    const FIELD_MAX: u64 = 1999;
    let mut fields = Message::new(packet, 0).fields();
    loop {
        let at = fields.at;
        match fields.next() {
            None => return true,
            Some(Ok(field)) if u64::from(field.number) <= FIELD_MAX => {}
            Some(Err(_)) if is_cut => {
                let mut last = Fields { message: fields.message, at };
                let tag = last.varint();
                return tag.map_or(true, |tag| {
                    matches!(tag & 7, 0..=2 | 5) && (1..=FIELD_MAX).contains(&(tag >> 3))
                });
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_need_not_be_minimal() {
        let message = Message::new(b"\x08\x85\x80\x80\x00\x10\x07", 100);
        let read: Vec<_> = message.fields().map(|f| f.map(|f| (f.number, f.uint()))).collect();
        assert_eq!(read, [Ok((1, Some(5))), Ok((2, Some(7)))]);
        let negative = [&[0x08][..], &[0xff; 9], &[0x01]].concat();
        assert_eq!(Message::new(&negative, 0).last(1), Ok(Some(u64::MAX)));
        let long = [&[0x08][..], &[0xff; 10], &[0x01]].concat();
        assert_eq!(Message::new(&long, 7).last(1).unwrap_err().offset, 8);
    }

    #[test]
    fn a_length_beyond_the_end_is_an_error_and_the_last_item() {
        let mut fields = Message::new(b"\x08\x01\x12\x05ab", 10).fields();
        assert_eq!(fields.next().unwrap().unwrap().uint(), Some(1));
        let error = fields.next().unwrap().unwrap_err();
        assert_eq!((error.offset, error.what.as_str()), (14, "field 2 needs 5 bytes, 2 are left"));
        assert!(fields.next().is_none());
        for wrong in [&b"\x03"[..], b"\x00\x00", b"\x0c", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"] {
            assert!(Message::new(wrong, 0).fields().next().unwrap().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn texts_are_not_traces() {
        for text in
            ["", "\n", "\n# tracer: nop\n", "\n                                                    \n"]
        {
            assert!(!is_trace(text.as_bytes()), "{text:?}");
        }
        let blanks = format!("\n{}x\u{1}", " ".repeat(33));
        assert!(!is_trace(blanks.as_bytes()));
        assert!(!is_trace(b"\x0a\x02\x50\x01\x09") && !is_trace(b"\x0a\x02\x53\x01"));
        assert!(is_trace(b"\x0a\x02\x50\x01") && is_trace(b"\x0a\x00"));
        assert!(is_trace(b"\x0a\x00\x0a\x04\x0a\x02\x08\x01"));
        assert!(is_trace(b"\x0a\x82\x80\x80\x00\x50\x01\x0a\x90\x01\x0a\x8d\x01\x08\x01"), "cut");
    }
}
