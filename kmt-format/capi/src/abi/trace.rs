//! Traces: opening, and what holds for all of their events.

use core::ffi::c_char;
use core::mem::MaybeUninit;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use kmt_format::Limits;
use kmt_format::kernel::{ByteOrder, ClockUnit};

use super::c_string::until_nul;
use super::error::{Failure, guarded, unfailing};
use super::text::{fill, string};
use crate::owned::OwnedTrace;

/// A trace. Several threads may use one at the same time.
#[derive(Debug)]
pub struct Trace {
    pub(super) inner: Arc<OwnedTrace>,
    /// System and name of each class.
    pub(super) names: Arc<[(CString, CString)]>,
}

impl Trace {
    fn new(inner: Arc<OwnedTrace>) -> Box<Self> {
        let schema = inner.trace().schema();
        // By index: a damaged file may lack a class between two others.
        let names = (0..schema.class_count()).map(|index| match schema.class(index) {
            Some(class) => (until_nul(class.system.as_bytes()), until_nul(class.name.as_bytes())),
            None => Default::default(),
        });
        let names = names.collect();
        Box::new(Self { inner, names })
    }
}

/// Opens a file; NULL and an error if it cannot be read.
///
/// A regular file is mapped: do not truncate the file while the trace is open (SIGBUS).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_open(path: *const c_char) -> Option<Box<Trace>> {
    // SAFETY: the caller promises a path; the limits are a constant.
    unsafe { kmt_open_with_limits(path, c"".as_ptr()) }
}

/// The same with other limits: "NAME=VALUE", separated by spaces. Errors name the limit that a file exceeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_open_with_limits(
    path: *const c_char,
    limits: *const c_char,
) -> Option<Box<Trace>> {
    guarded(None, || {
        // SAFETY: the caller promises strings.
        let (path, limits) = unsafe { (string(path, "the path")?, string(limits, "the text of limits")?) };
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        let limits = parsed(limits.to_bytes())?;
        Ok(Some(Trace::new(OwnedTrace::open(path, limits)?)))
    })
}

/// Opens a file in memory, which must stay as it is until the trace and all its events are closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_open_memory(data: *const u8, size: usize) -> Option<Box<Trace>> {
    guarded(None, || {
        if data.is_null() || isize::try_from(size).is_err() {
            return Err(Failure::usage("the data is NULL, or longer than memory can be"));
        }
        // SAFETY: `data` is not NULL, and the caller promises `size` bytes there that stay as they are until all that is
        // made of them is closed.
        let inner =
            unsafe { OwnedTrace::of_memory(core::slice::from_raw_parts(data, size), Limits::default()) };
        Ok(Some(Trace::new(inner.map_err(crate::OpenError::from)?)))
    })
}

/// Closes a trace. Events that were opened on it stay usable.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_close(trace: Option<Box<Trace>>) {
    unfailing((), || drop(trace));
}

/// Number of events in the file.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_event_count(trace: Option<&Trace>) -> u64 {
    unfailing(0, || trace.map_or(0, |t| t.inner.trace().event_count()))
}

/// True if the file was finished by its writer.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_is_finished(trace: Option<&Trace>) -> bool {
    unfailing(false, || trace.is_some_and(|t| t.inner.trace().is_finished()))
}

/// True if lives of objects may be folded: the file has sums of most events instead of the events. Functions of events
/// give those of objects that lived longer, then, and `kmt_event_count` counts only these.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_is_folded(trace: Option<&Trace>) -> bool {
    unfailing(false, || trace.is_some_and(|t| t.inner.trace().header().folded))
}

/// Number of events that the file has as sums; a minimum if `is_minimum` is set to true: an interval is missing or damaged.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_folded_event_count(
    trace: Option<&Trace>,
    is_minimum: Option<&mut MaybeUninit<bool>>,
) -> u64 {
    unfailing(0, || {
        let counted = trace.map(|t| t.inner.trace().folded_event_count());
        let (count, is_exact) = counted.unwrap_or((0, true));
        if let Some(is_minimum) = is_minimum {
            is_minimum.write(!is_exact);
        }
        count
    })
}

