//! The kernel that was recorded, and what was lost.

use serde_json::Value;

use crate::support::files::at;

/// What the rules need to know of the target.
pub struct Target {
    pub page_size: u64,
    pub no_frame: u64,
    /// Whether kmem_cache_free is logged after the fact.
    pub late_frees: bool,
    /// Spans of time in which something was lost.
    pub spans: Vec<(u64, u64)>,
}

impl Target {
    /// From `info --json`.
    pub fn of(info: &Value) -> Self {
        let word = info["format"]["long_size"].as_u64().unwrap();
        Self {
            page_size: at(info, "/format/page_size").as_u64().unwrap_or(4096),
            no_frame: u64::MAX >> (64 - 8 * word),
            late_frees: at(info, "/kernel/release").as_str().is_none_or(is_before_5_19),
            spans: spans(info),
        }
    }
}

/// Spans of time in which `info` says that something was lost. What was lost before the first event is in none.
fn spans(info: &Value) -> Vec<(u64, u64)> {
    let mut spans = Vec::new();
    for cpu in info["trace"]["per_cpu"].as_array().unwrap() {
        for loss in cpu["losses"].as_array().unwrap().iter().filter(|loss| loss["before_first"] == false) {
            spans.push((loss["after"].as_u64().unwrap_or(0), loss["before"].as_u64().unwrap_or(u64::MAX)));
        }
        if at(cpu, "/lost_events_unplaced").as_u64().unwrap_or(0) > 0 {
            spans.push((0, u64::MAX));
        }
    }
    spans
}

fn is_before_5_19(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map(|n| n.parse::<u32>().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap()) < (5, 19)
}
