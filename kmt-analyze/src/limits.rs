//! Limits on what a file may claim, and the option that changes them.
//!
//! kmt-format has limits for what its reader allocates; those of this program are rows of tables, texts of a pass, and
//! print fmts. `--limit NAME=SIZE` changes one of them. `env` has the limits of a run, and messages name the limit that
//! was exceeded.

use kmt_common::quantity;
use kmt_format::Limits;
use kmt_format::print::PrintLimits;

/// Largest number of rows of a table without `-l`: a hostile file can name more call sites or tasks than fit into
/// memory as text.
pub const ROWS_MAX: usize = 20_000;

/// Advice in messages about limits.
pub const REMEDY: &str = "--limit NAME=SIZE raises a limit, for a file that you trust";

/// `NAME=SIZE` of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    name: String,
    value: u64,
}

/// A limit of this program, not of the format: bytes of distinct cache names and call stacks in a pass.
const TEXTS: &str = "texts";
pub const TEXTS_DEFAULT: u64 = 64 << 20;

/// The limit of [`PrintLimits`].
const PRINT_FMT: &str = "print_fmt";
const PRINT_FMTS: &str = "print_fmts";
/// Rows of each table of an exported report: they are in memory together, with all columns.
const ROWS: &str = "rows";

/// Limits of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// Of a file.
    pub file: Limits,
    /// Of the bytes of names and stacks.
    pub texts: u64,
    /// Of print fmts.
    pub print: PrintLimits,
    /// Of the rows of a table.
    pub rows: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            file: Limits::default(),
            texts: TEXTS_DEFAULT,
            print: PrintLimits::default(),
            rows: ROWS_MAX as u64,
        }
    }
}

impl RunLimits {
    /// The limits, changed by those of a command line.
    pub fn with(limits: &[Limit]) -> Self {
        let mut all = Self::default();
        for limit in limits {
            all.set(limit);
        }
        all
    }

    fn set(&mut self, limit: &Limit) -> bool {
        match limit.name.as_str() {
            TEXTS => self.texts = limit.value,
            PRINT_FMT => self.print.print_fmt = limit.value,
            ROWS => self.rows = limit.value,
            PRINT_FMTS => self.print.print_fmts = limit.value,
            name => return self.file.set(name, limit.value),
        }
        true
    }
}

/// Parses the number of rows of `-l`; 0 is all of them.
pub fn lines(text: &str) -> Result<usize, std::num::ParseIntError> {
    text.parse().map(|lines| if lines == 0 { usize::MAX } else { lines })
}

/// Parses `NAME=SIZE`.
pub fn parse(text: &str) -> Result<Limit, String> {
    let names = || {
        let names: Vec<&str> =
            Limits::NAMES.into_iter().chain([TEXTS, PRINT_FMT, PRINT_FMTS, ROWS]).collect();
        format!("limits are {}", names.join(", "))
    };
    let (name, value) = text.split_once('=').ok_or_else(|| format!("give NAME=SIZE; {}", names()))?;
    let value = quantity::size_above_zero(value)?;
    let limit = Limit { name: name.to_owned(), value };
    if RunLimits::default().set(&limit) { Ok(limit) } else { Err(format!("no such limit; {}", names())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_lines_are_all() {
        assert_eq!([lines("0"), lines("7")], [Ok(usize::MAX), Ok(7)]);
        assert!(lines("-1").is_err() && lines("").is_err());
    }

    #[test]
    fn limits_have_names_and_sizes() {
        assert_eq!(parse("metadata=2G"), Ok(Limit { name: "metadata".into(), value: 2 << 30 }));
        assert_eq!(parse("texts=1GiB"), Ok(Limit { name: "texts".into(), value: 1 << 30 }));
        assert_eq!(parse("texts=77"), Ok(Limit { name: "texts".into(), value: 77 }));
        for wrong in [
            "metadata",
            "metadata=",
            "metadata=x",
            "metadata=é",
            "nonsense=1",
            "fields=8G",
            "chunks=99999999999G",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("nonsense=1").unwrap_err().contains("held_back"));
    }
}
