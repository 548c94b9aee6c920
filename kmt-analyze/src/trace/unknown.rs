//! Fields of a later version of the format, which this program cannot read. Spec section "Unknown values".
//!
//! A later version of the format may give a field a role that is unknown to this program. Where an event needs this
//! field, accounting and copying are refused with the names of classes and fields; other events are reported and left
//! out. `cli` calls the checks before a command reads events.

use std::path::Path;

use kmt_format::read::{Schema, Trace};
use kmt_format::schema::{EventClass, Meaning, Role};

use crate::failure::{Failure, Result};
use kmt_common::tell;
use kmt_common::text::{escaped, shown};

/// Largest number of named classes, and of named fields of a class: a file may have millions.
const NAMED_MAX: usize = 16;

/// Fields of an event class that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFields {
    /// `SYSTEM:NAME` of the class.
    pub class: String,
    /// Names of the fields, the first 16.
    pub fields: Vec<String>,
    /// True if the ledger needs them.
    is_needed: bool,
}

/// Roles without which an event of that meaning cannot be accounted for.
fn needed(meaning: Meaning) -> &'static [Role] {
    match meaning {
        Meaning::KMALLOC | Meaning::CACHE_ALLOC => &[Role::PTR, Role::BYTES_REQ, Role::BYTES_ALLOC],
        Meaning::KFREE | Meaning::CACHE_FREE => &[Role::PTR],
        Meaning::PAGE_ALLOC | Meaning::PAGE_FREE => &[Role::PFN, Role::ORDER],
        _ => &[],
    }
}

/// Fields with a role of a later version, if a needed role is missing.
fn of_later_roles(class: &EventClass) -> Vec<u16> {
    if needed(class.meaning).iter().all(|&role| class.field_with(role).is_some()) {
        return Vec::new();
    }
    (0u16..).zip(class.roles.iter()).filter(|(_, role)| !role.is_known()).map(|(field, _)| field).collect()
}

/// Classes with such fields: all of them, or those that the ledger needs; the first 16.
fn fields_of(schema: &Schema, only_needed: bool) -> Vec<UnknownFields> {
    let unknown = schema.unknown_fields();
    let of = |(index, class): (usize, &EventClass)| {
        let unread = unknown.get(&index).map_or(&[][..], Vec::as_slice);
        let later = of_later_roles(class);
        let is_needed = class.meaning != Meaning::OTHER && !unread.is_empty() || !later.is_empty();
        if unread.is_empty() && later.is_empty() || only_needed && !is_needed {
            return None;
        }
        let fields = unread.iter().chain(later.iter().filter(|field| !unread.contains(field)));
        let names = fields.filter_map(|&field| class.fields.get(usize::from(field))).take(NAMED_MAX);
        let name = |text: &str| escaped(text.as_bytes());
        Some(UnknownFields {
            class: format!("{}:{}", name(&class.system), name(&class.name)),
            fields: names.map(|field| name(&field.name)).collect(),
            is_needed,
        })
    };
    schema.classes().filter_map(of).take(NAMED_MAX).collect()
}

/// Classes with fields that cannot be read, the first 16.
pub fn fields(schema: &Schema) -> Vec<UnknownFields> {
    fields_of(schema, false)
}

/// True if its events are about memory without its address: they cannot be accounted for.
pub fn is_without_address(class: &EventClass) -> bool {
    let address = match class.meaning {
        meaning if meaning.is_slab_alloc() || meaning.is_slab_free() => Role::PTR,
        Meaning::PAGE_ALLOC | Meaning::PAGE_FREE => Role::PFN,
        _ => return false,
    };
    class.field_with(address).is_none()
}

/// Refuses a file whose events cannot be accounted for: a field without a value would count as 0. Warns about classes
/// that are left out because their events have no address.
pub fn check_accounting(file: &Path, trace: &Trace<'_>) -> Result<()> {
    refuse(file, &fields_of(trace.schema(), true))?;
    let left_out = trace.schema().classes().map(|(_, class)| class).filter(|class| is_without_address(class));
    for class in left_out.take(NAMED_MAX) {
        let name = shown(format!("{}:{}", class.system, class.name).as_bytes());
        tell!("warning: {}: {name} has no address: its events are left out", file.display());
    }
    Ok(())
}

/// Refuses a file whose events cannot be rewritten.
pub fn check_copying(file: &Path, trace: &Trace<'_>) -> Result<()> {
    refuse(file, &fields_of(trace.schema(), false))
}

fn refuse(file: &Path, unknown: &[UnknownFields]) -> Result<()> {
    if unknown.is_empty() {
        return Ok(());
    }
    let of =
        |UnknownFields { class, fields, .. }: &UnknownFields| format!("{} of {class}", fields.join(", "));
    let fields: Vec<String> = unknown.iter().map(of).collect();
    let what = "fields of a later version of the format cannot be read";
    Err(Failure::new(format!("{}: {what}: {}", file.display(), fields.join("; ")))
        .hint("a newer kmt-analyze reads them; dump, info and verify show the rest"))
}
