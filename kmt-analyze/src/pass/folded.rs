//! Lives that are in the file as sums, into the ledger: behind all events, whose order they do not take part in.

use kmt_format::read::{Damage, Trace};

use crate::ledger::{Ledger, Receiver};
use crate::stream::decode::Decoder;
use crate::stream::op::OpCode;

/// Enters the folded lives of a trace; returns the damage that it found.
pub fn enter<R: Receiver>(
    trace: &Trace<'_>,
    decoder: &mut Decoder<'_>,
    ledger: &mut Ledger<'_, R>,
    window: (u64, u64),
) -> Vec<Damage> {
    let mut damages = Vec::new();
    for (chunk, info) in trace.folds() {
        if info.t_end <= window.0 || info.t_begin > window.1 {
            continue;
        }
        let folded = match trace.read_fold(chunk) {
            Ok(folded) => folded,
            Err(error) => {
                damages.push(Damage::new(chunk.offset, chunk.total_len, error));
                continue;
            }
        };
        let codes: Vec<OpCode> =
            folded.events().events(trace.schema()).map(|event| decoder.code_of_sample(&event)).collect();
        ledger.learn(&decoder.new_items());
        let code = |index: usize| codes.get(index).copied().unwrap_or(OpCode::OTHER);
        for lives in folded.lives() {
            let interval = (info.t_begin, info.t_end);
            match lives.indices() {
                (Some(alloc), free) => {
                    ledger.enter_folded([code(alloc), code(free)], lives.sums(), interval, lives.bins());
                }
                (None, free) => ledger.enter_null_frees(code(free), lives.sums().count, interval),
            }
        }
    }
    damages
}
