//! The structures of Arrow's C data interface and C stream interface, and their release.
//! <https://arrow.apache.org/docs/format/CDataInterface.html>, CStreamInterface.html

use core::ffi::{c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::data::{Buffer, Data, Type};

const FLAG_NULLABLE: i64 = 2;
const EIO: c_int = 5;

/// `struct ArrowSchema`.
#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
pub struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

/// The batches of a stream.
pub trait Batches: Send {
    /// Type of all batches: a structure of columns.
    fn schema(&self) -> Type;
    /// The next batch; `None` at the end.
    fn next(&mut self) -> Option<Data>;
}

/// Memory of an `ArrowSchema`, whose pointers point into it.
struct SchemaParts {
    _format: CString,
    _name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

impl ArrowSchema {
    pub fn new(of: &Type) -> Self {
        let boxed = |t: &Type| Box::into_raw(Box::new(Self::new(t)));
        let format = CString::new(of.format).unwrap_or_default();
        let (name, children) = (of.c_name(), of.children.iter().map(boxed).collect());
        let dictionary = of.dictionary.as_deref().map_or(null_mut(), boxed);
        let (format_at, name_at) = (format.as_ptr(), name.as_ptr());
        let mut parts = Box::new(SchemaParts { _format: format, _name: name, children, dictionary });
        Self {
            format: format_at,
            name: name_at,
            metadata: null(),
            flags: if of.is_nullable { FLAG_NULLABLE } else { 0 },
            n_children: parts.children.len() as i64,
            children: parts.children.as_mut_ptr(),
            dictionary,
            release: Some(release_schema),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the interface has it called once, with a structure that `ArrowSchema::new` filled, perhaps moved since.
    // Its private data is the box made there. Children and dictionary are boxes, too, which a consumer that moved them out has
    // marked as released.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        for child in parts.children.iter().copied().chain(Some(parts.dictionary)).filter(|c| !c.is_null()) {
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released, and is not used any more.
            unsafe { release(self) };
        }
    }
}

/// Memory of an `ArrowArray`, whose pointers point into it.
struct ArrayParts {
    _owned: Vec<Option<Buffer>>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
}

impl ArrowArray {
    pub fn new(of: Data) -> Self {
        let boxed = |d: Data| Box::into_raw(Box::new(Self::new(d)));
        let at = |b: &Option<Buffer>| b.as_ref().map_or(null(), |b| b.pointer().cast());
        let dictionary = of.dictionary.map_or(null_mut(), |d| boxed(*d));
        let mut parts = Box::new(ArrayParts {
            buffers: of.buffers.iter().map(at).collect(),
            _owned: of.buffers,
            children: of.children.into_iter().map(boxed).collect(),
            dictionary,
        });
        Self {
            length: of.length as i64,
            null_count: of.null_count as i64,
            offset: 0,
            n_buffers: parts.buffers.len() as i64,
            n_children: parts.children.len() as i64,
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary,
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    /// The array at the end of a stream.
    fn released() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null_mut(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        }
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as in `release_schema`. The buffers are freed with the box; nobody uses them after the release.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        for child in parts.children.iter().copied().chain(Some(parts.dictionary)).filter(|c| !c.is_null()) {
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released, and is not used any more.
            unsafe { release(self) };
        }
    }
}

// SAFETY: what the pointers point into is owned by the structure, is plain data, and is not shared.
unsafe impl Send for ArrowSchema {}

/// Memory of a stream.
struct StreamParts {
    batches: Box<dyn Batches>,
    error: Option<&'static CStr>,
}

impl ArrowArrayStream {
    pub fn new(batches: Box<dyn Batches>) -> Self {
        Self {
            get_schema: Some(stream_schema),
            get_next: Some(stream_next),
            get_last_error: Some(stream_error),
            release: Some(release_stream),
            private_data: Box::into_raw(Box::new(StreamParts { batches, error: None })).cast(),
        }
    }
}

// SAFETY: its private data is a box of `Batches`, which are `Send`, and of a constant.
unsafe impl Send for ArrowArrayStream {}

/// Runs `body` on what a stream points to, and returns its number for C: 0, or EIO after a panic.
///
/// # Safety
///
/// `stream` was made by `ArrowArrayStream::new`, and not released.
unsafe fn on_stream(stream: *mut ArrowArrayStream, body: impl FnOnce(&mut StreamParts)) -> c_int {
    // SAFETY: by the rules of the interface a stream is used by one thread at a time, so nobody else has the box.
    let parts = unsafe { &mut *(*stream).private_data.cast::<StreamParts>() };
    if catch_unwind(AssertUnwindSafe(|| body(parts))).is_ok() {
        return 0;
    }
    parts.error = Some(c"an internal error of kmt; report it");
    EIO
}

unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the interface has it called with a stream of ours, and with room for a schema, which is overwritten.
    unsafe { on_stream(stream, |parts| out.write(ArrowSchema::new(&parts.batches.schema()))) }
}

unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as above.
    unsafe {
        on_stream(stream, |parts| {
            out.write(parts.batches.next().map_or_else(ArrowArray::released, ArrowArray::new));
        })
    }
}

unsafe extern "C" fn stream_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: as in `on_stream`.
    let parts = unsafe { &*(*stream).private_data.cast::<StreamParts>() };
    parts.error.map_or(null(), CStr::as_ptr)
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: the interface has it called once with a stream of ours, whose private data is the box made there.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamParts>()));
        (*stream).release = None;
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was not released: a consumer that moves it out of its capsule marks it so.
            unsafe { release(self) };
        }
    }
}
