//! Sums of functions as trace-cmd mem prints them.

use super::rows::FunctionRow;
use crate::render::words::escaped;

const HEADING: &str = "                Function            \tWaste\tAlloc\treq\t\tTotAlloc     TotReq\t\tMaxAlloc     MaxReq\tMaxWaste
                --------            \t-----\t-----\t---\t\t--------     ------\t\t--------     ------\t--------
";

/// The layout of trace-cmd mem, tabs included.
pub fn text(functions: &[FunctionRow]) -> String {
    let mut out = HEADING.to_owned();
    for row in functions {
        out.push_str(&format!(
            "{:>32}\t{}\t{}\t{}\t\t{:>8}   {:>8}\t\t{:>8}   {:>8}\t{}\n",
            escaped(&row.name),
            row.waste,
            row.alloc,
            row.req,
            row.total_alloc,
            row.total_req,
            row.max_alloc,
            row.max_req,
            row.max_waste,
        ));
    }
    out
}
