//! Records and formats for events that are known by their text only.

use std::collections::HashMap;
use std::fmt::Write as _;

use kmt_format::kernel::ByteOrder;

use super::args::Arg;
use super::gfp::GfpNames;
use super::line::Event;
use super::names::Symbols;

/// How a value is written, and so how a field holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A function, `FUNCTION+0x1/0x2`.
    Function,
    /// A hexadecimal number, with 0x or without.
    Hex { prefixed: bool },
    /// A pointer.
    Pointer,
    /// A decimal number, maybe with B for bytes behind it.
    Decimal { bytes: bool },
    /// Allocation flags by name.
    Gfp,
    /// true or false.
    Truth,
    /// Anything else.
    Text,
}

#[derive(Debug)]
struct Field {
    /// As the text has it.
    key: Vec<u8>,
    /// As the field is called: no two of an event have one name, and none that of a common field.
    name: String,
    form: Form,
    offset: usize,
    size: usize,
}

/// One layout of one event.
#[derive(Debug)]
struct Shape {
    id: u16,
    fields: Vec<Field>,
    fixed_len: usize,
}

/// All layouts that a text needs.
#[derive(Debug)]
pub struct Schema {
    long_size: usize,
    order: ByteOrder,
    /// Layouts by name of the event, the last used first.
    shapes: HashMap<Vec<u8>, Vec<Shape>>,
    count: u16,
    /// Names of allocation flags.
    pub gfp: GfpNames,
    /// Functions.
    pub symbols: Symbols,
    dynamic: Vec<u8>,
}

/// What became of an event.
#[derive(Debug, PartialEq, Eq)]
pub enum Made {
    /// A record of a known layout.
    Record,
    /// A record of a layout that is new: its system, and the text of its `format`.
    New(String, String),
}

/// Why no record can be made of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel had no hash to print yet: `(____ptrval____)`.
    PointerNotPrinted,
    /// Too many events of different kinds.
    TooManyKinds,
}

const COMMON_LEN: usize = 8;
/// Ids below are those of ftrace's own events.
const FIRST_ID: u16 = 32;
/// Most layouts of a text.
const SHAPES_MAX: u16 = 4096;

impl Schema {
    /// None yet.
    pub fn new(long_size: usize, order: ByteOrder) -> Self {
        Self {
            long_size,
            order,
            shapes: HashMap::new(),
            count: 0,
            gfp: GfpNames::default(),
            symbols: Symbols::new(long_size),
            dynamic: Vec::new(),
        }
    }

