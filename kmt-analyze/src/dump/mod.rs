//! `dump`: prints events as the kernel's `trace` file does, or as JSON lines.
//!
//! Events are read in the kernel's order from the chunks, without the ledger; `conditions` selects them by their own
//! fields, and `live` prints those of a file that grows. `render/kernel_line` has the begin of a line, kmt-format's
//! printer its text. `reports/latency` uses the same `Printer` for the events of a stall.

mod conditions;
pub mod live;

use std::collections::HashMap;
use std::path::PathBuf;

use conditions::Conditions;
use kmt_common::tell;
use kmt_common::text::json_safe;
use kmt_format::kernel::FieldKind;
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, Metadata, Schema, StackJoiner};
use kmt_format::schema::{EventClass, Meaning, Role};

use crate::failure::{Outcome, Result};
use crate::limits;
use crate::pass::condition::{Condition, Key};
use crate::pass::progress::ByTime;
use crate::render::head;
use crate::render::kernel_line::LineStart;
use crate::render::out::{Out, warn_of_losses};
use crate::render::words::{escaped, shown};
use crate::trace::comms::Comms;
use crate::trace::event_names::{EventArgs, SelectedEvents};
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Output format of `dump`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LineFormat {
    /// As the kernel's trace file with nohash-ptr
    Kernel,
    /// One JSON object a line
    Jsonl,
}

/// Options of `dump`.
#[derive(Debug, clap::Args)]
pub struct DumpOptions {
    /// Output format
    #[arg(long, value_enum, default_value_t = LineFormat::Kernel)]
    pub format: LineFormat,
    /// The same as --format jsonl
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    #[command(flatten)]
    pub events: EventArgs,
    /// Events whose own fields meet a condition: size>4096, call_site~^ext4_, comm=dd. Keys and operators: `kmt-analyze
    /// callers --help`; lifetime is not one of an event. If repeated, all conditions must hold. Includes their stacks
    #[arg(long = "where", value_name = "CONDITION", value_parser = Condition::parse)]
    pub conditions: Vec<Condition>,
    /// Print at most N events; 0: all
    #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines)]
    pub lines: Option<usize>,
    /// Print events as they arrive, from a file that is being written or from a stream
    #[arg(short, long, conflicts_with = "time")]
    pub follow: bool,
    /// The .kmt file, or the files of one recording of `kmt-capture record --rotate`; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

impl DumpOptions {
    /// Format of a line.
    pub(super) fn line_format(&self) -> LineFormat {
        if self.json { LineFormat::Jsonl } else { self.format }
    }

    /// True if CPU, task and name of the event are selected.
    pub(super) fn selects(
        &self,
        event: &Event<'_>,
        selected: &mut SelectedEvents<'_>,
        schema: &Schema,
    ) -> bool {
        self.events.has_cpu(event.cpu())
            && self.events.has_pid(event.pid())
            && selected.has(schema, event.class_index())
    }
}

/// An event to which a stack may belong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner {
    class: usize,
    time: u64,
    /// True if it is selected, and then its stack is.
    pub(super) is_selected: bool,
}

impl Owner {
    pub(super) fn of(event: &Event<'_>, is_selected: bool) -> Self {
        Self { class: event.class_index(), time: event.time(), is_selected }
    }

    /// Class and time of the event.
    pub(super) fn named(self, schema: &Schema) -> Option<(&EventClass, u64)> {
        Some((schema.class(self.class)?, self.time))
    }
}

