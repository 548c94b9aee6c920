//! C's operators on integers of the traced kernel.

use super::expr::{Binary, Int, Unary};

/// A unary operator under C's conversions.
pub(crate) fn unary(operator: Unary, value: u64, ty: Int) -> (u64, Int) {
    let promoted = ty.promoted();
    match operator {
        Unary::Neg => (promoted.wrap(value.wrapping_neg()), promoted),
        Unary::BitNot => (promoted.wrap(!value), promoted),
        Unary::Plus => (promoted.wrap(value), promoted),
        Unary::Not => (u64::from(value == 0), Int::INT),
    }
}

/// A binary operator under C's conversions; `None` for a division by zero.
pub(crate) fn binary(operator: Binary, (a, ta): (u64, Int), (b, tb): (u64, Int)) -> Option<(u64, Int)> {
    if matches!(operator, Binary::Shl | Binary::Shr) {
        let ty = ta.promoted();
        let bits = (b & 63) as u32;
        let value = match operator {
            Binary::Shl => a << bits,
            _ if ty.signed => ((ty.wrap(a) as i64) >> bits) as u64,
            _ => ty.wrap(a) >> bits,
        };
        return Some((ty.wrap(value), ty));
    }
    let ty = ta.common(tb);
    let (a, b) = (ty.wrap(a), ty.wrap(b));
    let (sa, sb) = (a as i64, b as i64);
    let less = if ty.signed { sa < sb } else { a < b };
    let value = match operator {
        Binary::Mul => a.wrapping_mul(b),
        Binary::Div if b == 0 => return None,
        Binary::Rem if b == 0 => return None,
        Binary::Div => {
            if ty.signed {
                sa.checked_div(sb).unwrap_or(sa) as u64
            } else {
                a.checked_div(b).unwrap_or(0)
            }
        }
        Binary::Rem => {
            if ty.signed {
                sa.checked_rem(sb).unwrap_or(0) as u64
            } else {
                a.checked_rem(b).unwrap_or(0)
            }
        }
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::And => a & b,
        Binary::Xor => a ^ b,
        Binary::Or => a | b,
        Binary::Lt => return Some((less.into(), Int::INT)),
        Binary::Ge => return Some(((!less).into(), Int::INT)),
        Binary::Gt => return Some(((!less && a != b).into(), Int::INT)),
        Binary::Le => return Some(((less || a == b).into(), Int::INT)),
        Binary::Eq => return Some(((a == b).into(), Int::INT)),
        Binary::Ne => return Some(((a != b).into(), Int::INT)),
        Binary::AndAnd => return Some(((a != 0 && b != 0).into(), Int::INT)),
        Binary::OrOr => return Some(((a != 0 || b != 0).into(), Int::INT)),
        Binary::Shl | Binary::Shr => return None,
    };
    Some((ty.wrap(value), ty))
}
