//! The account as trace_analyze.py prints it.

use super::rows::AccountRow;

/// The sums, and the rows.
pub fn text(account: &AccountRow) -> String {
    let mut out = String::new();
    for (heading, value) in [
        ("current bytes allocated:", account.current_bytes_allocated),
        ("current bytes requested:", account.current_bytes_requested),
        ("current wasted bytes:", account.current_wasted_bytes),
        ("number of allocs:", account.allocs),
        ("number of frees:", account.frees),
        ("number of callers:", account.callers as u64),
    ] {
        out.push_str(&format!("{heading}{value:>width$}\n", width = 35 - heading.len()));
    }
    out.push_str(
        "\n   total    waste      net alloc/free  caller\n---------------------------------------------\n",
    );
    for row in &account.rows {
        out.push_str(&format!(
            "{:>8} {:>8} {:>8} {:>5}/{:<5} {}\n",
            row.total, row.waste, row.net, row.alloc, row.free, row.caller,
        ));
    }
    out
}
