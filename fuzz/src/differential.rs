//! The library against a second reader that was written from the specification alone: where the library finds a file
//! sound, both find the same in it.

use kmt_format::Compression;
use kmt_format::kernel::ByteOrder;
use kmt_format::read::Trace;

use super::second::{found, naive};
use super::story::{self, Numbers};
use super::{open, repair};

pub fn run(data: &[u8]) {
    let mut file = data.to_vec();
    repair::repair(&mut file);
    same(&file);
    // A file of a story, some of its bytes changed.
    let (changes, told) = data.split_at(data.len().min(16));
    let mut numbers = Numbers(changes);
    let order = if numbers.byte() & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let long = if numbers.byte() & 1 == 0 { 8 } else { 4 };
    let mut file = story::write(&story::of(told, true), order, long, Compression::None);
    same(&file);
    while !numbers.is_empty() {
        let at = numbers.number(2) as usize % file.len();
        file[at] = numbers.byte();
    }
    repair::repair(&mut file);
    same(&file);
}

/// Reads a file with both, if it is sound.
fn same(file: &[u8]) {
    let Ok(trace) = Trace::builder().limits(open::limits()).open(file) else { return };
    if !trace.damages().is_empty() || !trace.is_finished() {
        return;
    }
    let mut chunks = trace.streams().values().flat_map(|s| &s.chunks);
    if chunks.any(|(chunk, _)| trace.read(chunk).is_err()) {
        return;
    }
    if trace.folds().iter().any(|(chunk, _)| trace.read_fold(chunk).is_err()) {
        return;
    }
    let ours = found::of_trace(&trace);
    found::compare("both readers", &found::of_naive(&naive::read(file), &ours), &ours);
}
