//! Reads a trace: of each call site the bytes that it was given and did not ask for.
//!
//! cargo run -p kmt-format --example reader -- trace.kmt

use std::collections::BTreeMap;

use kmt_format::read::{DuplicateKmallocs, Trace};
use kmt_format::schema::Role;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    print!("{}", run(&std::fs::read(path)?)?);
    Ok(())
}

/// The text that it prints.
pub fn run(file: &[u8]) -> kmt_format::Result<String> {
    let trace = Trace::open(file)?;
    let mut duplicates = DuplicateKmallocs::new(&trace);
    let mut sites = BTreeMap::new();
    for event in trace.events()? {
        // Of a large kmalloc that the kernel reports twice: the call site of the first event.
        let earlier = duplicates.see(&event, event.uint_with(Role::CALL_SITE)).flatten();
        if !event.meaning().is_slab_alloc() {
            continue;
        }
        let number = |role| event.field(role)?.as_u64();
        let has_failed = number(Role::PTR)? == 0;
        let waste = number(Role::BYTES_ALLOC)?.saturating_sub(number(Role::BYTES_REQ)?);
        let waste = if has_failed { 0 } else { waste };
        let site = number(Role::CALL_SITE)?;
        let name = || event.symbol(Role::CALL_SITE).map_or(format!("{site:#x}"), |symbol| symbol.to_string());
        let row = sites.entry(site).or_insert_with(|| (0, 0, name()));
        (row.0, row.1) = (row.0 + 1, row.1 + waste);
        if let Some(row) = earlier.and_then(|earlier| sites.get_mut(&earlier)) {
            (row.0, row.1) = (row.0 - 1, row.1 - waste);
        }
    }
    let rows = sites.values().filter(|(count, ..)| *count > 0);
    Ok(rows.map(|(_, waste, name)| format!("{waste:>12} {name}\n")).collect())
}
