//! Display options: width, exact or human sizes, colour, clock times.

/// Display options of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal; [`Look::NO_LIMIT`] where lines are not cut.
    pub width: usize,
    /// All columns, and sizes of functions behind their names.
    pub wide: bool,
    /// Sizes in bytes instead of KiB and MiB.
    pub exact_bytes: bool,
    /// Escape sequences for colour and weight.
    pub colour: bool,
    /// Time of day instead of seconds from the start, where the file has it.
    pub wall_clock: bool,
}

impl Look {
    /// Width of a terminal that does not report its own.
    pub const WIDTH_DEFAULT: usize = 80;
    /// Width of `--wide`, of a pipe and of a file.
    pub const NO_LIMIT: usize = usize::MAX;
}

impl Default for Look {
    fn default() -> Self {
        Self { width: Self::WIDTH_DEFAULT, wide: false, exact_bytes: false, colour: false, wall_clock: false }
    }
}
