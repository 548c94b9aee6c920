//! Fields of an event by the message that it is: known, described in the trace, or with its names.

use super::super::cursor::Result;
use super::super::text::system_of;
use super::events::{GENERIC, Known};
use super::layout::{Content, EventField, Kind};
use super::sequence::Described;
use super::wire::{Message, Value};

/// Address of a function by the number of its symbol, if known.
pub type Function<'f> = &'f mut dyn FnMut(u64) -> Option<u64>;

/// Names of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'d> {
    /// System.
    pub system: &'d str,
    /// Name.
    pub name: &'d str,
    /// Name and address of the function of the call site, where the event has both.
    pub caller: Option<(&'d [u8], u64)>,
}

impl<'d> Names<'d> {
    /// Of an event in that system.
    pub fn of(system: &'d str, name: &'d str) -> Self {
        Self { system, name, caller: None }
    }
}

/// Addresses of functions are numbers of symbols below this one.
const SYMBOL_NUMBER_MAX: u64 = u32::MAX as u64;

/// The fields of a known event, in the order in which they are printed. Those that are not in the message are left out.
pub fn of_known<'d>(
    known: &Known,
    message: Message<'d>,
    function: Function<'_>,
    out: &mut Vec<EventField<'d>>,
) -> Result<()> {
    /// Fields of the largest event.
    const FIELDS_MAX: usize = 16;
    let mut values: [Option<Value<'d>>; FIELDS_MAX] = [None; FIELDS_MAX];
    for field in message.fields() {
        let field = field?;
        if let Some(slot) = values.get_mut(field.number as usize) {
            *slot = Some(field.value);
        }
    }
    for &(number, name, kind) in known.fields {
        let Some(value) = values.get(number as usize).copied().flatten() else { continue };
        out.extend(content(kind, value, function).map(|content| EventField { name, kind, content }));
    }
    Ok(())
}

/// The fields of an event that the trace describes.
pub fn of_described<'e, 'd: 'e>(
    described: &'e Described,
    message: Message<'d>,
    function: Function<'_>,
    out: &mut Vec<EventField<'e>>,
) -> Result<()> {
    let mut values: Vec<Option<Value<'d>>> = vec![None; described.fields.len()];
    for field in message.fields() {
        let field = field?;
        // Numbers rise from 1 in nearly all descriptors.
        let guess = (field.number as usize).wrapping_sub(1);
        let is_it = |at: &usize| described.fields.get(*at).is_some_and(|f| f.0 == field.number);
        let at =
            Some(guess).filter(is_it).or_else(|| described.fields.iter().position(|f| f.0 == field.number));
        if let Some(slot) = at.and_then(|at| values.get_mut(at)) {
            *slot = Some(field.value);
        }
    }
    for ((_, name, kind), value) in described.fields.iter().zip(values) {
        let Some(value) = value else { continue };
        let is_signed = *kind == Kind::S64;
        let kind = if *kind == Kind::Text { Kind::Text } else { named_kind(name, is_signed, &value) };
        out.extend(content(kind, value, function).map(|content| EventField { name, kind, content }));
    }
    Ok(())
}

/// The names of an event that the trace describes.
pub fn names_of_described(described: &Described) -> Names<'_> {
    let system =
        if described.group.is_empty() { system_of(described.name.as_bytes()) } else { &described.group };
    Names::of(system, &described.name)
}

/// The names and the fields of an event that has them with it; at most `most` fields.
pub fn of_generic<'d>(
    message: Message<'d>,
    most: u64,
    function: Function<'_>,
    out: &mut Vec<EventField<'d>>,
) -> Result<Names<'d>> {
    let mut full = "";
    for field in message.fields() {
        let field = field?;
        match (field.number, field.message()) {
            (1, Some(name)) => full = word(name),
            (2, Some(row)) if (out.len() as u64) < most => out.extend(generic_field(row, function)?),
            _ => {}
        }
    }
    let Some((system, name)) = full.split_once(':') else {
        return Ok(Names::of(system_of(full.as_bytes()), full));
    };
    let caller = from_export(name, out);
    Ok(Names { system, name, caller })
}

