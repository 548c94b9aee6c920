//! `dump`: the events as the kernel's own `trace` file prints them, or as JSON lines.

pub mod follow;

use std::collections::HashMap;

use kmt_common::tell;
use kmt_common::text::json_safe;
use kmt_format::kernel::FieldKind;
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, Metadata, Schema, StackJoiner};
use kmt_format::schema::{EventClass, Meaning, Role};

use crate::failure::{Outcome, Result};
use crate::limits;
use crate::render::kernel_line::LineStart;
use crate::render::out::Out;
use crate::render::text::escaped;
use crate::trace::event_names::Selected;
use crate::trace::kernel::version;
use crate::trace::open::outcome;
use crate::trace::session::Session;
use crate::trace::time_range::TimeRange;

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As the kernel prints them.
    Kernel,
    /// One JSON object a line.
    Jsonl,
}

/// What to print.
#[derive(Debug)]
pub struct Options {
    /// How.
    pub format: Format,
    /// When.
    pub time: Option<TimeRange>,
    /// On which CPUs; empty: all.
    pub cpus: Vec<u32>,
    /// Of which tasks; empty: all.
    pub pids: Vec<i32>,
    /// Which events, SYSTEM:EVENT with * and ?; empty: all. Stacks go with their events.
    pub events: Vec<String>,
    /// At most this many.
    pub limit: Option<u64>,
}

impl Options {
    /// Whether the event is to be printed, times apart. `of` is the class of the event that a stack belongs to.
    pub(super) fn selects(
        &self,
        event: &Event<'_>,
        of: Option<usize>,
        selected: &mut Selected<'_>,
        schema: &Schema,
    ) -> bool {
        (self.cpus.is_empty() || self.cpus.contains(&event.cpu()))
            && (self.pids.is_empty() || self.pids.contains(&event.pid()))
            && selected.has(schema, of.unwrap_or(event.class_index()))
    }
}

/// Prints events.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let trace = session.trace;
    if session.version().is_none() {
        tell!("note: the file does not tell the kernel's version; columns follow the newest kernel");
    }
    let mut printer = Printer::new(trace.schema(), trace.metadata(), session.print_env());
    let mut out = Out::stdout();
    let mut selected = Selected::of(session, &options.events)?;
    let window = options.time.as_ref().map(|t| t.resolve(session.unit(), session.first_time().unwrap_or(0)));
    let mut merge = trace.merge_of(selected.bits(trace.schema()), window);
    let mut stacks = StackJoiner::default();
    let mut left = options.limit.unwrap_or(u64::MAX);
    'all: while let Some(run) = merge.next_run() {
        if run.gap.is_some_and(|gap| !gap.is_empty()) {
            stacks.gap(run.cpu);
        }
        if !options.cpus.is_empty() && !options.cpus.contains(&run.cpu) {
            continue;
        }
        for event in run.events() {
            let of = stacks.see(&event, (event.class_index(), event.time()));
            if !options.selects(&event, of.map(|(class, _)| class), &mut selected, trace.schema()) {
                continue;
            }
            if left == 0 {
                break 'all;
            }
            left -= 1;
            let line = match options.format {
                Format::Kernel => printer.kernel(&event),
                Format::Jsonl => {
                    printer.json(&event, of.and_then(|(i, time)| Some((trace.schema().class(i)?, time))))
                }
            };
            if !out.write(line)? {
                break 'all;
            }
        }
    }
    let damages = merge.damages().to_vec();
    out.finish()?;
    tell_losses(session);
    let unresolved = printer.env.unresolved();
    if !unresolved.is_empty() {
        let list: Vec<String> = unresolved.iter().take(8).map(|u| escaped(u.as_bytes())).collect();
        tell!("note: printed as ?, because the file does not tell: {}", list.join("; "));
        if unresolved.iter().any(|what| what.contains("the limit `print_fmt")) {
            tell!("hint: {}", limits::REMEDY);
        }
    }
    if trace.symbols().is_none() {
        tell!("note: the file has no symbols; addresses are printed in hex");
    }
    Ok(outcome(&session.path, trace, &damages, session.losses.any()))
}

fn tell_losses(session: &Session<'_>) {
    if session.losses.any() {
        let name = session.path.display();
        let lost = match (session.losses.lost_events(), session.losses.is_minimum()) {
            (0, _) => "parts of the recording are missing, uncounted".to_owned(),
            (lost, true) => format!("at least {lost} events were lost while recording"),
            (lost, false) => format!("{lost} events were lost while recording"),
        };
        tell!("warning: {name}: {lost}; kmt-analyze info tells where");
    }
}

/// Prints events, with what it needs of the file.
pub(super) struct Printer<'d> {
    env: PrintEnv<'d>,
    start: LineStart<'d>,
    texts: HashMap<usize, EventText>,
    line: Vec<u8>,
    /// The output is a terminal, which text from the target must not steer.
    tame: bool,
}

