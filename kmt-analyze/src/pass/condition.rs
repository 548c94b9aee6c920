//! `--where`: one condition of a selection.
//!
//! A condition is a key, a comparison and values, parsed from `KEY OP VALUE`. `pass/filter` applies it to items when
//! they are numbered, `dump` to single events, and `account` and `peak` to their own objects. Values with units are
//! converted to the units of the trace here, so that all of them select the same.

use std::fmt;

use kmt_common::quantity::{self, Span};
use regex::bytes::Regex;

use crate::trace::clock::Clock;

/// Subject of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Task (thread id).
    Pid,
    /// Name of a task.
    Comm,
    /// Cgroup of a task, or one above it.
    Cgroup,
    Cpu,
    /// Requested node; -1: any.
    Node,
    /// Event, `kmalloc` or `kmem:kmalloc`.
    Event,
    /// Symbol and offset of the allocator's caller.
    CallSite,
    /// Module of the allocator's caller, with or without its brackets; `[kernel]`: the core kernel.
    Module,
    /// Directory of the source of the allocator's caller, or one above it.
    Dir,
    /// Source file of the allocator's caller, with or without its directory.
    File,
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
    /// Page frame: a number, or the first and the last of a range.
    Pfn,
}

/// Names of keys, and whether their values are texts.
const KEYS: [(&str, Key, bool); 19] = [
    ("pid", Key::Pid, false),
    ("comm", Key::Comm, true),
    ("cgroup", Key::Cgroup, true),
    ("cpu", Key::Cpu, false),
    ("node", Key::Node, false),
    ("event", Key::Event, true),
    ("call_site", Key::CallSite, true),
    ("module", Key::Module, true),
    ("dir", Key::Dir, true),
    ("file", Key::File, true),
    ("cache", Key::Cache, true),
    ("bytes_req", Key::BytesReq, false),
    ("bytes_alloc", Key::BytesAlloc, false),
    ("size", Key::BytesAlloc, false),
    ("lifetime", Key::Lifetime, false),
    ("gfp", Key::Gfp, true),
    ("order", Key::Order, false),
    ("migratetype", Key::Migratetype, true),
    ("pfn", Key::Pfn, false),
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

/// A number to compare with, or a range of numbers.
#[derive(Debug, Clone, Copy)]
struct Number {
    /// The number, or the first of a range. Of a time: in the clock's unit, once that is known.
    value: i64,
    /// Last number of a range.
    last: i64,
    /// A time, as it was given.
    span: Option<Span>,
}

impl Number {
    fn of(value: i64) -> Self {
        Self { value, last: value, span: None }
    }
}

/// One condition.
#[derive(Debug, Clone)]
pub struct Condition {
    /// Key that the condition is about.
    pub key: Key,
    compare: Compare,
    negated: bool,
    numbers: Vec<Number>,
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
        let &(_, key, is_textual) = KEYS
            .iter()
            .find(|k| k.0 == name.trim())
            .ok_or_else(|| bad(format!("no such key `{}`; there are {}", name.trim(), names.join(", "))))?;
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
            if !is_textual {
                return Err(bad("this key is a number; = and < compare it".into()));
            }
            condition.pattern =
                Some(Regex::new(value).map_err(|e| bad(format!("not a regular expression: {e}")))?);
            return Ok(condition);
        }
        for item in value.split(',').map(str::trim) {
            match (number(key, item), is_textual) {
                (Ok(number), _) => condition.numbers.push(number),
                (Err(_), true) if compare == Compare::Equal && !item.is_empty() => {
                    condition.texts.push(item.to_owned());
                }
                (Err(why), _) => return Err(bad(why)),
            }
            // A name may look like a number.
            if is_textual && compare == Compare::Equal && !item.is_empty() {
                condition.texts.push(item.to_owned());
            }
        }
        // One may have commas.
        if is_textual && compare == Compare::Equal && value.contains(',') {
            condition.texts.push(value.to_owned());
        }
        let is_range = condition.numbers.iter().any(|number| number.value != number.last);
        if compare != Compare::Equal && (condition.numbers.len() != 1 || is_range) {
            return Err(bad("expected one number".into()));
        }
        Ok(condition)
    }

    /// True if the number meets the condition.
    pub fn holds_number(&self, number: i64) -> bool {
        self.holds(number, None)
    }

    /// True if the number, or its text, meets the condition.
    pub fn holds(&self, number: i64, text: Option<&[u8]>) -> bool {
        let of_text = text.is_some_and(|text| match &self.pattern {
            Some(pattern) => pattern.is_match(text),
            None => self.compare == Compare::Equal && self.texts.iter().any(|t| t.as_bytes() == text),
        });
        (self.compares(number, number) || of_text) != self.negated
    }

    /// True if one of the page frames from `first` to `last` meets the condition; a negated one has to hold for all.
    pub fn holds_for_frames(&self, first: u64, last: u64) -> bool {
        let [first, last] = [first, last].map(|frame| i64::try_from(frame).unwrap_or(i64::MAX));
        self.compares(first, last) != self.negated
    }

    /// True if the comparison is true for one of the numbers from `first` to `last`.
    fn compares(&self, first: i64, last: i64) -> bool {
        let bound = self.numbers.first().map(|number| number.value);
        match self.compare {
            Compare::Equal => self.numbers.iter().any(|n| n.value <= last && first <= n.last),
            Compare::Less => bound.is_some_and(|n| first < n),
            Compare::LessOrEqual => bound.is_some_and(|n| first <= n),
            Compare::Greater => bound.is_some_and(|n| last > n),
            Compare::GreaterOrEqual => bound.is_some_and(|n| last >= n),
            Compare::Matches => false,
        }
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
    pub fn holds_for_any(&self, names: impl IntoIterator<Item: AsRef<[u8]>>) -> bool {
        let mut holds = names.into_iter().map(|name| self.holds_text(name.as_ref()));
        if self.negated { holds.all(|h| h) } else { holds.any(|h| h) }
    }

    /// This condition with its times in the unit of a clock.
    pub fn in_units_of(&self, clock: &Clock) -> crate::failure::Result<Self> {
        let mut resolved = self.clone();
        for number in &mut resolved.numbers {
            if let Some(span) = number.span {
                number.value = i64::try_from(clock.units(span)?).unwrap_or(i64::MAX);
                number.last = number.value;
            }
        }
        Ok(resolved)
    }

    /// Names that it compares; none for a regular expression.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
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

/// Parses a number of a key: sizes and times with their units, others decimal or 0x.
fn number(key: Key, text: &str) -> Result<Number, String> {
    match key {
        Key::Lifetime => Ok(Number { span: Some(Span::parse(text)?), ..Number::of(0) }),
        Key::BytesReq | Key::BytesAlloc => {
            let bytes = quantity::size(text)?;
            Ok(Number::of(i64::try_from(bytes).map_err(|_| format!("`{text}` is out of range"))?))
        }
        Key::Pfn if text.contains("..") => {
            let (first, last) = text.split_once("..").unwrap_or_default();
            let (value, last) = (plain_number(first)?, plain_number(last)?);
            match value <= last {
                true => Ok(Number { value, last, span: None }),
                false => Err(format!("the range `{text}` ends before it begins")),
            }
        }
        _ => plain_number(text).map(Number::of),
    }
}

/// Parses a number, decimal or 0x.
fn plain_number(text: &str) -> Result<i64, String> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().and_then(|n| i64::try_from(n).ok()),
        None => text.parse::<i64>().ok(),
    };
    number.ok_or_else(|| format!("`{text}` is not a number"))
}

