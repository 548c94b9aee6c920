//! Constants of expressions.

use super::arithmetic::{binary, unary};
use super::expr::{CastTo, Expr, Int};

/// Works constants out once instead of for every event.
pub(super) fn fold(expr: Expr) -> Expr {
    let value = match &expr {
        Expr::Unary(operator, inner) => match **inner {
            Expr::Const(value, ty) => Some(unary(*operator, value, ty)),
            _ => None,
        },
        Expr::Binary(operator, left, right) => match (&**left, &**right) {
            (Expr::Const(a, ta), Expr::Const(b, tb)) => binary(*operator, (*a, *ta), (*b, *tb)),
            _ => None,
        },
        Expr::Cast(to, inner) => match (&**inner, to) {
            (Expr::Const(value, _), CastTo::Int(ty)) => Some((ty.wrap(*value), *ty)),
            (Expr::Const(value, _), CastTo::Bool) => Some((u64::from(*value != 0), Int::BOOL)),
            (Expr::Const(value, ty), CastTo::Same) => Some((*value, *ty)),
            (Expr::Const(0, _), CastTo::Pointer(_)) => return Expr::Null,
            _ => None,
        },
        _ => None,
    };
    value.map_or(expr, |(value, ty)| Expr::Const(value, ty))
}
