//! Records of events with new values.
//!
//! `fields` has the treatment of each field, by its role and type; `Masks` has the replacements that the first pass
//! made (`survey`). A field without an allowed meaning is zero, and of an unknown class only the common fields stay.
//! Offsets stay those of the class, so that its description needs no change.

use std::collections::HashMap;

use kmt_format::kernel::FieldKind;
use kmt_format::read::Event;

use super::allowed::Treatment;
use super::code::Code;
use super::fields::ClassMask;
use super::keys::{Purpose, SecretKeys, Texts};
use super::memory::Memory;
use super::survey::words;

/// Replacements.
#[derive(Debug)]
pub struct Masks {
    pub keys: SecretKeys,
    /// Data and frames.
    pub memory: Memory,
    /// Text.
    pub code: Code,
    /// Names.
    pub texts: Texts,
    /// Task ids.
    pub pids: HashMap<i32, i32>,
    /// Subtracted from times.
    pub first_time: u64,
    /// Subtracted from times in fields.
    pub first_field_time: u64,
}

impl Masks {
    /// New task id; 0 is the idle task in every file.
    pub fn pid(&self, pid: i32) -> i32 {
        if pid <= 0 { pid } else { self.pids.get(&pid).copied().unwrap_or(0) }
    }

    /// New value of a text address, or of another address in its place.
    pub fn site(&self, address: u64) -> u64 {
        self.code.moved(address).unwrap_or_else(|| self.memory.address(address))
    }

    /// New time of the trace's clock.
    pub fn time(&self, time: u64) -> u64 {
        time.saturating_sub(self.first_time)
    }

    /// Writes the record of an event, in the kernel's layout. `record` is cleared first.
    pub fn record(&mut self, event: &Event<'_>, plan: &ClassMask, record: &mut Vec<u8>) {
        record.clear();
        let class = event.class();
        let end = |f: &kmt_format::kernel::Field| (f.offset as usize).saturating_add(f.size as usize);
        let count = if plan.is_hidden() { class.common_count } else { class.fields.len() };
        let fields = || class.fields.iter().take(count).enumerate();
        record.resize(fields().map(|(_, f)| end(f)).max().unwrap_or(0), 0);
        for (index, field) in fields() {
            let treatment = plan.treatments.get(index).copied().unwrap_or_else(|| common(&field.name));
            let (offset, size) = (field.offset as usize, field.size as usize);
            if field.kind == FieldKind::Scalar {
                let value = self.scalar(treatment, event.uint(index).unwrap_or(0), size);
                let mut bytes = Vec::with_capacity(8);
                event.order().push(&mut bytes, value, size.min(8));
                put(record, offset, &bytes);
                continue;
            }
            let bytes = self.array(treatment, event, index);
            match field.kind {
                FieldKind::DataLoc | FieldKind::RelLoc => {
                    let start = record.len();
                    let from = if field.kind == FieldKind::RelLoc { offset.saturating_add(size) } else { 0 };
                    let mut locator = Vec::with_capacity(4);
                    let bounds = start.saturating_sub(from) & 0xffff | bytes.len() << 16;
                    event.order().push(&mut locator, bounds as u64, 4);
                    put(record, offset, &locator);
                    record.extend_from_slice(&bytes);
                }
                // A text needs its closing NUL.
                FieldKind::Array { .. } if field.is_text() => {
                    put(
                        record,
                        offset,
                        bytes.get(..bytes.len().min(size.saturating_sub(1))).unwrap_or_default(),
                    );
                }
                _ => put(record, offset, &bytes),
            }
        }
    }

    fn scalar(&self, treatment: Treatment, value: u64, size: usize) -> u64 {
        match treatment {
            Treatment::Keep => value,
            Treatment::Pid => self.pid(value as i32) as u64,
            Treatment::Heap => self.memory.heap(value),
            Treatment::Address => self.memory.address(value),
            Treatment::Code => self.site(value),
            Treatment::Frame => self.memory.frame(value, size),
            Treatment::Time => value.saturating_sub(self.first_field_time),
            Treatment::Identity => self.keys.number(Purpose::Identity, value, 0),
            Treatment::Zero | Treatment::Stack | Treatment::CacheName | Treatment::TaskName => 0,
        }
    }

    /// An array's bytes; text of dynamic length has its closing NUL.
    fn array(&mut self, treatment: Treatment, event: &Event<'_>, index: usize) -> Vec<u8> {
        let is_fixed =
            event.class().fields.get(index).is_some_and(|f| matches!(f.kind, FieldKind::Array { .. }));
        let text = event.text(index).unwrap_or_default();
        let closed = |mut name: Vec<u8>| {
            if !is_fixed {
                name.push(0);
            }
            name
        };
        match treatment {
            Treatment::CacheName => closed(self.texts.cache(text)),
            Treatment::TaskName => closed(self.texts.task(text)),
            Treatment::Stack => {
                let size = event.class().fields.get(index).map_or(8, |f| f.element_size as usize);
                let mut out = Vec::new();
                for address in words(event.bytes(index).unwrap_or_default(), size, event.order()) {
                    event.order().push(&mut out, self.site(address), size.clamp(1, 8));
                }
                out
            }
            _ => Vec::new(),
        }
    }
}

/// Treatment of the common fields of an unknown class.
fn common(name: &str) -> Treatment {
    match name {
        "common_pid" => Treatment::Pid,
        "common_type" | "common_flags" | "common_preempt_count" => Treatment::Keep,
        _ => Treatment::Zero,
    }
}

fn put(record: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset.saturating_add(bytes.len());
    if record.len() < end {
        record.resize(end, 0);
    }
    if let Some(old) = record.get_mut(offset..end) {
        old.copy_from_slice(bytes);
    }
}
