//! Public names: modules, caches and events of the mainline kernel, words of its /proc files and of its format files.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::trace::names::is_kmalloc;

/// Lines of a list, without comments.
fn list(text: &'static str) -> HashSet<&'static [u8]> {
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::as_bytes).collect()
}

static MODULES: LazyLock<HashSet<&[u8]>> = LazyLock::new(|| list(include_str!("mainline/modules.txt")));
static CACHES: LazyLock<HashSet<&[u8]>> = LazyLock::new(|| list(include_str!("mainline/caches.txt")));
static EVENTS: LazyLock<HashSet<&[u8]>> = LazyLock::new(|| list(include_str!("mainline/events.txt")));
static FORMAT_WORDS: LazyLock<HashSet<&[u8]>> =
    LazyLock::new(|| list(include_str!("mainline/format_words.txt")));
static WORDS: LazyLock<HashSet<&[u8]>> = LazyLock::new(|| list(include_str!("mainline/words.txt")));

/// True if the mainline tree has a module of that name.
pub fn has_module(name: &[u8]) -> bool {
    MODULES.contains(name)
}

/// True if the mainline tree creates a cache of that name, ignoring numbers in it.
pub fn has_cache(name: &[u8]) -> bool {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let stem = name.get(..name.len() - digits).unwrap_or_default();
    is_kmalloc(name)
        || CACHES.contains(name)
        || (digits > 0 && CACHES.contains([stem, b"%u"].concat().as_slice()))
}

/// True if the mainline tree has that event.
pub fn has_event(system: &str, name: &str) -> bool {
    EVENTS.contains(format!("{system}:{name}").as_bytes())
}

/// True if the kernel prints that word in the /proc files that stay.
pub fn has_word(word: &[u8]) -> bool {
    WORDS.contains(word)
}

/// True if the format files of the mainline kernel have that word: in a field, or in a print fmt.
pub fn has_format_word(word: &str) -> bool {
    FORMAT_WORDS.contains(word.as_bytes())
}

/// True if a text of a format file has no word that the mainline kernel's do not have, and no long number.
pub fn has_format_text(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    text.is_ascii() && words.all(|word| has_format_word(word) || is_small_number(word))
}

/// True for a number of 32 bits, in C.
fn is_small_number(word: &str) -> bool {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.strip_prefix("0x") {
        // In a text, a conversion follows.
        Some("") => true,
        Some(hex) => u32::from_str_radix(hex, 16).is_ok(),
        None => digits.parse::<u32>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_know_what_is_common() {
        assert!(has_module(b"ext4") && has_module(b"virtio_net") && !has_module(b"acme_driver"));
        assert!(has_event("kmem", "kmalloc") && has_event("vmscan", "mm_vmscan_lru_isolate"));
        assert!(!has_event("acme", "kmalloc") && !has_event("kmem", "acme"));
        assert!(has_word(b"MemTotal") && has_word(b"nr_free_pages") && !has_word(b"AcmeHeap"));
        assert!(has_format_text("\"order=%d\\n\", REC->order ? 0x40u : 7") && has_format_text(""));
        assert!(
            !has_format_text("REC->acme")
                && !has_format_text("\"order=0x123456789\"")
                && !has_format_text("é")
        );
        assert!(is_kmalloc(b"kmalloc-rnd-03-8k") && is_kmalloc(b"dma-kmalloc-64"));
        assert!(!is_kmalloc(b"kmalloc-acme-64") && !is_kmalloc(b"kmalloc-"));
    }
}
