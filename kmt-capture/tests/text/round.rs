//! A small trace, written in any layout and notation, is read back.

use proptest::prelude::*;

use crate::converted;

/// An event as it is written.
#[derive(Debug, Clone)]
struct Event {
    kind: Kind,
    pid: i32,
    cpu: u32,
    us: u64,
    site: u64,
    ptr: u64,
    req: u64,
    alloc: u64,
    pfn: u64,
    order: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alloc,
    Free,
    Page,
    PageFree,
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Decimal,
    Hex,
    Bare,
    /// The option `fields`.
    Both,
}

impl Numbers {
    fn write(self, number: u64) -> String {
        match self {
            Self::Decimal => number.to_string(),
            Self::Hex => format!("{number:#x}"),
            Self::Bare => format!("{number:x}"),
            Self::Both => format!("{number:#x} ({})", number as i64),
        }
    }
}

/// Order of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Trace,
    TraceCmd,
    TsDiff,
    Perf,
    PerfPeriod,
    Latency,
    Verbose,
    Graph,
    NoTask,
}

impl Layout {
    fn line(self, e: &Event, text: &str) -> String {
        let Event { pid, cpu, us, .. } = e;
        let time = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let comm = "some task";
        match self {
            Self::Trace => format!("{comm:>16}-{pid:<7} [{cpu:03}] d..1. {time:>12}: {text}"),
            Self::TraceCmd => {
                let (name, rest) = text.split_once(": ").unwrap();
                format!("{comm:>16}-{pid:<5} [{cpu:03}] {time:>12}: {:<20}  {rest}", format!("{name}:"))
            }
            Self::TsDiff => format!("{comm:>16}-{pid:<5} [{cpu:03}] {time:>12}: (+1567)  {text}"),
            Self::Perf => format!("{comm:>16} {pid:>5} [{cpu:03}] {time:>12}:          kmem:{text}"),
            Self::PerfPeriod => format!("{comm:>16} {pid:>5} [{cpu:03}] {time:>12}:        1   kmem:{text}"),
            Self::Latency => format!("{comm:>8.8}-{pid:<7} {cpu:3}d..1. {us:>4}us : {text}"),
            Self::Verbose => {
                let (ms, rest) = (us / 1000, us % 1000);
                format!(
                    "{comm:>16} {pid:7} {cpu:3} 1 00000001 00000000 [58127d26] {ms}.{rest:03}ms (+0.016ms): {text}"
                )
            }
            Self::Graph => {
                format!("{time:>12} | {cpu:3})  {comm:>10}-{pid:<7} |               |  /* {text} */")
            }
            Self::NoTask => format!("[{cpu:03}] d..1. {time:>12}: {text}"),
        }
    }
}

/// The text of an event; pointers and call sites in notations of their own.
fn text(e: &Event, numbers: Numbers, ptr: Numbers, site: Numbers) -> String {
    let (site, ptr) = (site.write(e.site), ptr.write(e.ptr));
    let [req, alloc, pfn, order] = [e.req, e.alloc, e.pfn, e.order].map(|n| numbers.write(n));
    match e.kind {
        Kind::Alloc => {
            format!(
                "kmalloc: call_site={site} ptr={ptr} bytes_req={req} bytes_alloc={alloc} gfp_flags=GFP_KERNEL"
            )
        }
        Kind::Free => format!("kfree: call_site={site} ptr={ptr}"),
        Kind::Page => {
            format!("mm_page_alloc: page=(null) pfn={pfn} order={order} migratetype=0 gfp_flags=GFP_KERNEL")
        }
        Kind::PageFree => format!("mm_page_free: page=(null) pfn={pfn} order={order}"),
    }
}

/// One of each kind whose numbers have letters, as those of many events have; then any.
fn events() -> impl Strategy<Value = Vec<Event>> {
    use Kind::{Alloc, Free, Page, PageFree};
    let kind = prop::sample::select(vec![Alloc, Free, Page, PageFree]);
    let numbers = (1u64..8192, 0u64..64, 1u64..1 << 24, 0u64..11, 0u64..1 << 20, 0u64..1 << 20);
    let any = (kind, 1i32..32768, 0u32..8, numbers);
    prop::collection::vec(any, 1..8).prop_map(|rows| {
        let lettered =
            [(Alloc, 7, 0, (44, 30, 0xabc, 10, 0xa0, 0xb0)), (Page, 7, 0, (44, 30, 0xabc, 10, 0xa0, 0xb0))];
        lettered
            .into_iter()
            .chain(rows)
            .zip(1u64..)
            .map(|((kind, pid, cpu, n), at)| Event {
                kind,
                pid,
                cpu,
                us: at * 1_001,
                req: n.0,
                alloc: n.0 + n.1,
                pfn: n.2,
                order: n.3,
                site: 0xffff_ffff_8100_0000 + n.4,
                ptr: 0xffff_8881_0000_0000 + n.5 * 8,
            })
            .collect()
    })
}

fn layouts() -> impl Strategy<Value = Layout> {
    use Layout::*;
    prop::sample::select(vec![Trace, TraceCmd, TsDiff, Perf, PerfPeriod, Latency, Verbose, Graph, NoTask])
}

fn notations() -> impl Strategy<Value = Numbers> {
    prop::sample::select(vec![Numbers::Decimal, Numbers::Hex, Numbers::Bare, Numbers::Both])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_layout_and_notation_is_read_back(
        events in events(),
        layout in layouts(),
        numbers in notations(),
        ptr in notations(),
        site in notations(),
        end in prop::sample::select(vec!["\n", "\r\n", "\\n\\\n"]),
    ) {
        let lines = events.iter().map(|e| layout.line(e, &text(e, numbers, ptr, site)) + end);
        let input: String = lines.collect();
        let read = converted(&input);
        prop_assert_eq!((read.code, read.lost, read.lines.len()), (Some(0), 0, events.len()), "{}{}", read.stderr, input);
        for (at, e) in events.iter().enumerate() {
            let pid = if layout == Layout::NoTask { -1 } else { e.pid };
            let head = format!("-{pid} [{}] {}: ", e.cpu, e.us * 1000);
            prop_assert!(read.lines[at].contains(&head), "{} in {}\n{}", head, read.lines[at], input);
            let slab = matches!(e.kind, Kind::Alloc | Kind::Free);
            let only = |is: bool, number: u64| is.then_some(number);
            let is_alloc = e.kind == Kind::Alloc;
            prop_assert_eq!((read.sites[at], read.frames[at]), (only(slab, e.site), only(!slab, e.pfn)), "{}", input);
            let expected =
                [only(slab, e.ptr), only(is_alloc, e.req), only(is_alloc, e.alloc), only(!slab, e.order)];
            prop_assert_eq!(read.numbers[at], expected, "{}", input);
        }
    }
}
