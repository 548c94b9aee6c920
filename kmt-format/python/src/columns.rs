//! Events as columns, for readers of Apache Arrow.

use std::sync::Arc;

use kmt::owned::OwnedTrace;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow::ffi::{ArrowArrayStream, ArrowSchema};
use crate::arrow::plan::Plan;
use crate::arrow::stream::Stream;

/// Events as columns, for any reader of the Arrow PyCapsule interface. May be read any number of times.
///
/// <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>
#[pyclass(frozen, module = "kmt")]
pub struct Columns {
    trace: Arc<OwnedTrace>,
    plan: Arc<Plan>,
    batch_rows: usize,
}

impl Columns {
    pub fn new(trace: Arc<OwnedTrace>, plan: Plan, batch_rows: usize) -> Self {
        Self { trace, plan: Arc::new(plan), batch_rows }
    }
}

#[pymethods]
impl Columns {
    /// Names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.plan.columns.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<kmt.Columns {}>", self.names().join(", "))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let schema = ArrowSchema::new(&self.plan.schema());
        Ok(PyCapsule::new_with_value(py, schema, c"arrow_schema")?.into_any())
    }

    /// A stream of batches, read from the trace while it is consumed. A requested schema is ignored, as the
    /// interface allows.
    #[pyo3(signature = (requested_schema = None))]
    pub fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = requested_schema;
        let stream = Stream::new(&self.trace, Arc::clone(&self.plan), self.batch_rows);
        let stream = ArrowArrayStream::new(Box::new(stream));
        Ok(PyCapsule::new_with_value(py, stream, c"arrow_array_stream")?.into_any())
    }
}
