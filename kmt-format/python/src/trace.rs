//! Traces.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use kmt::OpenError;
use kmt::owned::{LossItem, OwnedTrace};
use kmt_format::Limits;
use kmt_format::kernel::ClockUnit;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::arrow::plan::{Plan, occurring};
use crate::columns::Columns;
use crate::events::{Events, Loss};
use crate::opened::OpenedTrace;

create_exception!(
    kmt,
    Error,
    PyValueError,
    "A file that cannot be read; `code` is a short name of the reason."
);

/// A trace.
#[pyclass(frozen, module = "kmt")]
pub struct Trace {
    opened: Arc<OpenedTrace>,
}

/// Opens a file, or the bytes of one.
#[pyfunction]
#[pyo3(signature = (source, *, limits = None))]
pub fn open(source: &Bound<'_, PyAny>, limits: Option<HashMap<String, u64>>) -> PyResult<Trace> {
    let py = source.py();
    let mut wanted = Limits::default();
    for (name, value) in limits.unwrap_or_default() {
        if !wanted.set(&name, value) {
            let names = Limits::NAMES.join(", ");
            return Err(PyValueError::new_err(format!("{name}={value} is not a limit; there are {names}")));
        }
    }
    let owned = if let Ok(bytes) = source.cast::<PyBytes>() {
        let bytes = bytes.as_bytes().to_vec();
        py.detach(|| OwnedTrace::of_bytes(bytes, wanted).map_err(OpenError::from))
    } else {
        let path: PathBuf = source.extract()?;
        py.detach(|| OwnedTrace::open(&path, wanted))
    };
    let owned = owned.map_err(|error| failed(py, source, &error))?;
    Ok(Trace { opened: Arc::new(OpenedTrace::new(py, owned)) })
}

fn failed(py: Python<'_>, source: &Bound<'_, PyAny>, error: &OpenError) -> PyErr {
    if let OpenError::Io(io) = error {
        // OSError makes FileNotFoundError and the like of the number.
        return PyOSError::new_err((io.raw_os_error(), io.to_string(), source.clone().unbind()));
    }
    raised(py, error.to_string(), error.code())
}

fn raised(py: Python<'_>, text: String, code: &str) -> PyErr {
    let error = Error::new_err(text);
    // The text is enough without the code.
    let _ = error.value(py).setattr("code", code);
    error
}

impl Trace {
    /// Checks the whole file, once: an error where anything is damaged.
    fn check(&self, py: Python<'_>, remedy: &str) -> PyResult<()> {
        py.detach(|| self.opened.owned.check())
            .map_err(|error| raised(py, format!("{error}; {remedy}"), error.code()))
    }
}

#[pymethods]
impl Trace {
    /// Name and unit of the clock; None if not recorded.
    #[getter]
    fn clock(&self) -> Option<(&str, &str)> {
        let clock = self.opened.owned.trace().metadata().clock.as_ref()?;
        Some((&clock.name, if clock.unit == ClockUnit::Nanoseconds { "ns" } else { "ticks" }))
    }

    /// Keys and values of the file.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in &self.opened.owned.trace().metadata().pairs {
            dict.set_item(key.as_ref(), String::from_utf8_lossy(value))?;
        }
        Ok(dict)
    }

    /// Files of the target that the trace carries.
    #[getter]
    fn attachments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for file in &self.opened.owned.trace().metadata().attachments {
            dict.set_item(file.name.as_ref(), PyBytes::new(py, &file.contents))?;
        }
        Ok(dict)
    }

    /// True if the file is finished: its last chunk is a trailer.
    #[getter]
    fn is_finished(&self) -> bool {
        self.opened.owned.trace().is_finished()
    }

    /// Damage found when opening. Damage inside event chunks is found when they are read, and is a loss.
    #[getter]
    fn damages(&self) -> Vec<String> {
        self.opened.owned.trace().damages().iter().map(|damage| damage.error.to_string()).collect()
    }

    /// Number of events in the file, by the heads of its chunks. Not `len()`: `list(trace)` would allocate memory for the
    /// number that a damaged file claims.
    #[getter]
    fn event_count(&self) -> u64 {
        self.opened.owned.trace().event_count()
    }

    /// True if lives of objects may be folded: the file has sums of most events instead of the events.
    #[getter]
    fn is_folded(&self) -> bool {
        self.opened.owned.trace().header().folded
    }

    /// Number of events that the file has as sums. A minimum where the file is damaged or not finished.
    #[getter]
    fn folded_event_count(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.opened.owned.trace().folded_event_count().0)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Events> {
        self.events(py)
    }

    fn __repr__(&self) -> String {
        format!("<kmt.Trace of {} events>", self.opened.owned.trace().event_count())
    }

    /// Goes through all events in the kernel's order. The file is checked first: damage is an error.
    fn events(&self, py: Python<'_>) -> PyResult<Events> {
        self.check(py, "items() yields sound events, and losses where events are missing")?;
        Ok(Events::new(&self.opened, false))
    }

    /// Goes through sound events, and losses where events are missing.
    fn items(&self) -> Events {
        Events::new(&self.opened, true)
    }

    /// All places where events are missing.
    fn losses(&self, py: Python<'_>) -> Vec<Loss> {
        let losses = py.detach(|| {
            let (mut losses, mut merge) = (Vec::new(), self.opened.owned.trace().merge());
            while let Some(run) = merge.next_run() {
                losses.extend(LossItem::of_run(&run));
            }
            losses
        });
        losses.into_iter().map(Loss::from).collect()
    }

    /// Names of events that occur, such as "kmem:kmalloc".
    fn event_names(&self, py: Python<'_>) -> Vec<String> {
        let trace = self.opened.owned.trace();
        let classes = py.detach(|| occurring(trace));
        let named = classes.into_iter().filter_map(|class| trace.schema().class(class));
        let mut names: Vec<String> = named.map(|c| format!("{}:{}", c.system, c.name)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// An address as `symbol+0xoffset/0xsize [module]`, or in hex.
    fn symbol(&self, py: Python<'_>, address: u64) -> Py<PyString> {
        self.opened.symbol_object(py, address)
    }

    /// Events as columns: all that occur, or those named ("kmem:kmalloc", or "kmalloc" of any system).
    /// Damage is an error, unless it is allowed.
    #[pyo3(signature = (events = None, fields = None, *, batch_rows = 1_000_000, allow_damage = false))]
    fn to_arrow(
        &self,
        py: Python<'_>,
        events: Option<Vec<String>>,
        fields: Option<Vec<String>>,
        batch_rows: usize,
        allow_damage: bool,
    ) -> PyResult<Columns> {
        if !allow_damage {
            self.check(
                py,
                "to_arrow(allow_damage=True) has the sound events, losses() lists where events are missing",
            )?;
        }
        let plan = py.detach(|| Plan::of(self.opened.owned.trace(), events.as_deref(), fields.as_deref()));
        let plan = plan.map_err(PyValueError::new_err)?;
        Ok(Columns::new(Arc::clone(&self.opened.owned), plan, batch_rows.max(1)))
    }

    /// All events as columns, for readers of Arrow streams.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.to_arrow(py, None, None, 1_000_000, false)?.__arrow_c_stream__(py, requested_schema)
    }
}
