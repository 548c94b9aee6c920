//! First pass over all events: the addresses, frames, tasks and times to be replaced.
//!
//! Output are the sets of addresses and tasks, and the first time, from which `code`, `memory` and `keys` make the
//! replacements. They must be known before the first record is written, since new addresses keep the relations between
//! old ones: functions, pages, slabs. The second pass writes the records (`record`).

use std::collections::BTreeSet;

use kmt_format::kernel::ByteOrder;
use kmt_format::read::Event;

use super::allowed::Treatment;
use super::fields::ClassMask;
use super::memory::{DataAddresses, Shape, all_ones};
use crate::trace::session::Session;

/// Values in a trace.
#[derive(Debug)]
pub struct Survey {
    /// Data addresses.
    pub data: DataAddresses,
    /// Addresses of the text.
    pub code: BTreeSet<u64>,
    /// Task ids.
    pub pids: BTreeSet<i32>,
    /// Earliest time of an event or a snapshot.
    pub first_time: Option<u64>,
    /// Earliest time in a field.
    pub first_field_time: Option<u64>,
    /// Other addresses, whose kind depends on the heap addresses.
    addresses: BTreeSet<u64>,
}

impl Survey {
    /// Values of all events, tasks and snapshots. `plans` are by class index.
    pub fn of(session: &Session<'_>, plans: &[Option<ClassMask>], shape: &Shape) -> Self {
        let mut survey = Self {
            data: DataAddresses::default(),
            code: BTreeSet::new(),
            pids: BTreeSet::new(),
            first_time: None,
            first_field_time: None,
            addresses: BTreeSet::new(),
        };
        let trace = session.trace;
        let mut merge = trace.merge();
        while let Some(run) = merge.next_run() {
            for event in run.events() {
                let Some(Some(plan)) = plans.get(event.class_index()) else { continue };
                survey.event(&event, plan, shape);
            }
        }
        for (chunk, info) in trace.folds() {
            earlier(&mut survey.first_time, info.t_begin);
            // Damage is reported where the file is written.
            let Ok(fold) = trace.read_fold(chunk) else { continue };
            for event in fold.events().events(trace.schema()) {
                if let Some(Some(plan)) = plans.get(event.class_index()) {
                    survey.values(&event, plan, shape);
                }
            }
        }
        let metadata = trace.metadata();
        survey.pids.extend(metadata.tasks.iter().flat_map(|t| [t.pid, t.tgid]));
        survey.pids.extend(metadata.text("recorder.pid").and_then(|p| p.parse::<i32>().ok()));
        survey.pids.retain(|&pid| pid > 0);
        for attachment in &metadata.attachments {
            if let Some((from, _)) = attachment.times {
                earlier(&mut survey.first_time, from);
            }
        }
        survey
    }

    /// Adds text addresses outside of functions, and assigns all other addresses to the heap or to pages.
    pub fn finish(&mut self, shape: &Shape, nameless: impl IntoIterator<Item = u64>) {
        let addresses = std::mem::take(&mut self.addresses);
        let mapped = |data: &DataAddresses, block| {
            data.heap.contains(&block) || (shape.base.is_some() && data.frames.contains(&block))
        };
        for address in addresses.into_iter().chain(nameless) {
            let (block, _) = shape.block(address);
            if mapped(&self.data, block) {
                self.data.heap.insert(block);
            } else {
                self.data.pages.insert(shape.page(address));
            }
        }
    }

    /// Adds an address that is not in an event.
    pub fn site(&mut self, address: u64, shape: &Shape) {
        if shape.is_address(address) {
            self.code.insert(address);
        }
    }

    fn event(&mut self, event: &Event<'_>, plan: &ClassMask, shape: &Shape) {
        earlier(&mut self.first_time, event.time());
        self.pids.insert(event.pid());
        self.values(event, plan, shape);
    }

    /// Adds the values of the fields of an event.
    fn values(&mut self, event: &Event<'_>, plan: &ClassMask, shape: &Shape) {
        for (index, treatment) in plan.treatments.iter().enumerate() {
            match treatment {
                Treatment::Keep | Treatment::Zero | Treatment::Identity => {}
                Treatment::CacheName | Treatment::TaskName => {}
                Treatment::Stack => {
                    let size = event.class().fields.get(index).map_or(8, |f| f.element_size as usize);
                    let bytes = event.bytes(index).unwrap_or_default();
                    words(bytes, size, event.order()).for_each(|address| self.site(address, shape));
                }
                scalar => {
                    let size = event.class().fields.get(index).map_or(8, |f| f.size as usize);
                    if let Some(value) = event.uint(index) {
                        self.scalar(*scalar, value, size, shape);
                    }
                }
            }
        }
    }

    fn scalar(&mut self, treatment: Treatment, value: u64, size: usize, shape: &Shape) {
        match treatment {
            Treatment::Pid => {
                self.pids.insert(value as i32);
            }
            Treatment::Time => earlier(&mut self.first_field_time, value),
            Treatment::Frame if value != all_ones(size) => {
                self.data.frames.insert(shape.frame(value).0);
            }
            Treatment::Heap if shape.is_address(value) => {
                self.data.heap.insert(shape.block(value).0);
            }
            Treatment::Code => self.site(value, shape),
            Treatment::Address if shape.is_address(value) => {
                self.addresses.insert(value);
            }
            _ => {}
        }
    }
}

/// Integers of `size` bytes, in sequence.
pub fn words(bytes: &[u8], size: usize, order: ByteOrder) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(size.clamp(1, 8)).map(move |word| order.uint(word))
}

fn earlier(first: &mut Option<u64>, time: u64) {
    *first = Some(first.map_or(time, |f| f.min(time)));
}
