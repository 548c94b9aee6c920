//! An opened file: what a trace, its events and those who go through them share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kmt::owned::OwnedTrace;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Symbols that are kept as objects.
const SYMBOLS_KEPT: usize = 1 << 16;

/// An opened file, with objects that Python gets again and again.
pub struct OpenedTrace {
    pub owned: Arc<OwnedTrace>,
    /// System and name of each class.
    pub names: Vec<(Py<PyString>, Py<PyString>)>,
    symbols: Mutex<HashMap<u64, Py<PyString>>>,
}

impl OpenedTrace {
    /// Makes the names of the classes.
    pub fn new(py: Python<'_>, owned: Arc<OwnedTrace>) -> Self {
        let schema = owned.trace().schema();
        // By index: a damaged file may lack a class between two others.
        let names = (0..schema.class_count()).map(|index| {
            let (system, name) = schema.class(index).map_or(("", ""), |class| (&class.system, &class.name));
            (PyString::new(py, system).unbind(), PyString::new(py, name).unbind())
        });
        Self { names: names.collect(), symbols: Mutex::default(), owned: Arc::clone(&owned) }
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
