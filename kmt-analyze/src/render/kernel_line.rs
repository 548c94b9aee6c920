//! The start of a line of the kernel's `trace` file: task, CPU, flags, time.
//!
//! Source: `trace_print_context` and `trace_print_lat_fmt`, kernel/trace/trace_output.c. What changed: six columns
//! for the flags' numbers since 5.15, a pid column of 7 instead of 5 since 5.4, softirq-off letters since 5.19, lazy
//! rescheduling in place of "irq flags not supported" since 6.13.

use std::io::Write;

use kmt_format::kernel::{ClockUnit, KernelVersion};
use kmt_format::read::{Event, Metadata};
use kmt_format::schema::{EventClass, Role};

use crate::trace::comms::Comms;
use crate::trace::session::clock_unit;

/// How lines start, for one trace.
#[derive(Debug)]
pub struct LineStart<'d> {
    metadata: &'d Metadata<'d>,
    /// Names of tasks; `None`: those in the table of tasks.
    names: Option<&'d Comms>,
    unit: ClockUnit,
    pid_width: usize,
    with_tgid: bool,
    with_flags: bool,
    with_context: bool,
    /// The preempt count is followed by the migrate-disable depth, a hex digit each.
    has_migrate_depth: bool,
    lazy_resched: bool,
    pid_max: Option<i32>,
}

const IRQS_OFF: u64 = 0x01;
const IRQS_NOSUPPORT_OR_LAZY: u64 = 0x02;
const NEED_RESCHED: u64 = 0x04;
const HARDIRQ: u64 = 0x08;
const SOFTIRQ: u64 = 0x10;
const PREEMPT_RESCHED: u64 = 0x20;
const NMI: u64 = 0x40;
const BH_OFF: u64 = 0x80;

impl<'d> LineStart<'d> {
    /// For the kernel and the options that the file tells; the newest kernel's rules where it does not.
    pub fn new(metadata: &'d Metadata<'d>, version: Option<KernelVersion>) -> Self {
        let options = metadata.text("tracefs/trace_options").unwrap_or_default();
        let option = |name: &str, default: bool| {
            options
                .split_ascii_whitespace()
                .find_map(|o| match o.strip_prefix("no") {
                    Some(rest) if rest == name => Some(false),
                    _ if o == name => Some(true),
                    _ => None,
                })
                .unwrap_or(default)
        };
        let since = |major, minor| version.is_none_or(|v| v >= KernelVersion::new(major, minor));
        Self {
            metadata,
            names: None,
            unit: clock_unit(metadata),
            pid_width: if since(5, 4) { 7 } else { 5 },
            with_tgid: option("record-tgid", false),
            with_flags: option("irq-info", true),
            with_context: option("context-info", true),
            has_migrate_depth: since(5, 15),
            lazy_resched: since(6, 13),
            // Before 4.18 or so tasks beyond the default pid_max have no saved name.
            pid_max: (!since(4, 15)).then_some(32_768),
        }
    }

    /// These settings, with names of tasks that are also from events.
    pub fn with_names(self, names: &'d Comms) -> Self {
        Self { names: Some(names), ..self }
    }

