//! Reading schema chunks.

use zerocopy::ByteOrder as Order;

use super::cast::{Table, array_at, head_len, struct_at};
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Field, FieldKind};
use crate::raw::{ClassRow, FieldRow, SchemaHead, ShapeRow, SlotRow, StringRef};
use crate::schema::{EventClass, Meaning, Place, Role, Shape, Slot, Transform};

/// All event classes of a file, and the shapes of their records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    classes: Vec<Option<EventClass>>,
    shapes: Vec<Option<Shape>>,
    /// Shapes for events that are decoded from sub-buffers, three for each class.
    decoding: Vec<Option<Shape>>,
}

/// Number of the first shape that is not the file's but the reader's own.
pub(super) const FIRST_DECODING_SHAPE: u32 = 1 << 16;

impl Schema {
    /// The class of that index.
    pub fn class(&self, index: usize) -> Option<&EventClass> {
        self.classes.get(index).and_then(Option::as_ref)
    }

    /// The shape of that index.
    pub fn shape(&self, index: usize) -> Option<&Shape> {
        let shape = match index.checked_sub(FIRST_DECODING_SHAPE as usize) {
            None => self.shapes.get(index),
            Some(index) => self.decoding.get(index),
        };
        shape.and_then(Option::as_ref)
    }

    /// Numbers that are defined; it grows when more becomes known.
    pub(super) fn defined_count(&self) -> usize {
        self.classes.iter().flatten().count().saturating_add(self.shapes.iter().flatten().count())
    }

    /// The shapes by which the reader decodes sub-buffers.
    pub(super) fn set_decoding(&mut self, shapes: Vec<Option<Shape>>) {
        self.decoding = shapes;
    }

    /// All classes with their indices.
    pub fn classes(&self) -> impl Iterator<Item = (usize, &EventClass)> {
        self.classes.iter().enumerate().filter_map(|(i, c)| Some((i, c.as_ref()?)))
    }

    /// One more than the highest class index.
    pub fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// Adds what a schema chunk defines. A second definition of the same index must say the same.
    pub(super) fn add<O: Order + 'static>(&mut self, body: &[u8], base: u64, limits: &Limits) -> Result<()> {
        let table = Tables::<O>::parse(body, base, limits)?;
        let (first_class, first_shape) = (table.first_class, table.first_shape);
        let mut classes = Vec::with_capacity(table.classes.len());
        for row in table.classes.iter() {
            classes.push(table.class(row)?);
        }
        let mut shapes = Vec::with_capacity(table.shapes.len());
        for row in table.shapes.iter() {
            let class_index = row.class.get() as usize;
            let class = class_index.checked_sub(first_class).and_then(|i| classes.get(i));
            let class = class.ok_or_else(|| table.bad("a shape names a class of another chunk"))?;
            shapes.push(table.shape(row, class_index, class.fields.len())?);
        }
        place(&mut self.classes, first_class, classes).map_err(|what| table.bad(what))?;
        place(&mut self.shapes, first_shape, shapes).map_err(|what| table.bad(what))
    }
}

fn place<T: PartialEq>(
    into: &mut Vec<Option<T>>,
    first: usize,
    new: Vec<T>,
) -> core::result::Result<(), &'static str> {
    let end = first.saturating_add(new.len());
    if into.len() < end {
        into.resize_with(end, || None);
    }
    for (slot, value) in into.iter_mut().skip(first).zip(new) {
        match slot {
            Some(old) if *old != value => return Err("two schema chunks define the same number differently"),
            Some(_) => {}
            None => *slot = Some(value),
        }
    }
    Ok(())
}

struct Tables<'d, O: Order + 'static> {
    base: u64,
    first_class: usize,
    first_shape: usize,
    classes: Table<'d, ClassRow<O>>,
    fields: Table<'d, FieldRow<O>>,
    shapes: Table<'d, ShapeRow<O>>,
    slots: Table<'d, SlotRow<O>>,
    heap: &'d [u8],
    fields_max: u32,
}

