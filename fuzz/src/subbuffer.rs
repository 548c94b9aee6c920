//! Any bytes as a sub-buffer, of every layout: the walk ends, and stays within what was committed.

use kmt_format::kernel::{ByteOrder, HeaderPage, OrderVote, SubBuffer, SubBufferItem, vote_byte_order};

pub fn run(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    let (commit_size, data_offset) = if kind & 1 == 0 { (8, 16) } else { (4, 12) };
    let data_size = match kind >> 1 & 3 {
        0 => 4096 - data_offset,
        1 => 65_536 - data_offset,
        2 => 240,
        _ => bytes.len().saturating_sub(data_offset).max(1),
    };
    let header = HeaderPage { timestamp_offset: 0, commit_offset: 8, commit_size, data_offset, data_size };
    let mut vote = OrderVote::default();
    vote_byte_order(&mut vote, bytes, &header, |id| id < 1000);
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let Ok(sub_buffer) = SubBuffer::parse(bytes, &header, order) else { continue };
        let mut total = 0;
        for item in sub_buffer.items() {
            match item {
                Ok(SubBufferItem::Event { record, .. }) => total += record.len() + 4,
                Ok(SubBufferItem::Discarded) => total += 4,
                Ok(_) | Err(_) => {}
            }
        }
        assert!(total <= sub_buffer.data_len());
    }
}
