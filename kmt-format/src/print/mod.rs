//! Events as text: the language of `print fmt`, evaluated.
//!
//! A `format` file ends in the arguments of a printf, in C as the kernel's macros left it. This module parses that
//! text once for each event class and evaluates it for each event, with the C types of the traced kernel.

mod bprint;
mod code_fields;
mod env;
mod eval;
mod expr;
mod ftrace;
mod lex;
mod parse;
mod pointer;
mod printf;
mod template;
mod types;

pub(crate) use code_fields::code_fields;
pub use env::{PrintEnv, PrintLimits, Unresolved};
pub use template::EventText;

#[cfg(test)]
mod tests;
