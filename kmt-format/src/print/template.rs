//! A `print fmt`, ready to be written for each event of its class.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use super::bprint::BinaryArguments;
use super::eval::{Evaluator, Value};
use super::expr::Expr;
use super::lex::{Token, tokens};
use super::parse::{Scope, argument, split_arguments};
use super::printf::{Extent, Piece, Spec, integer, pieces, text};
use super::{pointer, printf};
use crate::kernel::{ByteOrder, KernelVersion};
use crate::read::{Event, SymbolTable};
use crate::schema::{EventClass, Role};

/// What could not be resolved from the file, by its text in the `print fmt`; told once, not per event.
pub type Unresolved = BTreeSet<String>;

/// What lies outside the event: symbols, texts and constants of the traced kernel.
#[derive(Debug)]
pub struct PrintEnv<'a> {
    order: ByteOrder,
    long_size: usize,
    symbols: Option<&'a SymbolTable<'a>>,
    printk_formats: HashMap<u64, Vec<u8>>,
    constants: HashMap<String, i64>,
    version: Option<KernelVersion>,
    /// trace_options `sym-offset` and `sym-addr`, for stacks and trace_printk.
    symbol_options: (bool, bool),
    cache: RefCell<HashMap<(u64, SymbolForm), Vec<u8>>>,
    unresolved: RefCell<Unresolved>,
}

/// How an address is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SymbolForm {
    /// `%pS`
    WithOffset,
    /// `%ps`
    NameOnly,
    /// `%pB`
    Backtrace,
}

impl<'a> PrintEnv<'a> {
    /// Nothing but byte order and the size of the traced kernel's `long` in bytes.
    pub fn new(order: ByteOrder, long_size: usize) -> Self {
        Self {
            order,
            long_size,
            symbols: None,
            printk_formats: HashMap::new(),
            constants: HashMap::new(),
            version: None,
            symbol_options: (false, false),
            cache: RefCell::default(),
            unresolved: RefCell::default(),
        }
    }

    /// With the kernel's symbols.
    pub fn with_symbols(mut self, symbols: Option<&'a SymbolTable<'a>>) -> Self {
        self.symbols = symbols;
        self
    }

    /// With the contents of `printk_formats`: lines of `0xADDRESS : "TEXT"`.
    pub fn with_printk_formats(mut self, text: &[u8]) -> Self {
        for line in text.split(|&b| b == b'\n') {
            if let Some((address, text)) = printk_format(line) {
                self.printk_formats.insert(address, text);
            }
        }
        self
    }

    /// With a number that a `print fmt` calls by name, such as `pageblock_order`.
    pub fn with_constant(mut self, name: &str, value: i64) -> Self {
        self.constants.insert(name.to_owned(), value);
        self
    }

    /// With the version of the traced kernel.
    pub fn with_version(mut self, version: Option<KernelVersion>) -> Self {
        self.version = version;
        self
    }

    /// With trace_options `sym-offset` and `sym-addr`.
    pub fn with_symbol_options(mut self, offset: bool, address: bool) -> Self {
        self.symbol_options = (offset, address);
        self
    }

