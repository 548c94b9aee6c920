//! Layouts of records, and the `format` of each. A field that events do not have is not in their layout.

use std::collections::HashMap;
use std::fmt::Write as _;

use kmt_format::kernel::ByteOrder;

use super::super::text::{GfpNames, escape, has_size};

/// Kind of a field: its C type, and how it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An address in code.
    Site,
    /// A function: in a trace the number of a symbol, in a record its address.
    Function,
    /// An address of data.
    Pointer,
    /// The frame number of a page; all ones in an allocation that failed.
    Pfn,
    /// A number of bytes.
    Size,
    /// A word that is printed in hexadecimal.
    Hex,
    /// Allocation flags.
    Gfp,
    /// `unsigned int`
    Unsigned,
    /// `int`
    Signed,
    /// `u64`
    U64,
    /// `s64`
    S64,
    /// `bool`
    Truth,
    /// A text.
    Text,
}

/// Value of a field.
#[derive(Debug, Clone, Copy)]
pub enum Content<'d> {
    /// Sign-extended to 64 bits if negative.
    Number(u64),
    /// Up to its first NUL.
    Text(&'d [u8]),
}

/// A field of an event.
#[derive(Debug, Clone, Copy)]
pub struct EventField<'d> {
    /// Name.
    pub name: &'d str,
    /// Kind.
    pub kind: Kind,
    /// Value.
    pub content: Content<'d>,
}

/// An event: its names and its fields.
#[derive(Debug, Clone, Copy)]
pub struct PlainEvent<'e, 'd> {
    /// System.
    pub system: &'e str,
    /// Name.
    pub name: &'e str,
    /// Task; 0 is the idle task.
    pub pid: i32,
    /// Fields in the order in which they are printed.
    pub fields: &'e [EventField<'d>],
}

/// Reasons for which no record can be made of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecordable {
    /// Too many events of different layouts.
    TooManyLayouts,
    /// A number has not the size of its field, or texts are too long together.
    Unreadable,
}

/// A layout of records.
#[derive(Debug)]
struct Layout {
    id: u16,
    /// Offset and size of each field.
    fields: Vec<(usize, usize)>,
    fixed_len: usize,
}

/// All layouts of a trace.
#[derive(Debug)]
pub struct Layouts {
    long_size: usize,
    by_key: HashMap<Vec<u8>, Layout>,
    key: Vec<u8>,
    dynamic: Vec<u8>,
    most: u64,
}

/// Ids below are those of ftrace's own events.
const FIRST_ID: u16 = 32;
/// `common_type`, two bytes of nothing, `common_pid`. A trace has neither flags nor a preempt count.
const COMMON_LEN: usize = 8;
/// Bytes of a text that are kept.
const TEXT_MAX: usize = 4096;

impl Layouts {
    /// None yet, and at most `most`.
    pub fn new(long_size: usize, most: u64) -> Self {
        Self { long_size, by_key: HashMap::new(), key: Vec::new(), dynamic: Vec::new(), most }
    }

    /// Makes the record of an event. Returns the `format` if its layout is a new one.
    pub fn record(
        &mut self,
        event: &PlainEvent<'_, '_>,
        record: &mut Vec<u8>,
    ) -> Result<Option<String>, Unrecordable> {
        self.key.clear();
        for part in [event.system, event.name] {
            self.key.extend_from_slice(part.as_bytes());
            self.key.push(0);
        }
        for field in event.fields {
            self.key.push(field.kind as u8 + 1);
            self.key.extend_from_slice(field.name.as_bytes());
            self.key.push(0);
        }
        if let Some(layout) = self.by_key.get(&self.key) {
            fill(layout, event, &mut self.dynamic, record)?;
            return Ok(None);
        }
        let count = self.by_key.len() as u64;
        let id = u16::try_from(count).ok().and_then(|count| FIRST_ID.checked_add(count));
        let Some(id) = id.filter(|_| count < self.most) else { return Err(Unrecordable::TooManyLayouts) };
        let layout = self.layout(id, event);
        fill(&layout, event, &mut self.dynamic, record)?;
        let format = format(&layout, event);
        self.by_key.insert(self.key.clone(), layout);
        Ok(Some(format))
    }

