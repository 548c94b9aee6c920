//! A recording in several files: where one ends and the next one begins.

use super::Writer;
use super::framer::Framer;
use crate::error::{Error, ErrorKind, Result};

impl Writer {
    /// Completes this file and begins the next one of the same recording; returns the last bytes of this file.
    ///
    /// The next file is whole in itself: it has the same identity and the same event classes with the same numbers, and
    /// counts chunks and events from 0 again. Clock, keys, files, names and symbols are to be added again.
    /// [`Join`](crate::edit::Join) makes one file of all of them.
    ///
    /// ```
    /// use kmt_format::kernel::ByteOrder;
    /// use kmt_format::read::Trace;
    /// use kmt_format::write::{Writer, WriterOptions};
    ///
    /// let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8))?;
    /// let first = writer.next_file()?;
    /// let second = writer.finish()?;
    /// assert_eq!(Trace::open(&first)?.header(), Trace::open(&second)?.header());
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses a chunk, or if the writer was made by [`Writer::append_to`]: it lacks classes.
    pub fn next_file(&mut self) -> Result<Vec<u8>> {
        if self.first_class > 0 {
            return Err(Error::new(ErrorKind::Usage("a file that is continued has no next one")));
        }
        self.complete()?;
        let Framer { order, uuid, compression, attachment_compression, index_rows_max, .. } = self.framer;
        let next =
            Framer { attachment_compression, index_rows_max, ..Framer::start_of(order, uuid, compression) };
        let last = core::mem::replace(&mut self.framer, next).out;
        self.streams.clear();
        self.stream_of_cpu.clear();
        self.current = 0;
        self.plans_written = 0;
        self.code.forget();
        self.begin()?;
        Ok(last)
    }
}
