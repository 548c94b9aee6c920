//! The names of C types in casts.

use super::expr::{CastTo, Int};
use super::lex::Token;

/// The type that these tokens name; `None` if they name none. `next` is the token after the parenthesis: a name
/// that is no known type is one only if an operand follows.
pub(super) fn cast_type(tokens: &[Token], long_size: u8, next: Option<&Token>) -> Option<CastTo> {
    let stars = tokens.iter().rev().take_while(|t| matches!(t, Token::Sign("*"))).count();
    let words = tokens.get(..tokens.len().saturating_sub(stars))?;
    let mut names = Vec::with_capacity(words.len());
    for word in words {
        match word {
            Token::Name(name) if name == "REC" => return None,
            // Qualifiers between stars, as in `const char *const`.
            Token::Name(name) => names.push(name.as_str()),
            Token::Sign("*") => {}
            _ => return None,
        }
    }
    names.retain(|n| !matches!(*n, "const" | "volatile" | "__user" | "__attribute__" | "__iomem" | "__rcu"));
    if names.is_empty() {
        return None;
    }
    let int = int_type(&names, long_size);
    if stars > 0 {
        let element = if stars > 1 { Int::new(long_size, false) } else { int.unwrap_or(Int::new(0, false)) };
        return Some(CastTo::Pointer(element));
    }
    if names == ["bool"] || names == ["_Bool"] {
        return Some(CastTo::Bool);
    }
    if let Some(ty) = int {
        return Some(CastTo::Int(ty));
    }
    let operand_follows = matches!(
        next,
        Some(Token::Name(_) | Token::Number { .. } | Token::Sign("(") | Token::Sign("~" | "!"))
    );
    match names.as_slice() {
        ["enum", _] => Some(CastTo::Int(Int::INT)),
        ["struct" | "union", _] => Some(CastTo::Same),
        [_] if operand_follows => Some(CastTo::Same),
        _ => None,
    }
}

fn int_type(names: &[&str], long_size: u8) -> Option<Int> {
    if let [name] = names {
        let ty = match *name {
            "u8" | "__u8" | "uint8_t" | "uchar" => Int::new(1, false),
            "s8" | "__s8" | "int8_t" => Int::new(1, true),
            "u16" | "__u16" | "uint16_t" | "__le16" | "__be16" | "umode_t" | "ushort" => Int::new(2, false),
            "s16" | "__s16" | "int16_t" => Int::new(2, true),
            "u32" | "__u32" | "uint32_t" | "__le32" | "__be32" | "gfp_t" | "dev_t" | "uint" | "uid_t"
            | "gid_t" | "blk_opf_t" | "slab_flags_t" | "isolate_mode_t" | "vm_fault_t" => Int::UINT,
            "s32" | "__s32" | "int32_t" | "pid_t" | "key_serial_t" => Int::INT,
            "u64" | "__u64" | "uint64_t" | "__le64" | "__be64" | "sector_t" | "blkcnt_t" => {
                Int::new(8, false)
            }
            "s64" | "__s64" | "int64_t" | "loff_t" | "ktime_t" => Int::new(8, true),
            "size_t" | "uintptr_t" | "ulong" | "pgoff_t" | "ino_t" => Int::new(long_size, false),
            "ssize_t" | "ptrdiff_t" | "intptr_t" => Int::new(long_size, true),
            "void" => Int::new(1, false),
            _ => return basic_type(names, long_size),
        };
        return Some(ty);
    }
    basic_type(names, long_size)
}

fn basic_type(names: &[&str], long_size: u8) -> Option<Int> {
    let count = |word: &str| names.iter().filter(|n| **n == word).count();
    let is_basic = |n: &&str| matches!(*n, "unsigned" | "signed" | "long" | "short" | "int" | "char");
    if !names.iter().all(is_basic) {
        return None;
    }
    let size = match (count("char"), count("short"), count("long")) {
        (1.., _, _) => 1,
        (_, 1.., _) => 2,
        (_, _, 1) => long_size,
        (_, _, 2..) => 8,
        _ => 4,
    };
    Some(Int::new(size, count("unsigned") == 0))
}
