//! The expressions of a `print fmt`, and C's integer types as far as they matter.

/// An integer type of the traced kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Int {
    /// Size in bytes: 1, 2, 4 or 8.
    pub size: u8,
    pub signed: bool,
}

impl Int {
    pub const INT: Self = Self { size: 4, signed: true };
    pub const UINT: Self = Self { size: 4, signed: false };
    pub const BOOL: Self = Self { size: 1, signed: false };

    pub const fn new(size: u8, signed: bool) -> Self {
        Self { size, signed }
    }

    /// The 64-bit pattern of `value` when held by this type: cut, then sign- or zero-extended.
    #[inline]
    pub fn wrap(self, value: u64) -> u64 {
        let shift = crate::kernel::unused_bits(self.size.into());
        if self.signed { ((value << shift) as i64 >> shift) as u64 } else { value << shift >> shift }
    }

    /// Integer promotion: what is smaller than int becomes int.
    pub fn promoted(self) -> Self {
        if self.size < 4 { Self::INT } else { self }
    }

    /// The usual arithmetic conversions.
    pub fn common(self, other: Self) -> Self {
        let (a, b) = (self.promoted(), other.promoted());
        match a.size.cmp(&b.size) {
            core::cmp::Ordering::Greater => a,
            core::cmp::Ordering::Less => b,
            core::cmp::Ordering::Equal => Self::new(a.size, a.signed && b.signed),
        }
    }
}

/// Target type of a cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CastTo {
    Int(Int),
    Bool,
    /// A pointer to elements of that type; the size is 0 where it is not known.
    Pointer(Int),
    /// A type that this library does not know: the value stays as it is.
    Same,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    And,
    Xor,
    Or,
    AndAnd,
    OrOr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Neg,
    Not,
    BitNot,
    Plus,
}

/// Tests of the context of an event (`__event_in_*`, 7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextTest {
    HardIrq,
    SoftIrq,
    Irq,
}

/// One entry of a flag or symbol list.
pub(crate) type ListEntry = (u64, Vec<u8>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expr {
    Const(u64, Int),
    Text(Vec<u8>),
    Null,
    /// A scalar or array field, by index.
    Field(usize),
    /// Element of an array; size and sign of the element.
    Index(Box<Expr>, Box<Expr>, Int),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(CastTo, Box<Expr>),
    /// `__print_flags`: value, delimiter, list.
    Flags(Box<Expr>, Vec<u8>, Vec<ListEntry>, Int),
    /// `__print_symbolic`: value, list by rising value.
    Symbolic(Box<Expr>, Vec<ListEntry>, Int),
    /// `__print_hex`, `__print_hex_str`: bytes, length, separator.
    Hex(Box<Expr>, Box<Expr>, &'static [u8]),
    /// `__print_array`: bytes, number of elements (`None`: all), size of one.
    Array(Box<Expr>, Option<Box<Expr>>, Box<Expr>),
    /// `__get_str`: a dynamic field as text.
    Str(usize),
    /// `__get_dynamic_array_len`.
    Len(usize),
    /// `__get_bitmask`, `__get_cpumask`.
    Bitmask(usize),
    /// `__print_ns_to_secs`, `__print_ns_without_secs`.
    Seconds(Box<Expr>),
    SubSeconds(Box<Expr>),
    /// Bytes swapped around; number of bytes.
    Swap(Box<Expr>, u8),
    Context(ContextTest),
    /// A value that is not in the file; its text in the `print fmt`.
    Unknown(String),
}
