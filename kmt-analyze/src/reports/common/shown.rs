//! Numbers of rows on a screen.

use crate::reports::output::ROWS_SHOWN;

/// Rows of one of several tables on a screen: at most `usual`, unless `-l` allows more rows than usual.
pub fn part(limit: usize, usual: usize) -> usize {
    if is_more(limit) { limit } else { limit.min(usual) }
}

/// True if `-l` allows more rows than usual.
pub fn is_more(limit: usize) -> bool {
    limit > ROWS_SHOWN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_with_the_limit() {
        assert_eq!([3, ROWS_SHOWN, 50].map(|limit| part(limit, 5)), [3, 5, 50]);
    }
}
