//! The peak, and the table of call sites.

use super::rows::{PeakRow, PeakRows};
use crate::render::table::{Align, table};
use crate::render::text::{count, percent, span, time};
use crate::reports::common::View;
use crate::reports::common::shown::more;

/// The answer, its range, and the table.
pub fn of(PeakRows { peak }: &PeakRows, view: &View) -> String {
    let (Some(bytes), Some(objects), Some(at)) = (peak.bytes_live, peak.live, peak.time) else {
        return "no slab object was live\n".to_owned();
    };
    let mut out = format!(
        "peak: {} bytes in {} objects at {}, {} after the start\n\n",
        count(bytes),
        count(objects),
        time(at, view.unit),
        span(at.saturating_sub(view.start), view.unit),
    );
    let least = least(peak);
    if let Some((bytes, objects)) = least {
        out.push_str(&format!(
            "at least {} bytes in {} objects of it were live: of the others frees may have no event\n\n",
            count(bytes),
            count(objects),
        ));
    }
    out.push_str(&callers(peak, bytes, least.is_some()));
    out.push_str("\nOf objects born in the trace; what is older is in no number.\n");
    out
}

/// Bytes and objects that are live for certain, where others may not be.
fn least(peak: &PeakRow) -> Option<(u64, u64)> {
    let ([bytes, _], [objects, _]) = (peak.bytes_live_range?, peak.live_range?);
    (Some(objects) < peak.live).then_some((bytes, objects))
}

fn callers(peak: &PeakRow, all_bytes: u64, has_least: bool) -> String {
    use Align::{Left, Right};
    let mut columns =
        vec![("call site", Left), ("of", Left), ("live", Right), ("bytes_live", Right), ("share", Right)];
    columns.extend(has_least.then_some(("live at least", Right)));
    let rows = peak.callers.iter().map(|row| {
        let mut cells = vec![
            row.symbol.clone(),
            row.api.to_owned(),
            count(row.live),
            count(row.bytes_live),
            percent(row.bytes_live, all_bytes),
        ];
        cells.extend(has_least.then(|| count(row.live_least)));
        cells
    });
    table(&columns, &rows.collect::<Vec<_>>()) + &more(peak.callers.len(), peak.callers_total, "call sites")
}