    fn layout(&self, id: u16, event: &PlainEvent<'_, '_>) -> Layout {
        let mut offset = COMMON_LEN;
        let mut fields = Vec::new();
        for field in event.fields {
            let size = match field.kind {
                Kind::Site
                | Kind::Function
                | Kind::Pointer
                | Kind::Pfn
                | Kind::Size
                | Kind::Hex
                | Kind::Gfp => self.long_size,
                Kind::Unsigned | Kind::Signed | Kind::Text => 4,
                Kind::U64 | Kind::S64 => 8,
                Kind::Truth => 1,
            };
            offset = offset.next_multiple_of(size);
            fields.push((offset, size));
            offset += size;
        }
        Layout { id, fields, fixed_len: offset.next_multiple_of(4) }
    }
}

fn fill(
    layout: &Layout,
    event: &PlainEvent<'_, '_>,
    dynamic: &mut Vec<u8>,
    record: &mut Vec<u8>,
) -> Result<(), Unrecordable> {
    const ORDER: ByteOrder = ByteOrder::Little;
    record.clear();
    dynamic.clear();
    ORDER.push(record, layout.id.into(), 2);
    ORDER.push(record, 0, 2);
    ORDER.push(record, event.pid as u32 as u64, 4);
    for (field, &(offset, size)) in event.fields.iter().zip(&layout.fields) {
        let number = match field.content {
            Content::Number(number) if has_size(number, size) => number,
            Content::Number(_) => return Err(Unrecordable::Unreadable),
            Content::Text(text) => {
                let text = text.split(|&b| b == 0).next().unwrap_or_default();
                let text = text.get(..text.len().min(TEXT_MAX)).unwrap_or_default();
                let start = layout.fixed_len.saturating_add(dynamic.len());
                let (start, len) = (u16::try_from(start), u16::try_from(text.len() + 1));
                let (Ok(start), Ok(len)) = (start, len) else { return Err(Unrecordable::Unreadable) };
                dynamic.extend_from_slice(text);
                dynamic.push(0);
                u64::from(start) | u64::from(len) << 16
            }
        };
        record.resize(offset, 0);
        ORDER.push(record, number, size);
    }
    record.resize(layout.fixed_len, 0);
    record.extend_from_slice(dynamic);
    Ok(())
}

/// The text of a `format`.
fn format(layout: &Layout, event: &PlainEvent<'_, '_>) -> String {
    let mut text = format!(
        "name: {}\nID: {}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
        word(event.name).unwrap_or_else(|| "event".to_owned()),
        layout.id
    );
    let (mut print, mut values) = (String::new(), String::new());
    let mut names: Vec<String> = Vec::new();
    for (number, (field, (offset, size))) in event.fields.iter().zip(&layout.fields).enumerate() {
        let name = word(field.name).filter(|name| !name.starts_with("common_") && !names.contains(name));
        let name = name.unwrap_or_else(|| format!("field{number}"));
        let (c_type, spec) = c_type(field.kind);
        let signed = u8::from(matches!(field.kind, Kind::Signed | Kind::S64));
        let _ = writeln!(text, "\tfield:{c_type} {name};\toffset:{offset};\tsize:{size};\tsigned:{signed};");
        if number > 0 {
            print.push(' ');
        }
        // A text that stands for the whole event is printed without its name.
        if event.fields.len() > 1 || field.kind != Kind::Text || field.name != "text" {
            escape(&mut print, field.name.as_bytes());
            print.push('=');
        }
        print.push_str(spec);
        let _ = write!(values, ", {}", value(&name, field.kind));
        names.push(name);
    }
    let _ = write!(text, "\nprint fmt: \"{print}\"{values}\n");
    text
}

