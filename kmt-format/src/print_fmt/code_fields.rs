//! Fields of a class that hold addresses of code.

use super::expr::Expr;
use super::format_string::{Extent, Piece};
use super::lex::tokens;
use super::limits::PrintLimits;
use super::parse::{Scope, argument, format_and_arguments};
use crate::schema::{EventClass, Role};

/// A field whose value may be an address of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodeField {
    /// Index of the field.
    pub field: usize,
    /// True if the address before it is looked up: `%pB`.
    pub before: bool,
}

/// The fields of a class that are addresses of code: by their role, by the names that ftrace gives such fields, and
/// those that the `print fmt` prints by `%pS` and the like.
pub(crate) fn code_fields(class: &EventClass, long_size: usize) -> Vec<CodeField> {
    let mut found: Vec<CodeField> = Vec::new();
    for (field, info) in class.fields.iter().enumerate() {
        let is_code = matches!(class.roles.get(field), Some(&Role::CALL_SITE | &Role::STACK))
            || matches!(info.name.as_str(), "ip" | "parent_ip" | "func");
        if is_code {
            found.push(CodeField { field, before: false });
        }
    }
    for new in printed(class, long_size) {
        if !found.contains(&new) {
            found.push(new);
        }
    }
    found
}

fn printed(class: &EventClass, long_size: usize) -> Vec<CodeField> {
    let print_fmt = class.print_fmt();
    let mut found = Vec::new();
    if print_fmt.len() as u64 > PrintLimits::default().print_fmt || !print_fmt.contains("%") {
        return found;
    }
    let Some(tokens) = tokens(print_fmt) else { return found };
    let Some((pieces, arguments)) = format_and_arguments(&tokens) else { return found };
    let scope = Scope { class, long_size: long_size as u8, constant: &|_| None };
    let mut arguments = arguments.into_iter();
    for piece in pieces {
        let Piece::Spec(spec) = piece else { continue };
        for extent in [spec.width, spec.precision] {
            if extent == Some(Extent::Argument) {
                arguments.next();
            }
        }
        let value = arguments.next();
        let is_symbol = spec.conversion == b'p'
            && matches!(spec.extension.first(), Some(b'S' | b's' | b'F' | b'f' | b'B'));
        if let Some(tokens) = value.filter(|_| is_symbol) {
            let before = spec.extension.first() == Some(&b'B');
            fields_of(&argument(tokens, &scope), class, &mut |field| found.push(CodeField { field, before }));
        }
    }
    found
}

/// The fields that a value is made of; all that can be pointers where that cannot be understood.
fn fields_of(expr: &Expr, class: &EventClass, found: &mut impl FnMut(usize)) {
    match expr {
        Expr::Field(field) | Expr::Str(field) => found(*field),
        Expr::Index(a, _, _) | Expr::Unary(_, a) | Expr::Cast(_, a) | Expr::Swap(a, _) => {
            fields_of(a, class, found);
        }
        Expr::Binary(_, a, b) | Expr::Ternary(_, a, b) => {
            fields_of(a, class, found);
            fields_of(b, class, found);
        }
        Expr::Unknown(_) => {
            let own = class.fields.iter().enumerate().skip(class.common_count);
            own.filter(|(_, f)| matches!(f.size, 4 | 8)).for_each(|(field, _)| found(field));
        }
        _ => {}
    }
}
