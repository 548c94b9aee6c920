//! Finding the byte order of a kernel from its sub-buffers.

use super::{ByteOrder, HeaderPage, SubBuffer, SubBufferItem};

/// Evidence of sub-buffers for a byte order: how many decode completely under each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderVote {
    /// Sub-buffers that decode as little endian.
    pub little: u32,
    /// Sub-buffers that decode as big endian.
    pub big: u32,
}

impl OrderVote {
    /// The order with more sub-buffers; `None` where there is no evidence or a draw.
    pub fn winner(self) -> Option<ByteOrder> {
        match self.little.cmp(&self.big) {
            core::cmp::Ordering::Greater => Some(ByteOrder::Little),
            core::cmp::Ordering::Less => Some(ByteOrder::Big),
            core::cmp::Ordering::Equal => None,
        }
    }
}

/// Adds one sub-buffer's evidence to `vote`.
///
/// A sub-buffer counts for an order if its whole commit word is plausible under it (upper half all zeros or all
/// ones, size within the data area) and a walk over all its events succeeds, each with an id that `knows_id`. A
/// single word is not enough: a size of 0x0f0f reads alike both ways. Sub-buffers without events do not count.
pub fn vote_byte_order(
    vote: &mut OrderVote,
    sub_buffer: &[u8],
    header: &HeaderPage,
    knows_id: impl Fn(u16) -> bool,
) {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        if speaks_for(order, sub_buffer, header, &knows_id) {
            match order {
                ByteOrder::Little => vote.little = vote.little.saturating_add(1),
                ByteOrder::Big => vote.big = vote.big.saturating_add(1),
            }
        }
    }
}

fn speaks_for(order: ByteOrder, bytes: &[u8], header: &HeaderPage, knows_id: &impl Fn(u16) -> bool) -> bool {
    let Some(word) = order.uint_at(bytes, header.commit_offset, header.commit_size) else { return false };
    if !matches!(word >> 32, 0 | 0xffff_ffff) || word & 0x3800_0000 != 0 {
        return false;
    }
    let Ok(sub_buffer) = SubBuffer::parse(bytes, header, order) else { return false };
    let mut events = 0u32;
    for item in sub_buffer.items() {
        match item {
            Ok(SubBufferItem::Event { record, .. }) => {
                let Some(id) = order.uint_at(record, 0, 2) else { return false };
                if !knows_id(id as u16) {
                    return false;
                }
                events = events.saturating_add(1);
            }
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    events > 0
}
