//! Each life in some lines.

use super::rows::{LifeRow, Neighbour, WhoRows};
use crate::render::text::{count, duration, escaped, time};
use crate::reports::common::View;
use crate::reports::common::shown::more;

/// The number of lives, and the lives.
pub fn of(rows: &WhoRows, view: &View) -> String {
    let address = rows.address.0;
    if rows.lives_total == 0 {
        return format!("no object that was born in the trace ever held {address:#x}\n");
    }
    let mut out = format!("{} lives held {address:#x}\n", count(rows.lives_total as u64));
    for (number, row) in (1..).zip(&rows.lives) {
        out.push_str(&life(number, row, view));
    }
    out + &more(rows.lives.len(), rows.lives_total, "lives")
}

fn life(number: usize, row: &LifeRow, view: &View) -> String {
    let mut out = format!(
        "\n{number}. {:#x}: {} of {} bytes{}\n   allocated {} at {} by {} on CPU {}\n",
        row.address.0,
        count(row.bytes_req),
        count(row.bytes_alloc),
        cache(row.cache.as_deref()),
        time(row.born, view.unit),
        row.symbol,
        row.task,
        row.cpu,
    );
    out.push_str(&end(row, view));
    if row.uncertain {
        out.push_str("   uncertain: it crosses a loss, or its free is ambiguous\n");
    }
    let neighbours = [("below", &row.neighbour_below), ("above", &row.neighbour_above)];
    for (side, other) in neighbours {
        out.extend(other.as_ref().map(|other| neighbour(side, other)));
    }
    out
}

fn end(row: &LifeRow, view: &View) -> String {
    let lifetime = |ended: u64| duration(ended.saturating_sub(row.born), view.unit);
    match (row.ended, &row.freed) {
        (Some(ended), Some(free)) => format!(
            "   freed {} at {} by {} on CPU {}, after {}{}\n",
            time(free.time, view.unit),
            free.symbol,
            free.task,
            free.cpu,
            lifetime(ended),
            if free.late { ", logged late" } else { "" },
        ),
        (Some(ended), None) => format!(
            "   freed unseen, after {} at most: then the address or its page was in other use\n",
            lifetime(ended),
        ),
        (None, _) => "   goes on\n".to_owned(),
    }
}

fn neighbour(side: &str, other: &Neighbour) -> String {
    format!(
        "   {side}: {:#x}, {} bytes{}, allocated at {} by {} on CPU {}\n",
        other.address.0,
        count(other.bytes_alloc),
        cache(other.cache.as_deref()),
        other.symbol,
        other.task,
        other.cpu,
    )
}

fn cache(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!(" of {}", escaped(name.as_bytes())))
}
