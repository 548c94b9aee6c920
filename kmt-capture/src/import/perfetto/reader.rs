//! The events of a trace, in the order of time for each CPU, with the losses between them.

use std::collections::{BTreeMap, HashMap};

use kmt_format::write::Loss;

use super::super::bounds::{Bounds, raise};
use super::super::cursor::{ImportError, Result};
use super::bundle::{Bundle, Parts, compact_names};
use super::events::{DESCRIBED_FROM, GENERIC, Known, names_in};
use super::fields::{Names, is_generic, names_of_described, of_described, of_generic, of_known};
use super::functions::Functions;
use super::layout::{EventField, Layouts, PlainEvent, Unrecordable};
use super::merge::Merge;
use super::packets::packets;
use super::sequence::{Packet, Sequence};
use super::survey::Survey;
use super::tasks::TaskNames;
use super::wire::{Message, Value};
use super::{CPUS_MAX, Counts, Item, NO_TASK};

/// Reads the events of a trace.
pub struct Reader<'d> {
    bytes: &'d [u8],
    inflated_max: u64,
    bounds: Bounds,
    survey: &'d Survey,
    sequences: HashMap<u32, Sequence>,
    layouts: Layouts,
    merge: Merge,
    record: Vec<u8>,
    /// Number of damages so far: each is a gap on every CPU.
    damages: u64,
    /// Functions of symbols.
    pub functions: Functions,
    /// Names of tasks.
    pub tasks: TaskNames,
    /// The first error.
    pub fault: Option<ImportError>,
    /// Counts of events that were not passed on.
    pub counts: Counts,
}

