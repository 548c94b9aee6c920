//! Losses, as they are written and read.

use crate::kernel::Missed;
use crate::raw::loss_flags;

/// Events lost at one place of one CPU's stream.
///
/// ```
/// use kmt_format::Loss;
/// use kmt_format::kernel::Missed;
///
/// let both = Loss::from(Missed::Count(7)).and(Loss::uncounted());
/// assert_eq!((both.counted, both.uncounted), (7, true));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Events lost as the kernel counted them.
    pub counted: u64,
    /// At least one more was lost, and the kernel did not count.
    pub uncounted: bool,
    /// Part of the input was damaged here and could not be decoded.
    pub damaged_input: bool,
    /// These were overwritten by design: the buffer keeps the newest events only, and the recording begins here.
    pub overwritten: bool,
}

impl Loss {
    /// A loss of `counted` events, from the kernel's counter.
    #[must_use]
    pub const fn counted(events: u64) -> Self {
        Self { counted: events, uncounted: false, damaged_input: false, overwritten: false }
    }

    /// Events lost that the kernel did not count.
    #[must_use]
    pub const fn uncounted() -> Self {
        Self { counted: 0, uncounted: true, damaged_input: false, overwritten: false }
    }

    /// Input that could not be decoded.
    #[must_use]
    pub const fn damaged_input() -> Self {
        Self { counted: 0, uncounted: false, damaged_input: true, overwritten: false }
    }

    /// True if nothing was lost.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Both losses at one place.
    pub fn and(self, other: Self) -> Self {
        Self {
            counted: self.counted.saturating_add(other.counted),
            uncounted: self.uncounted | other.uncounted,
            damaged_input: self.damaged_input | other.damaged_input,
            overwritten: self.overwritten | other.overwritten,
        }
    }
}

impl Loss {
    /// Bits of `loss_flags` for it.
    pub(crate) fn flags(&self) -> u32 {
        let mut flags = 0;
        if self.counted > 0 {
            flags |= loss_flags::COUNTED;
        }
        if self.uncounted {
            flags |= loss_flags::UNCOUNTED;
        }
        if self.damaged_input {
            flags |= loss_flags::DAMAGED_INPUT;
        }
        if self.overwritten {
            flags |= loss_flags::OVERWRITTEN;
        }
        flags
    }
}

impl From<Missed> for Loss {
    /// Events lost before the first event of a sub-buffer.
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::No => Self::default(),
            Missed::Count(events) => Self::counted(events),
            Missed::Unknown => Self::uncounted(),
        }
    }
}
