//! Events of one CPU: the facts that hold for all of them, and the parts of each.

use super::super::cursor::{ImportError, Result};
use super::wire::{Message, Value, numbers};

/// Facts of a bundle of events.
#[derive(Debug, Default)]
pub struct Bundle {
    /// CPU, if it is there.
    pub cpu: Option<u64>,
    /// True if events were lost before the first one.
    pub has_lost: bool,
    /// True if part of the kernel's data could not be decoded by the recorder.
    pub has_errors: bool,
    /// The clock: 0 boot, 1 unknown, 2 global, 3 local, 4 mono_raw.
    pub clock: u64,
    /// Time of the last event of the bundle before it of this CPU, if recorded; 0: there was none.
    pub previous_end: Option<u64>,
    /// Number of events, but those of the compact form.
    pub events: u64,
    /// Number of events of the compact form.
    pub compact: u64,
    /// Time of the last event of the compact form.
    pub compact_end: u64,
    /// Error that ends the fields.
    pub fault: Option<ImportError>,
}

impl Bundle {
    /// Field of an event.
    pub const EVENT: u32 = 2;
    /// Field of the descriptor of an event.
    pub const DESCRIPTOR: u32 = 11;

    /// Reads all but the events.
    pub fn of(message: Message<'_>) -> Self {
        let mut bundle = Self::default();
        bundle.fault = bundle.read(message).err();
        bundle
    }

    fn read(&mut self, message: Message<'_>) -> Result<()> {
        const LAST_READ: u32 = 9;
        const PREVIOUS_END: u32 = 10;
        const BROKEN_PAGE: u32 = 512;
        for field in message.fields() {
            let field = field?;
            match (field.number, field.value) {
                (1, Value::Number(cpu)) => self.cpu = Some(cpu),
                (Self::EVENT, Value::Message(_)) => self.events += 1,
                (3, Value::Number(lost)) => self.has_lost = lost != 0,
                (4, Value::Message(compact)) => self.compact(compact)?,
                (5, Value::Number(clock)) => self.clock = clock,
                (8 | BROKEN_PAGE, Value::Message(_)) => self.has_errors = true,
                (LAST_READ | PREVIOUS_END, Value::Number(time)) => self.previous_end = Some(time),
                _ => {}
            }
        }
        Ok(())
    }

    /// Counts sched_switch and sched_waking in the compact form: their times are differences.
    fn compact(&mut self, compact: Message<'_>) -> Result<()> {
        let (mut switch_end, mut waking_end) = (0u64, 0u64);
        for field in compact.fields() {
            let field = field?;
            let end = match field.number {
                1 => &mut switch_end,
                7 => &mut waking_end,
                _ => continue,
            };
            numbers(&field, |delta| {
                *end = end.wrapping_add(delta);
                self.compact += 1;
            })?;
        }
        self.compact_end = self.compact_end.max(switch_end).max(waking_end);
        Ok(())
    }

    /// True if there is an event in it.
    pub fn has_events(&self) -> bool {
        self.events + self.compact > 0
    }
}

/// Parts of an event.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'d> {
    /// Time.
    pub time: Option<u64>,
    /// Task.
    pub pid: Option<u64>,
    /// Number of the message that the event is, and the message.
    pub message: Option<(u32, Message<'d>)>,
}

impl<'d> Parts<'d> {
    /// Of an event.
    pub fn of(event: Message<'d>) -> Result<Self> {
        let mut parts = Self { time: None, pid: None, message: None };
        for field in event.fields() {
            let field = field?;
            match (field.number, field.value) {
                (1, Value::Number(time)) => parts.time = Some(time),
                (2, Value::Number(pid)) => parts.pid = Some(pid),
                (number, Value::Message(message)) => parts.message = Some((number, message)),
                _ => {}
            }
        }
        Ok(parts)
    }
}

/// Names and times of the tasks of compact sched_switch events: the name, the task, the time of the event.
pub fn compact_names<'d>(compact: Message<'d>, see: &mut dyn FnMut(&'d [u8], i32, u64)) -> Result<()> {
    let (mut names, mut times, mut pids, mut indices) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut time = 0u64;
    for field in compact.fields() {
        let field = field?;
        match field.number {
            1 => numbers(&field, |delta| {
                time = time.wrapping_add(delta);
                times.push(time);
            })?,
            3 => numbers(&field, |pid| pids.push(pid))?,
            5 => names.extend(field.message().map(Message::bytes)),
            6 => numbers(&field, |index| indices.push(index))?,
            _ => {}
        }
    }
    for ((time, pid), index) in times.into_iter().zip(pids).zip(indices) {
        let name = usize::try_from(index).ok().and_then(|index| names.get(index));
        if let Some(name) = name {
            see(name, pid as i32, time);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_events_are_counted_and_name_tasks() {
        // Times 100, 105, 107; tasks 7, 8, 7; names a, b.
        let compact = b"\x0a\x03\x64\x05\x02\x1a\x03\x07\x08\x07\x2a\x01a\x2a\x01b\x32\x03\x00\x01\x05";
        let bytes = [&[0x08, 2, 0x22, compact.len() as u8][..], compact].concat();
        let bundle = Bundle::of(Message::new(&bytes, 0));
        assert_eq!((bundle.cpu, bundle.compact, bundle.compact_end), (Some(2), 3, 107));
        assert!(bundle.has_events() && bundle.fault.is_none());
        let mut named = Vec::new();
        compact_names(Message::new(compact, 0), &mut |name, pid, time| named.push((name, pid, time)))
            .unwrap();
        assert_eq!(named, [(&b"a"[..], 7, 100), (b"b", 8, 105)], "an index without a name names nothing");
    }
}
