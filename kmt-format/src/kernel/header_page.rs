//! `events/header_page`: the layout of a sub-buffer's header.

use crate::error::{Error, ErrorKind, Result};

/// Layout of the sub-buffer header as `events/header_page` prints it.
///
/// Source: `ring_buffer_print_page_header`, kernel/trace/ring_buffer.c 4.4 to 7.2. The size of `commit` is the
/// kernel's `long`; the sub-buffer is as long as `data` reaches, which says nothing about the page size (sub-buffers
/// may be several pages since 6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderPage {
    /// Offset of the 8-byte time stamp.
    pub timestamp_offset: usize,
    /// Offset of the commit word.
    pub commit_offset: usize,
    /// Size of the commit word in bytes: 4 or 8, the size of the kernel's `long`.
    pub commit_size: usize,
    /// Offset of the first event.
    pub data_offset: usize,
    /// Bytes for events.
    pub data_size: usize,
}

impl HeaderPage {
    /// Largest sub-buffer accepted, in bytes. The kernel allows 128 pages and at most 1 MiB of data
    /// (`ring_buffer_subbuf_order_set`, 7.2); 64 KiB pages times 128 is the outer bound.
    pub const SUB_BUFFER_LEN_MAX: usize = 128 * 65_536;

    /// Parses the text of `events/header_page`.
    ///
    /// # Errors
    ///
    /// Returns an error if `timestamp`, `commit` or `data` is missing or implausible.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |what| Error::new(ErrorKind::KernelText { file: "events/header_page", what });
        let mut timestamp = None;
        let mut commit = None;
        let mut data = None;
        for line in text.lines() {
            let Some((name, offset, size)) = parse_line(line) else { continue };
            match name {
                "timestamp" => timestamp = Some((offset, size)),
                "commit" => commit = Some((offset, size)),
                "data" => data = Some((offset, size)),
                _ => {}
            }
        }
        let (timestamp_offset, timestamp_size) = timestamp.ok_or_else(|| bad("no field `timestamp`"))?;
        let (commit_offset, commit_size) = commit.ok_or_else(|| bad("no field `commit`"))?;
        let (data_offset, data_size) = data.ok_or_else(|| bad("no field `data`"))?;
        if timestamp_size != 8 {
            return Err(bad("`timestamp` is not 8 bytes"));
        }
        if commit_size != 4 && commit_size != 8 {
            return Err(bad("`commit` is neither 4 nor 8 bytes"));
        }
        let len = data_offset.checked_add(data_size).ok_or_else(|| bad("`data` is too large"))?;
        if data_size == 0 || len > Self::SUB_BUFFER_LEN_MAX {
            return Err(bad("the size of `data` is implausible"));
        }
        if timestamp_offset.saturating_add(8) > data_offset
            || commit_offset.saturating_add(commit_size) > data_offset
        {
            return Err(bad("a header field lies inside `data`"));
        }
        Ok(Self { timestamp_offset, commit_offset, commit_size, data_offset, data_size })
    }

    /// Length of one sub-buffer, header included, in bytes.
    pub fn sub_buffer_len(&self) -> usize {
        self.data_offset.saturating_add(self.data_size)
    }

    /// Size of the traced kernel's `long`, in bytes.
    pub fn long_size(&self) -> usize {
        self.commit_size
    }
}

/// `field: TYPE NAME; offset:N; size:N; ...` to (name, offset, size), offsets capped far above any real one.
fn parse_line(line: &str) -> Option<(&str, usize, usize)> {
    let rest = line.trim_start().strip_prefix("field:")?;
    let mut attributes = rest.split(';');
    let name = attributes.next()?.trim().rsplit([' ', '\t']).next()?;
    let mut offset = None;
    let mut size = None;
    for attribute in attributes {
        match attribute.trim().split_once(':') {
            Some(("offset", value)) => offset = value.parse::<u32>().ok(),
            Some(("size", value)) => size = value.parse::<u32>().ok(),
            _ => {}
        }
    }
    Some((name, offset.filter(|&o| o < 1 << 16)? as usize, size? as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86_64: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

    #[test]
    fn reads_the_kernels_text() {
        let header = HeaderPage::parse(X86_64).unwrap();
        assert_eq!(header.sub_buffer_len(), 4096);
        assert_eq!(header.long_size(), 8);
        let arm = X86_64
            .replace("offset:8;\tsize:8", "offset:8;\tsize:4")
            .replace("offset:16;\tsize:4080", "offset:12;\tsize:4084");
        let header = HeaderPage::parse(&arm).unwrap();
        assert_eq!((header.data_offset, header.long_size()), (12, 4));
    }

    #[test]
    fn refuses_what_cannot_be() {
        assert!(HeaderPage::parse("").is_err());
        assert!(HeaderPage::parse(&X86_64.replace("size:4080", "size:0")).is_err());
        assert!(HeaderPage::parse(&X86_64.replace("size:4080", "size:4294967295")).is_err());
        assert!(HeaderPage::parse(&X86_64.replace("offset:16", "offset:4")).is_err());
    }
}
