//! Changes that reach behind the first check: of chunks, of numbers, of lines.

use super::inputs::{Input, Inputs, Kind};
use super::repair::repair;

/// Random numbers that follow from three things: SplitMix64.
pub struct Numbers(u64);

impl Numbers {
    pub fn of(seed: u64, kind: &str, number: u64) -> Self {
        let mixed = kind.bytes().fold(seed, |n, b| n.wrapping_mul(0x100_0000_01b3) ^ u64::from(b));
        Self(mixed ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A number at which arithmetic, signs or limits end.
    fn edge(&mut self) -> u64 {
        let bit = 1u64 << self.below(64);
        match self.below(9) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => i64::MAX as u64,
            4 => bit,
            5 => bit - 1,
            6 => bit.wrapping_neg(),
            7 => u64::MAX - self.next() % 4096,
            _ => self.next() % 4096,
        }
    }
}

/// An input with one to four changes.
pub fn mutate(inputs: &Inputs, n: &mut Numbers) -> Input {
    let mut input = inputs.all[n.below(inputs.all.len())].clone();
    for _ in 0..1 + n.below(4) {
        let at = n.below(input.len());
        match inputs.kind {
            Kind::Kmt => chunks(&mut input[at].1, n),
            Kind::Text => text(&mut input[at].1, n),
            Kind::TraceDat | Kind::PerfData | Kind::Perfetto => either(&mut input[at].1, n),
            Kind::Directory => match n.below(8) {
                0 if input.len() > 1 => drop(input.remove(at)),
                1 => {
                    let other = n.below(input.len());
                    input[at].1 = input[other].1.clone();
                }
                2 => input[at].1.clear(),
                _ => either(&mut input[at].1, n),
            },
        }
    }
    if inputs.kind == Kind::Kmt && n.below(8) > 0 {
        repair(&mut input[0].1);
    }
    input
}

/// Text or numbers, by what is at a place.
fn either(bytes: &mut Vec<u8>, n: &mut Numbers) {
    let at = n.below(bytes.len());
    let around = &bytes[at.saturating_sub(16)..(at + 16).min(bytes.len())];
    let is_text = around.iter().all(|&b| (b == b'\n' || b == b'\t' || (0x20..0x7f).contains(&b)) && b != 0);
    if is_text { near(bytes, at, n) } else { numbers(bytes, at, n) }
}

/// Changes text near a place, and leaves what is far.
fn near(bytes: &mut Vec<u8>, at: usize, n: &mut Numbers) {
    let (from, to) = (at.saturating_sub(120), (at + 120).min(bytes.len()));
    let mut part = bytes[from..to].to_vec();
    text(&mut part, n);
    if n.below(4) > 0 {
        // Lengths stay right.
        part.resize(to - from, b' ');
    }
    bytes.splice(from..to, part);
}

fn numbers(bytes: &mut Vec<u8>, at: usize, n: &mut Numbers) {
    let width = [1, 2, 4, 8][n.below(4)];
    let at = at / width * width;
    let Some(place) = bytes.get_mut(at..at + width) else { return };
    match n.below(8) {
        0..=2 => {
            let edge = n.edge();
            let value = if n.below(2) == 0 { edge.to_le_bytes() } else { edge.swap_bytes().to_le_bytes() };
            place.copy_from_slice(&value[..width]);
        }
        3 => place[0] = place[0].wrapping_add(1),
        4 => place[0] = place[0].wrapping_sub(1),
        5 => place[n.below(width)] ^= 1 << n.below(8),
        6 => {
            let from = n.below(bytes.len().saturating_sub(width));
            let value = bytes[from..from + width].to_vec();
            bytes[at..at + width].copy_from_slice(&value);
        }
        _ => blocks(bytes, n),
    }
}

/// Cuts, repeats or drops a block.
fn blocks(bytes: &mut Vec<u8>, n: &mut Numbers) {
    let unit = [1, 4, 8, 64, 4096][n.below(5)];
    let from = n.below(bytes.len()) / unit * unit;
    let to = (from + unit * (1 + n.below(4))).min(bytes.len());
    match n.below(4) {
        0 => bytes.truncate(from),
        1 => drop(bytes.drain(from..to)),
        2 => {
            let block = bytes[from..to].to_vec();
            let at = n.below(bytes.len()) / unit * unit;
            bytes.splice(at..at, block);
        }
        _ => bytes[from..to].fill([0, 0xff, 0x80][n.below(3)]),
    }
}

fn text(bytes: &mut Vec<u8>, n: &mut Numbers) {
    let mut words: Vec<Vec<u8>> =
        bytes.split_inclusive(|b| b" \n\t=:;,".contains(b)).map(<[u8]>::to_vec).collect();
    if words.is_empty() {
        return;
    }
    let (at, other) = (n.below(words.len()), n.below(words.len()));
    match n.below(8) {
        0 => words[at] = format!("{} ", n.edge()).into_bytes(),
        1 => words[at] = format!("{:#x} ", n.edge()).into_bytes(),
        2 => words[at] = format!("-{}\n", n.edge()).into_bytes(),
        3 => words[at] = words[other].clone(),
        4 => words.swap(at, other),
        5 => drop(words.remove(at)),
        6 => {
            let word = words[at].clone();
            words[at] = word.repeat(2 + n.below(60));
        }
        _ => {
            let strange: [&[u8]; 6] =
                [b"\0", b"\x1b[2J", "\u{202e}".as_bytes(), b"\xff\xfe", b"%s%n", b"(____ptrval____)"];
            words[at].splice(0..0, strange[n.below(6)].iter().copied());
        }
    }
    *bytes = words.concat();
}

/// Ends of the chunks, as their lengths tell: `spec.md`, "Chunks".
fn ends(bytes: &[u8]) -> Vec<usize> {
    let is_big = bytes.get(8) == Some(&1);
    let (mut at, mut out) = (64, vec![64]);
    while let Some(head) = bytes.get(at..at + 64).filter(|h| h.starts_with(b"KMTC")) {
        let len: [u8; 8] = head[16..24].try_into().expect("eight bytes");
        let len = if is_big { u64::from_be_bytes(len) } else { u64::from_le_bytes(len) };
        let Some(end) = usize::try_from(len).ok().and_then(|l| at.checked_add(l)) else { break };
        if len < 64 || end > bytes.len() {
            break;
        }
        at = end;
        out.push(at);
    }
    out
}

fn chunks(bytes: &mut Vec<u8>, n: &mut Numbers) {
    let ends = ends(bytes);
    if ends.len() < 3 {
        return blocks(bytes, n);
    }
    let chunk = |number: usize| ends[number]..ends[number + 1];
    let (one, other) = (chunk(n.below(ends.len() - 1)), chunk(n.below(ends.len() - 1)));
    match n.below(16) {
        // A number of its body, more often one near its begin: heads and tables.
        0..=6 => {
            let reach = if n.below(2) == 0 { 256 } else { one.len() };
            let at = one.start + 64 + n.below(reach.min(one.len()).saturating_sub(64));
            numbers_within(bytes, at, one.end, n);
        }
        // Kind, codec, flags, lengths, CPU, sequence, length of the prefix.
        7 | 8 => {
            let (offset, width) =
                [(8, 4), (12, 1), (13, 1), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (52, 4)][n.below(9)];
            let edge = n.edge().to_le_bytes();
            let from = other.start + offset;
            let theirs = bytes[from..from + width].to_vec();
            let value = if n.below(2) == 0 { &theirs[..] } else { &edge[..width] };
            bytes[one.start + offset..one.start + offset + width].copy_from_slice(value);
        }
        9 => {
            let copy = bytes[one].to_vec();
            bytes.splice(other.start..other.start, copy);
        }
        10 => {
            let (a, b) = (bytes[one.clone()].to_vec(), bytes[other.clone()].to_vec());
            let (first, second, a, b) =
                if one.start <= other.start { (one, other, a, b) } else { (other, one, b, a) };
            if first != second {
                bytes.splice(second, a);
                bytes.splice(first, b);
            }
        }
        11 => drop(bytes.drain(one)),
        // One's body under another's head.
        12 => {
            let len = one.len().min(other.len()) - 64;
            let body = bytes[other.start + 64..other.start + 64 + len].to_vec();
            bytes[one.start + 64..one.start + 64 + len].copy_from_slice(&body);
        }
        13 => bytes.truncate(one.start + n.below(one.len())),
        14 => numbers(bytes, n.below(64), n),
        _ => blocks(bytes, n),
    }
}

fn numbers_within(bytes: &mut Vec<u8>, at: usize, end: usize, n: &mut Numbers) {
    if at + 8 <= end {
        numbers(bytes, at, n);
    }
}
