//! Part of a recording that `slice` has written.
//!
//! `slice` copies the texts of /proc of the begin and the end: they are of the recording that it cut. The metadata has the
//! selection under `slice` (once for each time it was sliced) and the first and last time of the recording under `slice.of`.
//! Files of older versions lack the latter. An anonymized file has no selection: it may be a part of the time.

use kmt_format::read::Metadata;

/// Key of the selection.
pub const SLICE: &str = "slice";

/// Key of the times of the first and the last event before the first slice by time: `FROM TO`, by the trace clock.
pub const SLICE_OF: &str = "slice.of";

/// The selection of a slice of everything.
pub const ALL: &str = "all";

/// Begin of the selection of a time, and the separator of selections.
pub const TIME: &str = "time ";
pub const SEPARATOR: &str = "; ";

/// Text of a selection whose words were left out.
const ANONYMIZED: &str = "yes";

/// A part of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sliced {
    /// True if it may be a part of the time.
    pub by_time: bool,
    /// Times of the first and the last event of the recording; `None`: unknown.
    pub whole: Option<(u64, u64)>,
}

impl Sliced {
    /// The part that a file is; `None`: it has all events of the recording.
    pub fn of(metadata: &Metadata<'_>) -> Option<Self> {
        let slices = metadata.pairs.iter().filter(|(key, _)| key == SLICE);
        let texts: Vec<_> = slices.map(|(_, value)| String::from_utf8_lossy(value)).collect();
        let parts = || texts.iter().flat_map(|text| text.trim().split(SEPARATOR)).filter(|part| *part != ALL);
        parts().next()?;
        let by_time = parts().any(|part| part.starts_with(TIME) || part == ANONYMIZED);
        Some(Self { by_time, whole: whole(metadata) })
    }

    /// True if texts of the end of the recording are from more than `late` after `last`, as far as is known.
    pub fn ends_before(&self, last: u64, late: u64) -> bool {
        self.by_time && self.whole.is_none_or(|(_, end)| end.saturating_sub(last) > late)
    }

    /// True if a file with these first and last times lacks some of the time.
    pub fn lacks_time(&self, span: (u64, u64)) -> bool {
        self.by_time && self.whole != Some(span)
    }
}

/// Times of the whole recording.
fn whole(metadata: &Metadata<'_>) -> Option<(u64, u64)> {
    let (first, last) = metadata.text(SLICE_OF)?.split_once(' ')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_show_the_kind_of_part() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let mut metadata = Metadata::default();
            metadata.pairs =
                pairs.iter().map(|(key, text)| ((*key).into(), text.as_bytes().into())).collect();
            Sliced::of(&metadata)
        };
        let part = |by_time, whole| Some(Sliced { by_time, whole });
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("slice", "all")]), None);
        assert_eq!(of(&[("slice", "cpu 1; event kmalloc")]), part(false, None));
        assert_eq!(of(&[("slice", "all"), ("slice", "time +1..+2; cpu 1")]), part(true, None));
        assert_eq!(of(&[("slice", "yes")]), part(true, None), "anonymized");
        let known = [("slice", "time +1..+2"), ("slice.of", "10 90"), ("slice.of", "20 30")];
        assert_eq!(of(&known), part(true, Some((10, 90))), "the first is of the recording");
        for broken in ["", "10", "10 x", "90 10"] {
            assert_eq!(of(&[("slice", "time +1..+2"), ("slice.of", broken)]), part(true, None), "{broken}");
        }
        let sliced = of(&known).unwrap();
        assert_eq!([(10, 90), (10, 89)].map(|span| sliced.lacks_time(span)), [false, true]);
        assert_eq!([85, 84].map(|last| sliced.ends_before(last, 5)), [false, true]);
    }
}
