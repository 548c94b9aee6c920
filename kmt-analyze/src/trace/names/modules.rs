//! Modules of functions, by their symbols.

/// Module of a symbol as the kernel prints it, in brackets: `ext4_alloc_inode+0x10/0x20 [ext4]`; [`CORE`] without one. `None`:
/// an address without a symbol.
pub fn module_of(symbol: &[u8]) -> Option<&[u8]> {
    match symbol.iter().position(|byte| *byte == b' ') {
        Some(at) => symbol.get(at + 1..),
        None if symbol.starts_with(b"0x") => None,
        None => Some(CORE),
    }
}

/// Names of a module in conditions: in brackets, and without.
pub fn names_of_module(module: &[u8]) -> [String; 2] {
    let name = String::from_utf8_lossy(module).into_owned();
    let bare = name.trim_start_matches('[').trim_end_matches(']').to_owned();
    [name, bare]
}

/// Module of the core kernel.
pub const CORE: &[u8] = b"[kernel]";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_those_in_brackets() {
        assert_eq!(module_of(b"ext4_alloc_inode+0x10/0x20 [ext4]"), Some(&b"[ext4]"[..]));
        assert_eq!(module_of(b"alloc_file+0x10/0x20"), Some(CORE));
        assert_eq!(module_of(b"0xffffffff81000010"), None);
        assert_eq!(names_of_module(b"[ext4]"), ["[ext4]", "ext4"]);
    }
}
