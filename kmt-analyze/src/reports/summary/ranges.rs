//! Ranges of totals with the lost events.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::pass::Analysis;
use crate::pass::ranges::Range;

/// Lowest and highest value by name of a total; `null`: no range, or no highest value.
pub type SummaryRanges = BTreeMap<&'static str, Option<(RangeEnd, Option<RangeEnd>)>>;

/// End of a range.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RangeEnd {
    /// A whole number.
    Whole(u64),
    /// Any other.
    Fraction(f64),
}

impl From<f64> for RangeEnd {
    fn from(x: f64) -> Self {
        if x.fract() == 0.0 && x < 1e15 { Self::Whole(x as u64) } else { Self::Fraction(x) }
    }
}

/// Low and high of each total of a section; `None`: nothing was lost, or the number of lost events is unknown.
pub fn ranges(analysis: &Analysis, section: &str) -> Option<SummaryRanges> {
    let ranges = analysis.ranges.as_ref()?;
    let of_section = ranges.iter().filter(|((s, _), _)| *s == section);
    let ends = |range: Range| (range.low.into(), range.high.map(RangeEnd::from));
    Some(of_section.map(|((_, name), range)| (*name, range.map(ends))).collect())
}
