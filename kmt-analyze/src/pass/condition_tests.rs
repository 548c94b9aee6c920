//! Tests of conditions.

use super::condition::Condition;
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
    let plain = Condition::parse("lifetime>5").unwrap().in_units_of(&Clock::ticks("x86-tsc", None)).unwrap();
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
