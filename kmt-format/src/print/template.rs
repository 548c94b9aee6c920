//! A `print fmt`, ready to be written for each event of its class.

use super::conversion::{TEXT_MAX, conversion};
use super::env::PrintEnv;
use super::eval::{Evaluated, Evaluator};
use super::{ftrace, syscalls};
use crate::print_fmt::{
    Expr, Extent, ListEntry, Piece, PrintLimits, Scope, argument, format_and_arguments, tokens,
};
use crate::read::Event;
use crate::schema::EventClass;

/// Text of the events of one class.
///
/// ```
/// use kmt_format::print::{EventText, PrintEnv};
/// use kmt_format::read::Trace;
/// # let file = kmt_format::example()?;
/// let trace = Trace::open(&file)?;
/// let env = PrintEnv::new(trace.header().order, trace.header().long_size).with_symbols(trace.symbols());
/// let event = trace.events()?.next().expect("the first event");
/// let mut text = Vec::new();
/// EventText::new(event.class(), &env).write(&mut text, &event, &env);
/// assert!(text.starts_with(b"kmalloc: call_site=alloc_file+0x10/0x100 "));
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug)]
pub struct EventText {
    kind: Kind,
    name: String,
    pieces: Vec<Piece>,
    arguments: Vec<Expr>,
    /// For each field the first argument that prints it by a list of names.
    named: Vec<Option<usize>>,
}

/// Events that the kernel prints in C and not by their `print fmt`: those of its own `ftrace` system, and system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Template,
    KernelStack,
    UserStack,
    Print,
    BinaryPrint,
    Puts,
    RawData,
    SyscallEnter,
    SyscallExit,
}

impl EventText {
    /// Parses the `print fmt` of a class. Parts that cannot be parsed print as `?` and are reported by the environment.
    pub fn new(class: &EventClass, env: &PrintEnv<'_>) -> Self {
        let kind = match (class.system.as_str(), class.name.as_str()) {
            ("ftrace", "kernel_stack") => Kind::KernelStack,
            ("ftrace", "user_stack") => Kind::UserStack,
            ("ftrace", "print") => Kind::Print,
            ("ftrace", "bprint") => Kind::BinaryPrint,
            ("ftrace", "bputs") => Kind::Puts,
            ("ftrace", "raw_data") => Kind::RawData,
            _ if syscalls::is_plain(class, "sys_enter_") => Kind::SyscallEnter,
            _ if syscalls::is_plain(class, "sys_exit_") => Kind::SyscallExit,
            _ => Kind::Template,
        };
        let mut text = Self {
            kind,
            name: class.name.clone(),
            pieces: Vec::new(),
            arguments: Vec::new(),
            named: vec![None; class.fields.len()],
        };
        if !matches!(kind, Kind::Template | Kind::SyscallEnter | Kind::SyscallExit) {
            return text;
        }
        let print_fmt = class.print_fmt();
        if !env.may_parse(print_fmt.len()) {
            text.pieces = vec![Piece::Literal(b"?".to_vec())];
            let PrintLimits { print_fmt, print_fmts } = env.limits;
            env.add_unresolved(&format!(
                "print fmt of {}: more than {print_fmt} bytes (the limit `print_fmt`), or more than {print_fmts} with the others (the limit `print_fmts`)",
                class.name
            ));
            return text;
        }
        let tokens = tokens(print_fmt).unwrap_or_default();
        let Some((pieces, arguments)) = format_and_arguments(&tokens) else {
            text.pieces = vec![Piece::Literal(b"?".to_vec())];
            env.add_unresolved(&format!("print fmt of {}", class.name));
            return text;
        };
        let constant = |name: &str| env.constant(name);
        let scope = Scope { class, long_size: env.long_size as u8, constant: &constant };
        text.pieces = pieces;
        text.arguments = arguments.into_iter().map(|tokens| argument(tokens, &scope)).collect();
        for (index, argument) in text.arguments.iter().enumerate() {
            names_fields(argument, &mut |field| {
                if let Some(named @ None) = text.named.get_mut(field) {
                    *named = Some(index);
                }
            });
        }
        text
    }

