//! The value of one field, and the ways to ask for it.

use core::fmt;

use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Field;
use crate::schema::{EventClass, Role};

/// The value of one field of an event.
///
/// ```
/// # use kmt_format::{read::Event, Result};
/// fn name_of_cache(event: &Event<'_>) -> Result<String> {
///     Ok(event.field("name")?.as_str()?.to_owned())
/// }
/// # let file = kmt_format::example()?;
/// # assert!(name_of_cache(&kmt_format::read::Trace::open(&file)?.events()?.next().unwrap()).is_err());
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Value<'e> {
    field: &'e Field,
    content: Content<'e>,
}

#[derive(Debug, Clone, Copy)]
enum Content<'e> {
    /// Zero-extended, or sign-extended if the field is signed.
    Number(u64),
    Array(&'e [u8]),
}

impl<'e> Value<'e> {
    #[inline]
    pub(super) fn number(field: &'e Field, number: u64) -> Self {
        Self { field, content: Content::Number(number) }
    }

    #[inline]
    pub(super) fn array(field: &'e Field, bytes: &'e [u8]) -> Self {
        Self { field, content: Content::Array(bytes) }
    }

    /// The field: its name, type and size.
    pub fn field(&self) -> &'e Field {
        self.field
    }

    /// The number.
    ///
    /// # Errors
    ///
    /// Returns an error if the field is an array, or its number negative.
    #[inline]
    pub fn as_u64(&self) -> Result<u64> {
        match self.content {
            Content::Number(number) if !self.field.signed || number as i64 >= 0 => Ok(number),
            _ => Err(self.is_not("a number that is at least 0")),
        }
    }

    /// The number, also a negative one.
    ///
    /// # Errors
    ///
    /// Returns an error if the field is an array, or its number greater than [`i64::MAX`].
    #[inline]
    pub fn as_i64(&self) -> Result<i64> {
        match self.content {
            Content::Number(number) if self.field.signed || number as i64 >= 0 => Ok(number as i64),
            _ => Err(self.is_not("a number up to 9223372036854775807")),
        }
    }

    /// The bytes of an array, in the traced kernel's byte order: fixed text without the NUL bytes that fill it up,
    /// dynamic text as the kernel stored it, NUL included.
    ///
    /// # Errors
    ///
    /// Returns an error if the field is a number.
    pub fn as_bytes(&self) -> Result<&'e [u8]> {
        match self.content {
            Content::Array(bytes) => Ok(bytes),
            Content::Number(_) => Err(self.is_not("an array")),
        }
    }

    /// The text of an array, up to its first NUL; any bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the field is a number.
    pub fn as_text(&self) -> Result<&'e [u8]> {
        Ok(self.as_bytes()?.split(|&b| b == 0).next().unwrap_or_default())
    }

    /// The text as a `str`.
    ///
    /// # Errors
    ///
    /// Returns an error if the field is a number, or its text not UTF-8.
    pub fn as_str(&self) -> Result<&'e str> {
        core::str::from_utf8(self.as_text()?).map_err(|_| self.is_not("text in UTF-8"))
    }

    #[cold]
    fn is_not(&self, wanted: &'static str) -> Error {
        Error::new(ErrorKind::FieldType { field: self.field.name.clone(), wanted })
    }
}

/// Numbers in decimal, pointers in hexadecimal, text with what is not printable escaped, other arrays byte by byte.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.content {
            Content::Number(number) if self.field.is_pointer() => write!(f, "{number:#x}"),
            Content::Number(number) if self.field.signed => write!(f, "{}", number as i64),
            Content::Number(number) => write!(f, "{number}"),
            Content::Array(bytes) if self.field.is_text() || self.field.is_fixed_text() => {
                let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
                write!(f, "{}", text.escape_ascii())
            }
            Content::Array(bytes) => {
                for byte in bytes {
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

/// Key for [`Event::field`](super::Event::field): the name of a field, its [`Role`], or its index in the class.
pub trait FieldKey: sealed::Sealed {
    /// Index of the field in a class; of several with one role the first.
    fn index_in(&self, class: &EventClass) -> Option<usize>;

    /// The key, for an error.
    fn to_text(&self) -> String;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for str {}
    impl Sealed for crate::schema::Role {}
    impl Sealed for usize {}
    impl<T: Sealed + ?Sized> Sealed for &T {}
}

impl FieldKey for str {
    fn index_in(&self, class: &EventClass) -> Option<usize> {
        class.field_named(self)
    }

    fn to_text(&self) -> String {
        self.to_owned()
    }
}

impl FieldKey for Role {
    #[inline]
    fn index_in(&self, class: &EventClass) -> Option<usize> {
        class.field_with(*self)
    }

    fn to_text(&self) -> String {
        format!("with role {}", self.0)
    }
}

impl FieldKey for usize {
    #[inline]
    fn index_in(&self, class: &EventClass) -> Option<usize> {
        Some(*self).filter(|&index| index < class.fields.len())
    }

    fn to_text(&self) -> String {
        format!("number {self}")
    }
}

impl<K: FieldKey + ?Sized> FieldKey for &K {
    #[inline]
    fn index_in(&self, class: &EventClass) -> Option<usize> {
        (**self).index_in(class)
    }

    fn to_text(&self) -> String {
        (**self).to_text()
    }
}
