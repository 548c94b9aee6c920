//! Evaluating expressions for one event.

use std::borrow::Cow;

use super::pointer::bitmap_hex;
use crate::kernel::{ByteOrder, FieldKind};
use crate::print_fmt::{Binary, CastTo, ContextTest, Expr, Int, ListEntry, Unary, binary, unary};
use crate::read::Event;
use crate::schema::Role;

/// Value of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Evaluated<'e> {
    Int(u64, Int),
    /// Text, or the bytes of an array.
    Bytes(Cow<'e, [u8]>),
    /// The null pointer.
    Null,
    /// Not in the file; its text in the `print fmt`.
    Unknown(&'e str),
}

/// Evaluates expressions of one event.
pub(super) struct Evaluator<'e> {
    pub event: &'e Event<'e>,
    pub long_size: u8,
    pub order: ByteOrder,
}

impl<'e> Evaluator<'e> {
    pub fn eval(&self, expr: &'e Expr) -> Evaluated<'e> {
        match expr {
            Expr::Const(value, ty) => Evaluated::Int(*value, *ty),
            Expr::Text(text) => Evaluated::Bytes(Cow::Borrowed(text)),
            Expr::Null => Evaluated::Null,
            Expr::Field(index) => self.field(*index),
            Expr::Index(base, index, element) => self.element(base, index, *element),
            Expr::Unary(operator, inner) => match self.eval(inner) {
                Evaluated::Int(value, ty) => int(unary(*operator, value, ty)),
                Evaluated::Null if *operator == Unary::Not => Evaluated::Int(1, Int::INT),
                Evaluated::Bytes(_) if *operator == Unary::Not => Evaluated::Int(0, Int::INT),
                Evaluated::Unknown(what) => Evaluated::Unknown(what),
                _ => Evaluated::Unknown("an operator on a pointer"),
            },
            Expr::Binary(operator, left, right) => self.binary(*operator, left, right),
            Expr::Ternary(condition, then, otherwise) => match self.truth(condition) {
                Ok(true) => self.eval(then),
                Ok(false) => self.eval(otherwise),
                Err(what) => Evaluated::Unknown(what),
            },
            Expr::Cast(to, inner) => self.cast(*to, inner),
            Expr::Flags(value, delimiter, list, ty) => match self.eval(value) {
                Evaluated::Int(value, _) => Evaluated::Bytes(flags(ty.wrap(value), delimiter, list).into()),
                Evaluated::Null => Evaluated::Bytes(Cow::Borrowed(&[])),
                other => unknown_of(other),
            },
            Expr::Symbolic(value, list, ty) => match self.eval(value) {
                Evaluated::Int(value, _) => symbolic(ty.wrap(value), list),
                Evaluated::Null => symbolic(0, list),
                other => unknown_of(other),
            },
            Expr::Hex(bytes, len, separator) => self.hex(bytes, len, separator),
            Expr::Array(bytes, count, size) => self.array(bytes, count.as_deref(), size),
            Expr::Str(index) => match self.event.text(*index) {
                Some(text) => Evaluated::Bytes(Cow::Borrowed(text)),
                None => Evaluated::Unknown("a string field"),
            },
            Expr::Len(index) => {
                Evaluated::Int(self.event.bytes(*index).map_or(0, |b| b.len() as u64), Int::INT)
            }
            Expr::Bitmask(index) => {
                let bytes = self.event.bytes(*index).unwrap_or_default();
                let mut out = Vec::new();
                bitmap_hex(&mut out, bytes, bytes.len().saturating_mul(8), self.order, self.long_size.into());
                Evaluated::Bytes(out.into())
            }
            Expr::Seconds(inner) => self.arithmetic(inner, |ns| ns / 1_000_000_000),
            Expr::SubSeconds(inner) => self.arithmetic(inner, |ns| ns % 1_000_000_000),
            Expr::Swap(inner, bytes) => match self.eval(inner) {
                Evaluated::Int(value, _) => {
                    let ty = Int::new(*bytes, false);
                    Evaluated::Int(value.swap_bytes() >> crate::kernel::unused_bits((*bytes).into()), ty)
                }
                other => unknown_of(other),
            },
            Expr::Context(test) => self.context(*test),
            Expr::Unknown(what) => Evaluated::Unknown(what),
        }
    }

    fn field(&self, index: usize) -> Evaluated<'e> {
        let Some(field) = self.event.class().fields.get(index) else { return Evaluated::Unknown("a field") };
        if field.kind == FieldKind::Scalar {
            let ty = Int::new(field.size as u8, field.signed);
            let value = self.event.uint(index);
            return value.map_or(Evaluated::Unknown("a field"), |value| Evaluated::Int(value, ty));
        }
        match self.event.bytes(index) {
            Some(bytes) => Evaluated::Bytes(Cow::Borrowed(bytes)),
            None => Evaluated::Unknown("an array field"),
        }
    }

