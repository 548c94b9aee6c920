//! Building a schema chunk.

use zerocopy::{ByteOrder, IntoBytes};

use crate::kernel::FieldKind;
use crate::pack::RecordPlan;
use crate::raw::{ClassRow, FieldRow, SchemaHead, ShapeRow, SlotRow, StringRef};
use crate::schema::{Place, Transform};

/// The body of a schema chunk with these classes, which follow each other in the file's count.
pub(super) fn schema_body<O: ByteOrder>(plans: &[&RecordPlan]) -> Vec<u8> {
    let mut classes: Vec<ClassRow<O>> = Vec::new();
    let mut fields: Vec<FieldRow<O>> = Vec::new();
    let mut shapes: Vec<ShapeRow<O>> = Vec::new();
    let mut slots: Vec<SlotRow<O>> = Vec::new();
    let mut heap = Heap::default();
    for plan in plans {
        let class = &plan.class;
        let format_text = heap.push::<O>(class.format_text.as_bytes());
        let print_fmt = StringRef {
            offset: (format_text.offset.get() + class.print_fmt.start as u32).into(),
            len: (class.print_fmt.len() as u32).into(),
        };
        classes.push(ClassRow {
            id: class.id.into(),
            meaning: class.meaning.0.into(),
            field_count: (class.fields.len() as u16).into(),
            common_count: (class.common_count as u16).into(),
            first_field: (fields.len() as u32).into(),
            system: heap.push(class.system.as_bytes()),
            name: heap.push(class.name.as_bytes()),
            format_text,
            print_fmt,
        });
        for (field, role) in class.fields.iter().zip(class.roles.iter()) {
            fields.push(FieldRow {
                name: heap.push(field.name.as_bytes()),
                type_text: heap.push(field.type_text.as_bytes()),
                offset: field.offset.into(),
                size: field.size.into(),
                kind: kind_code(field.kind),
                signed: field.signed.into(),
                element_size: field.element_size as u8,
                reserved: 0,
                role: role.0.into(),
                reserved_b: 0.into(),
            });
        }
        for shape in &plan.shapes {
            shapes.push(ShapeRow {
                class: (plan.index as u32).into(),
                first_slot: (slots.len() as u32).into(),
                descriptor_len: shape.descriptor_len.into(),
                payload_len: shape.payload_len.into(),
            });
            slots.extend(shape.slots.iter().map(|slot| {
                let (transform, base) = match (slot.place, slot.transform) {
                    (Place::Opaque { transform, .. }, _) => (transform, 0),
                    (_, Transform::None) => (0, 0),
                    (_, Transform::BeforeTime) => (1, 0),
                    (_, Transform::BeforeField(base)) => (2, base),
                };
                SlotRow {
                    place: place_code(slot.place),
                    stored: slot.stored,
                    transform,
                    base,
                    offset: slot.offset.into(),
                }
            }));
        }
    }
    let head = SchemaHead::<O> {
        head_len: (size_of::<SchemaHead<O>>() as u32).into(),
        first_class: (plans.first().map_or(0, |p| p.index) as u32).into(),
        first_shape: (plans.first().map_or(0, |p| p.first_shape) as u32).into(),
        class_count: (classes.len() as u32).into(),
        field_count: (fields.len() as u32).into(),
        shape_count: (shapes.len() as u32).into(),
        slot_count: (slots.len() as u32).into(),
        heap_len: (heap.bytes.len() as u32).into(),
        class_len: (size_of::<ClassRow<O>>() as u16).into(),
        field_len: (size_of::<FieldRow<O>>() as u16).into(),
        shape_len: (size_of::<ShapeRow<O>>() as u16).into(),
        slot_len: (size_of::<SlotRow<O>>() as u16).into(),
    };
    let mut out = head.as_bytes().to_vec();
    out.extend_from_slice(classes.as_bytes());
    out.extend_from_slice(fields.as_bytes());
    out.extend_from_slice(shapes.as_bytes());
    out.extend_from_slice(slots.as_bytes());
    out.extend_from_slice(&heap.bytes);
    out
}

fn kind_code(kind: FieldKind) -> u8 {
    match kind {
        FieldKind::Scalar => 0,
        FieldKind::Array { .. } => 1,
        FieldKind::DataLoc => 2,
        FieldKind::RelLoc => 3,
        FieldKind::Tail => 4,
        FieldKind::Opaque(code) => code,
    }
}

fn place_code(place: Place) -> u8 {
    match place {
        Place::ClassId => 0,
        Place::Context => 1,
        Place::Descriptor => 2,
        Place::Value => 3,
        Place::Payload => 4,
        Place::Opaque { place, .. } => place,
    }
}

/// Strings, each kept once. Only short ones are looked for: names and types repeat, whole format files do not.
#[derive(Default)]
struct Heap {
    bytes: Vec<u8>,
    offsets: std::collections::HashMap<Vec<u8>, u32>,
}

impl Heap {
    fn push<O: ByteOrder>(&mut self, text: &[u8]) -> StringRef<O> {
        let len = (text.len() as u32).into();
        if text.len() <= 64 {
            if let Some(&offset) = self.offsets.get(text) {
                return StringRef { offset: offset.into(), len };
            }
            self.offsets.insert(text.to_vec(), self.bytes.len() as u32);
        }
        let offset = (self.bytes.len() as u32).into();
        self.bytes.extend_from_slice(text);
        StringRef { offset, len }
    }
}
