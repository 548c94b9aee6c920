//! Errors, and the border that no panic crosses.

use core::ffi::c_char;
use std::cell::RefCell;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::c_string::until_nul;
use crate::OpenError;

/// A failure of a function: a short name, and a text.
pub(super) struct Failure {
    code: &'static str,
    text: String,
}

impl Failure {
    pub fn usage(text: impl Into<String>) -> Self {
        Self { code: "usage", text: text.into() }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self { code: error.code(), text: error.to_string() }
    }
}

struct Last {
    code: CString,
    text: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::new(Last { code: CString::default(), text: CString::default() });
}

/// Runs the body of a function. An error, or a panic, is kept for the thread, and `fallback` is returned.
pub(super) fn guarded<T>(fallback: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    // After a panic the handle is memory-safe, and may be wrong: the error text advises to stop.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(payload) => {
            // Dropping it could panic again.
            core::mem::forget(payload);
            Failure {
                code: "internal",
                text: "an internal error of libkmt; close the trace and report it".into(),
            }
        }
    };
    keep(failure);
    fallback
}

/// The same for what cannot fail.
pub(super) fn unfailing<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    guarded(fallback, || Ok(body()))
}

fn keep(failure: Failure) {
    let last = Last { code: until_nul(failure.code.as_bytes()), text: until_nul(failure.text.as_bytes()) };
    // A thread that is being torn down has no place for it any more.
    let _ = LAST.try_with(|place| place.replace(last));
}

/// Text of the last error in this thread; empty if there was none. Valid until the next error in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_error_text() -> *const c_char {
    LAST.try_with(|last| last.borrow().text.as_ptr()).unwrap_or(c"".as_ptr())
}

/// Short name of that error, such as "not-kmt", "limit-exceeded", "io" or "usage"; it does not change between versions.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_error_code() -> *const c_char {
    LAST.try_with(|last| last.borrow().code.as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_is_an_error() {
        let result = guarded(-1, || if std::hint::black_box(true) { panic!("on purpose") } else { Ok(1) });
        assert_eq!(result, -1);
        // SAFETY: the text of this thread's last error, which is a C string until the next one.
        let text = unsafe { CStr::from_ptr(kmt_error_text()) };
        assert!(text.to_string_lossy().contains("internal error"));
    }
}
