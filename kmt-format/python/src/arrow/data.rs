//! Types and columns, as values of Rust that own what they have.

use std::ffi::CString;

/// A column's type.
#[derive(Debug, Clone)]
pub struct Type {
    /// Format string of the C data interface, such as `L` for u64.
    pub format: &'static str,
    pub name: String,
    pub is_nullable: bool,
    pub children: Vec<Type>,
    /// Type of the values where the column holds indices into a dictionary.
    pub dictionary: Option<Box<Type>>,
}

impl Type {
    pub fn plain(format: &'static str, name: &str) -> Self {
        Self { format, name: name.to_owned(), is_nullable: true, children: Vec::new(), dictionary: None }
    }

    /// Text that repeats.
    pub fn texts(name: &str) -> Self {
        Self { dictionary: Some(Box::new(Self::plain("u", ""))), ..Self::plain("i", name) }
    }

    /// The name as C has it, up to the first NUL.
    pub fn c_name(&self) -> CString {
        let name = self.name.split('\0').next().unwrap_or_default();
        CString::new(name).unwrap_or_default()
    }
}

/// One buffer of a column.
#[derive(Debug)]
pub enum Buffer {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I32(Vec<i32>),
}

impl Buffer {
    /// Its address, which stays when `self` is moved.
    pub fn pointer(&self) -> *const u8 {
        match self {
            Self::U8(items) => items.as_ptr(),
            Self::U16(items) => items.as_ptr().cast(),
            Self::U32(items) => items.as_ptr().cast(),
            Self::U64(items) => items.as_ptr().cast(),
            Self::I32(items) => items.as_ptr().cast(),
        }
    }
}

/// A column.
#[derive(Debug)]
pub struct Data {
    pub length: usize,
    pub null_count: usize,
    /// The first one is the bitmap of validity; `None` where nothing is null.
    pub buffers: Vec<Option<Buffer>>,
    pub children: Vec<Data>,
    pub dictionary: Option<Box<Data>>,
}

impl Data {
    pub fn new(length: usize, buffers: Vec<Option<Buffer>>) -> Self {
        Self { length, null_count: 0, buffers, children: Vec::new(), dictionary: None }
    }
}
