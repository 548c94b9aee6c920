//! Recovery of any damaged file gives a sound file; of a damaged story, events of the story, in order.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use kmt_format::Compression;
use kmt_format::edit::{Rewrite, RewriteOptions};
use kmt_format::kernel::ByteOrder;
use kmt_format::read::Trace;

use super::story::{self, Numbers};
use super::{look, open, repair};

pub fn run(data: &[u8]) {
    let mut repaired = data.to_vec();
    repair::repair(&mut repaired);
    for data in [data, &repaired] {
        if let Some(new) = recovered(data) {
            let trace =
                Trace::builder().limits(open::limits()).open(&new).expect("a recovered file can be opened");
            assert_eq!(trace.damages(), []);
            assert!(trace.is_finished());
            for (chunk, _) in trace.folds() {
                trace.read_fold(chunk).expect("a recovered file has no folded lives that cannot be read");
            }
        }
    }
    let (file, clean) = original();
    damaged(file, clean, &mut Numbers(data));
}

fn recovered(data: &[u8]) -> Option<Vec<u8>> {
    let mut rewrite = Rewrite::new(data, open::limits(), RewriteOptions::default()).ok()?;
    let mut out = Vec::new();
    while let Some(bytes) = rewrite.next_bytes().expect("no codec is asked for") {
        out.extend(bytes);
    }
    Some(out)
}

type Events = BTreeMap<(u32, u64), String>;

fn original() -> &'static (Vec<u8>, Events) {
    static FILE: OnceLock<(Vec<u8>, Events)> = OnceLock::new();
    FILE.get_or_init(|| {
        let seed: Vec<u8> = (0..600u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let file = story::write(&story::of(&seed, true), ByteOrder::Little, 8, Compression::None);
        let events = look::events(&Trace::open(&file).expect("our own file"));
        (file, events.into_iter().collect())
    })
}

/// Flips, cuts and inserts as the numbers say.
fn damaged(file: &[u8], clean: &Events, numbers: &mut Numbers<'_>) {
    let mut data = file.to_vec();
    let mut flipped = false;
    for _ in 0..8 {
        if numbers.is_empty() || data.is_empty() {
            break;
        }
        let what = numbers.byte();
        let at = numbers.number(2) as usize % data.len();
        match what & 3 {
            0 => {
                data[at] ^= what.max(4);
                flipped = true;
            }
            1 => data.truncate(at),
            2 => drop(data.drain(at..(at + usize::from(what)).min(data.len()))),
            _ => drop(data.splice(at..at, vec![what; usize::from(what)])),
        }
    }
    let Some(new) = recovered(&data) else { return };
    let trace = Trace::open(&new).expect("a recovered file can be opened");
    assert_eq!(trace.damages(), []);
    // A torn chunk gives its records without a checksum: after a flip they may be others.
    let unverified = kmt_format::raw::chunk_flags::UNVERIFIED;
    let torn = trace.streams().values().flat_map(|s| &s.chunks).any(|(c, _)| c.flags & unverified != 0);
    if flipped && torn {
        return;
    }
    let mut last = None;
    for (key, text) in look::events(&trace) {
        assert_eq!(clean.get(&key), Some(&text));
        assert!(last < Some(key), "in order");
        last = Some(key);
    }
}
