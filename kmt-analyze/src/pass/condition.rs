//! `--where`: one condition of a selection.

use std::fmt;

use regex::bytes::Regex;

/// Subject of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Task (thread id).
    Pid,
    /// Name of a task.
    Comm,
    /// CPU.
    Cpu,
    /// Requested node; -1: any.
    Node,
    /// Event, `kmalloc` or `kmem:kmalloc`.
    Event,
    /// Symbol and offset of the allocator's caller.
    CallSite,
    /// Module of the allocator's caller, with or without its brackets; `[kernel]`: the core kernel.
    Module,
    /// Name of the cache.
    Cache,
    /// Bytes requested.
    BytesReq,
    /// Bytes allocated.
    BytesAlloc,
    /// Time from allocation to free.
    Lifetime,
    /// Allocation flags: a number, or names of flags.
    Gfp,
    /// log2 of a number of pages.
    Order,
    /// Migrate type: a number or a name.
    Migratetype,
}

const KEYS: [(&str, Key); 15] = [
    ("pid", Key::Pid),
    ("comm", Key::Comm),
    ("cpu", Key::Cpu),
    ("node", Key::Node),
    ("event", Key::Event),
    ("call_site", Key::CallSite),
    ("module", Key::Module),
    ("cache", Key::Cache),
    ("bytes_req", Key::BytesReq),
    ("bytes_alloc", Key::BytesAlloc),
    ("size", Key::BytesAlloc),
    ("lifetime", Key::Lifetime),
    ("gfp", Key::Gfp),
    ("order", Key::Order),
    ("migratetype", Key::Migratetype),
];

/// Comparison of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Matches,
}

/// Longest first: they are tried in this order.
const COMPARES: [(&str, Compare, bool); 8] = [
    ("!=", Compare::Equal, true),
    ("!~", Compare::Matches, true),
    ("<=", Compare::LessOrEqual, false),
    (">=", Compare::GreaterOrEqual, false),
    ("<", Compare::Less, false),
    (">", Compare::Greater, false),
    ("~", Compare::Matches, false),
    ("=", Compare::Equal, false),
];

/// One condition.
#[derive(Debug, Clone)]
pub struct Condition {
    /// Its subject.
    pub key: Key,
    compare: Compare,
    negated: bool,
    numbers: Vec<i64>,
    texts: Vec<String>,
    pattern: Option<Regex>,
    /// Text on the command line.
    source: String,
}

impl Condition {
    /// Parses `KEY OP VALUE`: `size>4096`, `call_site~^ext4_`, `pid=1,2`, `lifetime>=1ms`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names: Vec<&str> = KEYS.iter().map(|k| k.0).collect();
        let bad = |why: String| format!("`{text}`: {why}");
        let at = text.find(['=', '!', '<', '>', '~']).ok_or_else(|| {
            bad("expected KEY OP VALUE, such as size>4096, call_site~^ext4_ or pid=1,2".into())
        })?;
        let (name, rest) = text.split_at(at);
        let key =
            KEYS.iter().find(|k| k.0 == name.trim()).map(|k| k.1).ok_or_else(|| {
                bad(format!("no such key `{}`; there are {}", name.trim(), names.join(", ")))
            })?;
        let &(sign, compare, negated) = COMPARES
            .iter()
            .find(|c| rest.starts_with(c.0))
            .ok_or_else(|| bad("expected =, !=, <, <=, >, >=, ~ or !~".into()))?;
        let value = rest.get(sign.len()..).unwrap_or_default().trim();
        let mut condition = Self {
            key,
            compare,
            negated,
            numbers: Vec::new(),
            texts: Vec::new(),
            pattern: None,
            source: text.to_owned(),
        };
        if compare == Compare::Matches {
            if !condition.is_textual() {
                return Err(bad("this key is a number; = and < compare it".into()));
            }
            condition.pattern =
                Some(Regex::new(value).map_err(|e| bad(format!("not a regular expression: {e}")))?);
            return Ok(condition);
        }
        for item in value.split(',').map(str::trim) {
            match (number(key, item), condition.is_textual()) {
                (Some(number), _) => condition.numbers.push(number),
                (None, true) if compare == Compare::Equal && !item.is_empty() => {
                    condition.texts.push(item.to_owned());
                }
                (None, _) => return Err(bad(format!("`{item}` is not a number"))),
            }
            // A name may look like a number.
            if condition.is_textual() && compare == Compare::Equal && !item.is_empty() {
                condition.texts.push(item.to_owned());
            }
        }
        if compare != Compare::Equal && condition.numbers.len() != 1 {
            return Err(bad("expected one number".into()));
        }
        Ok(condition)
    }

    fn is_textual(&self) -> bool {
        matches!(
            self.key,
            Key::Comm | Key::Event | Key::CallSite | Key::Module | Key::Cache | Key::Gfp | Key::Migratetype
        )
    }

    /// True if the number meets the condition.
    pub fn holds_number(&self, number: i64) -> bool {
        self.holds(number, None)
    }

    /// True if the number, or its text, meets the condition.
    pub fn holds(&self, number: i64, text: Option<&[u8]>) -> bool {
        let first = self.numbers.first().copied();
        let holds = match self.compare {
            Compare::Equal => {
                self.numbers.contains(&number)
                    || text.is_some_and(|t| self.texts.iter().any(|s| s.as_bytes() == t))
            }
            Compare::Less => first.is_some_and(|n| number < n),
            Compare::LessOrEqual => first.is_some_and(|n| number <= n),
            Compare::Greater => first.is_some_and(|n| number > n),
            Compare::GreaterOrEqual => first.is_some_and(|n| number >= n),
            Compare::Matches => text.is_some_and(|t| self.pattern.as_ref().is_some_and(|p| p.is_match(t))),
        };
        holds != self.negated
    }

    /// True if the text meets the condition.
    pub fn holds_text(&self, text: &[u8]) -> bool {
        let holds = match &self.pattern {
            Some(pattern) => pattern.is_match(text),
            None => self.texts.iter().any(|t| t.as_bytes() == text),
        };
        holds != self.negated
    }

    /// True if one of the names of a thing meets the condition; a negated one has to hold for all.
    pub fn holds_for_any(&self, names: &[String]) -> bool {
        let mut holds = names.iter().map(|name| self.holds_text(name.as_bytes()));
        if self.negated { holds.all(|h| h) } else { holds.any(|h| h) }
    }

    /// The number to compare with, if there is one only.
    pub fn number(&self) -> Option<i64> {
        self.numbers.first().copied().filter(|_| self.numbers.len() == 1)
    }

    /// True for `!=` and `!~`.
    pub fn is_negated(&self) -> bool {
        self.negated
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)
    }
}