fn generic_field<'d>(row: Message<'d>, function: Function<'_>) -> Result<Option<EventField<'d>>> {
    let (mut name, mut value, mut is_signed) = ("", None, false);
    for field in row.fields() {
        let field = field?;
        match (field.number, field.value) {
            (1, Value::Message(text)) => name = word(text),
            (3, text @ Value::Message(_)) => value = Some(text),
            (4 | 5, number @ Value::Number(_)) => (value, is_signed) = (Some(number), field.number == 4),
            _ => {}
        }
    }
    let Some(value) = value else { return Ok(None) };
    let kind = named_kind(name, is_signed, &value);
    Ok(content(kind, value, function).map(|content| EventField { name, kind, content }))
}

/// Names of fields as `kmt-analyze export perfetto` writes them: its columns become the kernel's fields again.
/// Returns the name and the address of the call site.
fn from_export<'d>(event: &str, fields: &mut Vec<EventField<'d>>) -> Option<(&'d [u8], u64)> {
    let content = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.content);
    let caller = match (content("call_site_text"), content("call_site")) {
        (Some(Content::Text(text)), Some(Content::Number(address))) => Some((text, address)),
        _ => None,
    };
    for field in fields.iter_mut() {
        field.name = match field.name {
            "page_order" => "order",
            "cache" => "name",
            name => name,
        };
        field.kind = if field.name == "order" { Kind::Unsigned } else { field.kind };
    }
    // Other events have fields without a column, which are in their text only.
    let has_all = matches!(
        event,
        "kmalloc"
            | "kmalloc_node"
            | "kmem_cache_alloc"
            | "kmem_cache_alloc_node"
            | "kfree"
            | "kmem_cache_free"
            | "mm_page_alloc"
            | "mm_page_free"
            | "mm_page_free_batched"
    );
    fields.retain(|field| field.name != "call_site_text" && !(has_all && field.name == "text"));
    caller
}

/// The address in the field of an event that has its names with it, if it is an address of a slab event.
pub fn slab_address(row: Message<'_>) -> Option<u64> {
    let (mut is_address, mut number) = (false, None);
    for field in row.fields().flatten() {
        match (field.number, field.value) {
            (1, Value::Message(name)) => is_address = matches!(name.bytes(), b"ptr" | b"call_site"),
            (5, Value::Number(address)) => number = Some(address),
            _ => {}
        }
    }
    number.filter(|_| is_address)
}

/// Kind of a field that is known by its name.
fn named_kind(name: &str, is_signed: bool, value: &Value<'_>) -> Kind {
    let number = match value {
        Value::Number(number) => *number,
        _ => return Kind::Text,
    };
    match name {
        "call_site" => Kind::Site,
        "ptr" | "page" | "shr" => Kind::Pointer,
        "bytes_req" | "bytes_alloc" => Kind::Size,
        "gfp_flags" => Kind::Gfp,
        "pfn" => Kind::Pfn,
        "order" => Kind::Unsigned,
        "migratetype" | "node" => Kind::Signed,
        "accounted" => Kind::Truth,
        "shrink" | "func" if number <= SYMBOL_NUMBER_MAX => Kind::Function,
        "shrink" | "func" => Kind::Site,
        _ => {
            if is_signed {
                Kind::S64
            } else {
                Kind::U64
            }
        }
    }
}

/// The value of a field; `None` if it has another type, or is a function that is not known.
fn content<'d>(kind: Kind, value: Value<'d>, function: Function<'_>) -> Option<Content<'d>> {
    match (kind, value) {
        (Kind::Text, Value::Message(text)) => Some(Content::Text(text.bytes())),
        (Kind::Text, _) | (_, Value::Message(_) | Value::Fixed) => None,
        (Kind::Function, Value::Number(number)) => function(number).map(Content::Number),
        (_, Value::Number(number)) => Some(Content::Number(number)),
    }
}

/// A name; "" if it is not text.
fn word(message: Message<'_>) -> &str {
    std::str::from_utf8(message.bytes()).unwrap_or_default()
}

/// True if the number of an event is that of an event with its names.
pub fn is_generic(number: u32) -> bool {
    number == GENERIC
}
