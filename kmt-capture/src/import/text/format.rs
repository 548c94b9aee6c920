//! The `format` of an event that is known by its text only: fields, and a `print fmt` that gives the text back.

use std::fmt::Write as _;

use super::args::Arg;
use super::fields::is_kmem;
use super::gfp::GfpNames;
use super::line_types::TextEvent;
use super::shape::{Field, Form, Shape};

/// The `format` of a layout, whose `print fmt` gives the text back.
pub(super) fn format(event: &TextEvent<'_>, args: &[Arg<'_>], shape: &Shape) -> String {
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
    let whole = [Arg { before: b"", key: b"", name: b"text", value: b"-" }];
    let pairs = if args.is_empty() { &whole[..] } else { args };
    for (number, (field, arg)) in shape.fields.iter().zip(pairs).enumerate() {
        if !args.is_empty() {
            // What precedes the first pair repeats a value of the event in what trace-cmd prints.
            let before = if number == 0 { &b""[..] } else { arg.before };
            escape(&mut print, before);
            if !arg.key.is_empty() {
                escape(&mut print, arg.key);
                print.push('=');
            }
        }
        conversion(&mut print, &mut values, field);
    }
    let _ = write!(text, "\nprint fmt: \"{print}\"{values}\n");
    text
}

/// C type of a field, and whether it is signed.
fn kind(key: &[u8], form: Form, size: usize) -> (&'static str, bool) {
    match (form, key) {
        (Form::Text, _) => ("__data_loc char[]", false),
        (Form::Truth, _) => ("bool", false),
        (Form::Pointer(_), _) => ("const void *", false),
        (Form::Function | Form::Name | Form::Gfp | Form::Names(_), _) | (_, b"call_site" | b"pfn") => {
            ("unsigned long", false)
        }
        (_, b"bytes_req" | b"bytes_alloc") => ("size_t", false),
        (_, b"order") => ("unsigned int", false),
        (Form::Decimal { .. } | Form::Hex { .. }, _) if size == 4 => ("int", true),
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
        Form::Pointer(_) => ("%p", format!("REC->{key}")),
        Form::Function => ("%pS", format!("(void *)REC->{key}")),
        Form::Name => ("%ps", format!("(void *)REC->{key}")),
        Form::Names(names) => ("%s", names.print(key)),
        Form::Gfp => {
            let table = GfpNames::print_flags_rows();
            ("%s", format!("(REC->{key}) ? __print_flags(REC->{key}, \"|\", {table}) : \"none\""))
        }
        Form::Hex { prefixed } if field.size == 4 => (if prefixed { "0x%x" } else { "%x" }, reads),
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
pub(in super::super) fn escape(print: &mut String, text: &[u8]) {
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

/// System of an event. Text of the kernel does not tell it; the names of those that reports know are unique.
pub(super) fn system(event: &TextEvent<'_>) -> String {
    if let Some(system) = event.system {
        return String::from_utf8_lossy(system).into_owned();
    }
    system_of(event.name).to_owned()
}

/// System of an event, by the name of the event.
pub(in super::super) fn system_of(name: &[u8]) -> &'static str {
    if is_kmem(name) || name == b"rss_stat" {
        "kmem"
    } else if name.starts_with(b"mm_vmscan_") || name.starts_with(b"mm_shrink_slab_") {
        "vmscan"
    } else if name.starts_with(b"mm_compaction_") {
        "compaction"
    } else if name == b"mm_migrate_pages" {
        "migrate"
    } else if name.starts_with(b"sched_") {
        "sched"
    } else if name == b"task_newtask" || name == b"task_rename" {
        "task"
    } else {
        "unknown"
    }
}
