//! Records and formats for events that are known by their text only.

use std::collections::HashMap;

use kmt_format::kernel::ByteOrder;

use super::super::bounds::Bounds;
use super::args::Arg;
use super::fields::{is_needed, names_of};
use super::format::{format, system};
use super::gfp::GfpNames;
use super::line_types::TextEvent;
use super::names::NamedSymbols;
use super::notation::{Notation, Notations};
use super::shape::{Field, Form, Shape, Shapes};
use super::value::{decimal, has_size, hex, of_option_fields, pointer};

/// All layouts that a text needs.
#[derive(Debug)]
pub struct Schema {
    long_size: usize,
    order: ByteOrder,
    /// Layouts by name of the event and names of its fields.
    shapes: HashMap<Vec<u8>, Shapes>,
    key: Vec<u8>,
    count: u16,
    most: u64,
    notations: Notations,
    /// Names of allocation flags.
    pub gfp: GfpNames,
    /// Functions.
    pub symbols: NamedSymbols,
    dynamic: Vec<u8>,
    /// Layouts that were tried.
    #[cfg(test)]
    fills: u64,
}

/// Layout of the record that was made of an event.
#[derive(Debug, PartialEq, Eq)]
pub enum RecordLayout {
    /// The layout of an earlier event.
    Known,
    /// A new layout: its system, and the text of its `format`.
    New(String, String),
}

/// Reasons for which no record can be made of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecordable {
    /// The kernel had no hash to print yet: `(____ptrval____)`.
    PointerNotPrinted,
    /// Too many events of different kinds.
    TooManyKinds,
    /// A number that reports use is missing, or cannot be read.
    Unreadable,
}

const COMMON_LEN: usize = 8;
/// Ids below are those of ftrace's own events.
const FIRST_ID: u16 = 32;

impl Schema {
    /// None yet, and no more layouts and functions than `bounds` allow.
    pub fn new(long_size: usize, order: ByteOrder, notations: Notations, bounds: &Bounds) -> Self {
        Self {
            long_size,
            order,
            shapes: HashMap::new(),
            key: Vec::new(),
            count: 0,
            most: bounds.layouts,
            notations,
            gfp: GfpNames::new(notations.of(b"gfp_flags")),
            symbols: NamedSymbols::new(long_size, bounds.functions),
            dynamic: Vec::new(),
            #[cfg(test)]
            fills: 0,
        }
    }

    /// The common fields of an event's record, but its type.
    pub fn common(record: &mut Vec<u8>, event: &TextEvent<'_>, order: ByteOrder) {
        common(record, 0, event, order);
    }

