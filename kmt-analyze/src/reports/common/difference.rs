//! Differences of unsigned numbers.

/// `after` - `before`; it saturates.
pub fn difference(before: u64, after: u64) -> i64 {
    (i128::from(after) - i128::from(before)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn extremes_saturate() {
        assert_eq!((difference(3, 5), difference(5, 3)), (2, -2));
        assert_eq!((difference(u64::MAX, 0), difference(0, u64::MAX)), (i64::MIN, i64::MAX));
    }
}
