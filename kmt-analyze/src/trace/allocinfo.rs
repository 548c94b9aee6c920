//! /proc/allocinfo: its lines.
//!
//! The form is that of lib/alloc_tag.c and lib/codetag.c, 6.10 to 6.18: two header lines, then for each call site
//! `BYTES CALLS FILE:LINE [MODULE] func:FUNCTION`, without `[MODULE]` in the kernel itself. Version 2.0 adds flags after
//! the function, such as `accurate:no`.

use std::path::Path;

use kmt_common::failure::{Failure, Result};

/// Largest number of bytes and of calls, as a power of two: sums and changes of all lines fit into 63 bits.
const NUMBER_BITS: u32 = 62;

/// A call site and its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocinfoLine {
    /// Source file, without `./` at its begin.
    pub file: String,
    /// Line of the source file.
    pub line: u64,
    /// Module; `None`: the kernel itself.
    pub module: Option<String>,
    pub function: String,
    /// Bytes in use. The kernel adds counters of its CPUs while they change: the sum may be negative.
    pub bytes: i64,
    /// Allocations in use.
    pub calls: i64,
    /// False if the kernel reports that it could not count some allocations.
    pub is_accurate: bool,
}

/// Lines of a copy of the file. Refused: a line of another form.
pub fn lines(path: &Path, bytes: &[u8]) -> Result<Vec<AllocinfoLine>> {
    let mut found = Vec::new();
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let wrong = |expected: &str| {
            Failure::new(format!(
                "{}: line {}: expected {expected}",
                path.display(),
                number.saturating_add(1)
            ))
            .hint("allocinfo reads copies of /proc/allocinfo (Linux 6.10 and later)")
        };
        let text = std::str::from_utf8(line).map_err(|_| wrong("text in UTF-8"))?;
        let text = text.strip_suffix('\r').unwrap_or(text);
        if let Some(version) = text.strip_prefix("allocinfo - version:") {
            if !matches!(version.trim().split('.').next(), Some("1" | "2")) {
                return Err(wrong("allocinfo of version 1 or 2"));
            }
        } else if !text.starts_with('#') && !text.trim().is_empty() {
            found.push(call_site(text).map_err(wrong)?);
        }
    }
    if found.is_empty() {
        return Err(Failure::new(format!("{}: no call site of allocinfo", path.display()))
            .hint("the kernel needs CONFIG_MEM_ALLOC_PROFILING=y and sysctl.vm.mem_profiling=1"));
    }
    Ok(found)
}

/// A call site, or the form that its line lacks.
fn call_site(text: &str) -> std::result::Result<AllocinfoLine, &'static str> {
    const FORM: &str = "FILE:LINE after the number of calls";
    let (bytes, rest) = word(text);
    let (calls, source) = word(rest);
    let number = |text: &str| {
        let number = text.parse::<i64>().ok()?;
        (number.unsigned_abs() >> NUMBER_BITS == 0).then_some(number)
    };
    let bytes = number(bytes).ok_or("a number of bytes below 2^62 at the begin")?;
    let calls = number(calls).filter(|calls| *calls >= 0);
    let calls = calls.ok_or("a number of calls below 2^62 after the bytes")?;
    let (source, function) = source.split_once(" func:").ok_or("func:FUNCTION after the call site")?;
    let (function, flags) = word(function);
    let (source, module) = match source.strip_suffix(']').and_then(|source| source.rsplit_once(" [")) {
        Some((source, module)) => (source, Some(module.to_owned())),
        None => (source, None),
    };
    let (file, line) = source.rsplit_once(':').ok_or(FORM)?;
    let line = line.parse().map_err(|_| FORM)?;
    if file.is_empty() || function.is_empty() {
        return Err("names of the file and the function");
    }
    let flags: Vec<&str> = flags.split_ascii_whitespace().collect();
    if flags.iter().any(|flag| !flag.contains(':')) {
        return Err("only flags of the form KEY:VALUE after the function");
    }
    Ok(AllocinfoLine {
        file: file.strip_prefix("./").unwrap_or(file).to_owned(),
        line,
        module,
        function: function.to_owned(),
        bytes,
        calls,
        is_accurate: !flags.contains(&"accurate:no"),
    })
}

/// The first word, and the text after it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> std::result::Result<AllocinfoLine, String> {
        let found = lines(Path::new("F"), text.as_bytes()).map_err(|failure| failure.to_string())?;
        Ok(found[0].clone())
    }

    #[test]
    fn lines_of_both_versions() {
        let line = one("allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n        4096        1 ./mm/slub.c:12 func:new_slab \n").unwrap();
        assert_eq!((line.file.as_str(), line.line, line.module), ("mm/slub.c", 12, None));
        assert_eq!((line.bytes, line.calls, line.is_accurate), (4096, 1, true));
        let line =
            one("allocinfo - version: 2.0\n -8 0 fs/ext4/super.c:3 [ext4] func:ext4_fill accurate:no\n")
                .unwrap();
        assert_eq!((line.module.as_deref(), line.function.as_str()), (Some("ext4"), "ext4_fill"));
        assert_eq!((line.bytes, line.is_accurate), (-8, false));
    }

    #[test]
    fn a_wrong_line_is_named_with_its_number() {
        for (text, expected) in [
            ("allocinfo - version: 3.0\n", "line 1: expected allocinfo of version 1 or 2"),
            ("# x\nabc 1 a.c:1 func:f\n", "line 2: expected a number of bytes"),
            ("1 -1 a.c:1 func:f\n", "line 1: expected a number of calls"),
            ("1 1 a.c:1 f\n", "line 1: expected func:FUNCTION"),
            ("1 1 a.c func:f\n", "line 1: expected FILE:LINE"),
            ("1 1 a.c:x func:f\n", "line 1: expected FILE:LINE"),
            ("1 1 :1 func:f\n", "line 1: expected names"),
            ("1 1 a.c:1 func:f what\n", "line 1: expected only flags"),
            ("4611686018427387904 1 a.c:1 func:f\n", "line 1: expected a number of bytes below 2^62"),
            ("", "no call site"),
        ] {
            let failure = one(text).unwrap_err();
            assert!(failure.contains(expected), "{text:?}: {failure}");
        }
        assert!(lines(Path::new("F"), b"1 1 \xff.c:1 func:f").is_err());
    }
}