#[cfg(test)]
mod tests {
    use super::Condition;
    use crate::trace::clock::Clock;

    fn holds(condition: &str, number: i64, text: &str) -> bool {
        let condition = Condition::parse(condition).unwrap().in_units_of(&Clock::nanoseconds()).unwrap();
        condition.holds(number, Some(text.as_bytes()))
    }

    #[test]
    fn conditions() {
        assert!(holds("size>4096", 4097, "") && !holds("size>4K", 4096, ""));
        assert!(holds("pid=1,2", 2, "") && !holds("pid!=1,2", 2, ""));
        assert!(holds("size<=1GiB", 1 << 30, "") && holds("size>1.5KiB", 1_537, ""));
        assert!(holds("lifetime>=1.5ms", 1_500_000, "") && !holds("lifetime<2us", 2_000, ""));
        assert!(holds("gfp~ZERO", 0, "GFP_KERNEL|__GFP_ZERO") && holds("gfp=0xcc0", 0xcc0, "GFP_KERNEL"));
        assert!(holds("gfp=GFP_KERNEL", 1, "GFP_KERNEL") && !holds("gfp!~KERNEL", 1, "GFP_KERNEL"));
        assert!(holds("node<0", -1, ""));
        assert!(Condition::parse("comm=7").unwrap().holds_text(b"7"));
        assert!(Condition::parse("call_site~^ext4_.*\\+0x").unwrap().holds_text(b"ext4_alloc+0x1f"));
    }

    #[test]
    fn frames_are_ranges() {
        let holds = |text: &str, first, last| Condition::parse(text).unwrap().holds_for_frames(first, last);
        assert!(holds("pfn=0x10..0x1f", 0x1f, 0x1f) && !holds("pfn=0x10..0x1f", 0x20, 0x2f));
        assert!(holds("pfn=17", 16, 23) && !holds("pfn=24", 16, 23) && holds("pfn=1,24..30", 16, 31));
        assert!(!holds("pfn!=17", 16, 23) && holds("pfn!=24..40", 16, 23));
        assert!(holds("pfn<17", 16, 23) && !holds("pfn<16", 16, 23) && holds("pfn<=16", 16, 23));
        assert!(holds("pfn>22", 16, 23) && !holds("pfn>23", 16, 23) && holds("pfn>=23", 16, 23));
    }

    #[test]
    fn times_keep_their_unit_until_the_clock_is_known() {
        let condition = Condition::parse("lifetime>1ms").unwrap();
        let ticks = condition.in_units_of(&Clock::ticks("x86-tsc", Some(0.5))).unwrap();
        assert!(ticks.holds_number(2_000_001) && !ticks.holds_number(2_000_000));
        assert!(condition.in_units_of(&Clock::ticks("x86-tsc", None)).is_err());
        let plain =
            Condition::parse("lifetime>5").unwrap().in_units_of(&Clock::ticks("x86-tsc", None)).unwrap();
        assert!(plain.holds_number(6) && !plain.holds_number(5));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("size", "KEY OP VALUE"),
            ("sise>1", "no such key"),
            ("size~1", "is a number"),
            ("cache~(", "not a regular expression"),
            ("pid=x", "is not a number"),
            ("size>1T", "K, M, G, KiB, MiB or GiB"),
            ("lifetime>1d", "ns, us, ms, s, min or h"),
            ("size<1,2", "one number"),
            ("pfn<1..2", "one number"),
            ("pfn=2..1", "ends before it begins"),
            ("pfn=1..", "is not a number"),
            ("order=1..2", "is not a number"),
        ] {
            let error = Condition::parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
