//! From tokens to expressions: C's expression grammar, and the kernel's helpers in it.

use super::expr::{Binary, CastTo, ContextTest, Expr, Int, ListEntry, Unary};
use super::fold::fold;
use super::format_string::{Piece, pieces};
use super::lex::Token;
use super::types::cast_type;
use crate::kernel::FieldKind;
use crate::schema::EventClass;

/// Deepest nesting of parentheses and operators that is followed.
const DEPTH_MAX: u32 = 200;
/// Most binary operators of one argument that remain after constants were worked out. `a + b + c ...` is a tree as deep
/// as it is long, and what walks or drops a tree recurses.
const OPERATORS_MAX: u32 = 256;

/// Names of flags in one list: each event is compared with all of them. Linux has lists of some dozens; a value has 64
/// bits.
const FLAGS_MAX: usize = 1024;

/// Names outside the event: the class and constants.
pub(crate) struct Scope<'a> {
    pub class: &'a EventClass,
    pub long_size: u8,
    pub constant: &'a dyn Fn(&str) -> Option<i64>,
}

/// Parses one argument; what cannot be parsed becomes [`Expr::Unknown`] with its text.
pub(crate) fn argument(tokens: &[Token], scope: &Scope<'_>) -> Expr {
    let mut parser = Parser { tokens, at: 0, scope, depth: 0, operators: 0 };
    match parser.ternary() {
        Some(expr) if parser.at == tokens.len() => expr,
        _ => Expr::Unknown(text_of(tokens)),
    }
}

/// The format string and the arguments of a `print fmt`; `None` if it does not begin with a string.
pub(crate) fn format_and_arguments(tokens: &[Token]) -> Option<(Vec<Piece>, Vec<&[Token]>)> {
    let mut arguments = split_arguments(tokens).into_iter();
    match arguments.next()? {
        [Token::Text(format)] => Some((pieces(format), arguments.collect())),
        _ => None,
    }
}

/// Splits at the commas that no bracket encloses.
fn split_arguments(tokens: &[Token]) -> Vec<&[Token]> {
    let mut out = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (i, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign("(" | "[" | "{") => depth = depth.saturating_add(1),
            Token::Sign(")" | "]" | "}") => depth = depth.saturating_sub(1),
            Token::Sign(",") if depth == 0 => {
                out.push(tokens.get(start..i).unwrap_or_default());
                start = i.saturating_add(1);
            }
            _ => {}
        }
    }
    if start < tokens.len() {
        out.push(tokens.get(start..).unwrap_or_default());
    }
    out
}

fn text_of(tokens: &[Token]) -> String {
    let mut out = String::new();
    for token in tokens.iter().take(24) {
        match token {
            Token::Name(name) => {
                if out.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                    out.push(' ');
                }
                out.push_str(name);
            }
            Token::Number { value, .. } => out.push_str(&value.to_string()),
            Token::Text(_) => out.push_str("\"...\""),
            Token::Sign(sign) => out.push_str(sign),
        }
    }
    out
}

