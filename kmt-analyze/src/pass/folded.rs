//! Files with survivors as events and the other objects as sums: the sums of a pass, and the refusals of reports.
//!
//! Lives that are sums enter the ledger behind all events, whose order they do not take part in. Reports that add the sums can
//! do so for some selections only, as sums have no task, CPU or frame; the others refuse the file. `trace/folded` has the facts
//! that need no pass.

use kmt_format::read::{Damage, Trace};

use crate::ledger::{Ledger, Receiver};
use crate::pass::condition::Key;
use crate::pass::selection::Selection;
use crate::stream::decode::Decoder;
use crate::stream::op::OpCode;
use crate::trace::folded::{REMEDY, REPORTS};

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

/// Why a report that adds sums cannot answer for a selection; `None`: it can.
pub fn needs_events(selection: &Selection) -> Option<String> {
    let by_task = !selection.is_of_any_task() || !selection.cpus.is_empty() || selection.without_recorder;
    let keys = [Key::Pid, Key::Comm, Key::Cgroup, Key::Cpu, Key::Lifetime, Key::Pfn];
    (by_task || keys.iter().any(|key| selection.has_term_on(*key))).then(|| {
        format!(
            "the sums of objects that died young have no task, CPU, frame or single lifetime to select by: {REMEDY}"
        )
    })
}

/// Why a report that does not add sums has no answer.
pub fn not_of_sums(title: &str) -> String {
    format!(
        "{title}: this file has the events of survivors alone, and sums of objects that died young: {REMEDY}. {REPORTS} add the sums"
    )
}
