//! Opening a file with settings.

use super::Trace;
use crate::Limits;
use crate::error::Result;

/// Settings for [`Trace::open`].
///
/// ```
/// # use kmt_format::{Limits, read::Trace, Result};
/// fn open(file: &[u8]) -> Result<Trace<'_>> {
///     let mut limits = Limits::default();
///     limits.set("metadata", 16 << 20);
///     Trace::builder().limits(limits).by_index(true).open(file)
/// }
/// # let file = kmt_format::example()?;
/// # assert_eq!(open(&file)?.event_count(), 4);
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct TraceBuilder {
    limits: Limits,
    by_index: bool,
    body_checksums: bool,
}

impl Default for TraceBuilder {
    fn default() -> Self {
        Self { limits: Limits::default(), by_index: false, body_checksums: true }
    }
}

impl TraceBuilder {
    /// Sets upper bounds on what the file may ask for.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether the file's index is used, where it has one that can be: no walk over the chunks, whose damage is
    /// found only when they are read. Off unless set.
    pub fn by_index(mut self, by_index: bool) -> Self {
        self.by_index = by_index;
        self
    }

    /// Sets whether the checksums of event chunks' bodies are compared. Leave them out for files that were checked
    /// before: everything else is checked as ever, so that a damaged file can give wrong events but no panic. On unless
    /// set.
    pub fn body_checksums(mut self, compared: bool) -> Self {
        self.body_checksums = compared;
        self
    }

    /// Opens a file.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Trace::open`].
    pub fn open(self, data: &[u8]) -> Result<Trace<'_>> {
        let indexed = if self.by_index { Trace::open_indexed(data, self.limits)? } else { None };
        let mut trace = match indexed {
            Some(trace) => trace,
            None => Trace::walk(data, self.limits)?,
        };
        trace.set_verify(self.body_checksums);
        Ok(trace)
    }
}

impl<'d> Trace<'d> {
    /// Opens a file, with the default [`Limits`].
    ///
    /// ```
    /// # use kmt_format::{read::Trace, Result};
    /// fn print(file: &[u8]) -> Result<()> {
    ///     let trace = Trace::open(file)?;
    ///     println!("{} events of {} CPUs", trace.event_count(), trace.streams().len());
    ///     Ok(())
    /// }
    /// # let file = kmt_format::example()?;
    /// # print(&file)?;
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if this is no .kmt file, if its version, features or critical chunks are unknown, or if
    /// neither its header nor the header's copy can be used. Other damage is listed by [`Trace::damages`].
    pub fn open(data: &'d [u8]) -> Result<Self> {
        Self::walk(data, Limits::default())
    }

    /// Settings for opening a file: other limits, by its index, without checking checksums.
    pub fn builder() -> TraceBuilder {
        TraceBuilder::default()
    }
}
