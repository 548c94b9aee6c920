//! Words of a command line: `--via` into words, without a shell; words for the shell of the target.

/// Words of a command: separated by blanks, with '…', "…" and \ as in a shell. Nothing is expanded.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = chars.next().ok_or("ends with \\")?;
                word.get_or_insert_default().push(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a {open} is not closed"));
    }
    words.extend(word);
    if words.is_empty() { Err("no command".to_owned()) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use kmt_common::shell::quoted;

    use super::*;

    #[test]
    fn a_command_is_split_as_a_shell_splits_it() {
        let words = |text: &str| split(text).unwrap();
        assert_eq!(words("adb shell"), ["adb", "shell"]);
        assert_eq!(
            words(r#" docker exec -i 'my name' "a\"b" c\ d '' "#),
            ["docker", "exec", "-i", "my name", "a\"b", "c d", ""]
        );
        assert_eq!(words("ssh $(id) *"), ["ssh", "$(id)", "*"]);
        for bad in ["", "  ", "a 'b", "a \"b", "a \\"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_shell_reads_back_each_word() {
        for word in [
            "",
            "a b",
            "it's",
            "$HOME",
            "`id`",
            "a\nb",
            "\\",
            "-x",
            "ü",
            "*",
            "!x",
            "'",
            "kmem:kmalloc if bytes_req > 77",
        ] {
            let mut script = b"printf %s ".to_vec();
            script.extend(quoted(word.as_bytes()));
            let out = std::process::Command::new("sh")
                .arg("-c")
                .arg(String::from_utf8(script).unwrap())
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), word);
        }
    }
}
