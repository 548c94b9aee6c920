//! Words of a command, as a shell reads them: a command that is printed can be copied.

use std::path::Path;

use crate::text::is_hostile;

/// A word as a POSIX shell reads it.
pub fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = |&b: &u8| b.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&b);
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let mut out = vec![b'\''];
    for &byte in word {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
    out
}

/// A word as a POSIX shell reads it, as text that is harmless on a terminal. Control characters and bytes that are not
/// UTF-8 are octal numbers in `$'…'`, which bash, zsh, ksh and busybox read, and POSIX of 2024 defines.
pub fn word(word: impl AsRef<[u8]>) -> String {
    let word = word.as_ref();
    match String::from_utf8(quoted(word)) {
        Ok(text) if !text.contains(is_hostile) => text,
        _ => numbered(word),
    }
}

/// A path as an argument: a leading dash does not make it an option.
pub fn path(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    match bytes {
        // Standard input or output.
        b"-" => "-".to_owned(),
        [b'-', ..] => word([b"./".as_slice(), bytes].concat()),
        _ => word(bytes),
    }
}

/// An option with its value.
pub fn option(name: &str, value: &str) -> String {
    // A value that begins with a dash would be an option of its own.
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!("{name}{between}{}", word(value))
}

fn numbered(word: &[u8]) -> String {
    let mut out = "$'".to_owned();
    let number = |out: &mut String, bytes: &[u8]| bytes.iter().for_each(|b| *out += &format!("\\{b:03o}"));
    for chunk in word.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                c if is_hostile(c) => number(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => out.push(c),
            }
        }
        number(&mut out, chunk.invalid());
    }
    out + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (plain, as_word) in [
            ("a-b_c.kmt", "a-b_c.kmt"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("größe", "'größe'"),
            ("a\u{202e}\n'\\", r"$'a\342\200\256\012\'\\'"),
        ] {
            assert_eq!(word(plain), as_word);
        }
        assert_eq!(word(b"a\xff1"), r"$'a\3771'");
    }

    #[test]
    fn a_path_is_no_option() {
        for (plain, as_word) in [("-x", "./-x"), ("- x", "'./- x'"), ("-", "-"), ("a/-x", "a/-x")] {
            assert_eq!(path(Path::new(plain)), as_word);
        }
    }
}
