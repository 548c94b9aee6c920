//! A pass with two collectors of the library and one of its own: `cargo run --example own_collector FILE.kmt`.

use std::path::Path;

use kmt_analyze::collect::{
    Anomalies, Closed, Collector, Collectors, Interests, Lifetimes, PassFacts, Receiver,
};
use kmt_analyze::open::{self, Session};
use kmt_analyze::pass::{self, Request, Selection};

/// Size in bytes of the largest object that was not freed. It is its own state.
#[derive(Default, PartialEq)]
pub struct LargestLive(u64);

impl Receiver for LargestLive {
    fn closed(&mut self, life: &Closed) {
        self.0 = self.0.max(if life.is_live { life.bytes_alloc } else { 0 });
    }
}

impl Collector for LargestLive {
    type State = Self;
    type Output = u64;

    const INTERESTS: Interests = Interests::LIVES;

    fn begin(&self, _: &PassFacts) -> Self {
        Self::default()
    }

    fn finish(state: Self) -> u64 {
        state.0
    }
}

fn main() -> kmt_analyze::failure::Result<()> {
    run(Path::new(&std::env::args().nth(1).unwrap_or("trace.kmt".into()))).map(|text| println!("{text}"))
}

/// The text that it prints.
pub fn run(path: &Path) -> kmt_analyze::failure::Result<String> {
    let bytes = open::bytes(path)?;
    let trace = open::trace(path, &bytes)?;
    let session = Session::new(path, &trace);
    let mut collectors = Collectors::default();
    let (lifetimes, anomalies) = (collectors.add(Lifetimes::default()), collectors.add(Anomalies));
    let largest = collectors.add(LargestLive::default());
    let analysis = pass::run(&session, &Request::new(&Selection::default(), &collectors));
    let freed: u64 = analysis.get(lifetimes).callers.iter().map(|caller| caller.freed.count()).sum();
    let late: u64 = analysis.get(anomalies).late.values().map(|late| late.frees).sum();
    Ok(format!("{freed} objects freed, {late} logged late; largest live: {} bytes", analysis.get(largest)))
}