    /// Makes the record of an event, common part included.
    pub fn record(
        &mut self,
        event: &TextEvent<'_>,
        args: &[Arg<'_>],
        record: &mut Vec<u8>,
    ) -> Result<RecordLayout, Unrecordable> {
        if args.iter().any(|a| a.key == b"ptr" && a.value.starts_with(b"(__")) {
            return Err(Unrecordable::PointerNotPrinted);
        }
        self.key.clear();
        self.key.extend_from_slice(event.name);
        for arg in args {
            self.key.push(0);
            self.key.extend_from_slice(arg.name);
        }
        let mut shapes = self.shapes.get_mut(&self.key).map(std::mem::take).unwrap_or_default();
        let made = self.record_of(event, args, record, &mut shapes);
        match self.shapes.get_mut(&self.key) {
            Some(entry) => *entry = shapes,
            None if made.is_ok() => drop(self.shapes.insert(self.key.clone(), shapes)),
            None => {}
        }
        made
    }

    fn record_of(
        &mut self,
        event: &TextEvent<'_>,
        args: &[Arg<'_>],
        record: &mut Vec<u8>,
        shapes: &mut Shapes,
    ) -> Result<RecordLayout, Unrecordable> {
        if shapes.use_first(|shape| self.fill(shape, event, args, record)) {
            return Ok(RecordLayout::Known);
        }
        if self.notations.lacks(event.name, args) {
            return Err(Unrecordable::Unreadable);
        }
        if shapes.is_empty() && u64::from(self.count) >= self.most {
            return Err(Unrecordable::TooManyKinds);
        }
        let shape = self.shape(args);
        let system = system(event);
        if shape.fields.iter().any(|f| f.form == Form::Text && is_needed(&system, args, &f.key)) {
            return Err(Unrecordable::Unreadable);
        }
        if let Some(same) = shapes.with_forms_of(&shape) {
            let is_filled = self.fill(same, event, args, record);
            return if is_filled { Ok(RecordLayout::Known) } else { Err(Unrecordable::Unreadable) };
        }
        if u64::from(self.count) >= self.most {
            return Err(Unrecordable::TooManyKinds);
        }
        if !self.fill(&shape, event, args, record) {
            return Err(Unrecordable::Unreadable);
        }
        self.count += 1;
        let format = format(event, args, &shape);
        shapes.add(shape);
        Ok(RecordLayout::New(system, format))
    }

    /// The layout that an event's text asks for. A text without pairs is one field.
    fn shape(&mut self, args: &[Arg<'_>]) -> Shape {
        let mut fields: Vec<Field> = Vec::new();
        let mut offset = COMMON_LEN;
        let whole = [Arg { before: b"", key: b"", name: b"text", value: b"-" }];
        for arg in if args.is_empty() { &whole[..] } else { args } {
            let mut form = if args.is_empty() { Form::Text } else { self.form(arg) };
            let mut name = String::from_utf8_lossy(arg.name).into_owned();
            if name.starts_with("common_") || fields.iter().any(|f| f.name == name) {
                // A key that comes twice keeps its meaning where it comes first.
                form = Form::Text;
                name = format!("text{}_{name}", fields.len());
            }
            let size = self.size(arg.name, form);
            offset = offset.next_multiple_of(size);
            fields.push(Field { key: arg.name.to_vec(), name, form, offset, size });
            offset += size;
        }
        Shape { id: FIRST_ID + self.count, fields, fixed_len: offset }
    }

    fn form(&mut self, arg: &Arg<'_>) -> Form {
        let value = arg.value;
        if let Some(names) = names_of(arg.name).filter(|names| names.value(value).is_some()) {
            return Form::Names(names);
        }
        const HEX: Form = Form::Hex { prefixed: true };
        const BARE: Form = Form::Hex { prefixed: false };
        const DECIMAL: Form = Form::Decimal { bytes: false };
        let notation = self.notations.of(arg.name);
        let candidates: &[Form] = match (arg.name, notation) {
            (b"func" | b"ip" | b"parent_ip", _) => &[HEX, Form::Name],
            (b"shrink", _) => &[HEX, Form::Function],
            // Printed by %lx (include/trace/events/task.h, 4.4 to 7.2).
            (b"clone_flags", _) => &[HEX, BARE],
            (b"shr", _) => &[Form::Pointer(Notation::Hex)],
            (b"call_site", Notation::Hex) => &[HEX, BARE, Form::Function],
            (b"call_site", Notation::Name) => &[HEX, Form::Function, BARE],
            (b"call_site", Notation::Decimal) => &[HEX, DECIMAL, Form::Function],
            (b"ptr" | b"page", Notation::Decimal) => &[Form::Pointer(Notation::Decimal)],
            (b"ptr" | b"page", _) => &[Form::Pointer(Notation::Hex)],
            (b"gfp_flags", _) => &[Form::Gfp],
            (b"pfn" | b"bytes_req" | b"bytes_alloc" | b"order" | b"migratetype" | b"node", Notation::Hex) => {
                &[HEX, BARE]
            }
            (b"pfn", _) => &[HEX, DECIMAL],
            (b"bytes_req" | b"bytes_alloc" | b"order" | b"migratetype" | b"node", _) => &[DECIMAL, HEX],
            (b"accounted", _) => &[Form::Truth],
            (b"name", _) => &[],
            _ => &[DECIMAL, Form::Decimal { bytes: true }, HEX],
        };
        candidates.iter().copied().find(|&form| self.number(form, value).is_some()).unwrap_or(Form::Text)
    }

    fn size(&self, key: &[u8], form: Form) -> usize {
        match form {
            Form::Text => 4,
            Form::Truth => 1,
            Form::Function | Form::Name | Form::Pointer(_) | Form::Gfp | Form::Names(_) => self.long_size,
            Form::Hex { .. } | Form::Decimal { .. } => match key {
                b"call_site" | b"pfn" | b"bytes_req" | b"bytes_alloc" => self.long_size,
                b"order" | b"migratetype" | b"node" => 4,
                _ => 8,
            },
        }
    }

    /// The value as a number, if it is written in that form.
    fn number(&mut self, form: Form, value: &[u8]) -> Option<u64> {
        if let Some(number) = of_option_fields(value).filter(|_| form != Form::Text) {
            return Some(number);
        }
        match form {
            Form::Function | Form::Name => self.symbols.address(value),
            Form::Names(names) => names.value(value),
            Form::Hex { prefixed } => hex(value, prefixed),
            Form::Pointer(notation) => pointer(value, notation),
            Form::Decimal { bytes } => decimal(if bytes { value.strip_suffix(b"B")? } else { value }),
            Form::Gfp => self.gfp.value(value),
            Form::Truth => match value {
                b"true" | b"1" => Some(1),
                b"false" | b"0" => Some(0),
                _ => None,
            },
            Form::Text => None,
        }
    }

    /// Fills a record; false if the event has not this layout.
    fn fill(&mut self, shape: &Shape, event: &TextEvent<'_>, args: &[Arg<'_>], record: &mut Vec<u8>) -> bool {
        #[cfg(test)]
        {
            self.fills += 1;
        }
        let order = self.order;
        common(record, shape.id, event, order);
        let whole = [Arg { before: b"", key: b"", name: b"text", value: event.text }];
        let args = if args.is_empty() { &whole[..] } else { args };
        if args.len() != shape.fields.len() {
            return false;
        }
        let fixed_len = shape.fixed_len.next_multiple_of(4);
        self.dynamic.clear();
        // A text that prints no addresses has null pointers for all pages, and the frames tell.
        let is_null = |v: &[u8]| pointer(v, Notation::Hex) == Some(0);
        let is_failure = event.name.starts_with(b"mm_page_alloc")
            && args.iter().any(|a| a.key == b"page" && is_null(a.value));
        for (field, arg) in shape.fields.iter().zip(args) {
            if field.key != arg.name {
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
                    Some(number) if has_size(number, field.size) => number,
                    _ => return false,
                }
            };
            // Kernels print frame 0 of a failed allocation.
            let number = if is_failure && field.key == b"pfn" && number == 0 { u64::MAX } else { number };
            // Fields are in the order of their offsets.
            record.resize(field.offset, 0);
            order.push(record, number, field.size);
        }
        record.resize(fixed_len, 0);
        record.extend_from_slice(&self.dynamic);
        true
    }
}

/// The fields that begin every record.
fn common(record: &mut Vec<u8>, id: u16, event: &TextEvent<'_>, order: ByteOrder) {
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

#[cfg(test)]
mod tests {
    use super::super::layout::TextLayout;
    use super::super::line::parse;
    use super::super::line_types::TextLine;
    use super::*;

    /// Records of lines `kind: FIELDS`; how many layouts were tried, and how many there are.
    fn work(lines: impl Iterator<Item = String>) -> (u64, u16) {
        let mut schema = Schema::new(8, ByteOrder::Little, Notations::default(), &Bounds::default());
        let mut record = Vec::new();
        for fields in lines {
            let mut args = Vec::new();
            let line = format!("  a-1 [000] .... 1.000000: kind: {fields}");
            let TextLine::Event(event) = parse(line.as_bytes(), &TextLayout::default()).line else {
                panic!("{line}")
            };
            super::super::fields::fields_of(event.name, event.text, 64, &mut args);
            let _ = schema.record(&event, &args, &mut record);
        }
        (schema.fills, schema.count)
    }

    #[test]
    fn work_is_in_proportion_to_lines() {
        let lines = 16_000;
        // A name of its own in each line; the same names with other kinds of values.
        let names = work((0..lines).map(|n| format!("name{n}=1")));
        let kinds = work((0..lines).map(|n: u32| {
            let value = |bit: u32| if n >> bit & 1 == 0 { "7" } else { "x7" };
            (0..14).map(|bit| format!("f{bit}={} ", value(bit))).collect()
        }));
        for (fills, count) in [names, kinds] {
            assert!(fills <= 20 * u64::from(lines), "{fills} layouts tried for {lines} lines");
            assert!(count > 0 && count <= 4096);
        }
        assert_eq!(names.1, 4096);
    }

    #[test]
    fn a_wide_layout_serves_narrow_values() {
        assert_eq!(work(["a=x", "a=5", "a=0x7"].map(str::to_owned).into_iter()).1, 1);
        assert_eq!(work(["a=5", "a=x", "a=5", "a=x"].map(str::to_owned).into_iter()).1, 2);
    }
}
