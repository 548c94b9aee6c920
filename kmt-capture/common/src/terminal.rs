//! The terminal of standard error: lines of status that fit into it.

use std::io::IsTerminal;

/// Columns of a terminal that does not report its own.
const COLUMNS_DEFAULT: usize = 80;

/// Characters that fit into a line of standard error; `None`: it is not a terminal. The last column stays free: a character
/// there would begin the next line.
pub fn line_width() -> Option<usize> {
    let stderr = std::io::stderr();
    if !stderr.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(&stderr).map_or(0, |size| usize::from(size.ws_col));
    Some(if columns == 0 { COLUMNS_DEFAULT } else { columns }.saturating_sub(1))
}

/// The parts of a line that fit, two blanks between them: the last ones leave first. One that is too long is cut.
pub fn fitted<'p>(parts: impl IntoIterator<Item = &'p str>, width: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { "" } else { "  " };
        if line.chars().count() + gap.len() + part.chars().count() > width {
            if line.is_empty() {
                line.extend(part.chars().take(width));
            }
            break;
        }
        line.push_str(gap);
        line.push_str(part);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_parts_leave_first() {
        let parts = ["12 s", "1,662,079 events", "55,402/s", "0 lost"];
        assert_eq!(fitted(parts, 80), "12 s  1,662,079 events  55,402/s  0 lost");
        assert_eq!(fitted(parts, 39), "12 s  1,662,079 events  55,402/s");
        assert_eq!(fitted(parts, 4), "12 s");
        assert_eq!(fitted(parts, 2), "12");
        assert_eq!(fitted([], 2), "");
    }
}
