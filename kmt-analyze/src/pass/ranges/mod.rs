//! Totals as ranges, where events were lost.
//!
//! What did the losses do to a total? The same as further losses of the same kind do to what is left: so the trace is
//! thinned at random places a number of times, by gaps of the size of its own, and each time the ledger is run over
//! what remains. How a total moves with the share of events that are kept is then followed back to where nothing is
//! lost, and how differently it moved from one thinning to the next tells how far that can be wrong (simulation and
//! extrapolation, after Cook and Stefanski, JASA 89, 1994). Every rule of the ledger takes part, also those by which
//! a loss makes a false pair or a life that seems to go on. Losses follow the load or fall by chance, and which of it
//! cannot be told: so thinnings look near to the losses and farther away, and the range holds what either finds.

mod estimate;
mod op_sample;
mod places;
mod thin;

pub use estimate::Range;
pub use op_sample::OpSample;

use std::collections::BTreeMap;

use crate::ledger::{Interests, Ledger, Rules, Select};
use crate::pass::figures::{Figure, figures};
use crate::stream::SharedInterner;
use crate::trace::losses::Losses;
use estimate::Moves;
use thin::{Look, Thinned};

/// Thinnings of a look, half of them by twice as much.
const THINNINGS: u64 = 8;

/// Ranges by section and name; `None` for totals that nothing bounds.
pub type Ranges = BTreeMap<(&'static str, &'static str), Option<Range>>;

/// What ranges are made from.
pub struct Material<'m> {
    /// Operations of the trace, or of some of its pages.
    pub ops: &'m op_sample::Streams,
    /// What their numbers mean.
    pub interner: &'m SharedInterner,
    /// The rules of the pass.
    pub rules: Rules,
    /// What counts.
    pub select: &'m (dyn Select + Sync),
    /// What was lost.
    pub losses: &'m Losses,
    /// Cores to use.
    pub threads: usize,
}

/// Operations entered at a time.
const BATCH: usize = 256;

/// The ranges of all named totals, whose values are `observed`; `None` if nobody knows how much was lost.
pub fn ranges(material: &Material<'_>, observed: &[Figure]) -> Option<Ranges> {
    let plan = thin::Plan::new(material.ops, material.losses, material.rules.window)?;
    let whole = replay(material, &plan, &Thinned::default()).1;
    let tasks: Vec<(Look, u64)> =
        Look::ALL.into_iter().flat_map(|look| (0..THINNINGS).map(move |seed| (look, seed))).collect();
    let share = tasks.len().div_ceil(material.threads.max(1));
    let thinned: Vec<(f64, Vec<Figure>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = tasks
            .chunks(share)
            .map(|tasks| {
                let plan = &plan;
                scope.spawn(move || {
                    let times = |seed| if seed % 2 == 0 { 1.0 } else { 2.0 };
                    let thin = |(look, seed): &(Look, u64)| plan.thin(*seed, *look, times(*seed));
                    tasks.iter().map(|task| replay(material, plan, &thin(task))).collect::<Vec<_>>()
                })
            })
            .collect();
        let joined = workers.into_iter().map(|w| w.join());
        joined.flat_map(|w| w.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let of = |figures: &[Figure], index: usize| figures.get(index).map_or(0.0, |f| f.value);
    let range = |(index, figure): (usize, &Figure)| {
        let moves = |look: &[(f64, Vec<Figure>)]| Moves {
            whole: of(&whole, index),
            thinned: look.iter().map(|(kept, figures)| (*kept, of(figures, index))).collect(),
        };
        let looks: Vec<Moves> = thinned.chunks(THINNINGS as usize).map(moves).collect();
        ((figure.section, figure.name), estimate::range(figure, &looks, plan.lost_share))
    };
    Some(observed.iter().enumerate().map(range).collect())
}

/// Runs the ledger over a thinning: the share that it kept, and its figures.
fn replay(material: &Material<'_>, plan: &thin::Plan, thinned: &Thinned) -> (f64, Vec<Figure>) {
    let no_losses = Losses::default();
    let mut ledger =
        Ledger::new(material.rules, &no_losses, material.select, (Interests::default(), ()), None);
    let interned = crate::stream::Interner::lock(material.interner).item_count();
    let enter = |ops: &[_]| ledger.enter(ops, material.interner, interned);
    let kept = plan.replay(material.ops, thinned, BATCH, enter);
    let (balance, ()) = ledger.finish();
    let interner = crate::stream::Interner::lock(material.interner);
    (kept, figures(&balance, &interner, material.rules.page_size))
}
