//! Where addresses go: text, data and page frames each by one distance, a multiple of the largest page.

use kmt_format::kernel::{ByteOrder, Field, FieldKind};
use kmt_format::read::{Event, SymbolEntry};
use kmt_format::schema::Role;

use crate::commands::session::Session;
use crate::failure::{Failure, Result};

/// Distances.
#[derive(Debug)]
pub struct Places {
    long_size: usize,
    /// Addresses of the kernel's functions: first, last.
    text: (u64, u64),
    text_shift: u64,
    data_shift: u64,
    frame_shift: u64,
}

impl Places {
    /// For a trace. The same seed gives the same distances.
    ///
    /// # Errors
    ///
    /// Refuses a trace whose addresses leave no room to move: they would stay what they are.
    pub fn of(session: &Session<'_>, seed: u64) -> Result<Self> {
        let long_size = session.trace.header().long_size;
        let seen = Seen::of(session);
        let mut random = seed;
        let mut next = || {
            // SplitMix64, Steele et al. 2014.
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = random;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        };
        let top = if long_size == 8 { u64::MAX } else { u32::MAX.into() };
        // What direct maps are made of, 1 GiB on 64-bit machines, and no less than a pageblock anywhere.
        let block = if long_size == 8 { 1 << 30 } else { 1 << 23 };
        // A 56-bit comparison must not see a wrap, so 64-bit addresses move within 2^52.
        let reach = if long_size == 8 { 1u64 << 52 } else { top };
        let page_size = session.trace.header().page_size.filter(|s| s.is_power_of_two()).unwrap_or(4096);
        let frame_block = (block / page_size).max(1);
        let frame_top = if long_size == 8 { 1 << 40 } else { 1 << 20 };
        let moved = |range, top, reach, block, random, what: &str| {
            shift(range, top, reach, block, random).ok_or_else(|| {
                Failure::new(format!("{}: {what} leave no room to move", session.path.display()))
                    .hint("slice keeps events by name, time or CPU: leave out those with such addresses")
            })
        };
        Ok(Self {
            long_size,
            text: seen.text,
            text_shift: moved(seen.text, top, reach, block, next(), "addresses of functions")?,
            data_shift: moved(seen.data, top, reach, block, next(), "addresses of objects")?,
            frame_shift: moved(seen.frames, frame_top, frame_top, frame_block, next(), "page frames")?,
        })
    }

    /// An address at its new place.
    pub fn moved(&self, address: u64) -> u64 {
        // NULL, ZERO_SIZE_PTR, error pointers and all ones are no addresses.
        if address <= 4096 || address >= self.top().wrapping_sub(4096) {
            return address;
        }
        let is_text = (self.text.0..=self.text.1).contains(&address);
        address.wrapping_add(if is_text { self.text_shift } else { self.data_shift }) & self.top()
    }

    /// The value of a field, moved if it is an address or a frame.
    pub fn field(&self, field: &Field, role: Role, value: u64) -> u64 {
        let name = field.name.as_str();
        if role == Role::PFN || name.ends_with("pfn") {
            let none = if field.size >= 8 { u64::MAX } else { (1 << (field.size * 8)) - 1 };
            return if value == none { value } else { value.wrapping_add(self.frame_shift) & none };
        }
        if field.size as usize != self.long_size {
            return value;
        }
        let named =
            matches!(name, "ip" | "parent_ip" | "func" | "shr" | "shrink" | "page" | "addr" | "caller");
        let is_address = role == Role::PTR || role == Role::CALL_SITE || field.is_pointer() || named;
        // Whatever lies in the upper half of 64 bits and is no small negative number is an address too.
        let is_high = self.long_size == 8 && (0xff00 << 48..u64::MAX - (1 << 30)).contains(&value);
        let is_text = (self.text.0..=self.text.1).contains(&value) && self.text.0 > 4096;
        if is_address || (is_high && !field.signed) || is_text { self.moved(value) } else { value }
    }

