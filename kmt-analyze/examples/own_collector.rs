//! A pass with two collectors of the library and one of its own: `cargo run --example own_collector FILE.kmt`.

use std::path::PathBuf;

use kmt_analyze::collect::{Anomalies, Collector, Collectors, Lifetimes, Share};
use kmt_analyze::failure::Result;
use kmt_analyze::ledger::{Closed, Interests, Receiver};
use kmt_analyze::pass::selection::{Selection, Wants, analyse_for};
use kmt_analyze::trace::{open, session::Session};

/// The largest object that was not freed.
#[derive(PartialEq)]
struct LargestLive;

struct Largest(Option<Closed>);

impl Receiver for Largest {
    fn closed(&mut self, life: &Closed) {
        if life.is_live && self.0.is_none_or(|largest| largest.bytes_alloc < life.bytes_alloc) {
            self.0 = Some(*life);
        }
    }
}

impl Collector for LargestLive {
    type Part = Largest;
    type Output = Option<Closed>;

    fn interests(&self) -> Interests {
        Interests { lives: true, ..Interests::default() }
    }

    fn partition(&self, _: &Share) -> Largest {
        Largest(None)
    }

    fn merge(&self, first: Largest, others: Vec<Largest>) -> Option<Closed> {
        let all = others.into_iter().chain([first]).filter_map(|part| part.0);
        all.max_by_key(|life| (life.bytes_alloc, life.address))
    }
}

fn main() -> Result<()> {
    let path = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "trace.kmt".to_owned()));
    let bytes = open::bytes(&path)?;
    let trace = open::trace(&path, &bytes)?;
    let session = Session::new(&path, &trace);
    let mut collectors = Collectors::default();
    let lifetimes = collectors.add(Lifetimes::default());
    let anomalies = collectors.add(Anomalies);
    let largest = collectors.add(LargestLive);
    let analysis = analyse_for(&session, &Selection::default(), &Wants::of(&collectors));
    let freed: u64 = analysis.get(lifetimes).callers.iter().map(|caller| caller.freed.count()).sum();
    let late: u64 = analysis.get(anomalies).late.values().map(|late| late.frees).sum();
    println!("{freed} objects were freed, {late} of them logged late");
    if let Some(life) = analysis.get(largest) {
        println!("the largest that stays has {} bytes, at {:#x}", life.bytes_alloc, life.address);
    }
    Ok(())
}
