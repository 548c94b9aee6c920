//! An amount of memory as the kernel's texts bound it: exact, or with a part that may be elsewhere.
//!
//! Some memory is counted in two of the kernel's lines, or is outside of MemTotal. An amount has a largest value and
//! the part that may be elsewhere; from two of them follows the range of a change. `accounts/mod` makes the amounts,
//! `reports/balance` and `timeline --by account` show them.

/// The part of an amount that may be in another account or outside of MemTotal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Any part of it is elsewhere, which may change between readings.
    Part,
    /// All of it is elsewhere or none, at each reading alike.
    Whole,
    /// A part of it is elsewhere, the same at each reading.
    Constant,
}

/// Bytes of an account at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// Largest amount.
    pub most: u64,
    /// Bytes of it that may be elsewhere.
    pub doubtful: u64,
    pub doubt: Doubt,
}

impl Amount {
    /// An amount without doubt.
    pub const fn exact(bytes: u64) -> Self {
        Self { most: bytes, doubtful: 0, doubt: Doubt::Part }
    }

    /// An amount of which any part may be elsewhere.
    pub const fn at_most(bytes: u64, doubt: Doubt) -> Self {
        Self { most: bytes, doubtful: bytes, doubt }
    }

    /// Smallest amount.
    pub fn least(&self) -> u64 {
        self.most.saturating_sub(self.doubtful)
    }

    /// Smallest and largest change to a later amount of the same account.
    pub fn change_to(&self, later: &Self) -> (i128, i128) {
        let change = i128::from(later.most) - i128::from(self.most);
        let (first, last) = (i128::from(self.doubtful), i128::from(later.doubtful));
        match self.doubt {
            Doubt::Constant => (change, change),
            Doubt::Whole => {
                let without = change - last + first;
                (change.min(without), change.max(without))
            }
            Doubt::Part => (change - last, change + first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_depend_on_the_kind_of_doubt() {
        let of = |most, doubtful, doubt| Amount { most, doubtful, doubt };
        assert_eq!(Amount::exact(5).change_to(&Amount::exact(3)), (-2, -2));
        assert_eq!(of(10, 4, Doubt::Constant).change_to(&of(13, 4, Doubt::Constant)), (3, 3));
        // 10 to 13, or 6 to 12.
        assert_eq!(of(10, 4, Doubt::Whole).change_to(&of(13, 1, Doubt::Whole)), (3, 6));
        // 6 to 10, then 12 to 13.
        assert_eq!(of(10, 4, Doubt::Part).change_to(&of(13, 1, Doubt::Part)), (2, 7));
        assert_eq!(of(10, 4, Doubt::Part).least(), 6);
    }
}
