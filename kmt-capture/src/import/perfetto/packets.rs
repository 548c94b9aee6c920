//! Packets of a trace, also compressed ones.

use super::super::bounds::Bounds;
use super::super::cursor::{ImportError, Result};
use super::super::inflate::{Codec, Inflating};
use super::wire::{Field, Message};

/// Field of a packet in a trace.
const PACKET: u32 = 1;
/// Fields of a packet that hold packets.
const ZLIB: u32 = 50;
const ZSTD: u32 = 133;

/// Shows each packet of a trace, or the error in its place. Compressed parts have at most `inflated_max` bytes together.
///
/// # Errors
///
/// Returns what `see` fails with.
pub fn packets<E>(
    bytes: &[u8],
    inflated_max: u64,
    bounds: &Bounds,
    see: &mut dyn FnMut(Result<Message<'_>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let inflating = Inflating::new("all compressed packets together", inflated_max);
    for field in Message::new(bytes, 0).fields() {
        let packet = match field {
            Ok(field) => packet_of(&field),
            Err(fault) => return see(Err(fault)),
        };
        let Some(packet) = packet else { continue };
        match inflated(packet, bounds.compressed_packet) {
            Ok(None) => see(Ok(packet))?,
            Ok(Some(bytes)) => {
                if let Err(fault) = inflating.take(bytes.len() as u64, packet.offset()) {
                    return see(Err(fault));
                }
                // Compressed packets within compressed packets are not read.
                for field in Message::inflated(&bytes, packet.offset()).fields() {
                    match field {
                        Ok(field) => packet_of(&field).map_or(Ok(()), |packet| see(Ok(packet)))?,
                        Err(fault) => see(Err(within(fault)))?,
                    }
                }
            }
            Err(fault) => see(Err(fault))?,
        }
    }
    Ok(())
}

fn packet_of<'d>(field: &Field<'d>) -> Option<Message<'d>> {
    field.message().filter(|_| field.number == PACKET)
}

fn within(fault: ImportError) -> ImportError {
    ImportError::at(fault.offset, format!("in the compressed packet: {}", fault.what))
}

/// The packets of a packet that has them compressed.
fn inflated(packet: Message<'_>, most: u64) -> Result<Option<Vec<u8>>> {
    let mut found: Option<(Codec, Message<'_>)> = None;
    for field in packet.fields() {
        // An error in a packet that is not compressed is reported where the packet is read.
        let Ok(field) = field else { break };
        match (field.number, field.message()) {
            (ZLIB, Some(packed)) => found = Some((Codec::Zlib, packed)),
            (ZSTD, Some(packed)) if !matches!(found, Some((Codec::Zlib, _))) => {
                found = Some((Codec::Zstd, packed));
            }
            _ => {}
        }
    }
    let Some((codec, packed)) = found else { return Ok(None) };
    codec.inflate_unstated(packed.bytes(), most, packed.offset(), "compressed_packet").map(Some)
}
