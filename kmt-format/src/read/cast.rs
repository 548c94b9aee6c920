//! Checked casts of bytes to on-disk structures.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::error::{Error, ErrorKind, Result};

/// The structure at `offset` of `bytes`; `base` is where `bytes` starts in the file, for the error.
pub(super) fn struct_at<T>(bytes: &[u8], offset: usize, base: u64) -> Result<&T>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    let rest = bytes.get(offset..).unwrap_or_default();
    T::ref_from_prefix(rest).map(|(value, _)| value).map_err(|_| {
        let kind = ErrorKind::Truncated { needed: size_of::<T>() as u64, available: rest.len() as u64 };
        Error::at(base.saturating_add(offset as u64), kind)
    })
}

/// `count` structures from `offset` of `bytes` on.
pub(super) fn array_at<T>(bytes: &[u8], offset: usize, count: usize, base: u64) -> Result<&[T]>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    let rest = bytes.get(offset..).unwrap_or_default();
    <[T]>::ref_from_prefix_with_elems(rest, count).map(|(values, _)| values).map_err(|_| {
        let needed = (count as u64).saturating_mul(size_of::<T>() as u64);
        let kind = ErrorKind::Truncated { needed, available: rest.len() as u64 };
        Error::at(base.saturating_add(offset as u64), kind)
    })
}

/// Rows of a table. The file has their length: at least that of this version.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableRows<'d, T> {
    bytes: &'d [u8],
    row_len: usize,
    count: usize,
    row: core::marker::PhantomData<T>,
}

impl<'d, T> TableRows<'d, T>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned + 'static,
{
    /// Checks the length of a row, before any table is looked at.
    pub fn check_len(row_len: usize, base: u64) -> Result<()> {
        if row_len < size_of::<T>() {
            return Err(Error::at(base, ErrorKind::Malformed("the rows of a table have an invalid length")));
        }
        Ok(())
    }

    /// `count` rows from `offset` of `bytes` on.
    pub fn at(bytes: &'d [u8], offset: usize, count: usize, row_len: usize, base: u64) -> Result<Self> {
        Self::check_len(row_len, base)?;
        let len = count.saturating_mul(row_len);
        let bytes = array_at::<u8>(bytes, offset, len, base)?;
        Ok(Self { bytes, row_len, count, row: core::marker::PhantomData })
    }

    /// `count` rows from `*offset` on, which moves after them.
    pub fn next(bytes: &'d [u8], offset: &mut usize, count: u32, row_len: usize, base: u64) -> Result<Self> {
        let rows = Self::at(bytes, *offset, count as usize, row_len, base)?;
        *offset = offset.saturating_add(rows.len_bytes());
        Ok(rows)
    }

    /// Bytes of all rows.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes from one row to the next.
    pub fn row_len(&self) -> usize {
        self.row_len
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// `count` rows from `first` on; `None` if they are not all there.
    pub fn range(&self, first: usize, count: usize) -> Option<impl Iterator<Item = &'d T> + use<'d, T>> {
        let start = first.checked_mul(self.row_len)?;
        let bytes = self.bytes.get(start..start.checked_add(count.checked_mul(self.row_len)?)?)?;
        let rows = bytes.chunks_exact(self.row_len);
        Some(rows.filter_map(|row| T::ref_from_prefix(row).ok().map(|(row, _)| row)))
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = &'d T> + use<'d, T> {
        let rows = self.bytes.chunks_exact(self.row_len);
        rows.filter_map(|row| T::ref_from_prefix(row).ok().map(|(row, _)| row))
    }
}

/// Length of a head, which may be longer in a later minor version; at least that of this version.
pub(super) fn head_len<T>(stated: u32, body: &[u8], base: u64) -> Result<usize> {
    let stated = stated as usize;
    if stated < size_of::<T>() || stated > body.len() {
        return Err(Error::at(base, ErrorKind::Malformed("the head of the body has an invalid length")));
    }
    Ok(stated)
}