    /// What could not be resolved so far.
    pub fn unresolved(&self) -> Unresolved {
        self.unresolved.borrow().clone()
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    pub(super) fn long_size(&self) -> usize {
        self.long_size
    }

    fn note(&self, what: &str) {
        let mut unresolved = self.unresolved.borrow_mut();
        if unresolved.len() < 1_000 && !unresolved.contains(what) {
            unresolved.insert(what.to_owned());
        }
    }

    /// An address as `symbol+0xoffset/0xsize [module]`, or in hex (`__sprint_symbol`, kernel/kallsyms.c).
    pub fn symbol_with_offset(&self, address: u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.symbol(&mut out, address, SymbolForm::WithOffset);
        out
    }

    pub(super) fn symbol(&self, out: &mut Vec<u8>, address: u64, form: SymbolForm) {
        let mut cache = self.cache.borrow_mut();
        // Bounded: a hostile file could name a different address with every event.
        if cache.len() > 1 << 20 {
            cache.clear();
        }
        let text = cache.entry((address, form)).or_insert_with(|| self.resolve(address, form));
        out.extend_from_slice(text);
    }

    fn resolve(&self, address: u64, form: SymbolForm) -> Vec<u8> {
        let looked_up = if form == SymbolForm::Backtrace { address.wrapping_sub(1) } else { address };
        let Some(found) = self.symbols.and_then(|s| s.resolve(looked_up)) else {
            return format!("{address:#x}").into_bytes();
        };
        let mut out = found.name.to_vec();
        if form != SymbolForm::NameOnly {
            let offset = address.wrapping_sub(looked_up.saturating_sub(found.offset));
            out.extend_from_slice(format!("+{offset:#x}/{:#x}", found.size).as_bytes());
        }
        if let Some(module) = found.module {
            out.extend_from_slice(b" [");
            out.extend_from_slice(module);
            out.push(b']');
        }
        out
    }

    /// An address as the kernel prints those of stacks (`seq_print_ip_sym`, kernel/trace/trace_output.c).
    fn ip_symbol(&self, out: &mut Vec<u8>, ip: u64) {
        if ip == 0 {
            out.push(b'0');
            return;
        }
        let (with_offset, with_address) = self.symbol_options;
        match self.symbols.and_then(|s| s.resolve(ip)) {
            Some(_) if with_offset => self.symbol(out, ip, SymbolForm::WithOffset),
            Some(found) => out.extend_from_slice(found.name),
            None => out.extend_from_slice(format!("0x{ip:08x}").as_bytes()),
        }
        if with_address {
            let digits = self.long_size.saturating_mul(2);
            out.extend_from_slice(format!(" <{ip:0digits$x}>").as_bytes());
        }
    }
}

/// The kernel escapes newline, tab and quote, and prints a backslash bare.
fn printk_format(line: &[u8]) -> Option<(u64, Vec<u8>)> {
    let colon = line.windows(4).position(|w| w == b" : \"")?;
    let address = core::str::from_utf8(line.get(..colon)?).ok()?.trim().strip_prefix("0x")?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let quoted = line.get(colon.saturating_add(4)..)?;
    let quoted = quoted.strip_suffix(b"\"").unwrap_or(quoted);
    let mut out = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter().peekable();
    while let Some(&byte) = bytes.next() {
        let escaped = match (byte, bytes.peek()) {
            (b'\\', Some(b'n')) => Some(b'\n'),
            (b'\\', Some(b't')) => Some(b'\t'),
            (b'\\', Some(b'"')) => Some(b'"'),
            _ => None,
        };
        out.push(escaped.unwrap_or(byte));
        if escaped.is_some() {
            bytes.next();
        }
    }
    Some((address, out))
}

/// How the events of one class are written.
#[derive(Debug)]
pub struct EventText {
    kind: Kind,
    name: String,
    pieces: Vec<Piece>,
    arguments: Vec<Expr>,
}

/// Events of the kernel's own `ftrace` system, which it prints in C and not by their `print fmt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Template,
    KernelStack,
    UserStack,
    Print,
    BinaryPrint,
    Puts,
    RawData,
}

impl EventText {
    /// Parses the `print fmt` of a class. What cannot be parsed prints as `?` and is told by the environment.
    pub fn new(class: &EventClass, env: &PrintEnv<'_>) -> Self {
        let kind = match (class.system.as_str(), class.name.as_str()) {
            ("ftrace", "kernel_stack") => Kind::KernelStack,
            ("ftrace", "user_stack") => Kind::UserStack,
            ("ftrace", "print") => Kind::Print,
            ("ftrace", "bprint") => Kind::BinaryPrint,
            ("ftrace", "bputs") => Kind::Puts,
            ("ftrace", "raw_data") => Kind::RawData,
            _ => Kind::Template,
        };
        let mut text = Self { kind, name: class.name.clone(), pieces: Vec::new(), arguments: Vec::new() };
        if kind != Kind::Template {
            return text;
        }
        let Some(tokens) = tokens(class.print_fmt()) else {
            text.pieces = vec![Piece::Literal(b"?".to_vec())];
            env.note(&format!("print fmt of {}", class.name));
            return text;
        };
        let parts = split_arguments(&tokens);
        let Some(([Token::Text(format)], rest)) = parts.split_first() else {
            text.pieces = vec![Piece::Literal(b"?".to_vec())];
            env.note(&format!("print fmt of {}", class.name));
            return text;
        };
        let constant = |name: &str| env.constants.get(name).copied();
        let scope = Scope { class, long_size: env.long_size as u8, constant: &constant };
        text.pieces = pieces(format);
        text.arguments = rest.iter().map(|tokens| argument(tokens, &scope)).collect();
        text
    }

