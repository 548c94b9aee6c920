//! Orders of rows.

use crate::analysis::totals::Totals;

/// What a table of sums is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SortKey {
    /// Bytes handed out
    Alloc,
    /// Bytes asked for
    Req,
    /// Bytes handed out beyond those asked for
    Waste,
    /// Allocations
    Count,
    /// Bytes live at the end
    Live,
    /// Objects live at the end
    LiveCount,
    /// Bytes freed
    Freed,
    /// Internal fragmentation in percent
    Frag,
    /// Name
    Name,
}

impl SortKey {
    /// Compares two rows: numbers fall, names rise.
    pub fn compare(self, a: (&Totals, &str), b: (&Totals, &str)) -> std::cmp::Ordering {
        let number = |t: &Totals| match self {
            Self::Alloc => t.bytes_alloc,
            Self::Req => t.bytes_req,
            Self::Waste => t.bytes_wasted(),
            Self::Count => t.alloc_events,
            Self::Live => t.bytes_live,
            Self::LiveCount => t.live,
            Self::Freed => t.bytes_freed,
            // Parts per million: a total order without floating point.
            Self::Frag => (t.bytes_wasted() as u128 * 1_000_000 / u128::from(t.bytes_alloc.max(1))) as u64,
            Self::Name => 0,
        };
        number(b.0).cmp(&number(a.0))
    }
}

/// Sorts rows by several keys, then by name.
pub fn sort_rows<R>(rows: &mut [R], keys: &[SortKey], view: impl Fn(&R) -> (Totals, &str)) {
    rows.sort_by(|a, b| {
        let (a, b) = (view(a), view(b));
        keys.iter()
            .take_while(|&&k| k != SortKey::Name)
            .map(|k| k.compare((&a.0, a.1), (&b.0, b.1)))
            .find(|o| o.is_ne())
            .unwrap_or_else(|| a.1.cmp(b.1))
    });
}
