//! Reading schema chunks.

use std::collections::BTreeMap;
use std::sync::Arc;
use zerocopy::ByteOrder as Order;

use super::cast::{TableRows, array_at, head_len, struct_at};
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{FIELDS_END_MAX, Field, FieldKind};
use crate::limits::{Budget, within_at};
use crate::raw::{ClassRow, FieldRow, SchemaHead, ShapeRow, SlotRow, StringRef};
use crate::schema::{EventClass, Meaning, Place, Role, Shape, Slot, Transform};

/// All event classes of a file, and the shapes of their records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    classes: Vec<Option<EventClass>>,
    shapes: Vec<Option<Shape>>,
    /// Shapes for events that are decoded from sub-buffers, three for each class.
    decoding: Vec<Option<Shape>>,
    /// Classes and shapes that are defined.
    defined: usize,
    /// Classes from number 0 on without one that is missing.
    complete: usize,
    /// Classes added since [`Schema::take_fresh`].
    fresh: Vec<usize>,
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
        self.defined
    }

    /// Number of classes from 0 on without a gap.
    pub(super) fn complete_count(&self) -> usize {
        self.complete
    }

    /// Indices of the classes added since the last call.
    pub(super) fn take_fresh(&mut self) -> Vec<usize> {
        core::mem::take(&mut self.fresh)
    }

    /// The shapes by which the reader decodes sub-buffers with events of that class.
    pub(super) fn set_decoding(&mut self, class: usize, shapes: &[Shape; 3]) {
        let first = class.saturating_mul(3);
        let end = first.saturating_add(3);
        if self.decoding.len() < end {
            self.decoding.resize(end, None);
        }
        for (slot, shape) in self.decoding.iter_mut().skip(first).zip(shapes) {
            *slot = Some(shape.clone());
        }
    }

    /// Bits of classes as heads of event chunks have them, for [`Trace::merge_of`](super::Trace::merge_of). Spec section
    /// "EVNT", "Classes".
    pub fn class_bits(&self, is_wanted: impl Fn(&EventClass) -> bool) -> u64 {
        let wanted = self.classes().filter(|(_, class)| is_wanted(class));
        wanted.fold(0, |bits, (index, _)| bits | 1 << (index % 64))
    }

    /// All classes with their indices.
    pub fn classes(&self) -> impl Iterator<Item = (usize, &EventClass)> {
        self.classes.iter().enumerate().filter_map(|(i, c)| Some((i, c.as_ref()?)))
    }

    /// By class, the indices of its fields that have no value in some or all of its events: they are of a kind, or kept
    /// at a place or by a transform, that this version of the library does not know. Classes without such fields are left
    /// out. Spec section "Unknown values".
    pub fn unknown_fields(&self) -> BTreeMap<usize, Vec<u16>> {
        let mut unknown: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
        let mut add = |class: usize, field: u16| {
            let fields = unknown.entry(class).or_default();
            if let Err(place) = fields.binary_search(&field) {
                fields.insert(place, field);
            }
        };
        for (index, class) in self.classes() {
            let fields = (0u16..).zip(class.fields.iter());
            fields.filter(|(_, f)| matches!(f.kind, FieldKind::Opaque(_))).for_each(|(i, _)| add(index, i));
        }
        for shape in self.shapes.iter().flatten() {
            let slots = (0u16..).zip(shape.slots.iter());
            slots
                .filter(|(_, s)| matches!(s.place, Place::Opaque { .. }))
                .for_each(|(i, _)| add(shape.class, i));
        }
        unknown
    }

    /// One more than the highest class index.
    pub fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// Adds what a schema chunk defines. A second definition of the same index must say the same: a chunk in which one
    /// does not adds nothing.
    pub(super) fn add<O: Order + 'static>(
        &mut self,
        body: &[u8],
        base: u64,
        long_size: usize,
        limits: &Limits,
        budget: &mut Budget,
    ) -> Result<()> {
        let mut table = Tables::<O>::parse(body, base, long_size, limits, budget)?;
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
            shapes.push(table.shape(row, class_index, &class.fields)?);
        }
        let bad = |what| Error::at(base, ErrorKind::Malformed(what));
        let mut new_shapes = Vec::new();
        let known = self.fresh.len();
        if contradicts(&self.classes, first_class, &classes)
            || contradicts(&self.shapes, first_shape, &shapes)
        {
            return Err(bad("two schema chunks define the same number differently"));
        }
        place(&mut self.classes, first_class, classes, &mut self.fresh);
        place(&mut self.shapes, first_shape, shapes, &mut new_shapes);
        while matches!(self.classes.get(self.complete), Some(Some(_))) {
            self.complete = self.complete.saturating_add(1);
        }
        let new_classes = self.fresh.len().saturating_sub(known);
        self.defined = self.defined.saturating_add(new_classes).saturating_add(new_shapes.len());
        Ok(())
    }
}

