//! Display options: width, exact or human sizes, colour, clock times.

/// Display options of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal; [`Look::NO_LIMIT`] with `--wide`.
    pub width: usize,
    /// Sizes in bytes instead of KiB and MiB.
    pub exact_bytes: bool,
    /// Escape sequences for colour and weight.
    pub colour: bool,
    /// Time of day instead of seconds from the start, where the file has it.
    pub wall_clock: bool,
}

impl Look {
    /// Width where there is no terminal.
    pub const WIDTH_DEFAULT: usize = 80;
    /// Width of `--wide`.
    pub const NO_LIMIT: usize = usize::MAX;

    /// True if no column is left out and no name is shortened to fit.
    pub fn is_wide(&self) -> bool {
        self.width == Self::NO_LIMIT
    }
}

impl Default for Look {
    fn default() -> Self {
        Self { width: Self::WIDTH_DEFAULT, exact_bytes: false, colour: false, wall_clock: false }
    }
}