/// Receiver of items.
type See<'s, E> = &'s mut dyn FnMut(Item<'_>) -> std::result::Result<(), E>;
/// A result with the error of a receiver.
type Seen<E> = std::result::Result<(), E>;

/// Place of the events of a bundle.
#[derive(Clone, Copy)]
struct Place {
    sequence: u32,
    cpu: u32,
}

impl<'d> Reader<'d> {
    /// Of a trace with these facts.
    pub fn new(
        bytes: &'d [u8],
        survey: &'d Survey,
        inflated_max: u64,
        bounds: Bounds,
        functions: Functions,
    ) -> Self {
        let waiting = bounds.waiting.unwrap_or_else(|| (bytes.len() as u64 / 4).clamp(64 << 20, 256 << 20));
        Self {
            bytes,
            inflated_max,
            bounds,
            survey,
            sequences: HashMap::new(),
            layouts: Layouts::new(survey.long_size(), bounds.layouts),
            merge: Merge::new(&survey.bundles, waiting),
            record: Vec::new(),
            damages: 0,
            functions,
            tasks: TaskNames::new(bounds.tasks),
            fault: None,
            counts: Counts::default(),
        }
    }

    /// Number of events that another data source has as well, and that are left out.
    pub fn copies(&self) -> u64 {
        self.merge.copies
    }

    /// True if more events had to wait than the limit allows.
    pub fn is_forced(&self) -> bool {
        self.merge.is_forced
    }

    /// Shows everything to `see`. Damaged parts are gaps; the first error is kept.
    ///
    /// # Errors
    ///
    /// Returns what `see` fails with.
    pub fn read<E>(&mut self, see: See<'_, E>) -> Seen<E> {
        let (bytes, inflated_max, bounds) = (self.bytes, self.inflated_max, self.bounds);
        packets(bytes, inflated_max, &bounds, &mut |packet| match packet {
            Ok(message) => self.packet(message, see),
            Err(fault) => {
                self.damaged(fault);
                Ok(())
            }
        })?;
        self.merge.end(see)?;
        self.last_losses(see)
    }

    /// Notes an error: events may be missing on every CPU.
    fn damaged(&mut self, fault: ImportError) {
        self.fault.get_or_insert(fault);
        self.damages += 1;
    }

    fn packet<E>(&mut self, message: Message<'_>, see: See<'_, E>) -> Seen<E> {
        let packet = match Packet::of(message) {
            Ok(packet) => packet,
            Err(fault) => {
                self.damaged(fault);
                return Ok(());
            }
        };
        let parts = |number| {
            message.fields().flatten().filter(move |f| f.number == number).filter_map(|f| f.message())
        };
        if packet.is_of_other_machine {
            self.counts.other_machines += parts(Packet::BUNDLE).count() as u64;
            return Ok(());
        }
        if !self.survey.has_sequence(packet.sequence) {
            if parts(Packet::BUNDLE).next().is_some() {
                let most = self.bounds.sequences;
                let fact = format!("more than {most} sequences have events; {}", raise("sequences"));
                self.damaged(ImportError::at(message.offset(), fact));
            }
            return Ok(());
        }
        let is_first = !self.sequences.contains_key(&packet.sequence);
        let sequence = self.sequences.entry(packet.sequence).or_default();
        sequence.begin(&packet, is_first);
        // Symbols come after the events that use them.
        for data in parts(Packet::INTERNED) {
            if let Err(fault) = sequence.intern(data, &self.bounds) {
                self.fault.get_or_insert(fault);
            }
        }
        parts(Packet::BUNDLE).try_for_each(|bundle| self.bundle(packet.sequence, bundle, see))
    }

    fn bundle<E>(&mut self, sequence: u32, message: Message<'_>, see: See<'_, E>) -> Seen<E> {
        let bundle = Bundle::of(message);
        let cpu = bundle.cpu.and_then(|cpu| u32::try_from(cpu).ok()).filter(|&cpu| cpu < CPUS_MAX);
        let Some(cpu) = cpu else {
            self.counts.without_cpu += bundle.events + bundle.compact;
            let lost = Loss::counted(bundle.events + bundle.compact);
            return if lost.is_none() { Ok(()) } else { see(Item::Lost { cpu: 0, loss: lost }) };
        };
        let place = Place { sequence, cpu };
        let mut loss = self.loss_before(place, &bundle);
        self.describe(sequence, message);
        let last = self.events(place, message, &mut loss, see)?;
        let last = last.max(bundle.compact_end);
        if bundle.fault.is_some() {
            loss = loss.and(Loss::damaged_input());
        }
        if let Some(fault) = bundle.fault {
            self.fault.get_or_insert(fault);
        }
        self.counts.compact += bundle.compact;
        if !loss.is_none() {
            let time = self.state(place).last.max(last);
            self.merge.loss(cpu, sequence, time, loss, see)?;
        }
        let state = self.state(place);
        state.last = state.last.max(last);
        if bundle.events + bundle.compact > 0 {
            self.merge.end_bundle(cpu, sequence, last, see)?;
        }
        Ok(())
    }

    /// Passes the events of a bundle on. `loss` is before the next one. Returns the time of the last one.
    fn events<E>(
        &mut self,
        place: Place,
        message: Message<'_>,
        loss: &mut Loss,
        see: See<'_, E>,
    ) -> std::result::Result<u64, E> {
        let mut last = 0;
        for field in message.fields().flatten() {
            match (field.number, field.value) {
                (Bundle::EVENT, Value::Message(event)) => {
                    let parts = match Parts::of(event) {
                        Ok(parts) => parts,
                        Err(fault) => {
                            self.fault.get_or_insert(fault);
                            *loss = loss.and(Loss::damaged_input());
                            continue;
                        }
                    };
                    let (Some(time), Some(_)) = (parts.time, parts.message) else {
                        self.counts.incomplete += 1;
                        *loss = loss.and(Loss::counted(1));
                        continue;
                    };
                    if !loss.is_none() {
                        self.merge.loss(place.cpu, place.sequence, time, std::mem::take(loss), see)?;
                    }
                    last = last.max(time);
                    *loss = self.event(place, time, &parts, see)?;
                }
                (4, Value::Message(compact)) => self.compact(compact, see)?,
                _ => {}
            }
        }
        Ok(last)
    }

    fn state(&mut self, place: Place) -> &mut super::sequence::CpuState {
        self.sequences.entry(place.sequence).or_default().cpus.entry(place.cpu).or_default()
    }

    /// Events that are missing before the first one of a bundle.
    fn loss_before(&mut self, place: Place, bundle: &Bundle) -> Loss {
        let damages = self.damages;
        let sequence = self.sequences.entry(place.sequence).or_default();
        let drops = sequence.drops;
        let state = sequence.cpus.entry(place.cpu).or_default();
        let mut loss = Loss::default();
        loss.uncounted = bundle.has_lost;
        loss.damaged_input = bundle.has_errors || state.damages != damages;
        match bundle.previous_end {
            // The recorder tells of each CPU if a bundle is missing.
            Some(end) if state.is_known => {
                loss.uncounted |= end > state.last;
                loss.damaged_input |= end > state.last;
            }
            Some(end) => loss.overwritten = end > 0,
            None => {
                loss.uncounted |= state.drops != drops;
                loss.damaged_input |= state.drops != drops;
            }
        }
        (state.is_known, state.damages, state.drops) = (true, damages, drops);
        loss
    }

    /// Gaps after the last event of a CPU.
    fn last_losses<E>(&mut self, see: See<'_, E>) -> Seen<E> {
        let mut losses: BTreeMap<u32, Loss> = BTreeMap::new();
        for sequence in self.sequences.values() {
            for (&cpu, state) in &sequence.cpus {
                let mut loss = Loss::default();
                loss.uncounted = state.drops != sequence.drops;
                loss.damaged_input = state.damages != self.damages || loss.uncounted;
                let had = losses.entry(cpu).or_default();
                *had = had.and(loss);
            }
        }
        if losses.is_empty() && self.damages > 0 {
            losses.insert(0, Loss::damaged_input());
        }
        losses
            .into_iter()
            .filter(|(_, loss)| !loss.is_none())
            .try_for_each(|(cpu, loss)| see(Item::Lost { cpu, loss }))
    }

    /// Reads the descriptors of a bundle, which come after the events.
    fn describe(&mut self, sequence: u32, message: Message<'_>) {
        let sequence = self.sequences.entry(sequence).or_default();
        for field in message.fields().flatten().filter(|f| f.number == Bundle::DESCRIPTOR) {
            let Some(descriptor) = field.message() else { continue };
            if let Err(fault) = sequence.describe(descriptor, &self.bounds) {
                self.fault.get_or_insert(fault);
            }
        }
    }

    fn compact<E>(&mut self, compact: Message<'_>, see: See<'_, E>) -> Seen<E> {
        let (tasks, mut seen) = (&mut self.tasks, Ok(()));
        let read = compact_names(compact, &mut |comm, pid, time| {
            if seen.is_ok() && tasks.is_new(pid, comm, 0) {
                seen = see(Item::Name { pid, comm, tgid: 0, since: time });
            }
        });
        if let Err(fault) = read {
            self.fault.get_or_insert(fault);
        }
        seen
    }

    /// Passes an event on, or counts it. Returns the loss that it is.
    fn event<E>(
        &mut self,
        place: Place,
        time: u64,
        parts: &Parts<'_>,
        see: See<'_, E>,
    ) -> std::result::Result<Loss, E> {
        let Some((number, message)) = parts.message else { return Ok(Loss::default()) };
        self.counts.events += 1;
        self.names(number, message, time, see)?;
        let made = self.record(place.sequence, number, message, parts.pid, see)?;
        match made {
            Ok(true) => {
                self.merge.event(place.cpu, place.sequence, time, &self.record, see)?;
                Ok(Loss::default())
            }
            Ok(false) => {
                self.counts.leave_out(number);
                Ok(Loss::default())
            }
            Err(reason) => {
                match reason {
                    Unrecordable::TooManyLayouts => self.counts.layouts_left_out += 1,
                    Unrecordable::Unreadable => self.counts.unreadable += 1,
                }
                Ok(Loss::counted(1))
            }
        }
    }

    /// Shows the names of tasks in an event.
    fn names<E>(&mut self, number: u32, message: Message<'_>, time: u64, see: See<'_, E>) -> Seen<E> {
        self.tasks.note_naming(number, message);
        for fields in names_in(number) {
            let (mut comm, mut pid, mut tgid) = (None, None, None);
            for field in message.fields().flatten() {
                match (field.number, field.value) {
                    (number, Value::Message(text)) if number == fields.comm => comm = Some(text.bytes()),
                    (number, Value::Number(id)) if number == fields.pid => pid = Some(id as i32),
                    (number, Value::Number(id)) if Some(number) == fields.tgid => tgid = Some(id as i32),
                    _ => {}
                }
            }
            let (Some(comm), Some(pid)) = (comm, pid) else { continue };
            let tgid = tgid.unwrap_or(0);
            if self.tasks.is_new(pid, comm, tgid) {
                see(Item::Name { pid, comm, tgid, since: time })?;
            }
        }
        Ok(())
    }

    /// Makes the record of an event; false if the event is one of those that are left out.
    fn record<E>(
        &mut self,
        sequence: u32,
        number: u32,
        message: Message<'_>,
        pid: Option<u64>,
        see: See<'_, E>,
    ) -> std::result::Result<std::result::Result<bool, Unrecordable>, E> {
        let sequence = self.sequences.entry(sequence).or_default();
        let (functions, unknown) = (&mut self.functions, &mut self.counts.unknown_functions);
        let mut function = |symbol: u64| {
            let address = sequence.symbol(symbol).and_then(|name| functions.address(name));
            *unknown += u64::from(address.is_none());
            address
        };
        let mut fields: Vec<EventField<'_>> = Vec::new();
        let names: Result<Option<Names<'_>>> = if let Some(known) = Known::numbered(number) {
            of_known(known, message, &mut function, &mut fields)
                .map(|()| Some(Names::of(known.system, known.name)))
        } else if is_generic(number) {
            of_generic(message, self.bounds.pairs, &mut function, &mut fields).map(Some)
        } else {
            let described = Some(number).filter(|&n| n >= DESCRIBED_FROM).and_then(|n| sequence.described(n));
            described.map_or(Ok(None), |described| {
                of_described(described, message, &mut function, &mut fields)
                    .map(|()| Some(names_of_described(described)))
            })
        };
        let Names { system, name, caller } = match names {
            // A stack without its frames.
            Ok(Some(names)) if names.name != "kernel_stack" => names,
            Ok(_) => return Ok(Ok(false)),
            Err(fault) => {
                self.fault.get_or_insert(fault);
                return Ok(Err(Unrecordable::Unreadable));
            }
        };
        if let Some((text, address)) = caller {
            self.functions.set_address(text, address);
        }
        self.counts.kmem += u64::from(system == "kmem" && number < GENERIC);
        self.counts.without_pid += u64::from(pid.is_none());
        let pid = pid.map_or(NO_TASK, |pid| pid as u32 as i32);
        let event = PlainEvent { system, name, pid, fields: &fields };
        match self.layouts.record(&event, &mut self.record) {
            Ok(None) => Ok(Ok(true)),
            Ok(Some(format)) => {
                see(Item::Format { system, format: &format })?;
                Ok(Ok(true))
            }
            Err(reason) => Ok(Err(reason)),
        }
    }
}
