//! Frames of call chains, as perf script prints them.

use super::columns::{next_word, number};
use super::line_types::TextLine;

/// Digits of an address that no short word has.
const LONG: usize = 8;

/// `ffffffff8149a2b1 kmem_cache_alloc+0x1b1 ([kernel.kallsyms])`.
pub(super) fn chain(line: &[u8]) -> Option<TextLine<'_>> {
    frame(line, LONG..=16)
}

/// A frame with a short address, `ee137 main+0x7 (/usr/bin/true)`, or the source line of a frame, `file.c:12`. Other lines can
/// look so, too.
pub(super) fn short_chain(line: &[u8]) -> Option<TextLine<'_>> {
    let source_line = || {
        let text = line.trim_ascii();
        let colon = text.iter().rposition(|&b| b == b':').filter(|at| *at > 0)?;
        number(text.get(colon + 1..)?)?;
        let is_word = !text.iter().any(u8::is_ascii_whitespace);
        (is_word && line.first()?.is_ascii_whitespace()).then_some(TextLine::Chain(0, None))
    };
    frame(line, 1..=LONG - 1).or_else(source_line)
}

/// The text of an event without the instruction that perf prints behind it if the event has no call chain and others have
/// one: `TEXT ffffffff815dfe36 mm_trace_rss_stat+0x46 ([kernel.kallsyms])`, the address in 16 columns.
///
/// Source: `process_event`, tools/perf/builtin-script.c, and `sample__fprintf_sym`, tools/perf/util/evsel_fprintf.c 4.4 to 7.0.
pub(super) fn without_instruction(text: &[u8]) -> &[u8] {
    const COLUMNS: usize = 16;
    /// Longest name of a function, and of an object.
    const TAIL_MAX: usize = 1024;
    let text = text.trim_ascii_end();
    let starts = text.len().saturating_sub(TAIL_MAX)..text.len().saturating_sub(COLUMNS);
    let start = starts.rev().find(|&at| {
        let Some((b" ", rest)) = text.get(at..).and_then(|tail| tail.split_at_checked(1)) else {
            return false;
        };
        let Some((column, behind)) = rest.split_at_checked(COLUMNS) else { return false };
        let address = column.trim_ascii_start();
        let is_address = !address.is_empty() && address.iter().all(u8::is_ascii_hexdigit);
        let is_word = is_address && (behind.is_empty() || behind.starts_with(b" "));
        is_word && frame(text.get(at..).unwrap_or_default(), LONG..=COLUMNS).is_some()
    });
    start.and_then(|at| text.get(..at)).unwrap_or(text).trim_ascii_end()
}

fn frame(line: &[u8], digits: std::ops::RangeInclusive<usize>) -> Option<TextLine<'_>> {
    line.first().filter(|b| b.is_ascii_whitespace())?;
    let mut rest = line;
    let word = next_word(&mut rest)?;
    let is_address = digits.contains(&word.len()) && word.iter().all(u8::is_ascii_hexdigit);
    let address = u64::from_str_radix(std::str::from_utf8(word).ok().filter(|_| is_address)?, 16).ok()?;
    let rest = rest.trim_ascii();
    let (symbol, object) = match rest.windows(2).rposition(|w| w == b" (") {
        Some(at) => (rest.get(..at)?.trim_ascii_end(), rest.get(at + 1..)?),
        None if rest.starts_with(b"(") => (&b""[..], rest),
        None => (rest, &b""[..]),
    };
    let is_long = word.len() >= LONG;
    let is_whole = object.ends_with(b")") || object.is_empty() && is_long && !symbol.contains(&b' ');
    let object = object.strip_prefix(b"(").and_then(|o| o.strip_suffix(b")")).unwrap_or_default();
    let symbol = Some(symbol).filter(|s| !s.is_empty() && !s.starts_with(b"["));
    let address = if is_kernel(address, word.len(), object) { address } else { 0 };
    is_whole.then_some(TextLine::Chain(address, symbol))
}

