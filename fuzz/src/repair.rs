//! Makes the checksums of any bytes right, so that the parsers after them are reached.

use kmt_format::kernel::ByteOrder;

/// Stamps the checksums of the header and of every chunk that the lengths lead to.
pub fn repair(data: &mut [u8]) {
    let order = if data.get(8) == Some(&1) { ByteOrder::Big } else { ByteOrder::Little };
    if data.len() < 64 {
        return;
    }
    let crc = crc32(&data[..60]);
    stamp(data, 60, crc, order);
    let salt: [u8; 4] = [data[40], data[41], data[42], data[43]];
    let mut at = 64;
    while at + 64 <= data.len() {
        data[at..at + 4].copy_from_slice(b"KMTC");
        data[at + 4..at + 8].copy_from_slice(&salt);
        let total = order.uint_at(data, at + 16, 8).unwrap_or(0).min(1 << 20) as usize;
        let total = total.max(64).next_multiple_of(64);
        if let Some(body) = data.get(at + 64..at + total) {
            let crc = crc32(body);
            let prefix_len = order.uint_at(data, at + 52, 4).unwrap_or(0) as usize;
            let prefix_crc = body.get(..prefix_len).map(crc32);
            stamp(data, at + 48, crc, order);
            if let Some(crc) = prefix_crc {
                stamp(data, at + 56, crc, order);
            }
        }
        let crc = crc32(&data[at..at + 60]);
        stamp(data, at + 60, crc, order);
        at += total;
    }
}

fn stamp(data: &mut [u8], at: usize, crc: u32, order: ByteOrder) {
    let bytes = if order == ByteOrder::Big { crc.to_be_bytes() } else { crc.to_le_bytes() };
    if let Some(place) = data.get_mut(at..at + 4) {
        place.copy_from_slice(&bytes);
    }
}

/// CRC-32, a nibble at a time.
pub fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = table();
    !bytes.iter().fold(!0u32, |crc, &byte| {
        let crc = crc ^ u32::from(byte);
        let crc = crc >> 4 ^ TABLE[(crc & 15) as usize];
        crc >> 4 ^ TABLE[(crc & 15) as usize]
    })
}

const fn table() -> [u32; 16] {
    let mut out = [0u32; 16];
    let mut i = 0;
    while i < 16 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        out[i] = crc;
        i += 1;
    }
    out
}
