//! Estimate of the median lifetime, with objects of which only an age is known.
//!
//! The survival curve is the product-limit estimator (Kaplan and Meier, 1958): at each lifetime the curve falls by the
//! share of the objects of that age that end there. The interval is that of Brookmeyer and Crowley (1982) with the variance
//! of Greenwood (1926), on the log(-log) scale (Klein and Moeschberger, Survival Analysis, 2nd edition, 4.3 and 4.5): all
//! lifetimes at which the curve does not differ from one half. Lifetimes are in bins of 1/32 of a power of two (3.1 %); the
//! interval includes its bins. It assumes lives that end independently: where many objects are freed at once, it is too
//! narrow.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::collect::histogram::Histogram;
use crate::collect::lifetimes::CallerLives;

/// Fewest ends for an interval: of fewer, the variance is not known well enough.
const ENDS_MIN: u64 = 20;
/// 97.5 % of a normal distribution lie below this number of standard deviations.
const DEVIATIONS: f64 = 1.959_964;

/// Estimate of the median lifetime of all objects allocated in the window, in the clock's unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MedianEstimate {
    /// Always `kaplan-meier`.
    pub method: &'static str,
    /// Estimated median; `null`: the curve does not fall to one half, or no object is in it.
    pub median: Option<u64>,
    /// Where the curve does not fall to one half: the median is longer than this, the longest age in the curve.
    pub longer_than: Option<u64>,
    /// Lower end of the interval; `null`: fewer than 20 ends, or the interval begins beyond the curve.
    pub low: Option<u64>,
    /// Upper end of the interval; `null`: no upper end is known.
    pub high: Option<u64>,
    /// Confidence of the interval in percent.
    pub confidence_percent: u64,
    /// Objects whose free was seen, without a loss in between.
    pub ends: u64,
    /// Objects that were alive at a known age: at the end of the window, or before a loss.
    pub censored: u64,
    /// Objects with an implied free: their lifetimes are unknown, and the estimate leaves them out.
    pub left_out: u64,
}

/// One bin of lifetimes.
#[derive(Default, Clone, Copy)]
struct Bin {
    width: u64,
    ends: u64,
    censored: u64,
}

impl MedianEstimate {
    /// Estimate for some lives.
    pub fn of(lives: &CallerLives) -> Self {
        let survival = &lives.survival;
        let found = estimate(&bins(&lives.freed, &survival.inexact, &survival.censored));
        let longest = lives.freed.max().unwrap_or(u64::MAX);
        Self { median: found.median.map(|m| m.min(longest)), left_out: survival.left_out, ..found }
    }
}

/// Bins by their lowest lifetime: ends are `freed` without `inexact`.
fn bins(freed: &Histogram, inexact: &Histogram, censored: &Histogram) -> BTreeMap<u64, Bin> {
    let mut bins: BTreeMap<u64, Bin> = BTreeMap::new();
    for (low, width, count) in freed.buckets() {
        bins.insert(low, Bin { width, ends: count, censored: 0 });
    }
    for (low, _, count) in inexact.buckets() {
        bins.entry(low).and_modify(|bin| bin.ends = bin.ends.saturating_sub(count));
    }
    for (low, width, count) in censored.buckets() {
        let bin = bins.entry(low).or_default();
        (bin.width, bin.censored) = (width, count);
    }
    bins.retain(|_, bin| bin.ends + bin.censored > 0);
    bins
}

fn estimate(bins: &BTreeMap<u64, Bin>) -> MedianEstimate {
    let ends: u64 = bins.values().map(|bin| bin.ends).sum();
    let censored: u64 = bins.values().map(|bin| bin.censored).sum();
    let mut found = MedianEstimate {
        method: "kaplan-meier",
        median: None,
        longer_than: None,
        low: None,
        high: None,
        confidence_percent: 95,
        ends,
        censored,
        left_out: 0,
    };
    let mut curve = Curve { at_risk: ends + censored, share: 1.0, greenwood: 0.0 };
    for (&low, bin) in bins {
        curve.fall(bin.ends);
        if curve.share <= 0.5 {
            found.median = found.median.or(Some(low + (bin.width - 1) / 2));
        }
        if ends >= ENDS_MIN && bin.ends > 0 {
            let [lower, upper] = curve.interval();
            found.low = found.low.or((lower <= 0.5).then_some(low));
            found.high = found.high.or((upper <= 0.5).then_some(low + (bin.width - 1)));
        }
        curve.at_risk -= bin.ends + bin.censored;
    }
    if found.median.is_none() {
        found.longer_than = bins.keys().next_back().copied();
    }
    found
}

/// Survival curve at a lifetime.
struct Curve {
    /// Objects of that age or more.
    at_risk: u64,
    /// Share of the objects that live longer.
    share: f64,
    /// Sum of Greenwood's formula: the variance of the share, divided by its square.
    greenwood: f64,
}

impl Curve {
    fn fall(&mut self, ends: u64) {
        if ends == 0 {
            return;
        }
        let at_risk = self.at_risk as f64;
        // Where all end, half an object stays: the variance of a share of 0 is not defined.
        let ends = if ends == self.at_risk { ends as f64 - 0.5 } else { ends as f64 };
        self.share *= 1.0 - ends / at_risk;
        self.greenwood += ends / (at_risk * (at_risk - ends));
    }

    /// 95 % interval of the share.
    fn interval(&self) -> [f64; 2] {
        let wide = DEVIATIONS * self.greenwood.sqrt() / -self.share.ln();
        [wide, -wide].map(|wide| self.share.powf(wide.exp()))
    }
}

#[cfg(test)]
#[path = "median_tests.rs"]
mod tests;