/// True of addresses at which 64-bit kernels are: 0xff first, of powerpc 0xc00 or 0xd00. What is on the stack of a program can
/// be any number.
fn is_upper(address: u64) -> bool {
    address >> 56 == 0xff || matches!(address >> 52, 0xc00 | 0xd00)
}

/// True if an address is one of the kernel: in the upper part of a 64-bit address space, or in an object of the kernel.
fn is_kernel(address: u64, digits: usize, object: &[u8]) -> bool {
    const NO_OBJECTS: [&[u8]; 7] =
        [b"[vdso", b"[vsyscall", b"[vectors", b"[unknown", b"[stack", b"[heap", b"[guest"];
    // perf prints functions that were inlined into the frame below with its address.
    if NO_OBJECTS.iter().any(|name| object.starts_with(name)) || object == b"inlined" {
        return object.starts_with(b"[unknown") && is_upper(address);
    }
    let name = object.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let is_module = name
        .windows(3)
        .enumerate()
        .any(|(at, w)| w == b".ko" && matches!(name.get(at + 3), None | Some(b'.' | b'-')));
    let is_named = object.starts_with(b"[") || name.starts_with(b"vmlinux") || is_module;
    is_upper(address) || is_named || object.is_empty() && digits <= LONG
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_and_programs() {
        for (address, object, expected) in [
            (0xffff_ffff_8149_a2b1, "[kernel.kallsyms]", true),
            (0xffff_ffff_8149_a2b1, "/tmp/kernel.debug", true),
            (0xffff_ffff_8149_a2b1, "[unknown]", true),
            (0xffff_ffff_8149_a2b1, "", true),
            (0xffff_ffff_ff60_0000, "[vsyscall]", false),
            (0xffff_ffff_8149_a2b1, "inlined", false),
            (0xc012_3456, "/usr/lib/debug/boot/vmlinux-5.10.0-8-686", true),
            (0xbf00_1234, "/lib/modules/5.10/kernel/fs/xfs/xfs.ko.xz", true),
            (0xbf00_1234, "/lib/modules/5.10/kernel/fs/xfs/xfs.ko", true),
            (0x12_3456, "[kernel.kallsyms]_text", true),
            (0x3ff_8012_3456, "[ext4]", true),
            (0x7efd_f7f7_d3e8, "/usr/lib64/libc-2.28.so", false),
            (0x7efd_f7f7_d3e8, "/usr/lib64/libx.kontact.so", false),
            (0x7efd_f7f7_d3e8, "[vdso]", false),
            (0x7efd_f7f7_d3e8, "[unknown]", false),
            // Of a program whose memory is filled with it; of powerpc.
            (0xbebe_bebe_bebe_bebe, "[unknown]", false),
            (0xf670_cf20_d1b5_4012, "[unknown]", false),
            (0xc000_0000_0012_3456, "[unknown]", true),
            (0xc012_3456, "", true),
            (0x7efd_f7f7_d3e8, "", false),
            (0xb6f0_1234, "/lib/libc.so", false),
        ] {
            let digits = format!("{address:x}").len();
            assert_eq!(is_kernel(address, digits, object.as_bytes()), expected, "{address:x} {object}");
        }
    }

    #[test]
    fn short_frames_and_lines_like_them() {
        assert_eq!(
            short_chain(b"\t   ee137 main+0x7 (/usr/bin/true)"),
            Some(TextLine::Chain(0, Some(b"main+0x7")))
        );
        assert_eq!(short_chain(b"  file.c:12"), Some(TextLine::Chain(0, None)));
        for line in
            ["ee137 main+0x7 (/usr/bin/true)", "  dd if=x", "  words of a log: 12", "  12", "file.c:12"]
        {
            assert_eq!(short_chain(line.as_bytes()), None, "{line}");
        }
    }
}
