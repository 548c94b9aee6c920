//! C strings of bytes that may hold a NUL.

use std::ffi::CString;

/// As a C string, up to the first NUL.
pub(super) fn until_nul(bytes: &[u8]) -> CString {
    let bytes = bytes.split(|&b| b == 0).next().unwrap_or_default();
    CString::new(bytes).unwrap_or_default()
}