/// True if a number has another definition already.
fn contradicts<T: PartialEq>(known: &[Option<T>], first: usize, new: &[T]) -> bool {
    let mut both = known.iter().skip(first).zip(new);
    both.any(|(old, new)| old.as_ref().is_some_and(|old| old != new))
}

/// Puts what is new in its place; `fresh` gets the numbers that were free.
fn place<T>(into: &mut Vec<Option<T>>, first: usize, new: Vec<T>, fresh: &mut Vec<usize>) {
    let end = first.saturating_add(new.len());
    if into.len() < end {
        into.resize_with(end, || None);
    }
    for ((number, slot), value) in into.iter_mut().enumerate().skip(first).zip(new) {
        if slot.is_none() {
            *slot = Some(value);
            fresh.push(number);
        }
    }
}

/// The fields of a class, and what they mean.
type Fields = (Arc<[Field]>, Arc<[Role]>);

/// Memory of a class without its fields and texts, and of a field without its texts, in bytes.
const PER_CLASS: usize = 512;
const PER_FIELD: usize = 128;

/// Parts of a schema chunk. Memory is charged for a row after its checks: a wrong one costs its chunk, not the file.
struct Tables<'d, 'b, O: Order + 'static> {
    base: u64,
    budget: &'b mut Budget,
    /// Fields that several classes share are made once: by first field and count.
    shared_fields: BTreeMap<(u32, u16), Fields>,
    /// By offset and length.
    shared_texts: BTreeMap<(u32, u32), Arc<str>>,
    /// By first slot and count.
    shared_slots: BTreeMap<(u32, usize), Arc<[Slot]>>,
    first_class: usize,
    first_shape: usize,
    classes: TableRows<'d, ClassRow<O>>,
    fields: TableRows<'d, FieldRow<O>>,
    shapes: TableRows<'d, ShapeRow<O>>,
    slots: TableRows<'d, SlotRow<O>>,
    heap: &'d [u8],
    /// Size of the value word.
    long_size: usize,
    fields_max: u32,
    names_max: u32,
}

