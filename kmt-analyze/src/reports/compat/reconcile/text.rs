//! Tables of terms, and other totals of the tools.

use super::rows::{BridgeRow, ReconcileRows};
use crate::render::words::count;

/// A table for each figure, and the totals; `lost` has the lost events in words.
pub fn text(rows: &ReconcileRows, lost: Option<&str>) -> String {
    let exact = if lost.is_some() { "exact, of the recorded events" } else { "exact" };
    let tables: Vec<String> = rows.reconcile.iter().map(|row| bridge(row, exact)).collect();
    let lost = lost.map_or(String::new(), |lost| {
        format!("\n{lost}: all figures are of the recorded events. The memory of the system may differ from each of them.\n")
    });
    format!(
        "{}{lost}\nperf kmem on these events: net {} bytes (allocated - freed), {} ping-pongs; trace-cmd mem: waste {} bytes\n",
        tables.join("\n"),
        rows.perf_kmem.net_bytes_allocated,
        count(rows.perf_kmem.ping_pong),
        rows.trace_cmd_mem_waste,
    )
}

fn signed(n: i64) -> String {
    format!("{}{}", if n < 0 { "-" } else { "+" }, count(n.unsigned_abs()))
}

fn bridge(bridge: &BridgeRow, exact: &str) -> String {
    let line = |label: String, bytes: String| [label, String::new(), bytes];
    let mut lines = vec![["", "objects", "bytes"].map(str::to_owned)];
    lines.push(line(exact.to_owned(), count(bridge.exact.max(0) as u64)));
    for t in &bridge.terms {
        lines.push([format!("  {}", t.term), count(t.objects), signed(t.bytes)]);
    }
    if bridge.unexplained != 0 {
        lines.push(line("  not explained".to_owned(), signed(bridge.unexplained)));
    }
    let theirs = if bridge.theirs < 0 { signed(bridge.theirs) } else { count(bridge.theirs as u64) };
    lines.push(line(format!("{}, {}", bridge.tool, bridge.figure), theirs));
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let [a, b, c] = [0, 1, 2].map(width);
    lines.iter().map(|[label, objects, bytes]| format!("{label:<a$}  {objects:>b$}  {bytes:>c$}\n")).collect()
}