/// Number of damaged places found when opening. Damage inside event chunks is found when they are read, and is a loss.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_damage_count(trace: Option<&Trace>) -> u64 {
    unfailing(0, || trace.map_or(0, |t| t.inner.trace().damage_count()))
}

/// Text of one of those places, as `kmt_symbol` gives text; 0 if it is not listed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_damage_text(
    trace: Option<&Trace>,
    index: usize,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    unfailing(0, || {
        let damage = trace.and_then(|t| t.inner.trace().damages().get(index));
        let text = damage.map(|d| d.error.to_string()).unwrap_or_default();
        // SAFETY: the caller promises the buffer.
        unsafe { fill(buffer, size, text.as_bytes()) }
    })
}

/// Size of the traced kernel's long in bytes: 4 or 8.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_long_size(trace: Option<&Trace>) -> u32 {
    unfailing(0, || trace.map_or(0, |t| u32::try_from(t.inner.trace().header().long_size).unwrap_or(0)))
}

/// True if the traced kernel is big-endian: the order of numbers in the bytes of `kmt_bytes`.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_is_big_endian(trace: Option<&Trace>) -> bool {
    unfailing(false, || trace.is_some_and(|t| t.inner.trace().header().order == ByteOrder::Big))
}

/// True if times are in nanoseconds; else they are ticks of a clock of unknown rate.
#[unsafe(no_mangle)]
pub extern "C" fn kmt_clock_is_ns(trace: Option<&Trace>) -> bool {
    unfailing(false, || {
        let clock = trace.and_then(|t| t.inner.trace().metadata().clock.as_ref());
        clock.is_some_and(|c| c.unit == ClockUnit::Nanoseconds)
    })
}

/// Value of a key of the file, such as "uname"; NULL if it has none. Valid until the trace is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_meta(
    trace: Option<&Trace>,
    key: *const c_char,
    size: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    guarded(core::ptr::null(), || {
        // SAFETY: the caller promises a string.
        let key = unsafe { string(key, "the key")? };
        let key = key.to_str().map_err(|_| Failure::usage("the key is not UTF-8"))?;
        Ok(given(trace.and_then(|t| t.inner.trace().metadata().value(key)), size))
    })
}

/// A file of the target that the trace carries, such as "slabinfo.before"; NULL if it does not. Valid as that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_attachment(
    trace: Option<&Trace>,
    name: *const c_char,
    size: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    guarded(core::ptr::null(), || {
        // SAFETY: the caller promises a string.
        let name = unsafe { string(name, "the name")? };
        let name = name.to_str().map_err(|_| Failure::usage("the name is not UTF-8"))?;
        Ok(given(trace.and_then(|t| t.inner.trace().metadata().attachment(name)), size))
    })
}

/// Writes an address as `symbol+0xoffset/0xsize [module]`, or in hex where no symbol is known.
///
/// As snprintf: at most `size` bytes, the NUL included, and the length of the whole text is returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kmt_symbol(
    trace: Option<&Trace>,
    address: u64,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    unfailing(0, || {
        let text = trace.map(|t| t.inner.symbol(address)).unwrap_or_default();
        // SAFETY: the caller promises the buffer.
        unsafe { fill(buffer, size, &text) }
    })
}

/// Bytes as C has them: a pointer, and the length if `size` is given.
pub(super) fn given(bytes: Option<&[u8]>, size: Option<&mut MaybeUninit<usize>>) -> *const u8 {
    if let Some(size) = size {
        size.write(bytes.map_or(0, <[u8]>::len));
    }
    bytes.map_or(core::ptr::null(), <[u8]>::as_ptr)
}

fn parsed(text: &[u8]) -> Result<Limits, Failure> {
    let text = core::str::from_utf8(text).map_err(|_| Failure::usage("the text of limits is not UTF-8"))?;
    let mut limits = Limits::default();
    for pair in text.split_ascii_whitespace() {
        let set = pair.split_once('=').and_then(|(name, value)| Some(limits.set(name, value.parse().ok()?)));
        if set != Some(true) {
            let names = Limits::NAMES.join(", ");
            return Err(Failure::usage(format!(
                "\"{pair}\" is not a limit; NAME=VALUE, where NAME is one of {names}"
            )));
        }
    }
    Ok(limits)
}
