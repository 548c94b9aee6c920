//! The verdicts, with their names.

use serde::Serialize;

/// Verdict on the objects of a call site, or the pages of a kind, that are live at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Steady growth: old objects are left all through the window, and do not become fewer.
    Grows,
    /// Growth in batches of like size, again and again.
    #[serde(rename = "grows_in_batches")]
    Batches,
    /// Growth of a cache that the kernel shrinks when memory is short.
    Reclaimable,
    /// One object for each object of a reclaimable cache.
    WithReclaimable,
    /// Objects of tasks that started in the window and still run.
    WithTasks,
    /// Metadata of the allocator or of kmemleak: for each slab, or for each object.
    WithSlabs,
    /// Many objects early, hardly any later: a cache or a pool that filled.
    Warming,
    /// Few bursts: something started and still runs.
    Burst,
    /// Objects that the kernel frees late and all at once, by design.
    Lazy,
    /// Many frees of this kind have no event: the objects may be freed already.
    #[serde(rename = "frees_unseen")]
    ImpliedFrees,
    /// Objects of this kind live about as long as the window, which is too short for a verdict.
    #[serde(rename = "window_too_short")]
    TooShort,
    /// Most objects cross a loss.
    Uncertain,
    /// Recent objects alone: ordinary turnover.
    Young,
    /// Too few objects for a verdict.
    #[default]
    Few,
}

impl Verdict {
    /// True for steady growth.
    pub fn is_growth(self) -> bool {
        matches!(self, Self::Grows | Self::Batches)
    }

    /// Words on a screen.
    pub fn words(self) -> &'static str {
        match self {
            Self::Grows => "growing",
            Self::Batches => "growing in batches",
            Self::Reclaimable => "fills a cache (reclaimable)",
            Self::WithReclaimable => "with reclaimable objects",
            Self::WithTasks => "of running tasks",
            Self::WithSlabs => "slab metadata",
            Self::Warming => "warming up",
            Self::Burst => "burst",
            Self::Lazy => "delayed free by design",
            Self::ImpliedFrees => "frees have no event",
            Self::TooShort => "window too short",
            Self::Uncertain => "crosses a loss",
            Self::Young => "recent",
            Self::Few => "few objects",
        }
    }
}
