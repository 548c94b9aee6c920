//! References in the texts of events: symbols, strings and constants of the traced kernel.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use crate::kernel::{ByteOrder, KernelVersion};
use crate::print_fmt::PrintLimits;
use crate::read::{Header, Metadata, SymbolTable};

/// Largest number of names in print fmts that are looked up, and of values that a file may give for them: a file of
/// megabytes could hold millions.
const NAMES_MAX: usize = 4_096;

/// References that the file cannot resolve, by their text in the `print fmt`; reported once, not per event.
pub type Unresolved = BTreeSet<String>;

/// Data outside the event: symbols, texts and constants of the traced kernel.
#[derive(Debug)]
pub struct PrintEnv<'a> {
    pub(super) order: ByteOrder,
    pub(super) long_size: usize,
    symbols: Option<&'a SymbolTable<'a>>,
    pub(super) printk_formats: HashMap<u64, Vec<u8>>,
    pub(super) constants: HashMap<String, i64>,
    pub(super) version: Option<KernelVersion>,
    /// trace_options `sym-offset` and `sym-addr`, for stacks and trace_printk.
    symbol_options: (bool, bool),
    cache: RefCell<HashMap<(u64, SymbolForm), Vec<u8>>>,
    unresolved: RefCell<Unresolved>,
    /// Names in print fmts that have no value here.
    unknown_names: RefCell<BTreeSet<String>>,
    /// Bytes of the print fmts that were parsed.
    parsed: Cell<usize>,
    pub(super) limits: PrintLimits,
}

/// Form of a symbol's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SymbolForm {
    /// `%pS`
    WithOffset,
    /// `%ps`
    NameOnly,
    /// `%pB`
    Backtrace,
    /// An address of a stack: the symbol's name alone.
    Frame,
    /// An address of a stack with trace_options `sym-offset`: the symbol's name and offset.
    FrameWithOffset,
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
            unknown_names: RefCell::default(),
            parsed: Cell::new(0),
            limits: PrintLimits::default(),
        }
    }

    /// For the events of a file: with its symbols, strings and constants, and the trace options of the recording.
    pub fn of(header: &Header, metadata: &'a Metadata<'a>, symbols: Option<&'a SymbolTable<'a>>) -> Self {
        let options = metadata.text("tracefs/trace_options").unwrap_or_default();
        let option = |name| options.split_ascii_whitespace().any(|o| o == name);
        let env = Self::new(header.order, header.long_size)
            .with_symbols(symbols)
            .with_printk_formats(metadata.attachment("printk_formats").unwrap_or_default())
            .with_version(metadata.kernel_version())
            .with_symbol_options(option("sym-offset"), option("sym-addr"));
        let env = match metadata.pageblock_order() {
            Some(order) => env.with_constant("pageblock_order", order),
            None => env,
        };
        let constants = metadata.text("constants").unwrap_or_default().split_ascii_whitespace();
        let constants = constants.take(NAMES_MAX);
        let pairs = constants.filter_map(|pair| pair.split_once('='));
        pairs
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
            .fold(env, |env, (name, value)| env.with_constant(name, value))
    }

    /// The value of a name in a print fmt.
    pub(super) fn constant(&self, name: &str) -> Option<i64> {
        let value = self.constants.get(name).copied();
        let mut unknown = self.unknown_names.borrow_mut();
        if value.is_none() && unknown.len() < NAMES_MAX && !unknown.contains(name) {
            unknown.insert(name.to_owned());
        }
        value
    }

    /// Names in the print fmts that were parsed with it and that have no value, such as enumerators: a recorder looks them
    /// up, and keeps them under the key `constants`.
    pub fn unknown_names(&self) -> BTreeSet<String> {
        self.unknown_names.borrow().clone()
    }

    /// True if a `print fmt` of `len` bytes may be parsed; it is counted then.
    pub(super) fn may_parse(&self, len: usize) -> bool {
        let parsed = self.parsed.get().saturating_add(len);
        if len as u64 > self.limits.print_fmt || parsed as u64 > self.limits.print_fmts {
            return false;
        }
        self.parsed.set(parsed);
        true
    }

    /// With other limits than the usual ones.
    pub fn with_limits(mut self, limits: PrintLimits) -> Self {
        self.limits = limits;
        self
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

    /// Unresolved references so far.
    pub fn unresolved(&self) -> Unresolved {
        self.unresolved.borrow().clone()
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    pub(super) fn long_size(&self) -> usize {
        self.long_size
    }

    pub(super) fn add_unresolved(&self, what: &str) {
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
        /// Longest name that is kept; the kernel's have 512 bytes with their module.
        const KEPT_MAX: usize = 1024;
        let mut cache = self.cache.borrow_mut();
        // Bounded: a hostile file could name a different address with every event.
        if cache.len() > 1 << 16 {
            cache.clear();
        }
        if let Some(text) = cache.get(&(address, form)) {
            out.extend_from_slice(text);
            return;
        }
        let text = self.resolve(address, form);
        out.extend_from_slice(&text);
        if text.len() <= KEPT_MAX {
            cache.insert((address, form), text);
        }
    }

    fn resolve(&self, address: u64, form: SymbolForm) -> Vec<u8> {
        let looked_up = if form == SymbolForm::Backtrace { address.wrapping_sub(1) } else { address };
        let is_frame = matches!(form, SymbolForm::Frame | SymbolForm::FrameWithOffset);
        let Some(found) = self.symbols.and_then(|s| s.resolve(looked_up)) else {
            return if is_frame { format!("0x{address:08x}") } else { format!("{address:#x}") }.into_bytes();
        };
        let mut out = found.name.into_owned();
        if form == SymbolForm::Frame {
            return out;
        }
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
    pub(super) fn ip_symbol(&self, out: &mut Vec<u8>, ip: u64) {
        if ip == 0 {
            out.push(b'0');
            return;
        }
        let (with_offset, with_address) = self.symbol_options;
        self.symbol(out, ip, if with_offset { SymbolForm::FrameWithOffset } else { SymbolForm::Frame });
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