impl<'d, 'b, O: Order + 'static> Tables<'d, 'b, O> {
    fn parse(
        body: &'d [u8],
        base: u64,
        long_size: usize,
        limits: &Limits,
        budget: &'b mut Budget,
    ) -> Result<Self> {
        let head = struct_at::<SchemaHead<O>>(body, 0, base)?;
        let mut at = head_len::<SchemaHead<O>>(head.head_len.get(), body, base)?;
        let limit =
            |name, what, found: u32, limit: u32| within_at(base, name, what, found.into(), limit.into());
        let last_class = head.first_class.get().saturating_add(head.class_count.get());
        let last_shape = head.first_shape.get().saturating_add(head.shape_count.get());
        limit("classes", "the number of event classes", last_class, limits.classes)?;
        limit("shapes", "the number of shapes", last_shape, limits.shapes)?;
        // All lengths, then the tables: a wrong length is the error, whichever table it is of.
        TableRows::<ClassRow<O>>::check_len(head.class_len.get().into(), base)?;
        TableRows::<FieldRow<O>>::check_len(head.field_len.get().into(), base)?;
        TableRows::<ShapeRow<O>>::check_len(head.shape_len.get().into(), base)?;
        TableRows::<SlotRow<O>>::check_len(head.slot_len.get().into(), base)?;
        let classes =
            TableRows::next(body, &mut at, head.class_count.get(), head.class_len.get().into(), base)?;
        let fields =
            TableRows::next(body, &mut at, head.field_count.get(), head.field_len.get().into(), base)?;
        let shapes =
            TableRows::next(body, &mut at, head.shape_count.get(), head.shape_len.get().into(), base)?;
        let slots = TableRows::next(body, &mut at, head.slot_count.get(), head.slot_len.get().into(), base)?;
        let heap = array_at(body, at, head.heap_len.get() as usize, base)?;
        Ok(Self {
            base,
            budget,
            shared_fields: BTreeMap::new(),
            shared_texts: BTreeMap::new(),
            shared_slots: BTreeMap::new(),
            first_class: head.first_class.get() as usize,
            first_shape: head.first_shape.get() as usize,
            classes,
            fields,
            shapes,
            slots,
            heap,
            long_size,
            fields_max: limits.fields,
            names_max: limits.names,
        })
    }

    fn bad(&self, what: &'static str) -> Error {
        Error::at(self.base, ErrorKind::Malformed(what))
    }

    fn take(&mut self, bytes: usize) -> Result<()> {
        self.budget.take(bytes, self.base)
    }

    /// A text that others may name too.
    fn shared_text(&mut self, string: &StringRef<O>, checked: &str) -> Result<Arc<str>> {
        let key = (string.offset.get(), string.len.get());
        if let Some(text) = self.shared_texts.get(&key) {
            return Ok(Arc::clone(text));
        }
        self.take(checked.len())?;
        let text: Arc<str> = checked.into();
        self.shared_texts.insert(key, Arc::clone(&text));
        Ok(text)
    }

    fn text(&self, string: &StringRef<O>) -> Result<&'d str> {
        let (offset, len) = (string.offset.get() as usize, string.len.get() as usize);
        let bytes = offset.checked_add(len).and_then(|end| self.heap.get(offset..end));
        bytes
            .and_then(|b| core::str::from_utf8(b).ok())
            .ok_or_else(|| self.bad("a string of the schema lies outside its heap or is not UTF-8"))
    }

    /// Fields in their order, and what they mean.
    fn fields(&mut self, first: u32, count: u16) -> Result<Fields> {
        if let Some((fields, roles)) = self.shared_fields.get(&(first, count)) {
            return Ok((Arc::clone(fields), Arc::clone(roles)));
        }
        let limit = self.fields_max.into();
        within_at(self.base, "fields", "the number of fields of an event", count.into(), limit)?;
        let rows = self.fields.range(first as usize, count.into());
        let rows = rows.ok_or_else(|| self.bad("a class has fields that do not exist"))?;
        let mut fields = Vec::with_capacity(count.into());
        let mut roles = Vec::with_capacity(count.into());
        for row in rows {
            fields.push(self.field(row)?);
            roles.push(Role(row.role.get()));
        }
        let made: Fields = (fields.into(), roles.into());
        self.shared_fields.insert((first, count), (Arc::clone(&made.0), Arc::clone(&made.1)));
        Ok(made)
    }

    fn class(&mut self, row: &ClassRow<O>) -> Result<EventClass> {
        let (fields, roles) = self.fields(row.first_field.get(), row.field_count.get())?;
        let common_count = usize::from(row.common_count.get());
        let Some(common) = fields.get(..common_count) else {
            return Err(self.bad("a class has more common fields than fields"));
        };
        if !common.iter().all(|f| matches!(f.kind, FieldKind::Scalar | FieldKind::Opaque(_))) {
            return Err(self.bad("a common field is an array"));
        }
        let (system, name) = (self.text(&row.system)?, self.text(&row.name)?);
        let format = self.text(&row.format_text)?;
        let start = row.print_fmt.offset.get().checked_sub(row.format_text.offset.get());
        let end = start.and_then(|s| s.checked_add(row.print_fmt.len.get()));
        let print_fmt = start.zip(end).map(|(s, e)| s as usize..e as usize);
        let print_fmt = print_fmt.filter(|range| format.get(range.clone()).is_some());
        let print_fmt = print_fmt.ok_or_else(|| self.bad("a print fmt lies outside its format"))?;
        let names_len = EventClass::names_len(system, name, &fields) as u64;
        within_at(
            self.base,
            "names",
            "the bytes of the names of an event",
            names_len,
            self.names_max.into(),
        )?;
        self.take(PER_CLASS.saturating_add(system.len()).saturating_add(name.len()))?;
        let format_text = self.shared_text(&row.format_text, format)?;
        Ok(EventClass {
            id: row.id.get(),
            system: system.to_owned(),
            name: name.to_owned(),
            meaning: Meaning(row.meaning.get()),
            roles,
            fields,
            common_count,
            print_fmt,
            format_text,
        })
    }

    fn field(&mut self, row: &FieldRow<O>) -> Result<Field> {
        let (size, element_size) = (row.size.get(), u32::from(row.element_size));
        if u64::from(row.offset.get()).saturating_add(size.into()) > FIELDS_END_MAX {
            return Err(self.bad("a field is beyond the end of any event"));
        }
        let kind = match row.kind {
            0 if matches!(size, 1 | 2 | 4 | 8) => FieldKind::Scalar,
            1 if element_size > 0 => FieldKind::Array { count: size.checked_div(element_size).unwrap_or(0) },
            2 => FieldKind::DataLoc,
            3 => FieldKind::RelLoc,
            4 => FieldKind::Tail,
            0 | 1 => return Err(self.bad("a field has an invalid size")),
            code => FieldKind::Opaque(code),
        };
        let (name, type_text) = (self.text(&row.name)?, self.text(&row.type_text)?);
        self.take(PER_FIELD.saturating_add(name.len()).saturating_add(type_text.len()))?;
        Ok(Field {
            name: name.to_owned(),
            type_text: type_text.to_owned(),
            offset: row.offset.get(),
            size,
            signed: row.signed != 0,
            kind,
            element_size,
        })
    }

    /// Places of `count` fields.
    fn places(&mut self, first: u32, count: usize) -> Result<Arc<[Slot]>> {
        if let Some(slots) = self.shared_slots.get(&(first, count)) {
            return Ok(Arc::clone(slots));
        }
        let rows = self.slots.range(first as usize, count);
        let rows = rows.ok_or_else(|| self.bad("a shape has slots that do not exist"))?;
        let mut slots = Vec::with_capacity(count);
        for slot in rows {
            slots.push(self.slot(slot, count)?);
        }
        self.take(count.saturating_mul(size_of::<Slot>()))?;
        let slots: Arc<[Slot]> = slots.into();
        self.shared_slots.insert((first, count), Arc::clone(&slots));
        Ok(slots)
    }

    fn shape(&mut self, row: &ShapeRow<O>, class: usize, fields: &[Field]) -> Result<Shape> {
        let slots = self.places(row.first_slot.get(), fields.len())?;
        let (descriptor_len, payload_len) = (row.descriptor_len.get(), row.payload_len.get());
        for (field, slot) in fields.iter().zip(slots.iter()) {
            let is_wider = u32::from(slot.stored) > field.size && slot.transform == Transform::None;
            let is_stored = !matches!(slot.place, Place::Opaque { .. } | Place::ClassId);
            if is_wider && field.kind == FieldKind::Scalar && is_stored {
                return Err(self.bad("a slot is longer than its field"));
            }
            let end = u64::from(slot.offset).saturating_add(u64::from(slot.stored));
            let room = match slot.place {
                Place::Context => 4096,
                Place::Descriptor => descriptor_len.into(),
                Place::Value => self.long_size as u64,
                Place::Payload => payload_len.into(),
                Place::ClassId | Place::Opaque { .. } => continue,
            };
            if end > room {
                return Err(self.bad("a slot exceeds its place in the descriptor"));
            }
        }
        self.take(size_of::<Shape>())?;
        Ok(Shape { class, slots, descriptor_len, payload_len })
    }

    fn slot(&self, row: &SlotRow<O>, field_count: usize) -> Result<Slot> {
        let place = match row.place {
            0 => Place::ClassId,
            1 => Place::Context,
            2 => Place::Descriptor,
            3 => Place::Value,
            4 => Place::Payload,
            place => Place::Opaque { place, transform: row.transform },
        };
        let unknown = Place::Opaque { place: row.place, transform: row.transform };
        let opaque = Slot { place: unknown, stored: 0, transform: Transform::None, offset: 0 };
        let transform = match row.transform {
            _ if place == unknown => return Ok(opaque),
            0 => Transform::None,
            1 => Transform::BeforeTime,
            2 if usize::from(row.base) < field_count => Transform::BeforeField(row.base),
            2 => return Err(self.bad("a slot has a field that does not exist")),
            _ => return Ok(opaque),
        };
        if !matches!(row.stored, 1 | 2 | 4 | 8) {
            return Err(self.bad("a slot has an invalid length"));
        }
        // An id has two bytes, also where the file says otherwise.
        let (stored, offset) = if place == Place::ClassId { (2, 0) } else { (row.stored, row.offset.get()) };
        Ok(Slot { place, stored, transform, offset })
    }
}