impl<'d> Printer<'d> {
    /// A printer for the classes that are known so far.
    pub(super) fn new(schema: &Schema, metadata: &'d Metadata<'d>, env: PrintEnv<'d>) -> Self {
        let texts = schema.classes().map(|(index, class)| (index, EventText::new(class, &env))).collect();
        let start = LineStart::new(metadata, version(metadata));
        Self { env, start, texts, line: Vec::new(), tame: Out::is_terminal() }
    }

    pub(super) fn kernel(&mut self, event: &Event<'_>) -> &[u8] {
        self.line.clear();
        self.start.write(&mut self.line, event);
        let start_len = self.line.len();
        if let Some(text) = self.texts.get(&event.class_index()) {
            text.write(&mut self.line, event, &self.env);
        }
        if self.tame {
            self.line = tamed(&self.line, start_len, event.class()).into_bytes();
        }
        &self.line
    }

    /// `of` is the event whose stack this one is, and when it was.
    pub(super) fn json(&mut self, event: &Event<'_>, of: Option<(&EventClass, u64)>) -> &[u8] {
        let out = &mut self.line;
        out.clear();
        let class = event.class();
        let pid = event.pid();
        out.extend_from_slice(
            format!("{{\"ts\":{},\"cpu\":{},\"pid\":{pid},\"comm\":", event.time(), event.cpu()).as_bytes(),
        );
        string(out, self.start.comm(pid));
        out.extend_from_slice(b",\"event\":");
        string(out, format!("{}:{}", class.system, class.name).as_bytes());
        if let Some((class, time)) = of {
            out.extend_from_slice(b",\"of\":{\"event\":");
            string(out, format!("{}:{}", class.system, class.name).as_bytes());
            out.extend_from_slice(format!(",\"ts\":{time}}}").as_bytes());
        }
        out.extend_from_slice(b",\"fields\":{");
        let text = self.texts.get(&event.class_index());
        let mut first = true;
        for index in class.common_count..class.fields.len() {
            if !first {
                out.push(b',');
            }
            first = false;
            field(out, event, index, text, &self.env);
        }
        out.extend_from_slice(b"}}\n");
        out
    }
}

fn field(out: &mut Vec<u8>, event: &Event<'_>, index: usize, text: Option<&EventText>, env: &PrintEnv<'_>) {
    let (Some(field), Some(role)) = (event.class().fields.get(index), event.class().roles.get(index)) else {
        return;
    };
    string(out, field.name.as_bytes());
    out.push(b':');
    let is_code = *role == Role::CALL_SITE || matches!(field.name.as_str(), "ip" | "parent_ip" | "func");
    let is_address = is_code || *role == Role::PTR || field.is_pointer();
    if matches!(field.kind, FieldKind::Opaque(_)) {
        out.extend_from_slice(b"null");
        return;
    }
    if field.kind == FieldKind::Scalar {
        let Some(value) = event.uint(index) else {
            out.extend_from_slice(b"null");
            return;
        };
        let text_of = |value: u64| match (is_address, field.type_text.as_str(), field.signed) {
            (true, _, _) => format!("\"{value:#x}\""),
            (false, "bool", _) => (value != 0).to_string(),
            (false, _, true) => (value as i64).to_string(),
            (false, _, false) => value.to_string(),
        };
        out.extend_from_slice(text_of(value).as_bytes());
        let named = if is_code {
            Some(env.symbol_with_offset(value))
        } else {
            text.and_then(|t| t.field_text(index, event, env))
        };
        if let Some(named) = named {
            out.push(b',');
            string(out, format!("{}_text", field.name).as_bytes());
            out.push(b':');
            string(out, &named);
        }
        return;
    }
    let bytes = event.bytes(index).unwrap_or_default();
    if field.is_text() {
        string(out, bytes.split(|&b| b == 0).next().unwrap_or_default());
        return;
    }
    out.push(b'[');
    let size = (field.element_size.max(1)) as usize;
    let is_stack = *role == Role::STACK;
    for (i, element) in bytes.chunks_exact(size).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let value = event.order().uint(element);
        let shift = 64 - 8 * size.min(8);
        let text = match (is_stack || is_address, field.signed) {
            (true, _) => format!("\"{value:#x}\""),
            (false, true) => ((value << shift) as i64 >> shift).to_string(),
            (false, false) => value.to_string(),
        };
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b']');
}

/// A line for a terminal: only stacks have more lines than one, each with an arrow.
fn tamed(line: &[u8], start_len: usize, class: &EventClass) -> String {
    const FRAME: &str = "\\x0a => ";
    let (start, text) = line.split_at(start_len.min(line.len()));
    let text = escaped(text.strip_suffix(b"\n").unwrap_or(text)).replace("\\x09", "\t");
    let is_stack = class.meaning == Meaning::KERNEL_STACK || class.name == "user_stack";
    let text = if is_stack { text.replace(FRAME, "\n => ") } else { text };
    format!("{}{text}\n", escaped(start))
}

/// A JSON string; bytes that are not UTF-8 as `\xNN`.
fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    let plain = bytes.iter().all(|&b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\');
    if plain {
        out.push(b'"');
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    let text = crate::render::json::text(bytes);
    out.extend_from_slice(json_safe(&text.to_string()).as_bytes());
}
