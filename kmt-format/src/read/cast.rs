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

/// Length of a head that may have grown in a later minor version; at least what this version knows.
pub(super) fn head_len<T>(stated: u32, body: &[u8], base: u64) -> Result<usize> {
    let stated = stated as usize;
    if stated < size_of::<T>() || stated > body.len() {
        return Err(Error::at(base, ErrorKind::Malformed("the head of the body has an impossible length")));
    }
    Ok(stated)
}
