//! Layouts of records that are made of text.

use std::collections::HashMap;

use super::fields::Names;
use super::notation::Notation;

/// How a value is written, and so how a field holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A function, `FUNCTION+0x1/0x2`.
    Function,
    /// A hexadecimal number, with 0x or without.
    Hex { prefixed: bool },
    /// A pointer, in that notation if it has no 0x.
    Pointer(Notation),
    /// A decimal number, maybe with B for bytes after it.
    Decimal { bytes: bool },
    /// Allocation flags by name.
    Gfp,
    /// true or false.
    Truth,
    /// A function without an offset.
    Name,
    /// One of some names, or several of them.
    Names(&'static Names),
    /// Anything else.
    Text,
}

impl Form {
    /// A number for each form.
    fn code(self) -> usize {
        match self {
            Self::Function => 0,
            Self::Hex { prefixed } => 1 + usize::from(prefixed),
            Self::Pointer(_) => 3,
            Self::Decimal { bytes } => 4 + usize::from(bytes),
            Self::Gfp => 6,
            Self::Truth => 7,
            Self::Name => 8,
            Self::Text => 9,
            Self::Names(names) => std::ptr::from_ref(names) as usize,
        }
    }
}

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    /// Name of the field in the kernel.
    pub(super) key: Vec<u8>,
    /// Name of the field in the file: unique within the event, and not that of a common field.
    pub(super) name: String,
    /// How its values are written.
    pub(super) form: Form,
    /// Offset in bytes.
    pub(super) offset: usize,
    /// Size in bytes.
    pub(super) size: usize,
}

/// One layout of one event.
#[derive(Debug)]
pub(super) struct Shape {
    /// `common_type` of its records.
    pub(super) id: u16,
    /// Fields of the event, in the order of the text.
    pub(super) fields: Vec<Field>,
    /// Size in bytes without dynamic data.
    pub(super) fixed_len: usize,
}

/// Layouts of events of one name with the same names of fields.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    all: Vec<Shape>,
    /// Places of those that were used last, the latest first.
    recent: Vec<usize>,
    /// Place by forms of the fields.
    by_forms: HashMap<Vec<usize>, usize>,
}

/// Layouts that are tried for one event: a hostile text has thousands.
const TRIED_MAX: usize = 16;

impl Shapes {
    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Uses the first of the latest layouts that fits, if one does.
    pub(super) fn use_first(&mut self, mut fits: impl FnMut(&Shape) -> bool) -> bool {
        let found = self.recent.iter().position(|&index| self.all.get(index).is_some_and(&mut fits));
        if let Some(at) = found {
            self.recent.swap(0, at);
        }
        found.is_some()
    }

    /// The layout whose fields have the same forms.
    pub(super) fn with_forms_of(&mut self, shape: &Shape) -> Option<&Shape> {
        let index = *self.by_forms.get(&forms(shape))?;
        self.latest(index);
        self.all.get(index)
    }

    /// Adds a layout.
    pub(super) fn add(&mut self, shape: Shape) {
        self.by_forms.insert(forms(&shape), self.all.len());
        self.latest(self.all.len());
        self.all.push(shape);
    }

    fn latest(&mut self, index: usize) {
        self.recent.insert(0, index);
        self.recent.truncate(TRIED_MAX);
    }
}

fn forms(shape: &Shape) -> Vec<usize> {
    shape.fields.iter().map(|field| field.form.code()).collect()
}
