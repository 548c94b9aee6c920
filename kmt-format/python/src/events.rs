//! Going through events.

use std::sync::Arc;

use kmt::owned::{LossItem, OwnedEvents, Step};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::event::Event;
use crate::opened::OpenedTrace;

/// Goes through the events of a trace.
#[pyclass(module = "kmt")]
pub struct Events {
    trace: Arc<OpenedTrace>,
    inner: OwnedEvents,
    losses: bool,
}

impl Events {
    pub fn new(trace: &Arc<OpenedTrace>, losses: bool) -> Self {
        Self { trace: Arc::clone(trace), inner: OwnedEvents::new(&trace.owned), losses }
    }
}

#[pymethods]
impl Events {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            match self.inner.advance() {
                Step::End => return Ok(None),
                Step::Event => {
                    let event = Event::current(Arc::clone(&self.trace), &self.inner);
                    return event.map(|event| event.into_py_any(py)).transpose();
                }
                Step::Loss if self.losses => {
                    let loss = self.inner.loss().copied().map(Loss::from);
                    return loss.map(|loss| loss.into_py_any(py)).transpose();
                }
                Step::Loss => {}
            }
        }
    }
}

/// Events that are missing at one place of one CPU's stream.
#[pyclass(frozen, get_all, module = "kmt")]
pub struct Loss {
    /// CPU.
    cpu: u32,
    /// Events lost on the target, as the kernel counted them.
    lost: u64,
    /// Events that are missing because the file is damaged.
    damaged: u64,
    /// True if the kernel did not count, or its data were damaged: both numbers are minimums.
    is_minimum: bool,
    /// Time of the event before it on its CPU.
    after: Option<u64>,
    /// Time of the event behind it on its CPU.
    before: Option<u64>,
}

impl From<LossItem> for Loss {
    fn from(item: LossItem) -> Self {
        let LossItem { cpu, lost, damaged, after, before, .. } = item;
        Self { cpu, lost, damaged, is_minimum: item.is_uncounted || item.is_input_damaged, after, before }
    }
}

#[pymethods]
impl Loss {
    fn __repr__(&self) -> String {
        let least = if self.is_minimum { "at least " } else { "" };
        format!("<kmt.Loss on CPU {}: {least}{} lost, {} damaged>", self.cpu, self.lost, self.damaged)
    }
}
