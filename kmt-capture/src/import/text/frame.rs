//! Frames of call chains, as perf script prints them.

use super::columns::next_word;
use super::line_types::TextLine;

/// `ffffffff8149a2b1 kmem_cache_alloc+0x1b1 ([kernel.kallsyms])`.
pub(super) fn chain(line: &[u8]) -> Option<TextLine<'_>> {
    line.first().filter(|b| b.is_ascii_whitespace())?;
    let mut rest = line;
    let word = next_word(&mut rest)?;
    let is_address = (8..=16).contains(&word.len()) && word.iter().all(u8::is_ascii_hexdigit);
    let address = u64::from_str_radix(std::str::from_utf8(word).ok().filter(|_| is_address)?, 16).ok()?;
    let rest = rest.trim_ascii();
    let (symbol, object) = match rest.iter().rposition(|&b| b == b'(') {
        Some(at) => (rest.get(..at)?.trim_ascii_end(), rest.get(at..)?),
        None => (rest, &b""[..]),
    };
    let is_whole = object.ends_with(b")") || object.is_empty() && !symbol.contains(&b' ');
    let is_user = [&b"([vdso"[..], b"([unknown", b"([stack"].iter().any(|u| object.starts_with(u));
    let is_kernel = object.is_empty() || object.starts_with(b"([") && !is_user;
    let symbol = Some(symbol).filter(|s| !s.is_empty() && !s.starts_with(b"["));
    is_whole.then_some(TextLine::Chain(if is_kernel { address } else { 0 }, symbol))
}