    /// Addresses one after another.
    pub fn words(&self, bytes: &[u8], size: usize, order: ByteOrder) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for word in bytes.chunks(size.clamp(1, 8)) {
            order.push(&mut out, self.moved(order.uint(word)), word.len());
        }
        out
    }

    fn top(&self) -> u64 {
        if self.long_size == 8 { u64::MAX } else { u32::MAX.into() }
    }
}

/// What addresses a trace has: first and last.
struct Seen {
    text: (u64, u64),
    data: (u64, u64),
    frames: (u64, u64),
}

impl Seen {
    fn of(session: &Session<'_>) -> Self {
        let none = (u64::MAX, 0);
        let mut seen = Self { text: none, data: none, frames: none };
        let note = |range: &mut (u64, u64), value: u64| *range = (range.0.min(value), range.1.max(value));
        if let Some(symbols) = session.trace.symbols() {
            // Offsets of per-CPU variables are symbols too: the image is what the kernel says that it is.
            let (first, end) = symbols.core_range();
            let image = first.unwrap_or(1 << 20)..=end.unwrap_or(u64::MAX);
            let is_code = |s: &SymbolEntry<'_>| s.owner.is_some() || image.contains(&s.address);
            for symbol in symbols.entries().filter(|s| s.address > 4096 && is_code(s)) {
                note(&mut seen.text, symbol.address);
            }
        }
        let trace = session.trace;
        let mut merge = trace.merge();
        while let Some(run) = merge.next_run() {
            for index in run.range {
                let Some(event) = Event::new(trace.schema(), run.chunk, index) else { continue };
                if let Some(site) = event.uint_with(Role::CALL_SITE).filter(|&a| a > 4096) {
                    note(&mut seen.text, site);
                }
                let class = event.class();
                for (field, info) in class.fields.iter().enumerate().skip(class.common_count) {
                    let is_data = info.kind == FieldKind::Scalar
                        && (info.is_pointer() || class.roles.get(field) == Some(&Role::PTR));
                    let value = event.uint(field).filter(|&v| is_data && v > 4096);
                    if let Some(value) = value {
                        note(&mut seen.data, value);
                    }
                }
                let all_ones = |pfn: u64| pfn == u64::MAX || pfn == u64::from(u32::MAX);
                if let Some(pfn) = event.uint_with(Role::PFN).filter(|&p| !all_ones(p)) {
                    note(&mut seen.frames, pfn);
                }
            }
        }
        seen
    }
}

/// A distance, a multiple of `block` and not 0, by which a range stays between `block` and `top`, and moves by less than
/// `reach`.
fn shift((first, last): (u64, u64), top: u64, reach: u64, block: u64, random: u64) -> Option<u64> {
    if first > last {
        return Some(block);
    }
    let up = (top.saturating_sub(last).saturating_sub(block) / block).min(reach / block);
    let down = (first.saturating_sub(block) / block).min(reach / block);
    match up.saturating_add(down) {
        // A range that fills everything cannot move.
        0 => None,
        all => {
            let chosen = random % all;
            let blocks = if chosen < up { chosen + 1 } else { (chosen - up + 1).wrapping_neg() };
            Some(blocks.wrapping_mul(block))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_move_is_refused() {
        assert_eq!(shift((1, u64::MAX), u64::MAX, u64::MAX, 1 << 21, 5), None);
    }

    #[test]
    fn ranges_stay_in_bounds() {
        let block = 1 << 21;
        for random in [0, 1, 77, u64::MAX] {
            let range = (0xc000_0000u64, 0xefff_ffff);
            let by = shift(range, u32::MAX.into(), u32::MAX.into(), block, random).unwrap();
            let moved = range.0.wrapping_add(by);
            assert!(by != 0 && by % block == 0 && moved >= block, "{by:#x}");
            assert!(range.1.wrapping_add(by) <= u64::from(u32::MAX), "{by:#x}");
        }
    }
}
