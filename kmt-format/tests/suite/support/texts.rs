//! Events as texts, for tests that read one file in thousands of damaged states.

use std::collections::HashMap;
use std::rc::Rc;

use kmt_format::Result;
use kmt_format::read::{ChunkRef, Event, Trace};
use kmt_format::schema::EventClass;

use super::found;

/// Texts of the events of chunks. Damage changes few chunks: one with the same bytes, read by the same classes, gives the
/// same texts, made once.
#[derive(Default)]
pub struct Texts {
    classes: Vec<(usize, EventClass)>,
    of_chunks: HashMap<Vec<u8>, Rc<[Rc<str>]>>,
}

impl Texts {
    /// Reads a chunk of `file` and gives the text of each of its events.
    ///
    /// # Errors
    ///
    /// Returns the reader's error.
    pub fn of(&mut self, trace: &Trace<'_>, file: &[u8], chunk: &ChunkRef) -> Result<Rc<[Rc<str>]>> {
        let read = trace.read(chunk)?;
        if !trace.schema().classes().eq(self.classes.iter().map(|(i, class)| (*i, class))) {
            self.classes = trace.schema().classes().map(|(i, class)| (i, class.clone())).collect();
            self.of_chunks.clear();
        }
        let bytes = &file[chunk.offset as usize..][..chunk.total_len as usize];
        let texts = self.of_chunks.entry(bytes.to_vec()).or_insert_with(|| {
            let event = |i| Event::new(trace.schema(), &read, i).unwrap();
            (0..read.records().len()).map(|i| found::event(&event(i)).to_string().into()).collect()
        });
        assert_eq!(texts.len(), read.records().len());
        Ok(Rc::clone(texts))
    }
}
