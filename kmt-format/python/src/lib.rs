//! `.kmt` files read from Python: the native half of the package `kmt`. `docs/python.md` is its manual.
//!
//! `unsafe` is in `arrow::ffi`, where memory is handed to other libraries, and nowhere else.

mod arrow;
mod columns;
mod event;
mod events;
mod opened;
mod trace;
mod value;

/// The module; `python/kmt/__init__.py` passes its names on.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::event::Event;
    #[pymodule_export]
    use crate::events::{Events, Loss};
    #[pymodule_export]
    use crate::trace::{Error, Trace, open};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
