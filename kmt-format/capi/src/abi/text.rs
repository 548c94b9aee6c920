//! Text of C.

use core::ffi::{CStr, c_char};

use super::error::Failure;

/// A string of the caller; an error for NULL.
///
/// # Safety
///
/// It ends in NUL, and stays as it is while the reference is used.
pub(super) unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<&'a CStr, Failure> {
    if text.is_null() {
        return Err(Failure::usage(format!("{what} is NULL")));
    }
    // SAFETY: it is not NULL, and the caller promises the rest.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// Copies text, cut where it does not fit, and a NUL into a buffer of `size` bytes, as snprintf does; the whole length.
///
/// # Safety
///
/// The buffer is NULL, or has `size` bytes that are not part of `text`.
pub(super) unsafe fn fill(buffer: *mut c_char, size: usize, text: &[u8]) -> usize {
    let len = text.len().min(size.saturating_sub(1));
    if !buffer.is_null() && size > 0 {
        // SAFETY: of the `size` bytes that the caller promises, the first `len + 1 <= size` are written.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), len);
            buffer.add(len).write(0);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_as_snprintf_cuts_it() {
        // SAFETY: buffers of four bytes, and NULL.
        let fill = |buffer, size, text| unsafe { super::fill(buffer, size, text) };
        let mut buffer = [b'x' as c_char; 4];
        assert_eq!(fill(buffer.as_mut_ptr(), 4, b"abcdef"), 6);
        assert_eq!(buffer.map(|c| c as u8), *b"abc\0");
        assert_eq!(fill(buffer.as_mut_ptr(), 1, b"abc"), 3);
        assert_eq!(buffer.map(|c| c as u8), *b"\0bc\0");
        assert_eq!(fill(buffer.as_mut_ptr(), 0, b"abc"), 3);
        assert_eq!(fill(core::ptr::null_mut(), 4, b"abc"), 3);
    }
}