struct Parser<'t, 's> {
    tokens: &'t [Token],
    at: usize,
    scope: &'s Scope<'s>,
    depth: u32,
    operators: u32,
}

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn sign(&self) -> Option<&'static str> {
        match self.peek()? {
            Token::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.sign() == Some(sign);
        self.at = self.at.saturating_add(usize::from(found));
        found
    }

    fn name(&mut self) -> Option<&'t str> {
        match self.peek()? {
            Token::Name(name) => {
                self.at = self.at.saturating_add(1);
                Some(name)
            }
            _ => None,
        }
    }

    fn ternary(&mut self) -> Option<Expr> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > DEPTH_MAX {
            return None;
        }
        let condition = self.binary(0)?;
        let expr = if self.eat("?") {
            let then = self.ternary()?;
            let otherwise = if self.eat(":") { self.ternary()? } else { return None };
            match condition {
                Expr::Const(value, _) => {
                    if value != 0 {
                        then
                    } else {
                        otherwise
                    }
                }
                _ => Expr::Ternary(condition.into(), then.into(), otherwise.into()),
            }
        } else {
            condition
        };
        self.depth = self.depth.saturating_sub(1);
        Some(expr)
    }

    fn binary(&mut self, level: u8) -> Option<Expr> {
        let mut left = self.unary()?;
        while let Some((operator, operator_level)) = self.sign().and_then(operator) {
            if operator_level < level {
                break;
            }
            self.at = self.at.saturating_add(1);
            let right = self.binary(operator_level.saturating_add(1))?;
            left = fold(Expr::Binary(operator, left.into(), right.into()));
            self.operators = self.operators.saturating_add(u32::from(!matches!(left, Expr::Const(..))));
            if self.operators > OPERATORS_MAX {
                return None;
            }
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > DEPTH_MAX {
            return None;
        }
        let operator = match self.sign() {
            Some("-") => Some(Unary::Neg),
            Some("!") => Some(Unary::Not),
            Some("~") => Some(Unary::BitNot),
            Some("+") => Some(Unary::Plus),
            _ => None,
        };
        let expr = if let Some(operator) = operator {
            self.at = self.at.saturating_add(1);
            fold(Expr::Unary(operator, self.unary()?.into()))
        } else if self.eat("*") {
            let inner = self.unary()?;
            let element = self.element_of(&inner)?;
            Expr::Index(inner.into(), Expr::Const(0, Int::INT).into(), element)
        } else if self.eat("&") {
            // The address of an array field, or of a structure kept as one: its bytes.
            let inner = self.unary()?;
            matches!(inner, Expr::Field(i) if self.is_array(i)).then_some(inner)?
        } else if let Some(cast) = self.cast() {
            let inner = self.unary()?;
            fold(Expr::Cast(cast, inner.into()))
        } else {
            self.postfix()?
        };
        self.depth = self.depth.saturating_sub(1);
        Some(expr)
    }

    fn postfix(&mut self) -> Option<Expr> {
        let mut expr = self.primary()?;
        while self.eat("[") {
            let index = self.ternary()?;
            if !self.eat("]") {
                return None;
            }
            let element = self.element_of(&expr)?;
            expr = Expr::Index(expr.into(), index.into(), element);
        }
        Some(expr)
    }

    /// Element type of something that can be indexed.
    fn element_of(&self, expr: &Expr) -> Option<Int> {
        match expr {
            Expr::Field(i) if self.is_array(*i) => {
                let field = self.scope.class.fields.get(*i)?;
                Some(Int::new(field.element_size as u8, field.signed))
            }
            Expr::Cast(CastTo::Pointer(element), _) if element.size > 0 => Some(*element),
            _ => None,
        }
    }

    fn is_array(&self, field: usize) -> bool {
        self.scope.class.fields.get(field).is_some_and(|f| f.kind != FieldKind::Scalar)
    }

    fn primary(&mut self) -> Option<Expr> {
        match self.peek()? {
            Token::Number { value, long, unsigned, decimal } => {
                self.at = self.at.saturating_add(1);
                let ty = self.literal_type(*value, *long, *unsigned, *decimal);
                Some(Expr::Const(ty.wrap(*value), ty))
            }
            Token::Text(text) => {
                self.at = self.at.saturating_add(1);
                Some(Expr::Text(text.clone()))
            }
            Token::Sign("(") => self.parenthesised(),
            Token::Sign(_) => None,
            Token::Name(name) => {
                self.at = self.at.saturating_add(1);
                if name == "REC" && self.eat("->") {
                    return self.member();
                }
                if self.sign() == Some("(") {
                    return self.call(name);
                }
                self.constant(name)
            }
        }
    }

    /// `(expression)`, also `(REC)->field`. A statement expression `({ ... })` is more than this follows.
    fn parenthesised(&mut self) -> Option<Expr> {
        if let Some([Token::Sign("("), Token::Name(rec), Token::Sign(")"), Token::Sign("->")]) =
            self.tokens.get(self.at..self.at.saturating_add(4))
        {
            if rec == "REC" {
                self.at = self.at.saturating_add(4);
                return self.member();
            }
        }
        self.at = self.at.saturating_add(1);
        if self.sign() == Some("{") {
            let start = self.at.saturating_sub(1);
            self.at = self.closing(start)?.saturating_add(1);
            return Some(Expr::Unknown(text_of(self.tokens.get(start..self.at)?)));
        }
        let expr = self.ternary()?;
        self.eat(")").then_some(expr)
    }

    fn member(&mut self) -> Option<Expr> {
        let name = self.name()?;
        let index = self.scope.class.field_named(name);
        let mut unknown = index.is_none();
        while self.eat(".") || self.eat("->") {
            // Members of structures are not described by the format file.
            self.name()?;
            unknown = true;
        }
        if unknown { Some(Expr::Unknown(format!("REC->{name}"))) } else { index.map(Expr::Field) }
    }

    fn constant(&self, name: &str) -> Option<Expr> {
        let int = |value: i64| Expr::Const(value as u64, Int::INT);
        Some(match name {
            "NULL" => Expr::Null,
            "true" => int(1),
            "false" => int(0),
            _ => match (self.scope.constant)(name) {
                Some(value) => int(value),
                None => Expr::Unknown(name.to_owned()),
            },
        })
    }

    fn literal_type(&self, value: u64, long: u8, unsigned: bool, decimal: bool) -> Int {
        let long_size = self.scope.long_size;
        let sizes: &[u8] = match long {
            0 => &[4, long_size, 8],
            1 => &[long_size, 8],
            _ => &[8],
        };
        for &size in sizes {
            let signed_max = u64::MAX >> crate::kernel::unused_bits(u32::from(size)) >> 1;
            if !unsigned && value <= signed_max {
                return Int::new(size, true);
            }
            if (unsigned || !decimal) && value <= u64::MAX >> crate::kernel::unused_bits(u32::from(size)) {
                return Int::new(size, false);
            }
        }
        Int::new(8, false)
    }

    /// A cast, if the parenthesis ahead holds a type.
    fn cast(&mut self) -> Option<CastTo> {
        if self.sign() != Some("(") {
            return None;
        }
        let start = self.at;
        let close = self.closing(start)?;
        let inside = self.tokens.get(start.saturating_add(1)..close)?;
        let cast = cast_type(inside, self.scope.long_size, self.tokens.get(close.saturating_add(1)))?;
        self.at = close.saturating_add(1);
        Some(cast)
    }

    /// Index of the bracket that closes the one at `open`.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0i32;
        for (i, token) in self.tokens.iter().enumerate().skip(open) {
            match token {
                Token::Sign("(" | "[" | "{") => depth = depth.saturating_add(1),
                Token::Sign(")" | "]" | "}") => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return Some(i);
            }
        }
        None
    }

    fn call(&mut self, name: &str) -> Option<Expr> {
        let open = self.at;
        let close = self.closing(open)?;
        let inside = self.tokens.get(open.saturating_add(1)..close)?;
        self.at = close.saturating_add(1);
        let arguments = split_arguments(inside);
        let unknown = || Some(Expr::Unknown(format!("{name}(...)")));
        if self.depth > DEPTH_MAX - 8 {
            return None;
        }
        let depth = self.depth.saturating_add(1);
        let mut parser = Parser { tokens: &[], at: 0, scope: self.scope, depth, operators: self.operators };
        let expr = parser.helper(name, &arguments);
        self.operators = parser.operators;
        match expr {
            Some(expr) => Some(expr),
            None => unknown(),
        }
    }

    fn parse_one(&mut self, tokens: &'t [Token]) -> Option<Expr> {
        let mut parser =
            Parser { tokens, at: 0, scope: self.scope, depth: self.depth, operators: self.operators };
        let expr = parser.ternary()?;
        self.operators = parser.operators;
        (parser.at == tokens.len()).then_some(expr)
    }

    /// The kernel's helpers (include/trace/stages/stage3_trace_output.h and its forerunners, 4.4 to 7.2).
    fn helper(&mut self, name: &str, arguments: &[&'t [Token]]) -> Option<Expr> {
        let argument = |n: usize| arguments.get(n).copied();
        let long = Int::new(self.scope.long_size, false);
        let field = |n: usize| match argument(n)? {
            [Token::Name(name)] => self.scope.class.field_named(name),
            _ => None,
        };
        match name {
            "__get_str" | "__get_rel_str" => field(0).map(Expr::Str),
            "__get_dynamic_array" | "__get_rel_dynamic_array" | "__get_sockaddr" | "__get_rel_sockaddr" => {
                field(0).map(Expr::Field)
            }
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => field(0).map(Expr::Len),
            "__get_bitmask" | "__get_rel_bitmask" | "__get_cpumask" | "__get_rel_cpumask" => {
                field(0).map(Expr::Bitmask)
            }
            "__print_flags" | "__print_flags_u64" => {
                let ty = if name.ends_with("u64") { Int::new(8, false) } else { long };
                let value = self.parse_one(argument(0)?)?;
                let delimiter = match argument(1)? {
                    [Token::Text(text)] => text.clone(),
                    _ => Vec::new(),
                };
                let mut list = self.list(arguments.get(2..)?, ty);
                list.truncate(FLAGS_MAX);
                Some(Expr::Flags(value.into(), delimiter, list, ty))
            }
            "__print_symbolic" | "__print_symbolic_u64" => {
                let ty = if name.ends_with("u64") { Int::new(8, false) } else { long };
                let value = self.parse_one(argument(0)?)?;
                let mut list = self.list(arguments.get(1..)?, ty);
                // Stable: of equal values the first has the name.
                list.sort_by_key(|(value, _)| *value);
                list.dedup_by_key(|(value, _)| *value);
                Some(Expr::Symbolic(value.into(), list, ty))
            }
            "__print_hex" | "__print_hex_str" => {
                let separator: &[u8] = if name.ends_with("str") { b"" } else { b" " };
                let (bytes, len) = (self.parse_one(argument(0)?)?, self.parse_one(argument(1)?)?);
                Some(Expr::Hex(bytes.into(), len.into(), separator))
            }
            "__print_array" => {
                let (bytes, count) = (self.parse_one(argument(0)?)?, self.parse_one(argument(1)?)?);
                Some(Expr::Array(bytes.into(), Some(count.into()), self.parse_one(argument(2)?)?.into()))
            }
            "__print_dynamic_array" => {
                Some(Expr::Array(Expr::Field(field(0)?).into(), None, self.parse_one(argument(1)?)?.into()))
            }
            "__print_ns_to_secs" => Some(Expr::Seconds(self.parse_one(argument(0)?)?.into())),
            "__print_ns_without_secs" => Some(Expr::SubSeconds(self.parse_one(argument(0)?)?.into())),
            "__event_in_hardirq" => Some(Expr::Context(ContextTest::HardIrq)),
            "__event_in_softirq" => Some(Expr::Context(ContextTest::SoftIrq)),
            "__event_in_irq" => Some(Expr::Context(ContextTest::Irq)),
            // Hints for the compiler.
            "__builtin_expect" | "likely" | "unlikely" => self.parse_one(argument(0)?),
            "__builtin_constant_p" => Some(Expr::Const(0, Int::INT)),
            "__builtin_bswap16" | "__fswab16" | "__swab16" => self.swap(argument(0)?, 2),
            "__builtin_bswap32" | "__fswab32" | "__swab32" => self.swap(argument(0)?, 4),
            "__builtin_bswap64" | "__fswab64" | "__swab64" => self.swap(argument(0)?, 8),
            "sizeof" => {
                match cast_type(argument(0)?, self.scope.long_size, Some(&Token::Name(String::new())))? {
                    CastTo::Int(ty) => Some(Expr::Const(ty.size.into(), long)),
                    CastTo::Bool => Some(Expr::Const(1, long)),
                    CastTo::Pointer(_) => Some(Expr::Const(long.size.into(), long)),
                    CastTo::Same => None,
                }
            }
            _ => None,
        }
    }

    fn swap(&mut self, argument: &'t [Token], bytes: u8) -> Option<Expr> {
        Some(Expr::Swap(self.parse_one(argument)?.into(), bytes))
    }

    /// `{ value, "NAME" }` entries. Entries without a known value are left out, so that its bits print as hex;
    /// an entry without a name ends the list (`{ 0, ((void *)0) }`, 6.17).
    fn list(&mut self, entries: &[&'t [Token]], ty: Int) -> Vec<ListEntry> {
        let mut out = Vec::new();
        for entry in entries {
            let inner = match entry {
                [Token::Sign("{"), inner @ .., Token::Sign("}")] => inner,
                _ => continue,
            };
            let entry = split_arguments(inner);
            let Some((value, name)) = entry.first().zip(entry.get(1)) else { continue };
            let [Token::Text(name)] = name else { break };
            if let Some(Expr::Const(value, _)) = self.parse_one(value) {
                out.push((ty.wrap(value), name.clone()));
            }
        }
        out
    }
}

fn operator(sign: &str) -> Option<(Binary, u8)> {
    Some(match sign {
        "*" => (Binary::Mul, 10),
        "/" => (Binary::Div, 10),
        "%" => (Binary::Rem, 10),
        "+" => (Binary::Add, 9),
        "-" => (Binary::Sub, 9),
        "<<" => (Binary::Shl, 8),
        ">>" => (Binary::Shr, 8),
        "<" => (Binary::Lt, 7),
        ">" => (Binary::Gt, 7),
        "<=" => (Binary::Le, 7),
        ">=" => (Binary::Ge, 7),
        "==" => (Binary::Eq, 6),
        "!=" => (Binary::Ne, 6),
        "&" => (Binary::And, 5),
        "^" => (Binary::Xor, 4),
        "|" => (Binary::Or, 3),
        "&&" => (Binary::AndAnd, 2),
        "||" => (Binary::OrOr, 1),
        _ => return None,
    })
}
