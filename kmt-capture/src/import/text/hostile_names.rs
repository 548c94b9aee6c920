//! Tasks may be called anything, also as the columns of a line look: events are written as each tool prints them, and read back.

use proptest::prelude::*;

use super::columns::Stamp;
use super::line::parse;
use super::line_types::TextLine;
use super::survey::TextSurvey;

/// One event, as it is written and as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    comm: Vec<u8>,
    pid: i32,
    cpu: u32,
    us: u64,
    name: String,
    /// Name in the text of the event.
    other: Vec<u8>,
}

/// Layout of a tool: at most `comm_len` bytes of a name are printed.
#[derive(Debug, Clone, Copy)]
struct Tool {
    name: &'static str,
    comm_len: usize,
    print: fn(&Written) -> Vec<u8>,
}

/// `%16s` and its like, of bytes.
fn padded(comm: &[u8], width: usize) -> Vec<u8> {
    [&vec![b' '; width.saturating_sub(comm.len())], comm].concat()
}

fn text(e: &Written) -> Vec<u8> {
    [
        format!("{}: ptr=00000000c0de call_site=f+0x1/0x2 newcomm=", e.name).as_bytes(),
        &e.other,
        b" bytes_req=8",
    ]
    .concat()
}

fn line(comm: Vec<u8>, columns: String, e: &Written) -> Vec<u8> {
    [comm, columns.into_bytes(), text(e)].concat()
}

fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// Lines of `trace` and `trace_pipe` (kernel/trace/trace_output.c), of `trace-cmd report`, and of `perf script`.
const TOOLS: [Tool; 9] = [
    Tool {
        name: "trace",
        comm_len: 15,
        print: |e| {
            line(
                padded(&e.comm, 16),
                format!("-{:<7} [{:03}] d..1. {:>12}: ", e.pid, e.cpu, seconds(e.us)),
                e,
            )
        },
    },
    Tool {
        name: "trace with process ids",
        comm_len: 15,
        print: |e| {
            line(
                padded(&e.comm, 16),
                format!("-{:<7} (-------) [{:03}] ..... {:>12}: ", e.pid, e.cpu, seconds(e.us)),
                e,
            )
        },
    },
    Tool {
        name: "trace of old kernels",
        comm_len: 15,
        print: |e| {
            line(padded(&e.comm, 16), format!("-{:<5} [{:03}] {:>12}: ", e.pid, e.cpu, seconds(e.us)), e)
        },
    },
    Tool {
        name: "latency",
        comm_len: 8,
        print: |e| line(padded(&e.comm, 8), format!("-{:<7} {:3}d..1. {:4}us : ", e.pid, e.cpu, e.us), e),
    },
    Tool {
        name: "trace-cmd report",
        comm_len: 15,
        print: |e| {
            line(
                padded(&e.comm, 16),
                format!("-{:<5} [{:03}] d..1. {:>12}: ", e.pid, e.cpu, seconds(e.us)),
                e,
            )
        },
    },
    Tool {
        name: "trace-cmd report -l",
        comm_len: 8,
        print: |e| {
            line(padded(&e.comm, 8), format!("-{:<5} {:3}d..1. {:>12}: ", e.pid, e.cpu, seconds(e.us)), e)
        },
    },
    Tool {
        name: "perf script",
        comm_len: 15,
        print: |e| {
            line(padded(&e.comm, 16), format!(" {:>7} [{:03}] {:>12}: kmem:", e.pid, e.cpu, seconds(e.us)), e)
        },
    },
    Tool {
        name: "perf script with process ids",
        comm_len: 15,
        print: |e| {
            line(
                padded(&e.comm, 16),
                format!(" {:>7}/{:<7} [{:03}] {:>12}: kmem:", 7, e.pid, e.cpu, seconds(e.us)),
                e,
            )
        },
    },
    Tool {
        name: "function graph",
        comm_len: 7,
        print: |e| {
            let head = format!("{:>12} |  {:>2})  ", seconds(e.us), e.cpu).into_bytes();
            let task = [&e.comm[..], format!("-{}    |               |  /* ", e.pid).as_bytes()].concat();
            [head, task, text(e), b" */".to_vec()].concat()
        },
    },
];

const PIECES: &[&str] = &[
    " ",
    " ",
    ":",
    ": ",
    "-",
    "->",
    "=> ",
    "[7]",
    " [7] ",
    "[",
    "]",
    "(3)",
    "1",
    "42",
    "-1 ",
    "a",
    "b:",
    "9.0: ",
    "5us",
    "us:",
    "|",
    " | ",
    "#",
    "<...>",
    "<6>",
    "[1.5] ",
    "CPU:7",
    "d..1.",
    "ü",
    "/",
    "3/4",
    "cpus=",
    "{",
    ")",
    "kmem:kmalloc:",
    " <-",
    "=",
    "1) => ",
];
const WHOLE: &[&str] = &[
    "a-1 [7] 9.0: b:",
    "a 1 [7] 9.0: b:",
    "a-1 2d 3us : b:",
    "a 3/4 [7] 9: b",
    "-1 [7] 9: k:",
    "a-1",
    "#x",
    "=> x",
    "dbus-daemon",
    "-",
];

