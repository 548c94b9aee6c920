//! Limits on what a file may claim, and the option that changes them.

use std::sync::OnceLock;

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
const TEXTS_DEFAULT: u64 = 64 << 20;

/// The limit of [`PrintLimits`].
const PRINT_FMT: &str = "print_fmt";
const PRINT_FMTS: &str = "print_fmts";
/// Rows of each table of an exported report: they are in memory together, with all columns.
const ROWS: &str = "rows";

#[derive(Debug, Clone, Copy)]
struct InForce {
    file: Limits,
    texts: u64,
    print: PrintLimits,
    rows: u64,
}

impl Default for InForce {
    fn default() -> Self {
        Self {
            file: Limits::default(),
            texts: TEXTS_DEFAULT,
            print: PrintLimits::default(),
            rows: ROWS_MAX as u64,
        }
    }
}

impl InForce {
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

static IN_FORCE: OnceLock<InForce> = OnceLock::new();

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
    if InForce::default().set(&limit) { Ok(limit) } else { Err(format!("no such limit; {}", names())) }
}

/// Sets the limits of this run; called once, before anything is read.
pub fn put_in_force(limits: &[Limit]) {
    let mut in_force = InForce::default();
    for limit in limits {
        in_force.set(limit);
    }
    // Set once: a process has one command line.
    let _ = IN_FORCE.set(in_force);
}

fn in_force() -> InForce {
    IN_FORCE.get().copied().unwrap_or_default()
}

/// Limits of a file.
pub fn of_file() -> Limits {
    in_force().file
}

/// Limits of print fmts.
pub fn of_print_fmts() -> PrintLimits {
    in_force().print
}

/// Limit of the rows of a table.
pub fn rows() -> u64 {
    in_force().rows
}

/// Limit of the bytes of names and stacks.
pub fn texts() -> u64 {
    in_force().texts
}

#[cfg(test)]
mod tests {
    use super::*;

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
