//! The collectors of a pass, on threads of their own where there are cores for them: the ledger continues meanwhile.
//!
//! The pass gives batches of ledger events; the states of light and heavy collectors are spread over at most four
//! threads. On two cores the heavy ones stay with the ledger, on one core all of them. Each state sees all batches in
//! their order, so that results do not depend on the number of threads.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use kmt_common::out_of_memory::spawn;

use crate::collect::States;
use crate::ledger::batch::Batch;

/// Batches that wait for one thread.
const WAITING: usize = 8;
/// Largest number of threads: a few collectors cost as much as all others.
const THREADS_MAX: usize = 4;

/// States of the collectors, and the threads that they are on.
pub struct Crew<'s> {
    /// On the caller's thread.
    here: States,
    threads: Vec<Worker<'s>>,
    /// Batches that all threads have delivered.
    used: Receiver<Batch>,
}

/// A thread with its states.
struct Worker<'s> {
    batches: SyncSender<Arc<Batch>>,
    thread: ScopedJoinHandle<'s, States>,
}

impl<'s> Crew<'s> {
    /// For that number of cores. On two of them heavy collectors stay with the ledger: both have about as much to do then.
    pub fn new(scope: &'s Scope<'s, '_>, states: States, cores: usize) -> Self {
        let (back, used) = channel();
        let (mut here, mut groups) = (States::default(), Vec::new());
        if cores < 2 {
            here = states;
        } else {
            let (heavy, light) = states.by_weight();
            groups = light.split(cores.min(THREADS_MAX) - 1);
            if cores == 2 && groups.iter().any(|group| !group.is_empty()) {
                here = heavy;
            } else {
                groups.push(heavy);
            }
            groups.retain(|group| !group.is_empty());
        }
        let start = |states| {
            let (batches, receiver) = sync_channel(WAITING);
            let back = back.clone();
            Worker { batches, thread: spawn(scope, move || deliver(states, &receiver, &back)) }
        };
        Self { here, threads: groups.into_iter().map(start).collect(), used }
    }

    /// Delivers a batch and empties it.
    pub fn take(&mut self, batch: &mut Batch) {
        let Self { here, threads, used } = self;
        if threads.is_empty() {
            here.take(batch);
        } else {
            let full = Arc::new(std::mem::replace(batch, used.try_recv().unwrap_or_default()));
            for worker in threads {
                // Fails only if the thread panicked, which `finish` finds.
                let _ = worker.batches.send(Arc::clone(&full));
            }
            here.take(&full);
        }
        batch.clear();
    }

    /// The states, after all batches.
    pub fn finish(self) -> States {
        let states = self.threads.into_iter().map(|Worker { batches, thread }| {
            drop(batches);
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        States::join(states.chain([self.here]))
    }
}

fn deliver(mut states: States, batches: &Receiver<Arc<Batch>>, used: &Sender<Batch>) -> States {
    for batch in batches {
        states.take(&batch);
        if let Some(batch) = Arc::into_inner(batch) {
            // The other side may have ended already.
            let _ = used.send(batch);
        }
    }
    states
}
