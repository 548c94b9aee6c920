//! Events as text: the language of `print fmt`, evaluated.
//!
//! A `format` file ends in the arguments of a printf, in C as the kernel's macros left it. This module parses that
//! text once for each event class and evaluates it for each event, with the C types of the traced kernel.

mod bprint;
mod conversion;
mod env;
mod eval;
mod ftrace;
mod pointer;
mod printer;
mod printf;
mod syscalls;
mod template;

pub use crate::print_fmt::PrintLimits;
pub use env::{PrintEnv, Unresolved};
pub use printer::Printer;
pub use template::EventText;

#[cfg(test)]
mod tests;