    /// Makes the record of an event, common part included.
    pub fn record(
        &mut self,
        event: &Event<'_>,
        args: &[Arg<'_>],
        record: &mut Vec<u8>,
    ) -> Result<Made, Refusal> {
        if args.iter().any(|a| a.key == b"ptr" && a.value.starts_with(b"(__")) {
            return Err(Refusal::PointerNotPrinted);
        }
        let mut shapes = self.shapes.remove(event.name).unwrap_or_default();
        let made = self.record_of(event, args, record, &mut shapes);
        match self.shapes.get_mut(event.name) {
            Some(place) => *place = shapes,
            None if !shapes.is_empty() => drop(self.shapes.insert(event.name.to_vec(), shapes)),
            None => {}
        }
        made
    }

    fn record_of(
        &mut self,
        event: &Event<'_>,
        args: &[Arg<'_>],
        record: &mut Vec<u8>,
        shapes: &mut Vec<Shape>,
    ) -> Result<Made, Refusal> {
        for at in 0..shapes.len() {
            let fits = shapes.get(at).is_some_and(|shape| self.fill(shape, event, args, record));
            if fits {
                shapes.swap(0, at);
                return Ok(Made::Record);
            }
        }
        if self.count >= SHAPES_MAX {
            return Err(Refusal::TooManyKinds);
        }
        let shape = self.shape(args);
        self.count += 1;
        let format = self.format(event, args, &shape);
        self.fill(&shape, event, args, record);
        shapes.insert(0, shape);
        Ok(Made::New(system(event), format))
    }

    /// The layout that an event's text asks for. A text without pairs is one field.
    fn shape(&mut self, args: &[Arg<'_>]) -> Shape {
        let mut fields: Vec<Field> = Vec::new();
        let mut offset = COMMON_LEN;
        let whole = [Arg { before: b"", key: b"text", value: b"-" }];
        for arg in if args.is_empty() { &whole[..] } else { args } {
            let mut form = if args.is_empty() { Form::Text } else { self.form(arg) };
            let mut name = String::from_utf8_lossy(arg.key).into_owned();
            if name.starts_with("common_") || fields.iter().any(|f| f.name == name) {
                // A key that comes twice keeps its meaning where it comes first.
                form = Form::Text;
                name = format!("text{}_{name}", fields.len());
            }
            let size = self.size(arg.key, form);
            offset = offset.next_multiple_of(size);
            fields.push(Field { key: arg.key.to_vec(), name, form, offset, size });
            offset += size;
        }
        Shape { id: FIRST_ID + self.count, fields, fixed_len: offset }
    }

    fn form(&mut self, arg: &Arg<'_>) -> Form {
        let value = arg.value;
        let candidates: &[Form] = match arg.key {
            b"call_site" => &[Form::Hex { prefixed: true }, Form::Hex { prefixed: false }, Form::Function],
            b"ptr" | b"page" => &[Form::Pointer],
            b"gfp_flags" => &[Form::Gfp],
            b"pfn" => &[Form::Hex { prefixed: true }, Form::Decimal { bytes: false }],
            b"bytes_req" | b"bytes_alloc" | b"order" | b"migratetype" | b"node" => {
                &[Form::Decimal { bytes: false }]
            }
            b"accounted" => &[Form::Truth],
            b"name" => &[],
            _ => {
                &[Form::Decimal { bytes: false }, Form::Decimal { bytes: true }, Form::Hex { prefixed: true }]
            }
        };
        candidates.iter().copied().find(|&form| self.number(form, value).is_some()).unwrap_or(Form::Text)
    }

    fn size(&self, key: &[u8], form: Form) -> usize {
        match form {
            Form::Text => 4,
            Form::Truth => 1,
            Form::Function | Form::Pointer | Form::Gfp => self.long_size,
            Form::Hex { .. } | Form::Decimal { .. } => match key {
                b"call_site" | b"pfn" | b"bytes_req" | b"bytes_alloc" => self.long_size,
                b"order" | b"migratetype" | b"node" => 4,
                _ => 8,
            },
        }
    }

    /// The value as a number, if it is written in that form.
    fn number(&mut self, form: Form, value: &[u8]) -> Option<u64> {
        match form {
            Form::Function => self.symbols.address(value),
            Form::Hex { prefixed } => hex(value, prefixed),
            Form::Pointer => match value {
                b"(null)" | b"(nil)" | b"null" => Some(0),
                _ => hex(value, true).or_else(|| hex(value, false)),
            },
            Form::Decimal { bytes } => decimal(if bytes { value.strip_suffix(b"B")? } else { value }),
            Form::Gfp => Some(self.gfp.value(value)),
            Form::Truth => match value {
                b"true" => Some(1),
                b"false" => Some(0),
                _ => None,
            },
            Form::Text => None,
        }
    }

    /// Fills a record; false if the event has not this layout.
    fn fill(&mut self, shape: &Shape, event: &Event<'_>, args: &[Arg<'_>], record: &mut Vec<u8>) -> bool {
        let order = self.order;
        common(record, shape.id, event, order);
        record.resize(shape.fixed_len.next_multiple_of(4), 0);
        let whole = [Arg { before: b"", key: b"text", value: event.text }];
        let args = if args.is_empty() { &whole[..] } else { args };
        if args.len() != shape.fields.len() {
            return false;
        }
        let fixed_len = record.len();
        self.dynamic.clear();
        let is_null = |v: &[u8]| v.starts_with(b"(n") || v.iter().all(|&b| b == b'0');
        let is_failure = event.name.starts_with(b"mm_page_alloc")
            && args.iter().any(|a| a.key == b"page" && is_null(a.value));
        for (field, arg) in shape.fields.iter().zip(args) {
            if field.key != arg.key {
                return false;
            }
            let number = if field.form == Form::Text {
                let start = fixed_len.saturating_add(self.dynamic.len());
                let text = arg.value.get(..arg.value.len().min(4096)).unwrap_or_default();
                let (Ok(start), Ok(len)) = (u16::try_from(start), u16::try_from(text.len() + 1)) else {
                    return false;
                };
                self.dynamic.extend_from_slice(text);
                self.dynamic.push(0);
                u64::from(start) | u64::from(len) << 16
            } else {
                match self.number(field.form, arg.value) {
                    Some(number) => number,
                    None => return false,
                }
            };
            // Old kernels print frame 0 of a failed allocation.
            let number = if is_failure && field.key == b"pfn" { u64::MAX } else { number };
            let Some(place) = record.get_mut(field.offset..field.offset + field.size) else { return false };
            let bytes = match order {
                ByteOrder::Little => number.to_le_bytes(),
                ByteOrder::Big => number.to_be_bytes(),
            };
            let bytes = match order {
                ByteOrder::Little => bytes.get(..field.size),
                ByteOrder::Big => bytes.get(8 - field.size..),
            };
            place.copy_from_slice(bytes.unwrap_or_default());
        }
        record.extend_from_slice(&self.dynamic);
        true
    }

    /// The `format` of a layout, whose `print fmt` gives the text back.
    fn format(&self, event: &Event<'_>, args: &[Arg<'_>], shape: &Shape) -> String {
        let name = String::from_utf8_lossy(event.name);
        let mut text = format!(
            "name: {name}\nID: {}\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
             \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
            shape.id
        );
        for field in &shape.fields {
            let key = &field.name;
            let (kind, signed) = kind(&field.key, field.form, field.size);
            let (offset, size) = (field.offset, field.size);
            let _ = writeln!(
                text,
                "\tfield:{kind} {key};\toffset:{offset};\tsize:{size};\tsigned:{};",
                u8::from(signed)
            );
        }
        let (mut print, mut values) = (String::new(), String::new());
        let whole = [Arg { before: b"", key: b"text", value: b"-" }];
        let pairs = if args.is_empty() { &whole[..] } else { args };
        for (number, (field, arg)) in shape.fields.iter().zip(pairs).enumerate() {
            if !args.is_empty() {
                // What precedes the first pair repeats a value of the event in what trace-cmd prints.
                let before = if number == 0 { &b""[..] } else { arg.before };
                escape(&mut print, before);
                escape(&mut print, arg.key);
                print.push('=');
            }
            conversion(&mut print, &mut values, field);
        }
        let _ = write!(text, "\nprint fmt: \"{print}\"{values}\n");
        text
    }
}

/// The fields that begin every record.
fn common(record: &mut Vec<u8>, id: u16, event: &Event<'_>, order: ByteOrder) {
    record.clear();
    order.push(record, id.into(), 2);
    let (flags, preempt_count) = flags(event.flags);
    record.push(flags);
    record.push(preempt_count);
    order.push(record, event.pid as u32 as u64, 4);
}

/// `common_flags` and `common_preempt_count` as the columns say (`trace_print_lat_fmt`, kernel/trace/trace_output.c).
fn flags(columns: &[u8]) -> (u8, u8) {
    let column = |at: usize| columns.get(at).copied().unwrap_or(b'.');
    let irqs = match column(0) {
        b'd' => 0x01,
        b'X' => 0x02,
        b'b' => 0x80,
        b'D' => 0x81,
        _ => 0,
    };
    let resched = match column(1) {
        b'N' => 0x24,
        b'n' => 0x04,
        b'p' => 0x20,
        b'B' => 0x26,
        b'L' => 0x22,
        b'b' => 0x06,
        b'l' => 0x02,
        _ => 0,
    };
    let context = match column(2) {
        b'Z' => 0x48,
        b'z' => 0x40,
        b'H' => 0x18,
        b'h' => 0x08,
        b's' => 0x10,
        _ => 0,
    };
    let digit = |at: usize| (column(at) as char).to_digit(16).unwrap_or(0) as u8;
    (irqs | resched | context, digit(3) | digit(4) << 4)
}

fn kind(key: &[u8], form: Form, size: usize) -> (&'static str, bool) {
    match (form, key) {
        (Form::Text, _) => ("__data_loc char[]", false),
        (Form::Truth, _) => ("bool", false),
        (Form::Pointer, _) => ("const void *", false),
        (Form::Function | Form::Gfp, _) | (_, b"call_site" | b"pfn") => ("unsigned long", false),
        (_, b"bytes_req" | b"bytes_alloc") => ("size_t", false),
        (_, b"order") => ("unsigned int", false),
        (Form::Decimal { .. }, _) if size == 4 => ("int", true),
        (Form::Decimal { .. }, _) => ("s64", true),
        (Form::Hex { .. }, _) => ("u64", false),
    }
}

/// The conversion of one field, and its argument.
fn conversion(print: &mut String, values: &mut String, field: &Field) {
    let key = &field.name;
    let is_long = !matches!(kind(&field.key, field.form, field.size).0, "s64" | "u64");
    let reads = match &field.key[..] {
        // As the kernel prints the frame of an allocation that failed.
        b"pfn" => "REC->pfn != -1UL ? REC->pfn : 0".to_owned(),
        _ => format!("REC->{key}"),
    };
    let (spec, value) = match field.form {
        Form::Text => ("%s", format!("__get_str({key})")),
        Form::Truth => ("%s", format!("REC->{key} ? \"true\" : \"false\"")),
        Form::Pointer => ("%p", format!("REC->{key}")),
        Form::Function => ("%pS", format!("(void *)REC->{key}")),
        Form::Gfp => {
            let table = GfpNames::table();
            ("%s", format!("(REC->{key}) ? __print_flags(REC->{key}, \"|\", {table}) : \"none\""))
        }
        Form::Hex { prefixed: true } => (if is_long { "0x%lx" } else { "0x%llx" }, reads),
        Form::Hex { prefixed: false } => (if is_long { "%lx" } else { "%llx" }, reads),
        Form::Decimal { bytes } => {
            let spec = match (field.size, bytes) {
                (4, false) => "%d",
                (4, true) => "%dB",
                (_, false) => {
                    if is_long {
                        "%lu"
                    } else {
                        "%lld"
                    }
                }
                (_, true) => "%lldB",
            };
            (spec, reads)
        }
    };
    print.push_str(spec);
    values.push_str(", ");
    values.push_str(&value);
}

/// Text inside a `print fmt`.
fn escape(print: &mut String, text: &[u8]) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '%' => print.push_str("%%"),
            '"' | '\\' => {
                print.push('\\');
                print.push(c);
            }
            c if c.is_control() => print.push(' '),
            c => print.push(c),
        }
    }
}