/// Names of up to 15 bytes, made of pieces that lines of traces are made of.
fn comm() -> impl Strategy<Value = Vec<u8>> {
    let pieces = proptest::collection::vec(proptest::sample::select(PIECES), 1..8);
    let made = prop_oneof![
        pieces.prop_map(|parts| parts.concat().into_bytes()),
        proptest::sample::select(WHOLE).prop_map(|name| name.as_bytes().to_vec()),
        proptest::collection::vec(1u8.., 1..15),
    ];
    made.prop_map(|mut name| {
        name.truncate(15);
        name.iter_mut().filter(|b| b"\n\r\0".contains(b)).for_each(|b| *b = b'?');
        name
    })
}

fn written() -> impl Strategy<Value = Written> {
    let name = proptest::sample::select(&["kmalloc", "kfree", "mm_page_alloc", "task_rename"][..]);
    (comm(), 1..4_194_304, 0..64u32, 0..2_000_000_000u64, name, comm()).prop_map(
        |(comm, pid, cpu, us, name, other)| Written { comm, pid, cpu, us, name: name.to_owned(), other },
    )
}

/// Task, pid, CPU, time and event.
type Columns = (Vec<u8>, i32, u32, Stamp, String);

/// Columns of the lines of a text; `None` for lines that are not events.
fn read(text: &[u8]) -> Vec<Option<Columns>> {
    let survey = TextSurvey::of(text);
    let event = |line| match parse(line, &survey.layout).line {
        TextLine::Event(e) => {
            Some((e.comm.to_vec(), e.pid, e.cpu, e.stamp, String::from_utf8_lossy(e.name).into_owned()))
        }
        _ => None,
    };
    text.split(|&b| b == b'\n').map(event).collect()
}

fn check(tool: Tool, events: &[Written]) -> Result<(), TestCaseError> {
    let mut events = events.to_vec();
    events.iter_mut().for_each(|e| e.comm.truncate(tool.comm_len));
    let text = events.iter().map(tool.print).collect::<Vec<_>>().join(&b'\n');
    for ((event, found), line) in events.iter().zip(read(&text)).zip(text.split(|&b| b == b'\n')) {
        let expected = (
            // Blanks before a name are padding.
            event.comm.trim_ascii_start().to_vec(),
            event.pid,
            event.cpu,
            Stamp::Time(event.us * 1000, 6),
            event.name.clone(),
        );
        prop_assert_eq!(found, Some(expected), "{}: {:?}", tool.name, String::from_utf8_lossy(line));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_of_hostile_tasks_are_read_as_they_were_written(
        mut events in proptest::collection::vec(written(), 1..12),
        tool in proptest::sample::select(&TOOLS[..]),
        at in any::<proptest::sample::Index>(),
    ) {
        // In any text are tasks with plain names.
        let place = at.index(events.len());
        let plain = Written { comm: b"sh".to_vec(), other: b"sh".to_vec(), ..events[place].clone() };
        events.insert(place, plain);
        check(tool, &events)?;
    }
}

#[test]
fn a_task_that_is_called_as_an_event_stays_a_task() {
    for name in ["a-1 [7] 9.0: b:", "a 1 [7] 9.0: b:", "a-1 2d 3us : b:", "a 3/4 [7] 9: b:"] {
        for tool in TOOLS {
            let event = |pid| Written {
                comm: name.as_bytes().to_vec(),
                pid,
                cpu: 3,
                us: 1_500_000,
                name: "kmalloc".to_owned(),
                other: name.as_bytes().to_vec(),
            };
            check(tool, &[event(7), event(77), event(777_777)]).unwrap();
        }
    }
}

/// Without padding a line may have several readings. The right-most one is taken, and that is reported.
#[test]
fn lines_without_padding_are_read_from_the_right_and_ambiguity_is_reported() {
    let text = b"sh-1 [000] 1.5: kfree: ptr=1\nbash-22 [001] 1.6: kfree: ptr=1\na-1 [7] 9.0: b:-33 [002] 1.7: kfree: ptr=1";
    let survey = TextSurvey::of(text);
    let parsed: Vec<_> = text.split(|&b| b == b'\n').map(|line| parse(line, &survey.layout)).collect();
    assert_eq!(parsed.iter().map(|p| p.is_ambiguous).collect::<Vec<_>>(), [false, false, true]);
    let TextLine::Event(event) = parsed[2].line else { panic!("{parsed:?}") };
    assert_eq!(
        (event.comm, event.pid, event.cpu, event.name),
        (&b"a-1 [7] 9.0: b:"[..], 33, 2, &b"kfree"[..])
    );
}

/// Symbols of programs are in call chains of perf: another text that others choose.
#[test]
fn a_frame_of_a_program_is_not_an_event() {
    let event = "              sh       7 [003] 1.500000: kmem:kfree: ptr=1\n";
    let text = [event, "\t    7f22d0da3b0b 1 [7] 9.0: b: (/x)\n\n"].concat().repeat(3) + &event.repeat(20);
    let names = read(text.as_bytes()).into_iter().flatten().map(|(.., name)| name).collect::<Vec<_>>();
    assert_eq!(names, vec!["kfree"; 23]);
}
