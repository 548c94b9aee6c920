//! Rows of a table that several groups share.

/// Number of rows that each group gets of `limit`, by the sizes of the groups: all the same, and none more than it has.
pub(super) fn shares(sizes: &[usize], limit: usize) -> Vec<usize> {
    let mut shares = vec![0; sizes.len()];
    let mut left = limit;
    loop {
        let open = shares.iter().zip(sizes).filter(|(share, size)| share < size).count();
        if open == 0 || left == 0 {
            return shares;
        }
        let each = (left / open).max(1);
        for (share, &size) in shares.iter_mut().zip(sizes) {
            let more = each.min(size - *share).min(left);
            *share += more;
            left -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn rows_are_shared_alike() {
        for (sizes, limit, expected) in [
            (&[3, 1, 9][..], 20, &[3, 1, 9][..]),
            (&[3, 1, 9], 6, &[3, 1, 2]),
            (&[30, 1, 9], 10, &[5, 1, 4]),
            (&[5, 5, 5], 2, &[1, 1, 0]),
            (&[5], 0, &[0]),
            (&[], 7, &[]),
            (&[0, 2], 1, &[0, 1]),
        ] {
            assert_eq!(shares(sizes, limit), expected, "{sizes:?} {limit}");
        }
    }
}