/// The system of an event. Text of the kernel does not tell it; the names of those that reports know are unique.
fn system(event: &Event<'_>) -> String {
    if let Some(system) = event.system {
        return String::from_utf8_lossy(system).into_owned();
    }
    const KMEM: [&[u8]; 14] = [
        b"kmalloc",
        b"kmalloc_node",
        b"kfree",
        b"kmem_cache_alloc",
        b"kmem_cache_alloc_node",
        b"kmem_cache_free",
        b"mm_page_alloc",
        b"mm_page_free",
        b"mm_page_free_direct",
        b"mm_page_free_batched",
        b"mm_pagevec_free",
        b"mm_page_alloc_zone_locked",
        b"mm_page_pcpu_drain",
        b"mm_page_alloc_extfrag",
    ];
    let name = event.name;
    let system = if KMEM.contains(&name) || name == b"rss_stat" {
        "kmem"
    } else if name.starts_with(b"mm_vmscan_") || name.starts_with(b"mm_shrink_slab_") {
        "vmscan"
    } else if name.starts_with(b"mm_compaction_") {
        "compaction"
    } else if name.starts_with(b"sched_") {
        "sched"
    } else if name == b"task_newtask" || name == b"task_rename" {
        "task"
    } else {
        "unknown"
    };
    system.to_owned()
}

fn hex(value: &[u8], prefixed: bool) -> Option<u64> {
    let digits = if prefixed { value.strip_prefix(b"0x")? } else { value };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, &b| Some(sum << 4 | u64::from((b as char).to_digit(16)?)))
}

fn decimal(value: &[u8]) -> Option<u64> {
    let (negative, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0u64, |sum, &b| {
        let digit = b.checked_sub(b'0').filter(|&d| d < 10)?;
        sum.checked_mul(10)?.checked_add(digit.into())
    })?;
    Some(if negative { number.wrapping_neg() } else { number })
}
