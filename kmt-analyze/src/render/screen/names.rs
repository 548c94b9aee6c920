//! Names that are too long for their column.

/// Stands for the characters that were left out.
const GAP: char = '…';

/// Shortens a name to `width` characters by leaving out its middle: `getname_fl…0x2b`.
///
/// The beginning gets two thirds of the room: it tells names apart; the end has the offset or the module.
pub fn shorten_middle(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let room = width.saturating_sub(1);
    let tail = room / 3;
    let head: String = name.chars().take(room - tail).collect();
    let tail: String = name.chars().skip(length - tail).collect();
    format!("{head}{GAP}{tail}")
}

/// Shortens a text to `width` characters by leaving out its end.
pub fn shorten_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let head: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}{GAP}", head.trim_end())
}

/// A symbol without the size of its function: `kfree+0x1c/0x80 [m]` becomes `kfree+0x1c [m]`.
pub fn without_size(symbol: &str) -> String {
    let Some((name, rest)) = symbol.split_once("+0x") else { return symbol.to_owned() };
    let (offset, after) = rest.split_once('/').unwrap_or((rest, ""));
    let module = after.split_once(' ').map_or(String::new(), |(_, module)| format!(" {module}"));
    let is_hex = !offset.is_empty() && offset.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex && after.starts_with("0x") { format!("{name}+0x{offset}{module}") } else { symbol.to_owned() }
}

/// The function of a symbol, for sentences: `kfree+0x1c/0x80 [m]` becomes `kfree [m]`.
pub fn function_of(symbol: &str) -> String {
    let short = without_size(symbol);
    let Some((name, rest)) = short.split_once("+0x") else { return short };
    rest.split_once(' ').map_or(name.to_owned(), |(_, module)| format!("{name} {module}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_leaves_first() {
        assert_eq!(shorten_middle("getname_flags.part.0+0x2b", 16), "getname_fl…+0x2b");
        assert_eq!(shorten_middle("kfree+0x1", 9), "kfree+0x1");
        for width in 0..30 {
            assert!(shorten_middle("getname_flags.part.0+0x2b", width).chars().count() <= width.max(1));
            assert!(shorten_end("a list, of, names", width).chars().count() <= width.max(1));
        }
    }

    #[test]
    fn sizes_of_functions_leave() {
        assert_eq!(without_size("kfree+0x1c/0x80 [m]"), "kfree+0x1c [m]");
        assert_eq!(without_size("kfree+0x1c/0x80"), "kfree+0x1c");
        assert_eq!(without_size("0xffffffff81000000"), "0xffffffff81000000");
        assert_eq!(without_size("a+0xb/c"), "a+0xb/c");
    }
}
