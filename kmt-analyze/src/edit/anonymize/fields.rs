//! Treatment of each field of an event, by an allow-list; other fields become zero.
//!
//! A mask is made once for an event class and then applied to each of its events. The description of the class goes into the
//! new file too, without texts that mainline Linux does not have.

use std::fmt::Write as _;

use kmt_format::kernel::{Field, FieldKind};
use kmt_format::schema::{EventClass, Role};

use super::allowed::{self, ALLOWED, COMMON, Treatment};

/// Treatment of an event class.
#[derive(Debug)]
pub struct ClassMask {
    /// By field. Empty: the class is unknown, and only its common fields stay.
    pub treatments: Vec<Treatment>,
    /// System of the class; `hidden` if the class is unknown.
    pub system: String,
    /// Description of the class as the kernel's `format` file.
    pub format_text: String,
    /// True if the print fmt is not the kernel's.
    pub is_reprinted: bool,
}

impl ClassMask {
    /// Treatment of a class; `number` is in its new name if it is unknown. `long_size` is the kernel's, in bytes.
    pub fn of(class: &EventClass, number: usize, long_size: usize) -> Self {
        let known = allowed::has_event(&class.system, &class.name).then(|| Self::known(class, long_size));
        known.flatten().unwrap_or_else(|| Self {
            treatments: Vec::new(),
            system: "hidden".into(),
            format_text: of_common(class, &format!("event_{number}")),
            is_reprinted: false,
        })
    }

    /// Treatment of a class that mainline has. Fields that mainline does not have are left out.
    fn known(class: &EventClass, long_size: usize) -> Option<Self> {
        let treatments = class.fields.iter().enumerate().map(|(i, field)| {
            let role = class.roles.get(i).copied().unwrap_or(Role::NONE);
            if is_public(class, i) {
                treatment(&class.system, field, role, i < class.common_count)
            } else {
                Treatment::Zero
            }
        });
        let treatments: Vec<Treatment> = treatments.collect();
        let is_reprinted = !allowed::has_format_text(class.print_fmt());
        let format_text = of_known(class, &treatments, is_reprinted);
        let is_same = has_places_of(&format_text, class, long_size);
        is_same.then(|| Self { treatments, system: class.system.clone(), format_text, is_reprinted })
    }

    /// True if only the common fields stay.
    pub fn is_hidden(&self) -> bool {
        self.treatments.is_empty()
    }
}

fn treatment(system: &str, field: &Field, role: Role, is_common: bool) -> Treatment {
    if field.kind != FieldKind::Scalar {
        return match role {
            Role::STACK => Treatment::Stack,
            Role::CACHE_NAME if field.is_text() => Treatment::CacheName,
            _ if field.is_text() && is_comm(&field.name) => Treatment::TaskName,
            _ => Treatment::Zero,
        };
    }
    match role {
        Role::PID => Treatment::Pid,
        // Values that are no address stay: the second argument of kvfree_call_rcu may be an offset.
        Role::PTR | Role::RCU_HEAD | Role::RCU_OBJECT => Treatment::Heap,
        Role::CALL_SITE => Treatment::Code,
        Role::PFN => Treatment::Frame,
        Role::ENTRY_TIME | Role::RETURN_TIME => Treatment::Time,
        // Linux 5.12 and 5.13 have a pointer to the name.
        Role::CACHE_NAME => Treatment::Address,
        Role::NONE if is_common => keep_if(COMMON.contains(&field.name.as_str())),
        Role::NONE => by_name(system, field),
        Role::STACK => Treatment::Zero,
        _ => Treatment::Keep,
    }
}

fn keep_if(is_allowed: bool) -> Treatment {
    if is_allowed { Treatment::Keep } else { Treatment::Zero }
}

fn is_comm(name: &str) -> bool {
    matches!(name, "comm" | "prev_comm" | "next_comm" | "parent_comm" | "child_comm" | "oldcomm" | "newcomm")
}

fn is_pid(name: &str) -> bool {
    matches!(name, "pid" | "tgid" | "ppid" | "tid")
        || (name.ends_with("_pid") && !name.ends_with("vpid"))
        || name.ends_with("_tgid")
}

fn by_name(system: &str, field: &Field) -> Treatment {
    let name = field.name.as_str();
    match (system, name) {
        ("ftrace", "ip" | "parent_ip" | "func") | ("vmscan", "shrink") => Treatment::Code,
        ("vmscan", "shr") | ("kmem", "page") => Treatment::Address,
        ("vmscan" | "kmem", "pfn") => Treatment::Frame,
        ("kmem", "mm_id") => Treatment::Identity,
        _ if is_pid(name) && field.size == 4 => Treatment::Pid,
        _ => {
            let of_system = ALLOWED.iter().find(|(s, _)| *s == system).map_or(&[][..], |(_, names)| names);
            // A pointer is never a count.
            keep_if(of_system.contains(&name) && !field.is_pointer())
        }
    }
}

/// True if mainline has a field of that name.
fn is_public(class: &EventClass, index: usize) -> bool {
    let has_role = class.roles.get(index).is_some_and(|&role| role != Role::NONE);
    let name = class.fields.get(index).map_or("", |field| field.name.as_str());
    has_role || COMMON.contains(&name) || allowed::has_format_word(name)
}

/// The common fields of a class, and a new name.
fn of_common(class: &EventClass, name: &str) -> String {
    let fields = fields(class, class.common_count);
    format!("name: {name}\nID: {}\nformat:\n{fields}\nprint fmt: \"\"\n", class.id)
}

