//! Function and module in the text of a symbol, as the kernel prints it: `ext4_alloc_inode+0x1c/0x80 [ext4]`.

/// A symbol without the size of its function: `kfree+0x1c/0x80 [m]` becomes `kfree+0x1c [m]`.
pub fn without_size(symbol: &str) -> String {
    let Some((name, rest)) = symbol.split_once("+0x") else { return symbol.to_owned() };
    let (offset, after) = rest.split_once('/').unwrap_or((rest, ""));
    let module = after.split_once(' ').map_or(String::new(), |(_, module)| format!(" {module}"));
    let is_hex = !offset.is_empty() && offset.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex && after.starts_with("0x") { format!("{name}+0x{offset}{module}") } else { symbol.to_owned() }
}

/// The function of a symbol, with its module: `kfree+0x1c/0x80 [m]` becomes `kfree [m]`. An address stays as it is.
pub fn function_of(symbol: &str) -> String {
    let (function, module) = function_and_module(symbol);
    module.map_or_else(|| function.to_owned(), |module| format!("{function} {module}"))
}

/// The function of a symbol, and its module in brackets: of `kfree+0x1c/0x80 [m]` these are `kfree` and `[m]`.
pub fn function_and_module(symbol: &str) -> (&str, Option<&str>) {
    match symbol.split_once("+0x") {
        Some((function, rest)) => (function, rest.split_once(' ').map(|(_, module)| module)),
        None => symbol.split_once(' ').map_or((symbol, None), |(function, module)| (function, Some(module))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_functions_leave() {
        assert_eq!(without_size("kfree+0x1c/0x80 [m]"), "kfree+0x1c [m]");
        assert_eq!(without_size("kfree+0x1c/0x80"), "kfree+0x1c");
        assert_eq!(without_size("0xffffffff81000000"), "0xffffffff81000000");
        assert_eq!(without_size("a+0xb/c"), "a+0xb/c");
    }

    #[test]
    fn a_function_keeps_its_module() {
        for (symbol, function, module) in [
            ("kfree+0x1c/0x80", "kfree", None),
            ("kfree+0x1c", "kfree", None),
            ("kfree", "kfree", None),
            ("inode+0x1c/0x80 [ext4]", "inode", Some("[ext4]")),
            ("inode+0x1c [ext4]", "inode", Some("[ext4]")),
            ("inode [ext4]", "inode", Some("[ext4]")),
            ("0xffffffff81000000", "0xffffffff81000000", None),
            ("", "", None),
        ] {
            assert_eq!(function_and_module(symbol), (function, module), "{symbol}");
            let whole = module.map_or(function.to_owned(), |module| format!("{function} {module}"));
            assert_eq!(function_of(symbol), whole);
            assert_eq!(function_of(&whole), whole, "the function of a function is itself");
        }
        // Other texts that stand in the place of a symbol are not changed.
        for text in ["order 0, Movable, GFP_KERNEL", "? (576 byte objects)", "(no stack)", " a  b "] {
            assert_eq!(function_of(text), text);
        }
    }
}
