//! Call chains as `kernel_stack` records, which are how a trace ring buffer holds them.

use std::collections::HashSet;

use kmt_format::kernel::ByteOrder;

use super::description::{Description, format_id};

/// Bytes that begin every record: type, flags, preempt count, pid.
const COMMON_LEN: usize = 8;
/// Most frames that a stack keeps; the kernel's own limit is 1,024 (6.14).
const FRAMES_MAX: usize = 1024;

/// The event that stacks become.
#[derive(Debug)]
pub struct StackFormat {
    id: u16,
    long_size: usize,
}

impl StackFormat {
    /// One whose id no event has. The kernel's own, 4, is free in files of perf.
    pub fn new(description: &Description) -> Self {
        let taken: HashSet<u16> =
            description.formats.iter().filter_map(|(_, _, text)| format_id(text)).collect();
        let free = [4].into_iter().chain((1..=u16::MAX).rev()).find(|id| !taken.contains(id));
        Self { id: free.unwrap_or(u16::MAX), long_size: description.long_size }
    }

    /// System, file, text of its `format`.
    pub fn format(&self) -> (String, String, String) {
        let Self { id, .. } = self;
        let caller = self.caller_offset();
        let text = format!(
            "name: kernel_stack\nID: {id}\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
             \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
             \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
             \tfield:unsigned long caller[];\toffset:{caller};\tsize:0;\tsigned:0;\n\n\
             print fmt: \"size=%d\", REC->size\n"
        );
        ("ftrace".to_owned(), "the format of stacks".to_owned(), text)
    }

    /// The stack of the event whose record is `raw`, made again in `record`.
    pub fn record(&self, record: &mut Vec<u8>, raw: &[u8], chain: &[u8], order: ByteOrder) {
        record.clear();
        order.push(record, self.id.into(), 2);
        record.extend_from_slice(raw.get(2..COMMON_LEN).unwrap_or_default());
        record.resize(COMMON_LEN, 0);
        let frames = chain.chunks_exact(8).take(FRAMES_MAX);
        order.push(record, frames.len() as u64, 4);
        record.resize(self.caller_offset(), 0);
        for frame in frames {
            order.push(record, order.uint(frame), self.long_size);
        }
    }

    fn caller_offset(&self) -> usize {
        (COMMON_LEN + 4).next_multiple_of(self.long_size)
    }
}

/// The frames of a call chain that are the kernel's. Marks, which are small negative numbers, part the contexts.
pub fn kernel_frames(chain: &[u8], order: ByteOrder) -> &[u8] {
    const KERNEL: u64 = -128i64 as u64;
    const MARKS: u64 = -4095i64 as u64;
    let mut start = None;
    for (number, frame) in chain.chunks_exact(8).enumerate() {
        let address = order.uint(frame);
        match start {
            None if address == KERNEL => start = Some(number * 8 + 8),
            Some(start) if address >= MARKS => return chain.get(start..number * 8).unwrap_or_default(),
            _ => {}
        }
    }
    start.and_then(|start| chain.get(start..chain.len() / 8 * 8)).unwrap_or_default()
}

/// True if perf takes a call chain for corrupt and drops it whole: within its first 16 frames is one that is neither an
/// address nor a context that perf knows, such as a frame pointer of user code without frame pointers (`add_callchain_ip`,
/// tools/perf/util/machine.c 4.4 to 6.1). The kernel's part is none the worse for that.
pub fn is_corrupt_to_perf(chain: &[u8], order: ByteOrder) -> bool {
    const CONTEXT_MAX: u64 = -4095i64 as u64;
    const CONTEXTS: [u64; 3] = [-32i64 as u64, -128i64 as u64, -512i64 as u64];
    const FRAMES_CHECKED: usize = 16;
    let mut frames = 0;
    for frame in chain.chunks_exact(8) {
        let address = order.uint(frame);
        if address < CONTEXT_MAX {
            frames += 1;
        } else if !CONTEXTS.contains(&address) {
            return true;
        }
        if frames == FRAMES_CHECKED {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_parted_by_marks() {
        let bytes = |frames: &[i64]| frames.iter().flat_map(|f| f.to_le_bytes()).collect::<Vec<u8>>();
        let kernel = |frames: &[i64]| kernel_frames(&bytes(frames), ByteOrder::Little).len() / 8;
        assert_eq!(kernel(&[-128, -100_000, -200_000, -512, 5, 6]), 2);
        assert_eq!(kernel(&[-128, -100_000]), 1);
        assert_eq!(kernel(&[-512, 5, 6]), 0);
        assert_eq!(kernel(&[]), 0);
    }

    #[test]
    fn perf_drops_chains_with_what_it_does_not_know() {
        let bytes = |frames: &[i64]| frames.iter().flat_map(|f| f.to_le_bytes()).collect::<Vec<u8>>();
        let is_corrupt = |frames: &[i64]| is_corrupt_to_perf(&bytes(frames), ByteOrder::Little);
        assert!(!is_corrupt(&[-128, -100_000, -512, 5, 6]));
        assert!(is_corrupt(&[-128, -100_000, -512, 5, -1]));
        let mut long = vec![-128];
        long.extend([-100_000; 16]);
        long.push(-1);
        assert!(!is_corrupt(&long), "behind what perf looks at");
    }
}