/// Parses a number: decimal or 0x; sizes with K, M, G; lifetimes with ns, us, ms, s, then in nanoseconds.
fn number(key: Key, text: &str) -> Option<i64> {
    let units: &[(&str, i64)] = match key {
        Key::Lifetime => &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)],
        Key::BytesReq | Key::BytesAlloc => {
            &[("KiB", 1 << 10), ("MiB", 1 << 20), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)]
        }
        _ => &[],
    };
    let (digits, unit) = units
        .iter()
        .find_map(|(suffix, unit)| text.strip_suffix(suffix).map(|digits| (digits, *unit)))
        .unwrap_or((text, 1));
    let whole = match digits.strip_prefix("0x") {
        Some(hex) => i64::try_from(u64::from_str_radix(hex, 16).ok()?).ok(),
        None => digits.parse::<i64>().ok(),
    };
    if let Some(whole) = whole {
        return whole.checked_mul(unit);
    }
    // 1.5ms
    let (whole, fraction) = digits.split_once('.').filter(|_| unit > 1)?;
    let scale = 10i64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction = fraction.parse::<u32>().ok()?;
    let part = i64::from(fraction).checked_mul(unit)?.checked_div(scale)?;
    whole.parse::<i64>().ok()?.checked_mul(unit)?.checked_add(part)
}

/// Parses a duration: 100us, 1.5ms, 2s; a plain number is in the clock's unit.
pub fn duration_of(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is no length of time: expected a number with ns, us, ms or s");
    let condition = Condition::parse(&format!("lifetime={text}")).map_err(|_| bad())?;
    condition.number().and_then(|n| u64::try_from(n).ok()).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &str, number: i64, text: &str) -> bool {
        Condition::parse(condition).unwrap().holds(number, Some(text.as_bytes()))
    }

    #[test]
    fn conditions() {
        assert!(holds("size>4096", 4097, "") && !holds("size>4K", 4096, ""));
        assert!(holds("pid=1,2", 2, "") && !holds("pid!=1,2", 2, ""));
        assert!(holds("lifetime>=1.5ms", 1_500_000, "") && !holds("lifetime<2us", 2_000, ""));
        assert!(holds("gfp~ZERO", 0, "GFP_KERNEL|__GFP_ZERO") && holds("gfp=0xcc0", 0xcc0, "GFP_KERNEL"));
        assert!(holds("gfp=GFP_KERNEL", 1, "GFP_KERNEL") && !holds("gfp!~KERNEL", 1, "GFP_KERNEL"));
        assert!(holds("node<0", -1, ""));
        assert!(Condition::parse("comm=7").unwrap().holds_text(b"7"));
        assert!(Condition::parse("call_site~^ext4_.*\\+0x").unwrap().holds_text(b"ext4_alloc+0x1f"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("size", "KEY OP VALUE"),
            ("sise>1", "no such key"),
            ("size~1", "is a number"),
            ("cache~(", "not a regular expression"),
            ("pid=x", "is not a number"),
            ("size<1,2", "one number"),
        ] {
            let error = Condition::parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