    /// Writes the text that the kernel prints after the time: for most events `NAME: TEXT` and a newline.
    pub fn write(&self, out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
        match self.kind {
            Kind::Template => {
                out.extend_from_slice(self.name.as_bytes());
                out.extend_from_slice(b": ");
                self.write_fields(out, event, env);
                out.push(b'\n');
            }
            Kind::SyscallEnter => syscalls::enter(out, &self.name, event, env),
            Kind::SyscallExit => syscalls::exit(out, &self.name, event, env),
            Kind::KernelStack => ftrace::kernel_stack(out, event, env),
            Kind::UserStack => ftrace::user_stack(out, event, env),
            Kind::Print => {
                ftrace::ip_prefix(out, event, env);
                out.extend_from_slice(ftrace::text_named(event, "buf"));
            }
            Kind::BinaryPrint => ftrace::binary_print(out, event, env),
            Kind::Puts => {
                ftrace::ip_prefix(out, event, env);
                match ftrace::named(event, "str").and_then(|a| env.printk_formats.get(&a)) {
                    Some(text) => out.extend_from_slice(text),
                    None => ftrace::unresolved_line(out, env, "the text of a trace_puts"),
                }
            }
            Kind::RawData => {
                out.extend_from_slice(
                    format!("# {:x} buf:", ftrace::named(event, "id").unwrap_or(0)).as_bytes(),
                );
                for byte in event.class().field_named("buf").and_then(|f| event.bytes(f)).unwrap_or_default()
                {
                    out.extend_from_slice(format!(" {byte:02x}").as_bytes());
                }
                out.push(b'\n');
            }
        }
    }

    /// The text that the `print fmt` makes of one field by a list of flags or symbols; `None` if it has none for it.
    pub fn field_text(&self, field: usize, event: &Event<'_>, env: &PrintEnv<'_>) -> Option<Vec<u8>> {
        let argument = self.arguments.get((*self.named.get(field)?)?)?;
        let evaluator = Evaluator { event, long_size: env.long_size as u8, order: env.order };
        match evaluator.eval(argument) {
            Evaluated::Bytes(bytes) => Some(bytes.into_owned()),
            _ => None,
        }
    }

    /// Names in the list of flags by which the `print fmt` prints a field, as far as `value` has all their bits: names of
    /// several flags too, and the flags that the text leaves out beside them. `None`: the field is not printed by a list
    /// of flags.
    pub fn field_flags(&self, field: usize, value: u64) -> Option<impl Iterator<Item = &[u8]>> {
        let list = flag_list(self.arguments.get((*self.named.get(field)?)?)?)?;
        let has = move |mask: u64| mask != 0 && value & mask == mask;
        Some(list.iter().filter(move |(mask, _)| has(*mask)).map(|(_, name)| name.as_slice()))
    }

    /// Writes the text of the fields alone, without name and newline.
    pub fn write_fields(&self, out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
        let evaluator = Evaluator { event, long_size: env.long_size as u8, order: env.order };
        let mut arguments = self.arguments.iter();
        let end = out.len().saturating_add(TEXT_MAX);
        for piece in &self.pieces {
            if out.len() >= end {
                break;
            }
            let spec = match piece {
                Piece::Literal(text) => {
                    out.extend_from_slice(text);
                    continue;
                }
                Piece::Spec(spec) => spec,
            };
            let mut extent = |extent| match extent {
                Some(Extent::Fixed(n)) => Some(n as i32),
                Some(Extent::Argument) => match arguments.next().map(|a| evaluator.eval(a)) {
                    Some(Evaluated::Int(value, _)) => Some(value as i32),
                    _ => Some(0),
                },
                None => None,
            };
            let (width, precision) = (extent(spec.width), extent(spec.precision));
            let value = match arguments.next() {
                Some(argument) => evaluator.eval(argument),
                None => Evaluated::Unknown("a missing argument"),
            };
            conversion(out, spec, width, precision, &value, env);
        }
        out.truncate(end);
    }
}

/// The list of flags by which an argument is printed.
fn flag_list(expr: &Expr) -> Option<&[ListEntry]> {
    match expr {
        Expr::Flags(_, _, list, _) => Some(list),
        Expr::Ternary(_, then, otherwise) => flag_list(then).or_else(|| flag_list(otherwise)),
        _ => None,
    }
}

/// The fields that an argument prints by a list of names.
fn names_fields(expr: &Expr, found: &mut impl FnMut(usize)) {
    match expr {
        Expr::Flags(value, ..) | Expr::Symbolic(value, ..) => {
            if let Expr::Field(field) = **value {
                found(field);
            }
        }
        Expr::Ternary(_, then, otherwise) => {
            names_fields(then, found);
            names_fields(otherwise, found);
        }
        _ => {}
    }
}
