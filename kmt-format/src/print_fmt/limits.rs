//! Limits on the length of `print fmt` texts.

/// Limits on the length of `print fmt` texts: parsed, one takes up to a hundred times its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrintLimits {
    /// Of one, in bytes. Linux has none above 20 KB.
    pub print_fmt: u64,
    /// Of all together, in bytes. Linux has 2 MB of them.
    pub print_fmts: u64,
}

impl Default for PrintLimits {
    fn default() -> Self {
        Self { print_fmt: 256 << 10, print_fmts: 8 << 20 }
    }
}