    fn element(&self, base: &'e Expr, index: &'e Expr, element: Int) -> Evaluated<'e> {
        let (Evaluated::Bytes(bytes), Evaluated::Int(index, _)) = (self.eval(base), self.eval(index)) else {
            return Evaluated::Unknown("an element of a value that is not an array");
        };
        let size = usize::from(element.size);
        let start = usize::try_from(index).ok().and_then(|i| i.checked_mul(size));
        match start.and_then(|s| self.order.uint_at(&bytes, s, size)) {
            Some(value) => Evaluated::Int(element.wrap(value), element),
            // Fixed text is kept without the NUL bytes after it.
            None => Evaluated::Int(0, element),
        }
    }

    fn arithmetic(&self, inner: &'e Expr, f: impl Fn(u64) -> u64) -> Evaluated<'e> {
        match self.eval(inner) {
            Evaluated::Int(value, _) => Evaluated::Int(f(value), Int::new(8, false)),
            other => unknown_of(other),
        }
    }

    fn truth(&self, condition: &'e Expr) -> Result<bool, &'e str> {
        match self.eval(condition) {
            Evaluated::Int(value, _) => Ok(value != 0),
            Evaluated::Bytes(_) => Ok(true),
            Evaluated::Null => Ok(false),
            Evaluated::Unknown(what) => Err(what),
        }
    }

    fn binary(&self, operator: Binary, left: &'e Expr, right: &'e Expr) -> Evaluated<'e> {
        if matches!(operator, Binary::AndAnd | Binary::OrOr) {
            let stop_at = operator == Binary::OrOr;
            return match self.truth(left) {
                Ok(value) if value == stop_at => Evaluated::Int(stop_at.into(), Int::INT),
                Ok(_) => match self.truth(right) {
                    Ok(value) => Evaluated::Int(value.into(), Int::INT),
                    Err(what) => Evaluated::Unknown(what),
                },
                Err(what) => Evaluated::Unknown(what),
            };
        }
        let pointer = Int::new(self.long_size, false);
        let (left, right) = (self.eval(left), self.eval(right));
        let number = |value: &Evaluated<'e>| match value {
            Evaluated::Int(value, ty) => Some((*value, *ty)),
            Evaluated::Null => Some((0, pointer)),
            _ => None,
        };
        match (number(&left), number(&right)) {
            (Some(a), Some(b)) => match binary(operator, a, b) {
                Some(value) => int(value),
                None => Evaluated::Unknown("a division by zero"),
            },
            (None, _) => unknown_of(left),
            _ => unknown_of(right),
        }
    }

    fn cast(&self, to: CastTo, inner: &'e Expr) -> Evaluated<'e> {
        let value = self.eval(inner);
        match (to, value) {
            (CastTo::Int(ty), Evaluated::Int(value, _)) => Evaluated::Int(ty.wrap(value), ty),
            (CastTo::Int(ty), Evaluated::Null) => Evaluated::Int(0, ty),
            (CastTo::Bool, Evaluated::Int(value, _)) => Evaluated::Int(u64::from(value != 0), Int::BOOL),
            (CastTo::Pointer(_), Evaluated::Int(value, _)) => {
                let ty = Int::new(self.long_size, false);
                Evaluated::Int(ty.wrap(value), ty)
            }
            (_, value) => value,
        }
    }

    fn hex(&self, bytes: &'e Expr, len: &'e Expr, separator: &[u8]) -> Evaluated<'e> {
        let (Evaluated::Bytes(bytes), Evaluated::Int(len, _)) = (self.eval(bytes), self.eval(len)) else {
            return Evaluated::Unknown("bytes that are not in the event");
        };
        let mut out = Vec::new();
        for (i, byte) in bytes.iter().take(usize::try_from(len).unwrap_or(0)).enumerate() {
            if i > 0 {
                out.extend_from_slice(separator);
            }
            out.extend_from_slice(format!("{byte:02x}").as_bytes());
        }
        Evaluated::Bytes(out.into())
    }

    fn array(&self, bytes: &'e Expr, count: Option<&'e Expr>, size: &'e Expr) -> Evaluated<'e> {
        let (Evaluated::Bytes(bytes), Evaluated::Int(size, _)) = (self.eval(bytes), self.eval(size)) else {
            return Evaluated::Unknown("an array that is not in the event");
        };
        if !matches!(size, 1 | 2 | 4 | 8) {
            return Evaluated::Unknown("an array of elements with an unsupported size");
        }
        let count = match count.map(|c| self.eval(c)) {
            None => usize::MAX,
            Some(Evaluated::Int(count, _)) => usize::try_from(count).unwrap_or(usize::MAX),
            Some(_) => return Evaluated::Unknown("the length of an array"),
        };
        let mut out = b"{".to_vec();
        for (i, element) in bytes.chunks_exact(size as usize).take(count).enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(format!("{:#x}", self.order.uint(element)).as_bytes());
        }
        out.push(b'}');
        Evaluated::Bytes(out.into())
    }

    fn context(&self, test: ContextTest) -> Evaluated<'e> {
        const HARDIRQ: u64 = 8;
        const SOFTIRQ: u64 = 16;
        const NMI: u64 = 64;
        let flags = self.event.uint_with(Role::FLAGS).unwrap_or(0);
        let mask = match test {
            ContextTest::HardIrq => HARDIRQ,
            ContextTest::SoftIrq => SOFTIRQ,
            ContextTest::Irq => HARDIRQ | SOFTIRQ | NMI,
        };
        Evaluated::Int(u64::from(flags & mask != 0), Int::INT)
    }
}