/// The fields of a class that mainline has, and the print fmt: the kernel's, or one that prints the fields that stay.
fn of_known(class: &EventClass, treatments: &[Treatment], is_reprinted: bool) -> String {
    let fields = fields(class, class.fields.len());
    let print_fmt = if is_reprinted { print_fmt(class, treatments) } else { class.print_fmt().to_owned() };
    format!("name: {}\nID: {}\nformat:\n{fields}\nprint fmt: {print_fmt}\n", class.name, class.id)
}

/// True if a description has its fields where the class has them, with the same roles.
fn has_places_of(text: &str, class: &EventClass, long_size: usize) -> bool {
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
    if allowed::has_format_text(&field.type_text) {
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

    const COMMON_TEXT: &str = "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    fn class(system: &str, name: &str, fields: &str) -> EventClass {
        let text = format!("name: {name}\nID: 9\n{COMMON_TEXT}{fields}\nprint fmt: \"secret\"\n");
        EventClass::from_format(system, &text, 8).unwrap()
    }

    fn plan(system: &str, name: &str, field: &str) -> Treatment {
        let field = format!("\tfield:{field};\toffset:8;\tsize:8;\tsigned:0;\n");
        ClassMask::of(&class(system, name, &field), 1, 8).treatments[4]
    }

    #[test]
    fn what_is_not_listed_becomes_zero() {
        assert_eq!(
            plan("vmscan", "mm_vmscan_direct_reclaim_end", "unsigned long nr_reclaimed"),
            Treatment::Keep
        );
        assert_eq!(plan("vmscan", "mm_vmscan_direct_reclaim_end", "unsigned long serial"), Treatment::Zero);
        assert_eq!(plan("kmem", "mm_page_alloc", "unsigned long pfn"), Treatment::Frame);
        assert_eq!(plan("vmscan", "mm_shrink_slab_start", "void * shrink"), Treatment::Code);
        assert_eq!(plan("vmscan", "mm_shrink_slab_start", "void * order"), Treatment::Zero, "a pointer");
    }

    #[test]
    fn compaction_tells_no_places() {
        for field in ["zone_start", "zone_end", "migrate_pfn", "free_pfn", "start_pfn", "end_pfn"] {
            let field = format!("unsigned long {field}");
            assert_eq!(plan("compaction", "mm_compaction_begin", &field), Treatment::Zero, "{field}");
        }
    }

    #[test]
    fn an_unknown_class_keeps_its_common_fields_only() {
        let class = class("acme", "secret_event", "\tfield:u64 serial;\toffset:8;\tsize:8;\tsigned:0;\n");
        let plan = ClassMask::of(&class, 3, 8);
        assert!(plan.is_hidden());
        let emptied = EventClass::from_format(&plan.system, &plan.format_text, 8).unwrap();
        assert_eq!((emptied.system.as_str(), emptied.name.as_str(), emptied.id), ("hidden", "event_3", 9));
        assert_eq!(*emptied.fields, class.fields[..4]);
        assert!(!plan.format_text.contains("secret") && !plan.format_text.contains("serial"));
    }

    #[test]
    fn what_mainline_does_not_have_is_left_out_of_a_known_class() {
        let fields = "\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\
            \tfield:pid_t acme_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
            \tfield:acme_flags_t gfp_flags;\toffset:28;\tsize:4;\tsigned:0;\n\
            \tfield:struct acme_order * order;\toffset:32;\tsize:8;\tsigned:0;\n\
            \tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;\n";
        let class = class("kmem", "kmem_cache_alloc", fields);
        let plan = ClassMask::of(&class, 1, 8);
        assert!(!plan.is_hidden() && plan.is_reprinted);
        let text = plan.format_text.to_lowercase();
        assert!(!text.contains("acme") && !text.contains("secret"), "{text}");
        let new = EventClass::from_format(&plan.system, &plan.format_text, 8).unwrap();
        let names: Vec<(&str, &str)> =
            new.fields[4..].iter().map(|f| (f.name.as_str(), f.type_text.as_str())).collect();
        let expected = [
            ("call_site", "unsigned long"),
            ("ptr", "const void *"),
            ("gfp_flags", "unsigned int"),
            ("order", "void *"),
            ("name", "__data_loc char[]"),
        ];
        assert_eq!(names, expected);
        let print_fmt = "\"call_site=%pS ptr=0x%llx gfp_flags=%u order=%llu name=%s\", \
            (void *)REC->call_site, REC->ptr, REC->gfp_flags, REC->order, __get_str(name)";
        assert_eq!(new.print_fmt(), print_fmt);
    }

    #[test]
    fn a_mainline_class_stays_as_it_is() {
        let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmt-format/tests/data");
        let mut count = 0;
        for (capture, long) in [("x86_64-6.1", 8), ("x86_64-6.12", 8), ("s390x-6.1", 8), ("armhf-6.1", 4)] {
            for event in std::fs::read_dir(data.join(capture).join("tracefs/events/kmem")).unwrap() {
                let path = event.unwrap().path().join("format");
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let class = EventClass::from_format("kmem", &text, long).unwrap();
                let plan = ClassMask::of(&class, 1, long);
                let new = EventClass::from_format("kmem", &plan.format_text, long).unwrap();
                assert!(!plan.is_reprinted, "{}", path.display());
                assert_eq!((&new.fields, new.print_fmt()), (&class.fields, class.print_fmt()));
                count += 1;
            }
        }
        assert!(count > 20, "{count}");
    }

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