impl<'d, O: Order + 'static> Tables<'d, O> {
    fn parse(body: &'d [u8], base: u64, limits: &Limits) -> Result<Self> {
        let head = struct_at::<SchemaHead<O>>(body, 0, base)?;
        let mut at = head_len::<SchemaHead<O>>(head.head_len.get(), body, base)?;
        let limit = |what, found: u32, limit: u32| {
            if found <= limit {
                return Ok(found as usize);
            }
            let (found, limit) = (u64::from(found), u64::from(limit));
            Err(Error::at(base, ErrorKind::LimitExceeded { what, found, limit }))
        };
        let last_class = head.first_class.get().saturating_add(head.class_count.get());
        let last_shape = head.first_shape.get().saturating_add(head.shape_count.get());
        limit("the number of event classes", last_class, limits.classes)?;
        limit("the number of shapes", last_shape, limits.shapes)?;
        let classes =
            Table::at(body, at, head.class_count.get() as usize, head.class_len.get().into(), base)?;
        at = at.saturating_add(classes.len_bytes());
        let fields = Table::at(body, at, head.field_count.get() as usize, head.field_len.get().into(), base)?;
        at = at.saturating_add(fields.len_bytes());
        let shapes = Table::at(body, at, head.shape_count.get() as usize, head.shape_len.get().into(), base)?;
        at = at.saturating_add(shapes.len_bytes());
        let slots = Table::at(body, at, head.slot_count.get() as usize, head.slot_len.get().into(), base)?;
        at = at.saturating_add(slots.len_bytes());
        let heap = array_at(body, at, head.heap_len.get() as usize, base)?;
        Ok(Self {
            base,
            first_class: head.first_class.get() as usize,
            first_shape: head.first_shape.get() as usize,
            classes,
            fields,
            shapes,
            slots,
            heap,
            fields_max: limits.fields,
        })
    }

    fn bad(&self, what: &'static str) -> Error {
        Error::at(self.base, ErrorKind::Malformed(what))
    }

    fn text(&self, string: &StringRef<O>) -> Result<&'d str> {
        let (offset, len) = (string.offset.get() as usize, string.len.get() as usize);
        let bytes = offset.checked_add(len).and_then(|end| self.heap.get(offset..end));
        bytes
            .and_then(|b| core::str::from_utf8(b).ok())
            .ok_or_else(|| self.bad("a string of the schema lies outside its heap or is not UTF-8"))
    }

    fn class(&self, row: &ClassRow<O>) -> Result<EventClass> {
        let count = row.field_count.get();
        if u32::from(count) > self.fields_max {
            let (found, limit) = (u64::from(count), u64::from(self.fields_max));
            let what = "the number of fields of an event";
            return Err(Error::at(self.base, ErrorKind::LimitExceeded { what, found, limit }));
        }
        let first = row.first_field.get() as usize;
        let rows = self.fields.range(first, count.into());
        let rows = rows.ok_or_else(|| self.bad("a class has fields that are not there"))?;
        let mut fields = Vec::with_capacity(count.into());
        let mut roles = Vec::with_capacity(count.into());
        for row in rows {
            fields.push(self.field(row)?);
            roles.push(Role(row.role.get()));
        }
        let common_count = usize::from(row.common_count.get());
        if common_count > fields.len() {
            return Err(self.bad("a class has more common fields than fields"));
        }
        let format_text = self.text(&row.format_text)?.to_owned();
        let start = row.print_fmt.offset.get().checked_sub(row.format_text.offset.get());
        let end = start.and_then(|s| s.checked_add(row.print_fmt.len.get()));
        let print_fmt = start.zip(end).map(|(s, e)| s as usize..e as usize);
        let print_fmt = print_fmt.filter(|range| format_text.get(range.clone()).is_some());
        Ok(EventClass {
            id: row.id.get(),
            system: self.text(&row.system)?.to_owned(),
            name: self.text(&row.name)?.to_owned(),
            meaning: Meaning(row.meaning.get()),
            roles,
            fields,
            common_count,
            print_fmt: print_fmt.ok_or_else(|| self.bad("a print fmt lies outside its format"))?,
            format_text,
        })
    }

    fn field(&self, row: &FieldRow<O>) -> Result<Field> {
        let (size, element_size) = (row.size.get(), u32::from(row.element_size));
        let kind = match row.kind {
            0 if matches!(size, 1 | 2 | 4 | 8) => FieldKind::Scalar,
            1 if element_size > 0 => FieldKind::Array { count: size.checked_div(element_size).unwrap_or(0) },
            2 => FieldKind::DataLoc,
            3 => FieldKind::RelLoc,
            4 => FieldKind::Tail,
            _ => return Err(self.bad("a field has an unknown kind or an impossible size")),
        };
        Ok(Field {
            name: self.text(&row.name)?.to_owned(),
            type_text: self.text(&row.type_text)?.to_owned(),
            offset: row.offset.get(),
            size,
            signed: row.signed != 0,
            kind,
            element_size,
        })
    }

    fn shape(&self, row: &ShapeRow<O>, class: usize, field_count: usize) -> Result<Shape> {
        let first = row.first_slot.get() as usize;
        let rows = self.slots.range(first, field_count);
        let rows = rows.ok_or_else(|| self.bad("a shape has slots that are not there"))?;
        let (descriptor_len, payload_len) = (row.descriptor_len.get(), row.payload_len.get());
        let mut slots = Vec::with_capacity(field_count);
        for slot in rows {
            let slot = self.slot(slot, field_count)?;
            let end = u64::from(slot.offset).saturating_add(u64::from(slot.stored));
            let room = match slot.place {
                Place::Context => 4096,
                Place::Descriptor => descriptor_len.into(),
                Place::ClassId | Place::Value => 8,
                Place::Payload => payload_len.into(),
            };
            if end > room {
                return Err(self.bad("a slot reaches past its place"));
            }
            slots.push(slot);
        }
        Ok(Shape { class, slots, descriptor_len, payload_len })
    }

    fn slot(&self, row: &SlotRow<O>, field_count: usize) -> Result<Slot> {
        let place = match row.place {
            0 => Place::ClassId,
            1 => Place::Context,
            2 => Place::Descriptor,
            3 => Place::Value,
            4 => Place::Payload,
            _ => return Err(self.bad("a slot has an unknown place")),
        };
        let transform = match row.transform {
            0 => Transform::None,
            1 => Transform::BeforeTime,
            2 if usize::from(row.base) < field_count => Transform::BeforeField(row.base),
            _ => return Err(self.bad("a slot has an unknown transform")),
        };
        if !matches!(row.stored, 1 | 2 | 4 | 8) {
            return Err(self.bad("a slot stores an impossible number of bytes"));
        }
        Ok(Slot { place, stored: row.stored, transform, offset: row.offset.get() })
    }
}
