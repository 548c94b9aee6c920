//! Reads a trace: of each call site the bytes that it was given and did not ask for.
//!
//! cargo run -p kmt-format --example reader -- trace.kmt

use std::collections::BTreeMap;

use kmt_format::read::Trace;
use kmt_format::schema::Role;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    print!("{}", run(&std::fs::read(path)?)?);
    Ok(())
}

/// The text that it prints.
pub fn run(file: &[u8]) -> kmt_format::Result<String> {
    let trace = Trace::open(file)?;
    let mut sites = BTreeMap::new();
    for event in trace.events()?.filter(|event| event.meaning().is_slab_alloc()) {
        let number = |role| event.field(role)?.as_u64();
        let waste = number(Role::BYTES_ALLOC)?.saturating_sub(number(Role::BYTES_REQ)?);
        let site = number(Role::CALL_SITE)?;
        let name = || event.symbol(Role::CALL_SITE).map_or(format!("{site:#x}"), |symbol| symbol.to_string());
        sites.entry(site).or_insert_with(|| (0, name())).0 += waste;
    }
    let rows = sites.values().map(|(waste, name)| format!("{waste:>12} {name}\n"));
    Ok(rows.collect())
}
