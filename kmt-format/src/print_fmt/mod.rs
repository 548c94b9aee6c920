//! The language of `print fmt`, parsed: a format string and arguments in C, as the kernel's macros left it.

mod arithmetic;
mod code_fields;
mod expr;
mod fold;
mod format_string;
mod lex;
mod limits;
mod parse;
mod types;

pub(crate) use arithmetic::{binary, unary};
pub(crate) use code_fields::code_fields;
pub(crate) use expr::{Binary, CastTo, ContextTest, Expr, Int, ListEntry, Unary};
pub(crate) use format_string::{Extent, Piece, Spec, pieces};
pub(crate) use lex::tokens;
pub use limits::PrintLimits;
pub(crate) use parse::{Scope, argument, format_and_arguments};
