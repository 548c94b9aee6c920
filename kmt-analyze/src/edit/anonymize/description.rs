//! The description of an event class, without texts that mainline Linux does not have.

use std::fmt::Write as _;

use kmt_format::kernel::{Field, FieldKind};
use kmt_format::schema::{EventClass, Role};

use super::allowed::COMMON;
use super::mainline;
use super::treatment::Treatment;

/// True if mainline has a field of that name.
pub fn is_public(class: &EventClass, index: usize) -> bool {
    let has_role = class.roles.get(index).is_some_and(|&role| role != Role::NONE);
    let name = class.fields.get(index).map_or("", |field| field.name.as_str());
    has_role || COMMON.contains(&name) || mainline::has_format_word(name)
}

/// The common fields of a class, and a new name.
pub fn of_common(class: &EventClass, name: &str) -> String {
    let fields = fields(class, class.common_count);
    format!("name: {name}\nID: {}\nformat:\n{fields}\nprint fmt: \"\"\n", class.id)
}

/// The fields of a class that mainline has, and the print fmt: the kernel's, or one that prints the fields that stay.
pub fn of_known(class: &EventClass, treatments: &[Treatment], is_reprinted: bool) -> String {
    let fields = fields(class, class.fields.len());
    let print_fmt = if is_reprinted { print_fmt(class, treatments) } else { class.print_fmt().to_owned() };
    format!("name: {}\nID: {}\nformat:\n{fields}\nprint fmt: {print_fmt}\n", class.name, class.id)
}

/// True if a description has its fields where the class has them, with the same roles.
pub fn has_places_of(text: &str, class: &EventClass, long_size: usize) -> bool {
    let Ok(new) = EventClass::from_format(&class.system, text, long_size) else { return false };
    let layout = |field: &Field, role: Role| {
        let Field { offset, size, signed, kind, element_size, .. } = *field;
        (offset, size, signed, kind, element_size, field.is_text(), role)
    };
    let new = new.fields.iter().zip(new.roles.iter()).map(|(f, &r)| layout(f, r));
    let fields = class.fields.iter().zip(class.roles.iter()).enumerate();
    let old = fields.filter(|&(i, _)| i < class.common_count || is_public(class, i));
    new.eq(old.map(|(_, (f, &r))| layout(f, r)))
}

/// Lines of the first `count` fields, as far as mainline has them. The common fields are those of all classes.
fn fields(class: &EventClass, count: usize) -> String {
    let mut text = String::new();
    for (index, field) in class.fields.iter().enumerate().take(count) {
        let name = match is_public(class, index) {
            true => field.name.clone(),
            false if index < class.common_count => format!("common_unknown{index}"),
            false => continue,
        };
        let brackets = match field.kind {
            FieldKind::Array { count } => format!("[{count}]"),
            FieldKind::RelLoc | FieldKind::Tail => "[]".to_owned(),
            _ => String::new(),
        };
        let (kind, offset, size, signed) = (type_of(field), field.offset, field.size, u8::from(field.signed));
        let _ = writeln!(
            text,
            "\tfield:{kind} {name}{brackets};\toffset:{offset};\tsize:{size};\tsigned:{signed};"
        );
        if index + 1 == class.common_count {
            text.push('\n');
        }
    }
    text
}

/// The type of a field as the kernel states it, or one of the same size.
fn type_of(field: &Field) -> String {
    if mainline::has_format_text(&field.type_text) {
        return field.type_text.clone();
    }
    if field.kind == FieldKind::Scalar && field.is_pointer() {
        return "void *".into();
    }
    // A file may state any size of an element for a scalar.
    let size = if field.kind == FieldKind::Scalar { field.size } else { field.element_size };
    let element = match (size, field.signed) {
        (1, false) => "unsigned char",
        (1, true) => "signed char",
        (2, false) => "unsigned short",
        (2, true) => "short",
        (8, false) => "unsigned long long",
        (8, true) => "long long",
        (_, false) => "unsigned int",
        (_, true) => "int",
    };
    match field.kind {
        FieldKind::DataLoc => format!("__data_loc {element}[]"),
        FieldKind::RelLoc => format!("__rel_loc {element}"),
        _ => element.into(),
    }
}

/// A print fmt of the fields whose values stay.
fn print_fmt(class: &EventClass, treatments: &[Treatment]) -> String {
    let (mut texts, mut values) = (Vec::new(), String::new());
    let fields = class.fields.iter().zip(treatments).skip(class.common_count);
    for (field, &treatment) in fields {
        let Some((conversion, value)) = printed(field, treatment) else { continue };
        texts.push(format!("{}={conversion}", field.name));
        let _ = write!(values, ", {value}");
    }
    format!("\"{}\"{values}", texts.join(" "))
}

/// How a field is printed: conversion and value.
fn printed(field: &Field, treatment: Treatment) -> Option<(&'static str, String)> {
    let name = &field.name;
    if field.kind != FieldKind::Scalar {
        let is_text = matches!(treatment, Treatment::CacheName | Treatment::TaskName);
        return is_text.then(|| match field.kind {
            FieldKind::DataLoc => ("%s", format!("__get_str({name})")),
            FieldKind::RelLoc => ("%s", format!("__get_rel_str({name})")),
            _ => ("%s", format!("REC->{name}")),
        });
    }
    let conversion = match (treatment, field.size, field.signed) {
        (Treatment::Zero, ..) => return None,
        (Treatment::Code, ..) => return Some(("%pS", format!("(void *)REC->{name}"))),
        (Treatment::Heap | Treatment::Address, 8, _) => "0x%llx",
        (Treatment::Heap | Treatment::Address, ..) => "0x%x",
        (_, 8, true) => "%lld",
        (_, 8, false) => "%llu",
        (_, _, true) => "%d",
        (_, _, false) => "%u",
    };
    Some((conversion, format!("REC->{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_is_as_wide_as_its_size() {
        let fields = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:vendor_t x;\toffset:8;\tsize:8;\tsigned:0;\n";
        let text = format!("name: n\nID: 1\nformat:\n{fields}\nprint fmt: \"\"\n");
        let class = EventClass::from_format("s", &text, 8).unwrap();
        let mut field = class.fields[1].clone();
        assert_eq!(type_of(&field), "unsigned long long");
        field.element_size = 4;
        assert_eq!(type_of(&field), "unsigned long long");
    }
}