/// Prints events.
pub fn run(session: &Session<'_>, options: &DumpOptions) -> Result<Outcome> {
    conditions::check(&options.conditions)?;
    let trace = session.trace;
    if session.version().is_none() {
        tell!("note: the kernel's version is not recorded; columns follow the newest kernel");
    }
    let printer =
        Printer::new(trace.schema(), trace.metadata(), session.print_env(), session.env.is_terminal());
    let mut printer = printer.with_names(session.names());
    let mut out = Out::stdout(&session.env);
    let mut selected = SelectedEvents::of(session, &options.events.event)?;
    let window = options.events.window(session)?;
    let mut merge = trace.merge_of(selected.bits(trace.schema()), window);
    let mut stacks = StackJoiner::default();
    let is_by_cgroup = options.conditions.iter().any(|condition| condition.key == Key::Cgroup);
    let cgroups = is_by_cgroup.then(|| session.cgroups());
    let mut conditions =
        Conditions::new(&options.conditions, trace.metadata(), Some(session.source()), cgroups);
    // On a terminal, the events themselves show it.
    let progress = (!session.env.is_terminal()).then(|| ByTime::of(session, window));
    let mut left = options.lines.unwrap_or(usize::MAX);
    'all: while let Some(run) = merge.next_run() {
        if run.gap.is_some_and(|gap| !gap.is_empty()) {
            stacks.gap(run.cpu);
        }
        if !options.events.has_cpu(run.cpu) {
            continue;
        }
        if let (Some(progress), Some(event)) = (&progress, run.events().next()) {
            progress.at(event.time());
        }
        for event in run.events() {
            let own = Owner::of(
                &event,
                options.selects(&event, &mut selected, trace.schema())
                    && printer.meets(&event, &mut conditions),
            );
            let of = stacks.see(&event, own);
            if !of.unwrap_or(own).is_selected {
                continue;
            }
            if left == 0 {
                break 'all;
            }
            left -= 1;
            let line = match options.line_format() {
                LineFormat::Kernel => printer.kernel(&event),
                LineFormat::Jsonl => printer.json(&event, of.and_then(|of| of.named(trace.schema()))),
            };
            if !out.write(line)? {
                break 'all;
            }
        }
    }
    let faults = merge.damages().into();
    drop(progress);
    out.finish()?;
    if left == options.lines.unwrap_or(usize::MAX) && left > 0 && trace.event_count() > 0 {
        head::report_no_event(session);
    }
    conditions.tell();
    warn_of_losses(session);
    let unresolved = printer.env.unresolved();
    if !unresolved.is_empty() {
        let list: Vec<String> = unresolved.iter().take(8).map(|u| shown(u.as_bytes())).collect();
        tell!("note: printed as ?, because the file does not contain: {}", list.join("; "));
        if unresolved.iter().any(|what| what.contains("the limit `print_fmt")) {
            tell!("hint: {}", limits::REMEDY);
        }
    }
    if trace.symbols().is_none() {
        tell!("note: the file has no symbols; addresses are printed in hex");
    }
    Ok(outcome(session, &faults))
}

/// Prints events, with the metadata that it needs.
pub(super) struct Printer<'d> {
    env: PrintEnv<'d>,
    start: LineStart<'d>,
    texts: HashMap<usize, EventText>,
    line: Vec<u8>,
    /// True if the output is a terminal: text from the target must not contain control characters.
    is_terminal: bool,
}

impl<'d> Printer<'d> {
    /// A printer for the current classes of `schema`.
    pub(super) fn new(
        schema: &Schema,
        metadata: &'d Metadata<'d>,
        env: PrintEnv<'d>,
        is_terminal: bool,
    ) -> Self {
        let texts = schema.classes().map(|(index, class)| (index, EventText::new(class, &env))).collect();
        let start = LineStart::new(metadata, metadata.kernel_version());
        Self { env, start, texts, line: Vec::new(), is_terminal }
    }

    /// True if the event meets the conditions.
    pub(super) fn meets(&self, event: &Event<'_>, conditions: &mut Conditions<'_>) -> bool {
        let text = self.texts.get(&event.class_index());
        conditions.is_empty()
            || conditions.meets(event, text, &self.env, self.start.comm(event.pid(), event.time()))
    }

    /// This printer, with names of tasks that are also from events.
    pub(super) fn with_names(self, names: &'d Comms) -> Self {
        Self { start: self.start.with_names(names), ..self }
    }

    pub(super) fn kernel(&mut self, event: &Event<'_>) -> &[u8] {
        self.line.clear();
        self.start.write(&mut self.line, event);
        let start_len = self.line.len();
        if let Some(text) = self.texts.get(&event.class_index()) {
            text.write(&mut self.line, event, &self.env);
        }
        if self.is_terminal {
            self.line = terminal_line(&self.line, start_len, event.class()).into_bytes();
        }
        &self.line
    }

    /// Text of the event after its time, on one line; the frames of a stack after arrows.
    pub(super) fn text(&mut self, event: &Event<'_>) -> String {
        self.line.clear();
        if let Some(text) = self.texts.get(&event.class_index()) {
            text.write(&mut self.line, event, &self.env);
        }
        let text = escaped(self.line.strip_suffix(b"\n").unwrap_or(&self.line));
        text.replace("\\x0a => ", " <- ").replace("\\x09", " ")
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
        string(out, self.start.comm(pid, event.time()));
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

/// A line for a terminal: only stacks have several lines, each with an arrow.
fn terminal_line(line: &[u8], start_len: usize, class: &EventClass) -> String {
    const FRAME: &str = "\\x0a => ";
    let (start, text) = line.split_at(start_len.min(line.len()));
    let text = escaped(text.strip_suffix(b"\n").unwrap_or(text)).replace("\\x09", "\t");
    let is_stack = class.meaning == Meaning::KERNEL_STACK || class.name == "user_stack";
    let text = if is_stack { text.replace(FRAME, "\n => ") } else { text };
    format!("{}{text}\n", escaped(start))
}

/// A JSON string; bytes that are not UTF-8 become `\xNN`.
fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    let plain = bytes.iter().all(|&b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\');
    if plain {
        out.push(b'"');
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    let text = std::str::from_utf8(bytes).map_or_else(|_| escaped(bytes), str::to_owned);
    let text = serde_json::Value::from(text);
    out.extend_from_slice(json_safe(&text.to_string()).as_bytes());
}
