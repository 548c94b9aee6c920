//! Event classes of the file that is written: formats until their first event, then plans with numbers.
//!
//! A format is known before its events. The writer puts its class into a SCHM chunk, in front of the first chunk that has events
//! of this class.

use super::Writer;
use super::schema_chunk::schema_body;
use super::unknown_ids::UnknownIds;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::with_order;
use crate::pack::{ClassRepeats, RecordPlan};
use crate::raw::{ChunkKind, chunk_flags};
use crate::schema::EventClass;

impl Writer {
    /// Makes an event class known by its `format` file. It gets into the file when its first event does.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not that of a `format` file.
    pub fn add_format(&mut self, system: &str, text: &str) -> Result<u16> {
        let class = EventClass::from_format(system, text, self.options.long_size)?;
        let id = class.id;
        self.formats.entry(id).or_insert(class);
        Ok(id)
    }

    /// True if there is a format for that event id.
    pub fn knows_id(&self, id: u16) -> bool {
        self.formats.contains_key(&id) || self.plan_of_id.get(usize::from(id)).is_some_and(|&i| i != 0)
    }

    /// The class of that event id, if it has a format.
    pub fn class_of(&self, id: u16) -> Option<&EventClass> {
        let known = self.plan_of_id.get(usize::from(id)).and_then(|index| index.checked_sub(1));
        match known {
            Some(index) => self.plans.get(usize::from(index)).map(|plan| &plan.class),
            None => self.formats.get(&id),
        }
    }

    /// Keeps events whose id has no format, as events of a class `unknown:event_ID` with the fields common to all events
    /// and an array of bytes, `data`. `format` is any `format` file of the same kernel: its common fields are used.
    ///
    /// At most 64 ids are kept so: more of them come from damage.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not that of a `format` file.
    pub fn keep_unknown(&mut self, format: &str) -> Result<()> {
        self.unknown = Some(UnknownIds::new(format, self.options.long_size)?);
        Ok(())
    }

    /// Writes the class of that event id into the file even if none of its events occurs.
    ///
    /// # Errors
    ///
    /// Returns an error if the id has no format, or one that cannot be stored.
    pub fn declare(&mut self, id: u16) -> Result<()> {
        self.plan_index(id).map(|_| ())
    }

    #[inline]
    pub(super) fn plan_index(&mut self, id: u16) -> Result<usize> {
        match self.plan_of_id.get(usize::from(id)).and_then(|index| index.checked_sub(1)) {
            Some(index) => Ok(usize::from(index)),
            None => self.add_plan(id),
        }
    }

    fn add_plan(&mut self, id: u16) -> Result<usize> {
        let class = self.formats.remove(&id).or_else(|| self.unknown.as_mut()?.class(id));
        let class = class.ok_or_else(|| Error::new(ErrorKind::UnknownEventId { id }))?;
        let index = self.plans.len();
        // Three shapes a class, and shape numbers have 16 bits.
        let number = self.first_class + index;
        if number >= 21_000 {
            return Err(Error::new(ErrorKind::Usage("more than 21,000 event classes")));
        }
        let plan = RecordPlan::new(class, number, number * 3, self.options.long_size)?;
        self.plans.push(plan);
        self.class_repeats.push(ClassRepeats::default());
        if let Some(slot) = self.plan_of_id.get_mut(usize::from(id)) {
            *slot = index as u16 + 1;
        }
        Ok(index)
    }

    /// Writes the classes used for the first time since the last call.
    pub(super) fn write_schema(&mut self) -> Result<()> {
        if self.plans_written < self.plans.len() {
            let body = self.schema_body(self.plans_written);
            self.plans_written = self.plans.len();
            self.framer.loose_chunk(ChunkKind::SCHEMA, chunk_flags::CRITICAL, &body)?;
        }
        Ok(())
    }

    pub(super) fn schema_body(&self, from: usize) -> Vec<u8> {
        let plans: Vec<&RecordPlan> = self.plans.iter().skip(from).collect();
        with_order!(self.options.order, O => schema_body::<O>(&plans))
    }
}
