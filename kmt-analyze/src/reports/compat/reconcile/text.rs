//! Tables of terms, and other totals of the tools.

use super::rows::{BridgeRow, ReconcileRows};
use crate::render::table::{Align, table};
use crate::render::text::count;

/// A table for each figure, and the totals.
pub fn text(rows: &ReconcileRows) -> String {
    let tables: Vec<String> = rows.reconcile.iter().map(bridge).collect();
    format!(
        "{}\nperf kmem on these events: net {} bytes (allocated - freed), {} ping-pongs; trace-cmd mem: waste {} bytes\n",
        tables.join("\n"),
        rows.perf_kmem.net_bytes_allocated,
        count(rows.perf_kmem.ping_pong),
        rows.trace_cmd_mem_waste,
    )
}

fn signed(n: i64) -> String {
    format!("{}{}", if n < 0 { "-" } else { "+" }, count(n.unsigned_abs()))
}

fn bridge(bridge: &BridgeRow) -> String {
    let line = |label: String, bytes: String| vec![label, String::new(), bytes];
    let mut lines = vec![line("exact".to_owned(), count(bridge.exact.max(0) as u64))];
    for t in &bridge.terms {
        lines.push(vec![format!("  {}", t.term), count(t.objects), signed(t.bytes)]);
    }
    if bridge.unexplained != 0 {
        lines.push(line("  not explained".to_owned(), signed(bridge.unexplained)));
    }
    let theirs = if bridge.theirs < 0 { signed(bridge.theirs) } else { count(bridge.theirs as u64) };
    lines.push(line(format!("{}, {}", bridge.tool, bridge.figure), theirs));
    table(&[("", Align::Left), ("objects", Align::Right), ("bytes", Align::Right)], &lines)
}
