//! Build ids of the kernel and of its modules, from ELF notes.

use kmt_format::kernel::ByteOrder;

/// `NT_GNU_BUILD_ID` of binutils and include/linux/elfnote.h.
const BUILD_ID: u32 = 3;

/// Longest build id, in bytes; the linker makes 20, or 16.
const LEN_MAX: usize = 64;

/// The build id in hexadecimal, of the notes of `/sys/kernel/notes` or `/sys/module/NAME/notes/.note.gnu.build-id`.
///
/// A note is the length of its name, the length of its contents and its kind, 4 bytes each, then name and contents, each
/// filled up to 4 bytes. Source: ELF gABI, "Note Section".
pub fn of_notes(notes: &[u8], order: ByteOrder) -> Option<String> {
    let mut rest = notes;
    loop {
        let word = |at: usize| Some(order.uint(rest.get(at..at + 4)?) as u32);
        let (name_len, len, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name = rest.get(12..)?.get(..name_len)?;
        let start = 12_usize.checked_add(name_len.checked_next_multiple_of(4)?)?;
        let contents = rest.get(start..)?.get(..len)?;
        if kind == BUILD_ID && name == b"GNU\0" {
            let is_id = (1..=LEN_MAX).contains(&contents.len());
            return is_id.then(|| hexadecimal(contents));
        }
        rest = rest.get(start.checked_add(len.checked_next_multiple_of(4)?)?..)?;
    }
}

/// Bytes as two digits each.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The key of the registry for the build id of a module; "" for the kernel.
pub fn key(module: &str) -> String {
    if module.is_empty() { "build_id".to_owned() } else { format!("build_id/{module}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, contents: &[u8], order: ByteOrder) -> Vec<u8> {
        let word = |number: u32| match order {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        };
        let mut bytes = [word(name.len() as u32), word(contents.len() as u32), word(kind)].concat();
        for part in [name, contents] {
            bytes.extend_from_slice(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn the_build_id_stands_among_other_notes() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut notes = note(b"Xen\0", 6, b"linux", order);
            assert_eq!(of_notes(&notes, order), None);
            notes.extend(note(b"GNU\0", BUILD_ID, &[0x3b, 0x43, 0xfa], order));
            assert_eq!(of_notes(&notes, order).as_deref(), Some("3b43fa"));
            notes.truncate(notes.len() - 3);
            assert_eq!(of_notes(&notes, order), None, "cut");
        }
        assert_eq!(of_notes(&[0xff; 64], ByteOrder::Little), None);
    }
}
