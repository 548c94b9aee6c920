//! Taking sub-buffers out of saved ring buffers, as an overwritten ring would have lost them.

use std::fs;
use std::path::Path;

/// Header and length of the sub-buffers of the sample: a time stamp, a commit word, data; 4,096 bytes.
const HEADER: usize = 16;
const LEN: usize = 4096;

/// Takes about one of ten sub-buffers away, marks the next ones, and counts what is lost in `stats`.
pub fn sub_buffers(tracefs: &Path, trial: u64) {
    let mut seed = trial.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for cpu in fs::read_dir(tracefs.join("per_cpu")).unwrap().map(|e| e.unwrap().path()) {
        let raw = cpu.join("trace_pipe_raw");
        let mut kept = Vec::new();
        let (mut pending, mut lost) = (0u64, 0u64);
        for (number, sub_buffer) in fs::read(&raw).unwrap().chunks_exact(LEN).enumerate() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if number > 0 && (seed >> 33) % 10 == 0 {
                pending += events(sub_buffer);
                lost += events(sub_buffer);
                continue;
            }
            let mut sub_buffer = sub_buffer.to_vec();
            if pending > 0 {
                // Bit 31: events are missing; bit 30: their number stands behind the data.
                sub_buffer[HEADER - 8 + 3] |= 0x80;
                let end = HEADER + committed(&sub_buffer);
                if end + 8 <= LEN {
                    sub_buffer[HEADER - 8 + 3] |= 0x40;
                    sub_buffer[end..end + 8].copy_from_slice(&pending.to_le_bytes());
                }
                pending = 0;
            }
            kept.extend(sub_buffer);
        }
        fs::write(&raw, kept).unwrap();
        let stats = cpu.join("stats");
        let text = fs::read_to_string(&stats).unwrap();
        let count = |line: &str, by: i64| {
            let (name, number) = line.split_once(": ").unwrap();
            format!("{name}: {}", number.trim().parse::<i64>().unwrap() + by)
        };
        let lines = text.lines().map(|line| match line {
            l if l.starts_with("entries:") => count(l, -(lost as i64)),
            l if l.starts_with("overrun:") => count(l, lost as i64),
            l => l.to_owned(),
        });
        fs::write(&stats, lines.map(|l| l + "\n").collect::<String>()).unwrap();
    }
}

fn committed(sub_buffer: &[u8]) -> usize {
    u32::from_le_bytes(sub_buffer[8..12].try_into().unwrap()) as usize & 0x3fff_ffff
}

/// Events of a sub-buffer (kernel/trace/ring_buffer.c: type_len in the low five bits of each header).
fn events(sub_buffer: &[u8]) -> u64 {
    let word = |at: usize| u32::from_le_bytes(sub_buffer[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut count) = (HEADER, 0);
    while at < HEADER + committed(sub_buffer) {
        let header = word(at);
        at += match header & 31 {
            29 if header >> 5 == 0 => break,
            29 => 4 + word(at + 4),
            30 | 31 => 8,
            0 => {
                count += 1;
                4 + word(at + 4).next_multiple_of(4)
            }
            words => {
                count += 1;
                4 + 4 * words
            }
        };
    }
    count
}
