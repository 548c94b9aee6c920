//! Memory of the kernel over hours, judged: which of it grows steadily. `kmt-capture watch` reads, this module decides.
//!
//! `sample` makes series of the kernel's texts, `history` keeps them in a fixed amount of memory, `judge` has the rules, `watcher`
//! applies them to each new sample and reports each growth once. `state` keeps reports and earlier levels over restarts.
//! Nothing here reads a file or a clock: tests replay samples in made time.

mod history;
mod judge;
mod sample;
mod state;
mod watcher;

#[cfg(test)]
mod courses;
#[cfg(test)]
mod growths;
#[cfg(test)]
mod ordinary;
#[cfg(test)]
mod tests;

pub use judge::{Growth, Verdict, Window};
pub use sample::{Kind, Sample, Texts, Value};
pub use watcher::{Finding, Judged, Watcher};
