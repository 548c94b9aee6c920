//! Traces.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

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

create_exception!(
    kmt,
    Error,
    PyValueError,
    "A file that cannot be read; `code` is a short name of the reason."
);

/// Symbols that are kept as objects.
const SYMBOLS_KEPT: usize = 1 << 16;

/// A trace.
#[pyclass(frozen, module = "kmt")]
pub struct Trace {
    pub owned: Arc<OwnedTrace>,
    /// System and name of each class.
    pub names: Vec<(Py<PyString>, Py<PyString>)>,
    symbols: Mutex<HashMap<u64, Py<PyString>>>,
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
    let schema = owned.trace().schema();
    // By index: a damaged file may lack a class between two others.
    let names = (0..schema.class_count()).map(|index| {
        let (system, name) = schema.class(index).map_or(("", ""), |class| (&class.system, &class.name));
        (PyString::new(py, system).unbind(), PyString::new(py, name).unbind())
    });
    Ok(Trace { names: names.collect(), symbols: Mutex::default(), owned: Arc::clone(&owned) })
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
        py.detach(|| self.owned.check())
            .map_err(|error| raised(py, format!("{error}; {remedy}"), error.code()))
    }

    /// The symbol of an address; the object is the same for the same address.
    pub fn symbol_object(&self, py: Python<'_>, address: u64) -> Py<PyString> {
        let mut kept = self.symbols.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = kept.get(&address) {
            return text.clone_ref(py);
        }
        let text = PyString::new(py, &String::from_utf8_lossy(&self.owned.symbol(address))).unbind();
        if kept.len() >= SYMBOLS_KEPT {
            kept.clear();
        }
        kept.insert(address, text.clone_ref(py));
        text
    }
}

#[pymethods]
impl Trace {
    /// Name and unit of the clock; None if not recorded.
    #[getter]
    fn clock(&self) -> Option<(&str, &str)> {
        let clock = self.owned.trace().metadata().clock.as_ref()?;
        Some((&clock.name, if clock.unit == ClockUnit::Nanoseconds { "ns" } else { "ticks" }))
    }

    /// Keys and values of the file.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in &self.owned.trace().metadata().pairs {
            dict.set_item(key.as_ref(), String::from_utf8_lossy(value))?;
        }
        Ok(dict)
    }

    /// Files of the target that the trace carries.
    #[getter]
    fn attachments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for file in &self.owned.trace().metadata().attachments {
            dict.set_item(file.name.as_ref(), PyBytes::new(py, &file.contents))?;
        }
        Ok(dict)
    }

    /// Whether the writer of the file came to its end.
    #[getter]
    fn is_finished(&self) -> bool {
        self.owned.trace().is_finished()
    }

    /// Damage found when opening. Damage inside event chunks is found when they are read, and is a loss.
    #[getter]
    fn damages(&self) -> Vec<String> {
        self.owned.trace().damages().iter().map(|damage| damage.error.to_string()).collect()
    }

    /// Number of events in the file, by the heads of its chunks. Not `len()`: `list(trace)` would allocate memory for the
    /// number that a damaged file claims.
    #[getter]
    fn event_count(&self) -> u64 {
        self.owned.trace().event_count()
    }

    fn __iter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Events> {
        Self::events(slf, py)
    }

    fn __repr__(&self) -> String {
        format!("<kmt.Trace of {} events>", self.owned.trace().event_count())
    }

    /// Goes through all events in the kernel's order. The file is checked first: damage is an error.
    fn events(slf: Py<Self>, py: Python<'_>) -> PyResult<Events> {
        slf.get().check(py, "items() yields sound events, and losses where events are missing")?;
        Ok(Events::new(slf, false))
    }

    /// Goes through sound events, and losses where events are missing.
    fn items(slf: Py<Self>) -> Events {
        Events::new(slf, true)
    }

    /// All places where events are missing.
    fn losses(&self, py: Python<'_>) -> Vec<Loss> {
        let losses = py.detach(|| {
            let (mut losses, mut merge) = (Vec::new(), self.owned.trace().merge());
            while let Some(run) = merge.next_run() {
                losses.extend(LossItem::of_run(&run));
            }
            losses
        });
        losses.into_iter().map(Loss::from).collect()
    }

    /// Names of events that occur, such as "kmem:kmalloc".
    fn event_names(&self, py: Python<'_>) -> Vec<String> {
        let trace = self.owned.trace();
        let classes = py.detach(|| occurring(trace));
        let named = classes.into_iter().filter_map(|class| trace.schema().class(class));
        let mut names: Vec<String> = named.map(|c| format!("{}:{}", c.system, c.name)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// An address as `symbol+0xoffset/0xsize [module]`, or in hex.
    fn symbol(&self, py: Python<'_>, address: u64) -> Py<PyString> {
        self.symbol_object(py, address)
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
        let plan = py.detach(|| Plan::of(self.owned.trace(), events.as_deref(), fields.as_deref()));
        let plan = plan.map_err(PyValueError::new_err)?;
        Ok(Columns::new(Arc::clone(&self.owned), plan, batch_rows.max(1)))
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
