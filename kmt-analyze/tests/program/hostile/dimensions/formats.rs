//! Formats of events that are large: their classes, fields, lists and expressions.

use super::{HEAP, LONG, SITE, bytes};
use crate::support::hostile::Made;

/// Classes with a few events each.
pub fn classes(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.class(
            "system",
            &format!("event{i}"),
            i as u16 + 20,
            &[(LONG, "value", 8)],
            "\"%lu\", REC->value",
        );
    }
    (0..count * 3).for_each(|i| made.event(0, (i % count) as u16 + 20, 7, &bytes(&[i])));
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}

/// Events with many fields.
pub fn fields(count: u64) -> Vec<u8> {
    let names: Vec<String> = (0..count).map(|i| format!("field{i}")).collect();
    let fields: Vec<(&str, &str, usize)> =
        names.iter().map(|name| ("unsigned char", name.as_str(), 1)).collect();
    let mut made = Made::default();
    made.class("system", "wide", 20, &fields, "\"%u\", REC->field0");
    (0..500).for_each(|_| made.event(0, 20, 7, &vec![1; count as usize]));
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}

/// A list of names of values, of which each event has one.
pub fn symbolic(count: u64) -> Vec<u8> {
    let names: Vec<String> = (0..count).map(|i| format!("{{ {i}, \"name{i}\" }}")).collect();
    printed(&format!("\"%s\", __print_symbolic(REC->value, {})", names.join(", ")), 10_000, |i| i % count)
}

/// A list of names of flags.
pub fn flags(count: u64) -> Vec<u8> {
    let names: Vec<String> = (0..count).map(|i| format!("{{ {}, \"flag{i}\" }}", 1u64 << (i % 60))).collect();
    printed(&format!("\"%s\", __print_flags(REC->value, \"|\", {})", names.join(", ")), 1_000, |i| i)
}

/// A format with many arguments.
pub fn arguments(count: u64) -> Vec<u8> {
    let (words, values) = ("%lu ".repeat(count as usize), ", REC->value".repeat(count as usize));
    printed(&format!("\"{words}\"{values}"), 200, |i| i)
}

/// An expression in parentheses.
pub fn parentheses(count: u64) -> Vec<u8> {
    let (open, closed) = ("(".repeat(count as usize), ")".repeat(count as usize));
    printed(&format!("\"%lu\", {open}REC->value{closed}"), 1_000, |i| i)
}

/// A name about as long as those of a class may be.
const NAME_LEN: usize = 16_000;

/// Events of a class with a long name.
pub fn long_name(count: u64) -> Vec<u8> {
    many(count, &"x".repeat(NAME_LEN), "value", "\"%lu\", REC->value")
}

/// Events of a class with a field that has a long name.
pub fn long_field(count: u64) -> Vec<u8> {
    many(count, "system", &"x".repeat(NAME_LEN), "\"\"")
}

/// Events of which a long text is printed.
pub fn long_print(count: u64) -> Vec<u8> {
    many(count, "system", "value", &format!("\"{} %lu\", REC->value", "x".repeat(60_000)))
}

fn many(count: u64, name: &str, field: &str, print: &str) -> Vec<u8> {
    let mut made = Made::default();
    made.class("system", name, 20, &[(LONG, field, 8)], print);
    (0..count).for_each(|i| made.event(0, 20, 7, &bytes(&[i])));
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}

fn printed(print: &str, events: u64, value: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut made = Made::default();
    made.class("system", "printed", 20, &[(LONG, "value", 8)], print);
    (0..events).for_each(|i| made.event(0, 20, 7, &bytes(&[value(i)])));
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}