fn int<'e>((value, ty): (u64, Int)) -> Evaluated<'e> {
    Evaluated::Int(value, ty)
}

fn unknown_of(value: Evaluated<'_>) -> Evaluated<'_> {
    match value {
        Evaluated::Unknown(what) => Evaluated::Unknown(what),
        _ => Evaluated::Unknown("arithmetic on a pointer"),
    }
}

/// `trace_print_flags_seq`, kernel/trace/trace_output.c: greedy in the order of the list, the rest in hex.
fn flags(mut value: u64, delimiter: &[u8], list: &[ListEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut first = true;
    let mut separate = |out: &mut Vec<u8>| {
        if !first {
            out.extend_from_slice(delimiter);
        }
        first = false;
    };
    for (mask, name) in list {
        if value == 0 {
            break;
        }
        if value & mask == *mask {
            value &= !mask;
            separate(&mut out);
            out.extend_from_slice(name);
        }
    }
    if value != 0 {
        separate(&mut out);
        out.extend_from_slice(format!("{value:#x}").as_bytes());
    }
    out
}

/// `trace_print_symbols_seq`, kernel/trace/trace_output.c.
fn symbolic(value: u64, list: &[ListEntry]) -> Evaluated<'_> {
    let found = list.binary_search_by_key(&value, |(number, _)| *number);
    match found.ok().and_then(|at| list.get(at)) {
        Some((_, name)) => Evaluated::Bytes(Cow::Borrowed(name)),
        None => Evaluated::Bytes(format!("{value:#x}").into_bytes().into()),
    }
}
