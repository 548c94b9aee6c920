//! Allocation flags by their names in the traced kernel: bits differ between kernels, and the text of a value has a composite
//! name in place of some flags.
//!
//! `decode` keeps the flags of each combination that it prints, and marks those that rules depend on, such as `HIGHMEM`
//! and `ACCOUNT`. Names are compared with and without underscores, since Linux 4.4 prints them without.

bitflags::bitflags! {
    /// Flags of an allocation that rules depend on (include/linux/gfp_types.h); names without `__GFP_`.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct GfpFlags: u16 {
        /// May be in high memory.
        const HIGHMEM = 1;
        /// The kernel may move the page.
        const MOVABLE = 1 << 1;
        /// Heeds the nodes that the task may use: memory of processes and files.
        const HARDWALL = 1 << 2;
        /// Counts for the memory cgroup.
        const ACCOUNT = 1 << 3;
        /// Filled with zeros.
        const ZERO = 1 << 4;
        /// A compound page.
        const COMP = 1 << 5;
        /// No warning if it fails.
        const NOWARN = 1 << 6;
        /// Fails rather than try again.
        const NORETRY = 1 << 7;
        /// Does not fail.
        const NOFAIL = 1 << 8;
        /// Leaves reserves alone.
        const NOMEMALLOC = 1 << 9;
        /// Will be written to.
        const WRITE = 1 << 10;
        /// May start I/O to reclaim memory.
        const IO = 1 << 11;
        /// May call file systems to reclaim memory.
        const FS = 1 << 12;
        /// The kernel may reclaim the page.
        const RECLAIMABLE = 1 << 13;
    }
}

impl GfpFlags {
    /// The flag of that name, with underscores or as 4.4 prints it, without; empty if no rule depends on it.
    pub fn named(name: &[u8]) -> Self {
        let name = name.strip_prefix(b"__").unwrap_or(name).strip_prefix(b"GFP_");
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        name.and_then(Self::from_name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_old_and_new_kernels() {
        for (name, flag) in [
            ("__GFP_NOWARN", GfpFlags::NOWARN),
            ("GFP_NOWARN", GfpFlags::NOWARN),
            ("__GFP_HIGHMEM", GfpFlags::HIGHMEM),
            ("GFP_HIGHUSER", GfpFlags::empty()),
            ("NOWARN", GfpFlags::empty()),
            ("GFP_", GfpFlags::empty()),
            ("", GfpFlags::empty()),
        ] {
            assert_eq!(GfpFlags::named(name.as_bytes()), flag, "{name}");
        }
        assert_eq!(GfpFlags::named(b"__GFP_\xff"), GfpFlags::empty());
    }
}
