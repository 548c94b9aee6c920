//! An index cannot lie: what is found by it is what a walk finds, or an error.

use kmt_format::read::Trace;

use super::{look, open, repair};

pub fn run(data: &[u8]) {
    let mut data = data.to_vec();
    repair::repair(&mut data);
    let Ok(Some(indexed)) = Trace::open_indexed(&data, open::limits()) else { return };
    let by_index = look::events(&indexed);
    let damaged = indexed.streams().values().flat_map(|s| &s.chunks).any(|(c, _)| indexed.read(c).is_err());
    let Ok(walked) = Trace::builder().limits(open::limits()).open(&data) else {
        assert!(damaged, "a walk refuses the file");
        return;
    };
    let all = look::events(&walked);
    assert!(damaged || by_index == all);
    // Folded lives are not in the index: both ways find the same.
    assert!(damaged || indexed.folds() == walked.folds());
    // A time window passes over chunks, and must not have a wrong account of them.
    let times: Vec<u64> =
        indexed.streams().values().flat_map(|s| &s.chunks).map(|(_, i)| i.t_first).collect();
    let (first, last) = (times.iter().min().copied().unwrap_or(0), times.iter().max().copied().unwrap_or(0));
    let middle = first / 2 + last / 2;
    let count = |trace: &Trace<'_>| {
        let mut merge = trace.merge_between(middle, last);
        let mut count = 0;
        while let Some(run) = merge.next_run() {
            count += run.range.len();
        }
        (count, merge.damages().len())
    };
    let (found, damages) = count(&indexed);
    assert!(damages > 0 || found == count(&walked).0);
}
