//! Lines that are a part of an event.

use super::columns::Stamp;
use super::columns::{next_word, stamp};
use super::fields::{event_name, is_kmem};

/// True if a line that cannot be read is a torn event of the allocators: where the name of the event stands, it has one of
/// theirs. A text that mentions them is another event.
pub fn could_be_event(line: &[u8]) -> bool {
    let mut rest = line;
    let mut has_time = false;
    while let Some(word) = next_word(&mut rest) {
        if word.starts_with(b"#") {
            return false;
        }
        if let Some(name) = word.strip_suffix(b":") {
            let name = name.strip_prefix(b"kmem:").unwrap_or(name);
            if is_kmem(event_name(name)) {
                return has_time || begins_as_fields(rest);
            }
            let is_time = matches!(stamp(word), Some((Stamp::Time(..), b"")));
            if has_time && !is_time {
                // Another event, or the text of one.
                return false;
            }
            has_time |= is_time;
        }
    }
    false
}

/// True if a text, of which the end may be missing, begins as those of the allocators.
fn begins_as_fields(text: &[u8]) -> bool {
    const KEYS: [&[u8]; 5] = [b"call_site=", b"page=", b"ptr=", b"pfn=", b"bytes_"];
    let mut rest = text;
    let word = next_word(&mut rest).unwrap_or_default();
    KEYS.iter().any(|key| word.starts_with(key) || key.starts_with(word)) || word.starts_with(b"(")
}

#[cfg(test)]
mod tests {
    use super::could_be_event;

    #[test]
    fn torn_events() {
        for line in [
            "   sh-77 [00 kmalloc: call_s",
            "45678: kfree: call_site=f+0x1 ptr=ffff888104289080",
            "  sh-77 [001] ..... 1.500000: kmem:kmalloc: ",
            "  sh-77 [001] ..... 1.500000: ?? kmalloc: call_site=f+0x1",
            "  sh-77 0] ..... 1.500000: mm_page_alloc:",
        ] {
            assert!(could_be_event(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "# kmalloc: call_site=",
            "  sh-77 [001] ..... 1.500000: stat_set+0x2ec/0x428: [+][kmem_cache]name : kmalloc-128, size : 80",
            "  sh-77 [001] ..... 1.500000: stat_set+0x2ec/0x428: kmalloc: call_site=f",
            "  sh-77 [001] ..... 1.500000: tracing_mark_write: kfree: x",
            "kernel log: kmalloc: failed",
            "kmem_cache_ of mm_page_alloc is full: 1",
        ] {
            assert!(!could_be_event(line.as_bytes()), "{line}");
        }
    }
}
