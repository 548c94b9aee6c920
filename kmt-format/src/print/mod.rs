//! Events as text: the language of `print fmt`, evaluated.
//!
//! A `format` file ends in the arguments of a printf, in C as the kernel's macros left it. This module parses that
//! text once for each event class and evaluates it for each event, with the C types of the traced kernel.

mod bprint;
mod eval;
mod expr;
mod lex;
mod parse;
mod pointer;
mod printf;
mod template;
mod types;

pub use template::{EventText, PrintEnv, Unresolved};

#[cfg(test)]
mod tests;
