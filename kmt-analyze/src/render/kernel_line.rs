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
mod tests {
    use kmt_format::kernel::{ByteOrder, TraceClock};
    use kmt_format::read::Trace;
    use kmt_format::write::{Task, Writer, WriterOptions};

    use super::*;

    struct Case {
        version: Option<(u32, u32)>,
        flags: u8,
        preempt: u8,
        pid: i32,
        options: &'static str,
        clock: &'static str,
        realtime: bool,
    }

    const CASE: Case = Case {
        version: Some((6, 1)),
        flags: 0,
        preempt: 0,
        pid: 42,
        options: "",
        clock: "local",
        realtime: false,
    };

    fn line(case: &Case) -> String {
        let extra = if case.realtime {
            "\tfield:unsigned char common_migrate_disable;\toffset:8;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_lazy_count;\toffset:9;\tsize:1;\tsigned:0;\n"
        } else {
            ""
        };
        let format = format!(
            "name: ev\nID: 5\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n{extra}\n\nprint fmt: \"\"\n"
        );
        let options = WriterOptions::new(ByteOrder::Big, 4).trace_uuid([0; 16]);
        let mut writer = Writer::new(options).unwrap();
        writer.add_clock(&TraceClock::named(case.clock)).unwrap();
        writer.add_metadata(&[("tracefs/trace_options", case.options.as_bytes())]).unwrap();
        writer
            .add_tasks(&[Task::new(42, b"my task".to_vec()).tgid(41), Task::new(40_000, b"late".to_vec())])
            .unwrap();
        writer.add_format("sys", &format).unwrap();
        let mut record = vec![0, 5, case.flags, case.preempt];
        record.extend(case.pid.to_be_bytes());
        record.extend([3, 2]);
        writer.add_event(7, 12_345_678_500, &record).unwrap();
        let file = writer.finish().unwrap();
        let trace = Trace::open(&file).unwrap();
        let chunk = trace.read(&trace.streams()[&7].chunks[0].0).unwrap();
        let event = Event::new(trace.schema(), &chunk, 0).unwrap();
        let version = case.version.map(|(major, minor)| KernelVersion::new(major, minor));
        let mut out = Vec::new();
        LineStart::new(trace.metadata(), version).write(&mut out, &event);
        String::from_utf8(out).unwrap()
    }

    fn check(case: Case, expected: &str) {
        assert_eq!(line(&case), expected);
    }

    #[test]
    fn columns_follow_the_kernels_version() {
        let at = |version| Case { version: Some(version), ..CASE };
        check(at((4, 4)), "         my task-42    [007] ....    12.345679: ");
        check(at((5, 3)), "         my task-42    [007] ....    12.345679: ");
        check(at((5, 4)), "         my task-42      [007] ....    12.345679: ");
        check(at((5, 10)), "         my task-42      [007] ....    12.345679: ");
        check(at((5, 15)), "         my task-42      [007] .....    12.345679: ");
        check(Case { version: None, ..CASE }, "         my task-42      [007] .....    12.345679: ");
    }

    #[test]
    fn flags_and_counts() {
        let flags = |version, flags, preempt| {
            let line = line(&Case { version: Some(version), flags, preempt, ..CASE });
            line.split("] ").nth(1).unwrap().split(' ').next().unwrap().to_owned()
        };
        assert_eq!(flags((4, 4), 0x01 | 0x04 | 0x08, 0x12), "dnh12");
        assert_eq!(flags((5, 10), 0x02 | 0x24 | 0x18, 1), "XNH1");
        assert_eq!(flags((5, 15), 0x20 | 0x10, 0x21), ".ps12");
        assert_eq!(flags((5, 19), 0x81 | 0x40, 0x10), "D.z.1");
        assert_eq!(flags((6, 1), 0x80 | 0x48, 0x0f), "b.Zf.");
        assert_eq!(flags((6, 12), 0x02, 0), "X....");
        for (bits, letter) in
            [(0x02, 'l'), (0x06, 'b'), (0x22, 'L'), (0x26, 'B'), (0x24, 'N'), (0x04, 'n'), (0x20, 'p')]
        {
            assert_eq!(flags((6, 14), bits, 0), format!(".{letter}..."));
        }
    }

    #[test]
    fn real_time_kernels_have_columns_of_their_own() {
        let case = Case { version: Some((5, 10)), realtime: true, flags: 0x02, preempt: 1, ..CASE };
        check(case, "         my task-42      [007] ..L.123    12.345679: ");
    }

    #[test]
    fn names_of_tasks() {
        let pid = |pid, version| line(&Case { pid, version: Some(version), ..CASE });
        assert!(pid(0, (6, 1)).starts_with("          <idle>-0       ["));
        assert!(pid(99, (6, 1)).starts_with("           <...>-99      ["));
        assert!(pid(-3, (6, 1)).starts_with("           <XXX>--3      ["));
        assert!(pid(40_000, (6, 1)).starts_with("            late-40000   ["));
        assert!(pid(40_000, (4, 4)).starts_with("           <...>-40000 ["));
    }

    #[test]
    fn options_and_clocks() {
        let with = |options, version| line(&Case { options, version: Some(version), ..CASE });
        assert_eq!(
            with("record-tgid irq-info", (6, 1)),
            "         my task-42      (     41) [007] .....    12.345679: "
        );
        assert_eq!(with("record-tgid", (4, 15)), "         my task-42    (   41) [007] ....    12.345679: ");
        assert_eq!(
            with("noirq-info norecord-tgid", (6, 1)),
            "         my task-42      [007]     12.345679: "
        );
        let unknown = line(&Case { options: "record-tgid", pid: 9, ..CASE });
        assert!(unknown.contains("-9       (-------) ["), "{unknown}");
        check(Case { clock: "x86-tsc", ..CASE }, "         my task-42      [007] .....  12345678500: ");
    }
}