    /// Writes what the kernel prints behind the time: for most events `NAME: TEXT` and a newline.
    pub fn write(&self, out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
        match self.kind {
            Kind::Template => {
                out.extend_from_slice(self.name.as_bytes());
                out.extend_from_slice(b": ");
                self.write_fields(out, event, env);
                out.push(b'\n');
            }
            Kind::KernelStack => kernel_stack(out, event, env),
            Kind::UserStack => user_stack(out, event, env),
            Kind::Print => {
                ip_prefix(out, event, env);
                out.extend_from_slice(text_named(event, "buf"));
            }
            Kind::BinaryPrint => binary_print(out, event, env),
            Kind::Puts => {
                ip_prefix(out, event, env);
                match named(event, "str").and_then(|a| env.printk_formats.get(&a)) {
                    Some(text) => out.extend_from_slice(text),
                    None => unresolved_line(out, env, "the text of a trace_puts"),
                }
            }
            Kind::RawData => {
                out.extend_from_slice(format!("# {:x} buf:", named(event, "id").unwrap_or(0)).as_bytes());
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
        let argument = self.arguments.iter().find(|a| names_field(a, field))?;
        let evaluator = Evaluator { event, long_size: env.long_size as u8, order: env.order };
        match evaluator.eval(argument) {
            Value::Bytes(bytes) => Some(bytes.into_owned()),
            _ => None,
        }
    }

    /// Writes the text of the fields alone, without name and newline.
    pub fn write_fields(&self, out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
        let evaluator = Evaluator { event, long_size: env.long_size as u8, order: env.order };
        let mut arguments = self.arguments.iter();
        for piece in &self.pieces {
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
                    Some(Value::Int(value, _)) => Some(value as i32),
                    _ => Some(0),
                },
                None => None,
            };
            let (width, precision) = (extent(spec.width), extent(spec.precision));
            let value = match arguments.next() {
                Some(argument) => evaluator.eval(argument),
                None => Value::Unknown("a missing argument"),
            };
            conversion(out, spec, width, precision, &value, env);
        }
    }
}

/// Whether an argument prints that field by a list of names.
fn names_field(expr: &Expr, field: usize) -> bool {
    match expr {
        Expr::Flags(value, ..) | Expr::Symbolic(value, ..) => **value == Expr::Field(field),
        Expr::Ternary(_, then, otherwise) => names_field(then, field) || names_field(otherwise, field),
        _ => false,
    }
}

fn conversion(
    out: &mut Vec<u8>,
    spec: &Spec,
    width: Option<i32>,
    precision: Option<i32>,
    value: &Value<'_>,
    env: &PrintEnv<'_>,
) {
    // A negative width from an argument means left-aligned.
    let mut spec = std::borrow::Cow::Borrowed(spec);
    if width.is_some_and(|w| w < 0) {
        spec.to_mut().left = true;
    }
    let width = width.map_or(0, |w| w.unsigned_abs() as usize).min(1 << 16);
    let precision = precision.and_then(|p| usize::try_from(p).ok()).map(|p| p.min(1 << 16));
    let done = match (spec.conversion, value) {
        (b'p', Value::Int(value, _)) => pointer::address(out, &spec, width, *value, env),
        (b'p', Value::Null) => pointer::address(out, &spec, width, 0, env),
        (b'p', Value::Bytes(bytes)) => pointer::bytes(out, &spec, width, bytes, env),
        (b's', Value::Bytes(bytes)) => {
            text(out, &spec, width, precision, bytes);
            true
        }
        (b's', Value::Null) => {
            text(out, &spec, width, precision, b"(null)");
            true
        }
        // A string outside the event: the kernel lists those that it knows to be constant.
        (b's', Value::Int(address, _)) => match env.printk_formats.get(address) {
            Some(found) => {
                text(out, &spec, width, precision, found);
                true
            }
            None => false,
        },
        (_, Value::Int(value, _)) if spec.is_integer() => {
            integer(out, &spec, width, precision, *value, env.long_size as u8);
            true
        }
        (_, Value::Null) if spec.is_integer() => {
            integer(out, &spec, width, precision, 0, env.long_size as u8);
            true
        }
        _ => false,
    };
    if !done {
        match value {
            Value::Unknown(what) => env.note(what),
            _ => env.note(&format!(
                "%{}{} of a value that is not in the event",
                spec.conversion as char,
                String::from_utf8_lossy(&spec.extension)
            )),
        }
        printf::padded(out, spec.left, width, b"?");
    }
}

