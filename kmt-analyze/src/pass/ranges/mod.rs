//! Totals as ranges, where events were lost.
//!
//! Losses change a total as further losses of the same kind change the remaining trace. So the trace is thinned at
//! random places several times, by gaps of the size of its own, and the ledger runs over each remainder. The change of
//! a total with the share of kept events is extrapolated to no losses, and its variation between thinnings gives the
//! error (simulation and extrapolation, after Cook and Stefanski, JASA 89, 1994). This includes all rules of the
//! ledger, also false pairs and lives that seem live because of a loss. Losses may follow the load or be random, which
//! cannot be distinguished: so thinnings are made near to the losses and far from them, and the range contains both
//! results.
//!
//! Thinnings show nothing where most events are missing, or where the missing ones need not be like the others: in few
//! gaps, at the start or the end, at unknown places. There the number of lost events bounds the counts, and nothing
//! bounds bytes and pages.

mod estimate;
mod places;
mod thin;

pub use estimate::Range;
pub use places::OpSample;

use std::collections::BTreeMap;

use kmt_common::out_of_memory::spawn;

use crate::ledger::{Choice, Interests, Ledger, Rules};
use crate::pass::figures::{Figure, figures};
use crate::stream::{Interner, NewItems};
use crate::trace::losses::Losses;
use estimate::ThinnedTotals;
use thin::{DISTANCES, Distance, Thinned};

/// Thinnings at one distance, half of them by twice as much.
const THINNINGS: u64 = 8;

/// Ranges by section and name; `None`: no range.
pub type Ranges = BTreeMap<(&'static str, &'static str), Option<Range>>;

/// Inputs of ranges.
pub struct RangeInputs<'m> {
    /// Operations of the trace, or of some of its pages.
    pub ops: &'m places::Streams,
    /// Resolves their numbers.
    pub interner: &'m Interner,
    /// The rules of the pass.
    pub rules: Rules,
    /// Selection.
    pub choice: Choice<'m>,
    pub losses: &'m Losses,
    /// Cores to use.
    pub threads: usize,
}

/// Operations entered at a time.
const BATCH: usize = 256;

/// Ranges of all named totals, whose values are `observed`; `None`: the number of lost events is unknown.
pub fn ranges(inputs: &RangeInputs<'_>, observed: &[Figure]) -> Option<Ranges> {
    let plan = thin::Plan::new(inputs.ops, inputs.losses, inputs.rules.window)?;
    if !plan.lost.can_be_extrapolated() {
        let range =
            |figure: &Figure| ((figure.section, figure.name), estimate::range(figure, &[], plan.lost));
        return Some(observed.iter().map(range).collect());
    }
    let whole = replay(inputs, &plan, &Thinned::default()).1;
    let tasks: Vec<(Distance, u64)> =
        DISTANCES.into_iter().flat_map(|distance| (0..THINNINGS).map(move |seed| (distance, seed))).collect();
    let share = tasks.len().div_ceil(inputs.threads.max(1));
    let thinned: Vec<(f64, Vec<Figure>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = tasks
            .chunks(share)
            .map(|tasks| {
                let plan = &plan;
                spawn(scope, move || {
                    let times = |seed| if seed % 2 == 0 { 1.0 } else { 2.0 };
                    let thin = |(distance, seed): &(Distance, u64)| plan.thin(*seed, *distance, times(*seed));
                    tasks.iter().map(|task| replay(inputs, plan, &thin(task))).collect::<Vec<_>>()
                })
            })
            .collect();
        let results = workers.into_iter().map(|w| w.join());
        results.flat_map(|w| w.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let of = |figures: &[Figure], index: usize| figures.get(index).map_or(0.0, |f| f.value);
    let range = |(index, figure): (usize, &Figure)| {
        let totals = |distance: &[(f64, Vec<Figure>)]| ThinnedTotals {
            whole: of(&whole, index),
            thinned: distance.iter().map(|(kept, figures)| (*kept, of(figures, index))).collect(),
        };
        let by_distance: Vec<ThinnedTotals> = thinned.chunks(THINNINGS as usize).map(totals).collect();
        ((figure.section, figure.name), estimate::range(figure, &by_distance, plan.lost))
    };
    Some(observed.iter().enumerate().map(range).collect())
}

/// Runs the ledger over a thinned trace; returns the share kept and the figures.
fn replay(inputs: &RangeInputs<'_>, plan: &thin::Plan, thinned: &Thinned) -> (f64, Vec<Figure>) {
    let no_losses = Losses::default();
    let mut ledger = Ledger::new(inputs.rules, &no_losses, inputs.choice, Interests::empty(), (), None);
    ledger.learn(&NewItems::all(inputs.interner));
    let kept = plan.replay(inputs.ops, thinned, BATCH, |ops| ledger.enter(ops));
    let (balance, ()) = ledger.finish();
    (kept, figures(&balance, inputs.interner, inputs.rules.page_size))
}
