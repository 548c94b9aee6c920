//! Names of allocation flags of kernels from 2.6.31 to 7.2, as bits: those of Linux 6.9 (include/linux/gfp_types.h).

use std::collections::HashMap;

use super::notation::Notation;
use super::value::{decimal, hex};

const DMA: u64 = 1;
const HIGHMEM: u64 = 1 << 1;
const DMA32: u64 = 1 << 2;
const MOVABLE: u64 = 1 << 3;
const RECLAIMABLE: u64 = 1 << 4;
const HIGH: u64 = 1 << 5;
const IO: u64 = 1 << 6;
const FS: u64 = 1 << 7;
const ZERO: u64 = 1 << 8;
const DIRECT_RECLAIM: u64 = 1 << 10;
const KSWAPD_RECLAIM: u64 = 1 << 11;
const WRITE: u64 = 1 << 12;
const NOWARN: u64 = 1 << 13;
const RETRY_MAYFAIL: u64 = 1 << 14;
const NOFAIL: u64 = 1 << 15;
const NORETRY: u64 = 1 << 16;
const MEMALLOC: u64 = 1 << 17;
const COMP: u64 = 1 << 18;
const NOMEMALLOC: u64 = 1 << 19;
const HARDWALL: u64 = 1 << 20;
const THISNODE: u64 = 1 << 21;
const ACCOUNT: u64 = 1 << 22;
const ZEROTAGS: u64 = 1 << 23;
const SKIP_ZERO: u64 = 1 << 24;
const SKIP_KASAN: u64 = 1 << 25;
const NOLOCKDEP: u64 = 1 << 26;

const RECLAIM: u64 = DIRECT_RECLAIM | KSWAPD_RECLAIM;
const KERNEL: u64 = RECLAIM | IO | FS;
const USER: u64 = KERNEL | HARDWALL;
const HIGHUSER_MOVABLE: u64 = USER | HIGHMEM | MOVABLE | SKIP_KASAN;
const TRANSHUGE_LIGHT: u64 = (HIGHUSER_MOVABLE | COMP | NOMEMALLOC | NOWARN) & !RECLAIM;

/// Names with their bits, those of several bits first: the order in which they are looked for when printing.
const NAMES: [(&str, u64); 43] = [
    ("GFP_TRANSHUGE", TRANSHUGE_LIGHT | DIRECT_RECLAIM),
    ("GFP_TRANSHUGE_LIGHT", TRANSHUGE_LIGHT),
    ("GFP_HIGHUSER_MOVABLE", HIGHUSER_MOVABLE),
    ("GFP_HIGHUSER", USER | HIGHMEM),
    ("GFP_USER", USER),
    ("GFP_KERNEL_ACCOUNT", KERNEL | ACCOUNT),
    ("GFP_KERNEL", KERNEL),
    ("GFP_NOFS", RECLAIM | IO),
    ("GFP_ATOMIC", HIGH | KSWAPD_RECLAIM),
    ("GFP_NOIO", RECLAIM),
    ("GFP_NOWAIT", KSWAPD_RECLAIM),
    ("GFP_DMA", DMA),
    ("__GFP_DMA", DMA),
    ("GFP_DMA32", DMA32),
    ("__GFP_DMA32", DMA32),
    ("__GFP_HIGHMEM", HIGHMEM),
    ("__GFP_HIGH", HIGH),
    ("__GFP_IO", IO),
    ("__GFP_FS", FS),
    ("__GFP_NOWARN", NOWARN),
    ("__GFP_RETRY_MAYFAIL", RETRY_MAYFAIL),
    ("__GFP_NOFAIL", NOFAIL),
    ("__GFP_NORETRY", NORETRY),
    ("__GFP_COMP", COMP),
    ("__GFP_ZERO", ZERO),
    ("__GFP_NOMEMALLOC", NOMEMALLOC),
    ("__GFP_MEMALLOC", MEMALLOC),
    ("__GFP_HARDWALL", HARDWALL),
    ("__GFP_THISNODE", THISNODE),
    ("__GFP_RECLAIMABLE", RECLAIMABLE),
    ("__GFP_MOVABLE", MOVABLE),
    ("__GFP_ACCOUNT", ACCOUNT),
    ("__GFP_WRITE", WRITE),
    ("__GFP_RECLAIM", RECLAIM),
    ("__GFP_DIRECT_RECLAIM", DIRECT_RECLAIM),
    ("__GFP_KSWAPD_RECLAIM", KSWAPD_RECLAIM),
    ("__GFP_ZEROTAGS", ZEROTAGS),
    ("__GFP_SKIP_ZERO", SKIP_ZERO),
    ("__GFP_SKIP_KASAN", SKIP_KASAN),
    ("__GFP_SKIP_KASAN_POISON", SKIP_KASAN),
    ("__GFP_SKIP_KASAN_UNPOISON", SKIP_KASAN),
    ("__GFP_NOLOCKDEP", NOLOCKDEP),
    ("__GFP_NO_OBJ_EXT", 0),
];