    /// Name of a task at a time, as the kernel's text has it.
    pub fn comm(&self, pid: i32, time: u64) -> &'d [u8] {
        match pid {
            0 => b"<idle>",
            i32::MIN..0 => b"<XXX>",
            _ if self.pid_max.is_some_and(|max| pid > max) => b"<...>",
            _ => {
                let metadata = self.metadata;
                let name = self.names.map_or_else(|| metadata.comm(pid, time), |names| names.at(pid, time));
                name.unwrap_or(b"<...>")
            }
        }
    }

    /// Writes the line up to and with the colon after the time.
    pub fn write(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        if !self.with_context {
            return;
        }
        let pid = event.pid();
        let comm = self.comm(pid, event.time());
        out.resize(out.len() + 16usize.saturating_sub(comm.len()), b' ');
        out.extend_from_slice(comm);
        // Writing to a Vec cannot fail.
        let _ = write!(out, "-{pid:<width$} ", width = self.pid_width);
        if self.with_tgid {
            let width = self.pid_width;
            match self.metadata.tgid(pid, event.time()) {
                Some(tgid) => {
                    let _ = write!(out, "({tgid:width$}) ");
                }
                None => {
                    let _ = write!(out, "({}) ", "-".repeat(width));
                }
            }
        }
        let _ = write!(out, "[{:03}] ", event.cpu());
        if self.with_flags {
            self.write_flags(out, event);
        }
        match self.unit {
            ClockUnit::Nanoseconds => {
                let micros = event.time().wrapping_add(500) / 1_000;
                let _ = write!(out, " {:5}.{:06}: ", micros / 1_000_000, micros % 1_000_000);
            }
            ClockUnit::Ticks => {
                let _ = write!(out, " {:12}: ", event.time());
            }
        }
    }

    fn write_flags(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        let flags = event.uint_with(Role::FLAGS).unwrap_or(0);
        let has = |bit: u64| flags & bit != 0;
        let lazy = self.lazy_resched && has(IRQS_NOSUPPORT_OR_LAZY);
        let unsupported = !self.lazy_resched && has(IRQS_NOSUPPORT_OR_LAZY);
        let realtime = RealtimeFields::of(event.class());
        out.push(match (has(IRQS_OFF), has(BH_OFF)) {
            (true, true) => b'D',
            (true, false) => b'd',
            (false, true) => b'b',
            (false, false) if unsupported && realtime.is_none() => b'X',
            (false, false) => b'.',
        });
        out.push(match (has(NEED_RESCHED), lazy, has(PREEMPT_RESCHED)) {
            (true, true, true) => b'B',
            (true, false, true) => b'N',
            (false, true, true) => b'L',
            (true, true, false) => b'b',
            (true, false, false) => b'n',
            (false, true, false) => b'l',
            (false, false, true) => b'p',
            (false, false, false) => b'.',
        });
        if realtime.is_some() {
            out.push(if has(IRQS_NOSUPPORT_OR_LAZY) { b'L' } else { b'.' });
        }
        out.push(match (has(NMI), has(HARDIRQ), has(SOFTIRQ)) {
            (true, true, _) => b'Z',
            (true, false, _) => b'z',
            (false, true, true) => b'H',
            (false, true, false) => b'h',
            (false, false, true) => b's',
            (false, false, false) => b'.',
        });
        let preempt = event.uint_with(Role::PREEMPT_COUNT).unwrap_or(0);
        match (realtime, self.has_migrate_depth) {
            (Some(fields), _) => {
                hex_or_dot(out, preempt);
                hex_or_dot(out, fields.lazy.and_then(|f| event.uint(f)).unwrap_or(0));
                hex_or_dot(out, fields.migrate.and_then(|f| event.uint(f)).unwrap_or(0));
            }
            (None, false) => hex_or_dot(out, preempt),
            (None, true) => {
                hex_or_dot(out, preempt & 0xf);
                hex_or_dot(out, preempt >> 4);
            }
        }
    }
}

fn hex_or_dot(out: &mut Vec<u8>, number: u64) {
    match number {
        0 => out.push(b'.'),
        _ => {
            let _ = write!(out, "{number:x}");
        }
    }
}

/// Common fields that the real-time patches of 5.10 and before add (linux-patch-5.10-rt).
#[derive(Debug, Clone, Copy)]
struct RealtimeFields {
    lazy: Option<usize>,
    migrate: Option<usize>,
}

impl RealtimeFields {
    fn of(class: &EventClass) -> Option<Self> {
        if class.common_count <= 4 {
            return None;
        }
        let lazy = class.field_named("common_preempt_lazy_count");
        let migrate = class.field_named("common_migrate_disable");
        lazy.or(migrate).map(|_| Self { lazy, migrate })
    }
}

#[cfg(test)]
mod tests;
