//! Symbols of one block, one after the other. Spec section "KSYM".

use std::borrow::Cow;

use crate::raw::{OWNER_FOLLOWS, SYMBOL_NAME_MAX};

/// A symbol as its block stores it, with the address worked out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coded<'b> {
    pub address: u64,
    pub size: u64,
    pub kind: u8,
    /// 0: the kernel; otherwise the index of the owner, plus 1.
    pub owner: u64,
    /// Leading bytes of the name before that begin this name too.
    shared: usize,
    /// The rest of the name.
    rest: &'b [u8],
}

/// Reads the symbols of a block from its start.
#[derive(Debug)]
pub(super) struct Symbols<'b> {
    bytes: &'b [u8],
    address: u64,
    owner: u64,
    left: usize,
    name_len: usize,
}

impl<'b> Symbols<'b> {
    /// `count` symbols from the start of `bytes`, the first of which is at `address`.
    pub fn new(bytes: &'b [u8], address: u64, count: usize) -> Self {
        Self { bytes, address, owner: 0, left: count, name_len: 0 }
    }

    /// The next symbol; `None` at the end, and where the bytes are not those of a symbol.
    pub fn next(&mut self) -> Option<Coded<'b>> {
        self.left = self.left.checked_sub(1)?;
        let tag = self.byte()?;
        if tag & OWNER_FOLLOWS != 0 {
            self.owner = self.number()?;
        }
        self.address = self.address.checked_add(self.number()?)?;
        let size = self.number()?;
        let shared = usize::from(self.byte()?);
        let rest_len = usize::try_from(self.number()?).ok()?;
        let name_len = shared.checked_add(rest_len)?;
        if shared > self.name_len || name_len > SYMBOL_NAME_MAX {
            return None;
        }
        self.name_len = name_len;
        let (rest, bytes) = self.bytes.split_at_checked(rest_len)?;
        self.bytes = bytes;
        let kind = tag & !OWNER_FOLLOWS;
        Some(Coded { address: self.address, size, kind, owner: self.owner, shared, rest })
    }

    /// True if all symbols were read.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Bytes after the symbols that were read.
    pub fn bytes_left(&self) -> usize {
        self.bytes.len()
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    /// 7 bits a byte, the lowest first; the upper bit says that another byte follows.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

/// The name of the symbol that was read last.
#[derive(Debug, Default)]
pub(super) struct Name<'b> {
    last: Option<Coded<'b>>,
    bytes: Vec<u8>,
}

impl<'b> Name<'b> {
    /// Takes in the next symbol of a block.
    pub fn follow(&mut self, symbol: Coded<'b>) {
        self.bytes.truncate(symbol.shared);
        self.bytes.extend_from_slice(symbol.rest);
        self.last = Some(symbol);
    }

    /// The name: a part of the file where it shares nothing with the one before.
    pub fn get(&self) -> Cow<'b, [u8]> {
        match self.last {
            Some(Coded { shared: 0, rest, .. }) => Cow::Borrowed(rest),
            _ => Cow::Owned(self.bytes.clone()),
        }
    }

    /// Length of the name in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], count: usize) -> Vec<(u64, u64, u8, u64, String)> {
        let mut symbols = Symbols::new(bytes, 0x1000, count);
        let mut name = Name::default();
        let mut out = Vec::new();
        while let Some(symbol) = symbols.next() {
            name.follow(symbol);
            let text = String::from_utf8(name.get().into_owned()).unwrap();
            out.push((symbol.address, symbol.size, symbol.kind, symbol.owner, text));
        }
        out
    }

    #[test]
    fn names_share_their_beginnings() {
        let bytes = [
            &[b't', 0, 0x40, 0, 4][..],
            b"alfa",
            &[b'T' | 0x80, 3, 0x90, 2, 0, 2, 1],
            b"x",
            &[b'd', 1, 0xff, 1, 3, 0],
        ]
        .concat();
        let expected = [
            (0x1000, 0x40, b't', 0, "alfa".to_owned()),
            (0x1110, 0, b'T', 3, "alx".to_owned()),
            (0x1111, 0xff, b'd', 3, "alx".to_owned()),
        ];
        assert_eq!(read(&bytes, 3), expected);
        assert_eq!(read(&bytes[..bytes.len() - 1], 3).len(), 2, "cut");
        assert_eq!(read(&[b't', 0, 0, 1, 0], 1).len(), 0, "nothing to share");
        assert_eq!(read(&[b't', 0, 0, 0, 0x80, 0x80, 4], 1).len(), 0, "a name of 65,536 bytes");
        assert_eq!(read(&[&[b't'][..], &[0xff; 9], &[2, 0, 0, 0]].concat(), 1).len(), 0, "65 bits");
    }
}