/// Names of flags that went, and what they meant. Without underscores they are how kernels before 4.7 print `__GFP_…`.
const GONE: [(&str, u64); 20] = [
    ("GFP_WAIT", DIRECT_RECLAIM),
    ("__GFP_WAIT", DIRECT_RECLAIM),
    ("GFP_REPEAT", RETRY_MAYFAIL),
    ("__GFP_REPEAT", RETRY_MAYFAIL),
    ("GFP_TEMPORARY", KERNEL | RECLAIMABLE),
    ("GFP_HIGHUSER_PAGECACHE", USER | HIGHMEM),
    ("GFP_COLD", 0),
    ("__GFP_COLD", 0),
    ("GFP_NOTRACK", 0),
    ("__GFP_NOTRACK", 0),
    ("GFP_NOTRACK_FALSE_POSITIVE", 0),
    ("GFP_NO_KSWAPD", 0),
    ("GFP_OTHER_NODE", 0),
    ("GFP_KMEMCG", 0),
    ("__GFP_ATOMIC", 0),
    ("GFP_HARDWALL", HARDWALL),
    ("GFP_HIGH", HIGH),
    ("GFP_IO", IO),
    ("GFP_FS", FS),
    ("none", 0),
];

/// Texts of flags as numbers, remembered.
#[derive(Debug)]
pub struct GfpNames {
    values: HashMap<Vec<u8>, Option<u64>>,
    /// Of numbers without 0x.
    notation: Notation,
    /// A name that is not known, if there was one.
    pub unknown: Option<String>,
}

impl GfpNames {
    /// None yet.
    pub fn new(notation: Notation) -> Self {
        Self { values: HashMap::new(), notation, unknown: None }
    }

    /// The flags that a text such as `GFP_KERNEL|__GFP_ZERO|0x1000` names; `None` if a word of it can be neither a name nor a
    /// number.
    pub fn value(&mut self, text: &[u8]) -> Option<u64> {
        /// Many more combinations than any kernel uses.
        const REMEMBERED: usize = 4096;
        if let Some(&value) = self.values.get(text) {
            return value;
        }
        let mut words = text.split(|&b| b == b'|').map(|w| w.trim_ascii());
        let value = words.try_fold(0, |sum, word| Some(sum | self.word(word)?));
        if self.values.len() < REMEMBERED {
            self.values.insert(text.to_vec(), value);
        }
        value
    }

    fn word(&mut self, word: &[u8]) -> Option<u64> {
        let number = hex(word, true).or_else(|| match self.notation {
            Notation::Hex => hex(word, false),
            _ => decimal(word),
        });
        if number.is_some() {
            return number;
        }
        let word = std::str::from_utf8(word).ok()?;
        let named = |name: &str| NAMES.iter().chain(&GONE).find(|(n, _)| *n == name).map(|(_, bits)| *bits);
        let old = || word.strip_prefix("GFP_").and_then(|rest| named(&format!("__GFP_{rest}")));
        let known = named(word).or_else(old);
        let is_name = word.contains("GFP_") && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if known.is_none() && is_name {
            self.unknown.get_or_insert_with(|| word.to_owned());
            return Some(0);
        }
        known
    }

    /// The names as a `print fmt` lists them.
    pub fn print_flags_rows() -> String {
        let rows = NAMES.iter().filter(|(_, bits)| *bits != 0);
        let rows: Vec<String> = rows.map(|(name, bits)| format!("{{ {bits:#x}UL, \"{name}\" }}")).collect();
        rows.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_names() {
        let mut names = GfpNames::new(Notation::Decimal);
        assert_eq!(names.value(b"GFP_KERNEL|GFP_ZERO"), Some(KERNEL | ZERO));
        assert_eq!(names.value(b"GFP_KERNEL|__GFP_ZERO"), Some(KERNEL | ZERO));
        assert_eq!(names.value(b"GFP_KERNEL|0x80000000"), Some(KERNEL | 0x8000_0000));
        assert_eq!(names.value(b"3264"), Some(0xcc0));
        assert_eq!(names.unknown, None);
        assert_eq!(names.value(b"GFP_TOMORROW"), Some(0));
        assert_eq!(names.unknown.as_deref(), Some("GFP_TOMORROW"));
        for damaged in ["", "-", "GFP_KERNEL node=-1", "GFP_KER\u{fffd}", "KERNEL", "cc0"] {
            assert_eq!(names.value(damaged.as_bytes()), None, "{damaged}");
        }
        assert_eq!(GfpNames::new(Notation::Hex).value(b"cc0"), Some(0xcc0));
    }
}