fn c_type(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Site | Kind::Function => ("unsigned long", "%pS"),
        Kind::Pointer => ("const void *", "%p"),
        Kind::Pfn | Kind::Hex => ("unsigned long", "0x%lx"),
        Kind::Size => ("size_t", "%zu"),
        Kind::Gfp => ("unsigned long", "%s"),
        Kind::Unsigned => ("unsigned int", "%u"),
        Kind::Signed => ("int", "%d"),
        Kind::U64 => ("u64", "%llu"),
        Kind::S64 => ("s64", "%lld"),
        Kind::Truth => ("bool", "%s"),
        Kind::Text => ("__data_loc char[]", "%s"),
    }
}

/// The argument that prints a field.
fn value(name: &str, kind: Kind) -> String {
    match kind {
        Kind::Site | Kind::Function => format!("(void *)REC->{name}"),
        // As the kernel prints the frame of an allocation that failed.
        Kind::Pfn => format!("REC->{name} != -1UL ? REC->{name} : 0"),
        Kind::Gfp => {
            let rows = GfpNames::print_flags_rows();
            format!("(REC->{name}) ? __print_flags(REC->{name}, \"|\", {rows}) : \"none\"")
        }
        Kind::Truth => format!("REC->{name} ? \"true\" : \"false\""),
        Kind::Text => format!("__get_str({name})"),
        _ => format!("REC->{name}"),
    }
}

/// A name that can stand in a `format`; `None` if it is not one.
fn word(name: &str) -> Option<String> {
    /// Far longer than any name.
    const LONGEST: usize = 128;
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let starts = name.bytes().next().is_some_and(|b| is_word(b) && !b.is_ascii_digit());
    (starts && name.len() <= LONGEST && name.bytes().all(is_word)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::EventFormat;

    use super::*;

    fn field<'a>(name: &'a str, kind: Kind, content: Content<'static>) -> EventField<'a> {
        EventField { name, kind, content }
    }

    #[test]
    fn a_format_can_be_read_and_has_only_the_fields_of_the_event() {
        let mut layouts = Layouts::new(4, 10);
        let fields = [
            field("accounted", Kind::Truth, Content::Number(1)),
            field("call_site", Kind::Site, Content::Number(0xc000_1234)),
            field("name", Kind::Text, Content::Text(b"kmalloc-64\0x")),
            field("name", Kind::Signed, Content::Number(u64::MAX)),
            field("% \"", Kind::U64, Content::Number(u64::MAX)),
        ];
        let event = PlainEvent { system: "kmem", name: "kfree", pid: -1, fields: &fields };
        let mut record = Vec::new();
        let format = layouts.record(&event, &mut record).unwrap().unwrap();
        let parsed = EventFormat::parse(&format, 4).unwrap();
        let names: Vec<&str> = parsed.fields.iter().map(|f| f.name.as_str()).collect();
        let own = ["accounted", "call_site", "name", "field3", "field4"];
        assert_eq!(names, [&["common_type", "common_pid"][..], &own].concat());
        assert_eq!(record.len(), 32 + 11);
        assert!(record.ends_with(b"kmalloc-64\0"));
        assert_eq!(layouts.record(&event, &mut record), Ok(None));
        let wide = [field("call_site", Kind::Site, Content::Number(1 << 40))];
        assert_eq!(
            layouts.record(&PlainEvent { fields: &wide, ..event }, &mut record),
            Err(Unrecordable::Unreadable)
        );
    }

    #[test]
    fn the_number_of_layouts_is_bounded() {
        let mut layouts = Layouts::new(8, 3);
        let mut record = Vec::new();
        let mut made = |name: &str| {
            layouts
                .record(&PlainEvent { system: "x", name, pid: 0, fields: &[] }, &mut record)
                .map(|f| f.is_some())
        };
        assert_eq!(["a", "b", "c", "a"].map(&mut made), [Ok(true), Ok(true), Ok(true), Ok(false)]);
        assert_eq!(made("d"), Err(Unrecordable::TooManyLayouts));
    }
}
