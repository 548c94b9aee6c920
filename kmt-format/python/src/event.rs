//! One event, with a copy of what it holds: Python keeps events as long as it likes, and chunks are not kept.

use std::sync::Arc;

use kmt::owned::OwnedEvents;
use kmt_format::kernel::Field;
use kmt_format::schema::{EventClass, Meaning, Role};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::opened::OpenedTrace;
use crate::value::{Kind, array_object, number_object, numbers};

/// The value of a field.
#[derive(Clone, Copy)]
enum Value {
    Nothing,
    Number(u64),
    /// Range of the bytes of an array in `Event::data`.
    Array {
        start: usize,
        end: usize,
    },
}

/// One event: its fields by name, as in a mapping.
#[pyclass(frozen, mapping, module = "kmt")]
pub struct Event {
    trace: Arc<OpenedTrace>,
    class: usize,
    #[pyo3(get)]
    number: u64,
    #[pyo3(get)]
    time: u64,
    #[pyo3(get)]
    cpu: u32,
    #[pyo3(get)]
    stack_of: Option<u64>,
    #[pyo3(get)]
    duplicate_call_site: Option<u64>,
    values: Box<[Value]>,
    data: Vec<u8>,
}

impl Event {
    /// The event at which `events` stands.
    pub fn current(trace: Arc<OpenedTrace>, events: &OwnedEvents) -> Option<Self> {
        let event = events.event()?;
        let mut data = Vec::new();
        let value = |(index, field): (usize, &Field)| match event.uint(index) {
            Some(number) => Value::Number(number),
            None => match if field.is_text() { event.text(index) } else { event.bytes(index) } {
                None => Value::Nothing,
                Some(bytes) => {
                    let start = data.len();
                    data.extend_from_slice(bytes);
                    Value::Array { start, end: data.len() }
                }
            },
        };
        let values = event.class().fields.iter().enumerate().map(value).collect();
        Some(Self {
            trace,
            class: event.class_index(),
            number: events.number(),
            time: event.time(),
            cpu: event.cpu(),
            stack_of: events.stack_of(),
            duplicate_call_site: events.duplicate_call_site(),
            values,
            data,
        })
    }

    fn class(&self) -> Option<&EventClass> {
        self.trace.owned.trace().schema().class(self.class)
    }

    fn number_with(&self, role: Role) -> Option<u64> {
        match self.values.get(self.class()?.field_with(role)?)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn object(&self, py: Python<'_>, index: usize, field: &Field) -> PyResult<Py<PyAny>> {
        match self.values.get(index).copied().unwrap_or(Value::Nothing) {
            Value::Nothing => Ok(py.None()),
            Value::Number(number) => number_object(py, Kind::of(field), number),
            Value::Array { start, end } => {
                let order = self.trace.owned.trace().header().order;
                array_object(py, Kind::of(field), self.data.get(start..end).unwrap_or_default(), order)
            }
        }
    }

    fn found(&self, py: Python<'_>, name: &str) -> Option<PyResult<Py<PyAny>>> {
        let class = self.class()?;
        let index = class.field_named(name)?;
        Some(self.object(py, index, class.fields.get(index)?))
    }
}

#[pymethods]
impl Event {
    /// Thread that was running.
    #[getter]
    fn pid(&self) -> i32 {
        self.number_with(Role::PID).unwrap_or(0) as i32
    }

    /// Name of that thread at that time; None if not recorded.
    #[getter]
    fn comm(&self) -> Option<String> {
        let comm = self.trace.owned.comm(self.pid(), self.time)?;
        Some(String::from_utf8_lossy(comm).into_owned())
    }

    /// System, such as "kmem".
    #[getter]
    fn system(&self, py: Python<'_>) -> Option<Py<PyString>> {
        self.trace.names.get(self.class).map(|(system, _)| system.clone_ref(py))
    }

    /// Name, such as "kmalloc".
    #[getter]
    fn name(&self, py: Python<'_>) -> Option<Py<PyString>> {
        self.trace.names.get(self.class).map(|(_, name)| name.clone_ref(py))
    }

    /// Meaning of the event, which does not depend on the kernel version: "kmalloc", "cache_alloc", ...; or None.
    #[getter]
    fn meaning(&self) -> Option<&'static str> {
        Some(match self.class()?.meaning {
            Meaning::KMALLOC => "kmalloc",
            Meaning::KFREE => "kfree",
            Meaning::CACHE_ALLOC => "cache_alloc",
            Meaning::CACHE_FREE => "cache_free",
            Meaning::PAGE_ALLOC => "page_alloc",
            Meaning::PAGE_FREE => "page_free",
            Meaning::PAGE_FREE_BATCHED => "page_free_batched",
            Meaning::RSS_STAT => "rss_stat",
            Meaning::KERNEL_STACK => "kernel_stack",
            Meaning::FREE_RCU => "free_rcu",
            _ => return None,
        })
    }

    /// Symbol of the call site; None if the event has none.
    #[getter]
    fn symbol(&self, py: Python<'_>) -> Option<Py<PyString>> {
        Some(self.trace.symbol_object(py, self.number_with(Role::CALL_SITE)?))
    }

    /// Return addresses, the innermost first; None if the event has none.
    #[getter]
    fn stack(&self) -> Option<Vec<u64>> {
        let header = self.trace.owned.trace().header();
        match self.values.get(self.class()?.field_with(Role::STACK)?)? {
            Value::Array { start, end } => {
                let bytes = self.data.get(*start..*end)?;
                Some(numbers(bytes, header.long_size as u8, false, header.order).collect())
            }
            _ => None,
        }
    }

    /// Its own fields, without the common ones.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let Some(class) = self.class() else { return Ok(dict) };
        for (index, field) in class.fields.iter().enumerate().skip(class.common_count) {
            dict.set_item(&field.name, self.object(py, index, field)?)?;
        }
        Ok(dict)
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        self.found(py, name).unwrap_or_else(|| Err(PyKeyError::new_err(name.to_owned())))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.class().is_some_and(|class| class.field_named(name).is_some())
    }

    #[pyo3(signature = (name, default = None))]
    fn get(&self, py: Python<'_>, name: &str, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.found(py, name).unwrap_or_else(|| Ok(default.unwrap_or_else(|| py.None())))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let class = self.class().map(|c| format!("{}:{}", c.system, c.name)).unwrap_or_default();
        Ok(format!("<kmt.Event {class} at {} on CPU {}: {}>", self.time, self.cpu, self.fields(py)?.repr()?))
    }
}
