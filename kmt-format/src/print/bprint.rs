//! trace_printk's binary arguments, as `vbin_printf` packs them (lib/vsprintf.c 4.4 to 7.2).

use std::borrow::Cow;

use super::eval::Evaluated;
use crate::kernel::ByteOrder;
use crate::print_fmt::{Int, Spec};

/// Takes arguments one by one from the `buf` of a bprint event.
pub(super) struct BinaryArguments<'b> {
    pub bytes: &'b [u8],
    pub at: usize,
    pub order: ByteOrder,
    pub long_size: u8,
    /// Before 4.16 every pointer is kept as an address; later those that point to something are kept as text.
    pub pointers_are_addresses: bool,
}

impl<'b> BinaryArguments<'b> {
    pub fn extent(&mut self) -> Option<i32> {
        self.number(4).map(|n| n as i32)
    }

    pub fn value(&mut self, spec: &Spec) -> Evaluated<'b> {
        let pointer = Int::new(self.long_size, false);
        let value = match spec.conversion {
            b's' => return self.text(),
            b'p' => {
                let is_address = self.pointers_are_addresses
                    || matches!(
                        spec.extension.first(),
                        None | Some(b'S' | b's' | b'F' | b'f' | b'x' | b'K' | b'e')
                    );
                if !is_address {
                    return self.text();
                }
                self.number(self.long_size).map(|n| (n, pointer))
            }
            b'c' => self.number(1).map(|n| (n, Int::new(1, false))),
            _ => {
                let size = spec.length.size(self.long_size);
                self.number(size).map(|n| (n, Int::new(size, false)))
            }
        };
        value.map_or(Evaluated::Unknown("an argument of trace_printk"), |(n, ty)| Evaluated::Int(n, ty))
    }

    fn number(&mut self, size: u8) -> Option<u64> {
        let size = usize::from(size);
        // Eight bytes are aligned to four only.
        let start = self.at.next_multiple_of(size.min(4));
        let value = self.order.uint_at(self.bytes, start, size)?;
        self.at = start.saturating_add(size);
        Some(value)
    }

    fn text(&mut self) -> Evaluated<'b> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match rest.iter().position(|&b| b == 0) {
            Some(len) => {
                self.at = self.at.saturating_add(len.saturating_add(1));
                Evaluated::Bytes(Cow::Borrowed(rest.get(..len).unwrap_or_default()))
            }
            None => Evaluated::Unknown("an argument of trace_printk"),
        }
    }
}
