//! Source lines of the addresses in a trace.

use std::collections::BTreeSet;

use kmt_common::tell;
use kmt_format::read::Trace;
use kmt_format::schema::Role;
use kmt_format::tables::SourceLine;

use crate::env::Env;
use crate::failure::{Failure, Result};
use crate::source::{LookedUp, Target, look_up};

/// Addresses of a stack that are looked up.
const DEPTH_MAX: usize = 512;

/// Looks up the lines of all return addresses of a trace.
pub fn lines_of(trace: &Trace<'_>, env: &Env) -> Result<Vec<SourceLine<'static>>> {
    let metadata = trace.metadata();
    let Some(symbols) = trace.symbols() else {
        return Err(Failure::new("the file has no symbols, so its addresses have no place in a vmlinux")
            .hint("record or convert it with /proc/kallsyms, which root can read"));
    };
    let build_ids = metadata.pairs.iter().filter_map(|(key, value)| {
        let module = key.strip_prefix("build_id")?;
        let module = if module.is_empty() { module } else { module.strip_prefix('/')? };
        Some((module, std::str::from_utf8(value).ok()?))
    });
    let target = Target { symbols, release: metadata.text("kernel.release"), build_ids: build_ids.collect() };
    let LookedUp { lines, notes } = look_up(&target, &env.source, &env.files, &addresses(trace))?;
    for note in notes {
        tell!("note: {note}");
    }
    Ok(lines)
}

/// Return addresses of a trace: callers of the allocator, and stacks.
pub(super) fn addresses(trace: &Trace<'_>) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            found.extend(event.uint_with(Role::CALL_SITE));
            found.extend(event.stack().into_iter().flat_map(|stack| stack.addresses().take(DEPTH_MAX)));
        }
    }
    found
}
