//! Encoders of our own: simple, and no two readers of the vectors can share a fault with them.

use crate::bytes::{number, read};

/// One LZ4 block: the longest match at the last place where the same four bytes stood.
pub fn lz4(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = std::collections::HashMap::new();
    let (mut at, mut literals) = (0, 0);
    // The last five bytes are literals, and the last match starts twelve bytes before the end at the latest.
    while at + 12 < input.len() {
        let seen = last.insert(&input[at..at + 4], at);
        let Some(from) = seen.filter(|from| at - from <= 65_535) else {
            at += 1;
            continue;
        };
        let room = input.len() - 5 - at;
        let len = (0..room).take_while(|&i| input[from + i] == input[at + i]).count();
        if len < 4 {
            at += 1;
            continue;
        }
        sequence(&mut out, &input[literals..at], Some((at - from, len)));
        at += len;
        literals = at;
    }
    sequence(&mut out, &input[literals..], None);
    out
}

fn sequence(out: &mut Vec<u8>, literals: &[u8], found: Option<(usize, usize)>) {
    let extra = found.map_or(0, |(_, len)| len - 4);
    out.push((literals.len().min(15) << 4 | extra.min(15)) as u8);
    let long = |out: &mut Vec<u8>, len: usize| {
        if len >= 15 {
            out.extend(std::iter::repeat_n(255, (len - 15) / 255));
            out.push(((len - 15) % 255) as u8);
        }
    };
    long(out, literals.len());
    out.extend_from_slice(literals);
    if let Some((offset, _)) = found {
        out.extend((offset as u16).to_le_bytes());
        long(out, extra);
    }
}

/// One Zstandard frame of a raw block, runs of one byte as RLE blocks (RFC 8878).
pub fn zstd(input: &[u8]) -> Vec<u8> {
    // Magic, a descriptor with an 8-byte content size and a single segment.
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
    out.extend((input.len() as u64).to_le_bytes());
    let mut blocks: Vec<(bool, &[u8])> = Vec::new();
    let (mut at, mut plain) = (0, 0);
    while at < input.len() {
        let run = input[at..].iter().take_while(|&&b| b == input[at]).count();
        if run >= 16 {
            if plain < at {
                blocks.push((false, &input[plain..at]));
            }
            blocks.push((true, &input[at..at + run]));
            plain = at + run;
        }
        at += run;
    }
    if plain < at || blocks.is_empty() {
        blocks.push((false, &input[plain..at]));
    }
    let count = blocks.len();
    for (i, (is_run, bytes)) in blocks.into_iter().enumerate() {
        assert!(bytes.len() < 1 << 17, "vectors are small");
        let header = u32::from(i + 1 == count) | u32::from(is_run) << 1 | (bytes.len() as u32) << 3;
        out.extend(&header.to_le_bytes()[..3]);
        out.extend(if is_run { &bytes[..1] } else { bytes });
    }
    out
}

/// The filter "records" of `count` records at `start`.
pub fn filter(bytes: &mut [u8], start: usize, count: usize, stride: usize, big: bool) {
    let records = bytes[start..start + count * stride].to_vec();
    let time = |i: usize| read(&records, i * stride, 4, big);
    for i in 0..count {
        let delta = if i == 0 { time(0) } else { time(i).wrapping_sub(time(i - 1)) };
        let mut record = records[i * stride..(i + 1) * stride].to_vec();
        record[..4].copy_from_slice(&number(delta, 4, big));
        for (k, byte) in record.into_iter().enumerate() {
            bytes[start + k * count + i] = byte;
        }
    }
}
