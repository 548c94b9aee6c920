//! What a field holds, and how Python has it.

use kmt_format::kernel::{ByteOrder, Field, FieldKind};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    /// A number of 1, 2, 4 or 8 bytes.
    Number {
        width: u8,
        signed: bool,
    },
    Text,
    /// A structure, or bytes.
    Bytes,
    /// Numbers of 2, 4 or 8 bytes.
    List {
        width: u8,
        signed: bool,
    },
}

impl Kind {
    pub fn of(field: &Field) -> Self {
        // A file may state any size of an element for a scalar.
        let width = match field.size {
            1 | 2 | 4 => field.size as u8,
            _ => 8,
        };
        match field.kind {
            FieldKind::Scalar if field.type_text == "bool" => Self::Bool,
            FieldKind::Scalar => Self::Number { width, signed: field.signed },
            _ if field.is_text() => Self::Text,
            _ if matches!(field.element_size, 2 | 4 | 8) => {
                Self::List { width: field.element_size as u8, signed: field.signed }
            }
            _ => Self::Bytes,
        }
    }

    /// The kind that holds both; `None` if there is none.
    pub fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            _ if self == other => Some(self),
            (Self::Number { width: a, signed: s }, Self::Number { width: b, signed: t }) => {
                let (width, signed) = wider((a, s), (b, t))?;
                Some(Self::Number { width, signed })
            }
            (Self::List { width: a, signed: s }, Self::List { width: b, signed: t }) => {
                let (width, signed) = wider((a, s), (b, t))?;
                Some(Self::List { width, signed })
            }
            (Self::Bool, number @ Self::Number { .. }) | (number @ Self::Number { .. }, Self::Bool) => {
                Some(number)
            }
            _ => None,
        }
    }
}

/// Bytes and sign of numbers that hold both.
fn wider(a: (u8, bool), b: (u8, bool)) -> Option<(u8, bool)> {
    if a.1 == b.1 {
        return Some((a.0.max(b.0), a.1));
    }
    let (signed, unsigned) = if a.1 { (a.0, b.0) } else { (b.0, a.0) };
    let width = signed.max(unsigned.checked_mul(2)?);
    (width <= 8).then_some((width, true))
}

/// The numbers of an array, sign-extended where they have a sign. Bytes at the end that are no whole number are left out.
pub fn numbers(bytes: &[u8], width: u8, signed: bool, order: ByteOrder) -> impl Iterator<Item = u64> + '_ {
    let unused = 64 - 8 * u32::from(width.clamp(1, 8));
    bytes.chunks_exact(usize::from(width.max(1))).map(move |bytes| {
        let number = order.uint(bytes);
        if signed { ((number << unused) as i64 >> unused) as u64 } else { number }
    })
}

/// A number as Python has it.
pub fn number_object(py: Python<'_>, kind: Kind, number: u64) -> PyResult<Py<PyAny>> {
    match kind {
        Kind::Bool => (number != 0).into_py_any(py),
        Kind::Number { signed: true, .. } => (number as i64).into_py_any(py),
        _ => number.into_py_any(py),
    }
}

/// An array as Python has it: str, bytes or a list.
pub fn array_object(py: Python<'_>, kind: Kind, bytes: &[u8], order: ByteOrder) -> PyResult<Py<PyAny>> {
    match kind {
        Kind::Text => String::from_utf8_lossy(bytes).into_py_any(py),
        Kind::List { width, signed: true } => {
            numbers(bytes, width, true, order).map(|n| n as i64).collect::<Vec<_>>().into_py_any(py)
        }
        Kind::List { width, signed: false } => {
            numbers(bytes, width, false, order).collect::<Vec<_>>().into_py_any(py)
        }
        _ => PyBytes::new(py, bytes).into_py_any(py),
    }
}
