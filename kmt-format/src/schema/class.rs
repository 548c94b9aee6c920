//! An event class: one tracepoint as the traced kernel described it.

use core::ops::Range;
use std::sync::Arc;

use super::{Meaning, Role};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{EventFormat, Field};

/// One tracepoint as the traced kernel described it, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventClass {
    /// `common_type` of its records.
    pub id: u16,
    /// System, such as `kmem`.
    pub system: String,
    /// Name, such as `kmalloc`.
    pub name: String,
    /// Meaning of the event.
    pub meaning: Meaning,
    /// All fields, the common ones first. Classes whose fields a file keeps once share them.
    pub fields: Arc<[Field]>,
    /// Meaning of each field.
    pub roles: Arc<[Role]>,
    /// Number of fields that are common to all events.
    pub common_count: usize,
    /// The kernel's whole `format` file.
    pub format_text: Arc<str>,
    /// Position of the text after `print fmt: ` in it.
    pub print_fmt: Range<usize>,
}

impl EventClass {
    /// Most bytes of the names of a class together: those of its system, its own and those of its fields: a kernel's
    /// names have 64 bytes at most (`MAX_EVENT_NAME_LEN`, kernel/trace/trace.h 7.2), and its events some 20 fields.
    pub const NAMES_MAX: usize = 16_384;

    /// The class that a `format` file in `events/SYSTEM/` describes; `long_size` is the kernel's, 4 or 8 bytes.
    ///
    /// ```
    /// use kmt_format::schema::{EventClass, Meaning, Role};
    ///
    /// let text = "name: kfree\nID: 458\nformat:\n\
    ///     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    ///     \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"%p\", REC->ptr\n";
    /// let class = EventClass::from_format("kmem", text, 8)?;
    /// assert_eq!((class.meaning, class.field_with(Role::PTR)), (Meaning::KFREE, Some(1)));
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not that of a `format` file, or its names have more than
    /// [`NAMES_MAX`](Self::NAMES_MAX) bytes.
    pub fn from_format(system: &str, text: &str, long_size: usize) -> Result<Self> {
        let EventFormat { name, id, fields, common_count, print_fmt } = EventFormat::parse(text, long_size)?;
        if Self::names_len(system, &name, &fields) > Self::NAMES_MAX {
            let what = "its names have more than 16,384 bytes";
            return Err(Error::new(ErrorKind::KernelText { file: "format", what }));
        }
        let role = |(i, field): (usize, &Field)| match Role::of(system, &name, &field.name) {
            // The id is at the start of every record; another field of that name is like any other.
            Role::EVENT_ID if i > 0 => Role::NONE,
            role => role,
        };
        let roles: Vec<Role> = fields.iter().enumerate().map(role).collect();
        let meaning = Meaning::of(system, &name);
        let (system, format_text) = (system.to_owned(), Arc::from(text));
        let (fields, roles) = (fields.into(), roles.into());
        Ok(Self { id, system, name, meaning, fields, roles, common_count, format_text, print_fmt })
    }

    /// Bytes of its names: of its system, its own and those of its fields.
    pub(crate) fn names_len(system: &str, name: &str, fields: &[Field]) -> usize {
        let of_fields = fields.iter().fold(0usize, |sum, field| sum.saturating_add(field.name.len()));
        of_fields.saturating_add(system.len()).saturating_add(name.len())
    }

    /// Index of the first field with that role.
    pub fn field_with(&self, role: Role) -> Option<usize> {
        self.roles.iter().position(|&r| r == role)
    }

    /// Index of the field of that name.
    pub fn field_named(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }

    /// The text after `print fmt: `.
    pub fn print_fmt(&self) -> &str {
        self.format_text.get(self.print_fmt.clone()).unwrap_or_default()
    }
}