fn named(event: &Event<'_>, name: &str) -> Option<u64> {
    event.uint(event.class().field_named(name)?)
}

fn text_named<'e>(event: &Event<'e>, name: &str) -> &'e [u8] {
    event.class().field_named(name).and_then(|f| event.text(f)).unwrap_or_default()
}

fn unresolved_line(out: &mut Vec<u8>, env: &PrintEnv<'_>, what: &str) {
    env.note(what);
    out.extend_from_slice(b"?\n");
}

fn ip_prefix(out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
    env.ip_symbol(out, named(event, "ip").unwrap_or(0));
    out.extend_from_slice(b": ");
}

/// `trace_stack_print`, kernel/trace/trace_output.c.
fn kernel_stack(out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
    const FTRACE_TRAMPOLINE: u64 = 0x7fff_ffff;
    out.extend_from_slice(b"<stack trace>\n");
    let field = event.class().field_with(Role::STACK);
    let bytes = field.and_then(|f| event.bytes(f)).unwrap_or_default();
    let end = u64::MAX >> crate::kernel::unused_bits(env.long_size as u32);
    for caller in bytes.chunks_exact(env.long_size).map(|c| env.order.uint(c)).take_while(|&c| c != end) {
        out.extend_from_slice(b" => ");
        match caller {
            FTRACE_TRAMPOLINE => out.extend_from_slice(b"[FTRACE TRAMPOLINE]"),
            _ => env.ip_symbol(out, caller),
        }
        out.push(b'\n');
    }
}

/// `trace_user_stack_print`, where no mappings of the task are known.
fn user_stack(out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
    out.extend_from_slice(b"<user stack trace>\n");
    let bytes = event.class().field_named("caller").and_then(|f| event.bytes(f)).unwrap_or_default();
    let digits = env.long_size.saturating_mul(2);
    for caller in bytes.chunks_exact(env.long_size).map(|c| env.order.uint(c)).take_while(|&c| c != 0) {
        out.extend_from_slice(format!(" =>  <{caller:0digits$x}>\n").as_bytes());
    }
}

/// `trace_bprint_print`: the format lies in the kernel, the arguments in the event.
fn binary_print(out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
    ip_prefix(out, event, env);
    let format = named(event, "fmt").and_then(|a| env.printk_formats.get(&a));
    let Some(format) = format else {
        return unresolved_line(out, env, "the format of a trace_printk");
    };
    let mut arguments = BinaryArguments {
        bytes: event.class().field_named("buf").and_then(|f| event.bytes(f)).unwrap_or_default(),
        at: 0,
        order: env.order,
        long_size: env.long_size as u8,
        pointers_are_addresses: env.version.is_some_and(|v| v < KernelVersion::new(4, 16)),
    };
    for piece in pieces(format) {
        match piece {
            Piece::Literal(text) => out.extend_from_slice(&text),
            Piece::Spec(spec) => {
                let mut extent = |extent| match extent {
                    Some(Extent::Fixed(n)) => Some(n as i32),
                    Some(Extent::Argument) => arguments.extent(),
                    None => None,
                };
                let (width, precision) = (extent(spec.width), extent(spec.precision));
                let value = arguments.value(&spec);
                match (&value, spec.conversion) {
                    // Text that the kernel made of a pointer when the event was written.
                    (Value::Bytes(bytes), b'p') => text(out, &spec, 0, None, bytes),
                    _ => conversion(out, &spec, width, precision, &value, env),
                }
            }
        }
    }
}
