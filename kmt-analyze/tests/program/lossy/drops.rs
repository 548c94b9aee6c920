//! Losses by pattern: which sub-buffers of a CPU are missing from the file.

use crate::model::next;

/// How losses fall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// Each sub-buffer by chance.
    Chance,
    /// Several in a row.
    Runs(u64),
    /// One run somewhere.
    Once,
    /// By chance, on CPU 0 alone.
    OneCpu,
    /// The first ones of each CPU.
    Head,
    /// The last ones of each CPU.
    Tail,
    /// Every second stretch: most of it is missing.
    Waves,
}

pub const PATTERNS: [Pattern; 8] = [
    Pattern::Chance,
    Pattern::Runs(3),
    Pattern::Runs(10),
    Pattern::Once,
    Pattern::OneCpu,
    Pattern::Head,
    Pattern::Tail,
    Pattern::Waves,
];

/// By sub-buffer of a CPU, whether it is lost; about this share is.
pub fn lost(seed: &mut u64, pattern: Pattern, cpu: u64, count: usize, share: f64) -> Vec<bool> {
    let mut fraction = || next(seed) as f64 / u64::MAX as f64;
    let some = (count as f64 * share) as usize;
    let mut lost = vec![false; count];
    match pattern {
        Pattern::Chance => lost.iter_mut().for_each(|lost| *lost = fraction() < share),
        Pattern::OneCpu if cpu == 0 => lost.iter_mut().for_each(|lost| *lost = fraction() < share),
        Pattern::OneCpu => {}
        Pattern::Runs(len) => {
            let mut left = 0;
            for lost in &mut lost {
                if left == 0 && fraction() < share / (len as f64 * (1.0 - share) + share) {
                    left = len;
                }
                *lost = left > 0;
                left = left.saturating_sub(1);
            }
        }
        Pattern::Once => {
            let start = (fraction() * (count - some) as f64) as usize;
            lost[start..start + some].fill(true);
        }
        Pattern::Head => lost[..some].fill(true),
        Pattern::Tail => lost[count - some..].fill(true),
        Pattern::Waves => {
            for (at, lost) in lost.iter_mut().enumerate() {
                *lost = at / 5 % 2 == 1 && fraction() < (2.0 * share).min(0.95);
            }
        }
    }
    lost
}
