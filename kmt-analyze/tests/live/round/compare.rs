//! A conversion of a text against a conversion of the bytes that the text was printed from.

use std::collections::{BTreeMap, HashMap};

use super::layouts::{Lack, Layout, PERF, Time};
use super::rows::{ROLES, Row, Rows, Value};

/// Compares all events; the number of them.
pub fn compare(raw: &Rows, read: &Rows, layout: &Layout) -> Result<usize, String> {
    if (raw.losses, read.losses) != (0, 0) {
        return Err(format!("{} losses, in the raw events {}", read.losses, raw.losses));
    }
    let expected: Vec<&Row> =
        raw.rows.iter().filter(|row| row.stack.is_none() || !layout.lacks(Lack::Stacks)).collect();
    let found: Vec<&Row> = read.rows.iter().collect();
    let mut pointers = Pointers::default();
    let mut start = None;
    let mut compared = 0;
    for (cpu, expected, found) in by_cpu(&expected, &found)? {
        for (at, (raw_row, row)) in expected.iter().zip(&found).enumerate() {
            let difference = same(raw, raw_row, row, layout, &mut pointers, &mut start);
            difference.map_err(|what| {
                format!("{what}: CPU {cpu}, event {at}\n  raw  {raw_row:?}\n  text {row:?}")
            })?;
            compared += 1;
        }
        if expected.len() != found.len() {
            return Err(format!("CPU {cpu}: {} events of {}", found.len(), expected.len()));
        }
    }
    Ok(compared)
}

type OfCpu<'r> = (u32, Vec<&'r Row>, Vec<&'r Row>);

/// Events by CPU. Those of different CPUs at one time have no order.
fn by_cpu<'r>(expected: &[&'r Row], found: &[&'r Row]) -> Result<Vec<OfCpu<'r>>, String> {
    let mut cpus: BTreeMap<u32, OfCpu<'r>> = BTreeMap::new();
    for (rows, is_raw) in [(expected, true), (found, false)] {
        for row in rows {
            let (_, expected, found) = cpus.entry(row.cpu).or_insert((row.cpu, Vec::new(), Vec::new()));
            if is_raw { expected.push(row) } else { found.push(row) }
        }
    }
    if cpus.is_empty() {
        return Err("no events".to_owned());
    }
    Ok(cpus.into_values().collect())
}

/// Pointers and their hashes: each has one.
#[derive(Default)]
struct Pointers {
    hashes: HashMap<u64, u64>,
    pointers: HashMap<u64, u64>,
}

impl Pointers {
    fn agree(&mut self, pointer: u64, hash: u64) -> bool {
        *self.hashes.entry(pointer).or_insert(hash) == hash
            && *self.pointers.entry(hash).or_insert(pointer) == pointer
    }
}

fn same(
    raw: &Rows,
    expected: &Row,
    found: &Row,
    layout: &Layout,
    pointers: &mut Pointers,
    start: &mut Option<i64>,
) -> Result<(), String> {
    let is = |is: bool, what: &str| if is { Ok(()) } else { Err(what.to_owned()) };
    is(expected.name == found.name, "name")?;
    // perf has no id of a task that was gone when it read its event.
    let is_gone = found.pid == -1 && PERF.iter().any(|perf| perf.name == layout.name);
    is(is_gone || layout.lacks(Lack::Pid) || expected.pid == found.pid, "pid")?;
    let known = |comm: &str| comm == "<...>" || raw.names.contains(&(expected.pid, comm.to_owned()));
    let is_task = match layout.comm_len() {
        None => true,
        Some(len) => {
            let cut = |comm: &str| comm.chars().take(len).collect::<String>().trim_end().to_owned();
            let mut names =
                raw.names.iter().filter(|(pid, _)| *pid == expected.pid).map(|(_, comm)| cut(comm));
            // The kernel forgets names, also between the text and the copy of its table.
            let is_forgotten = expected.comm.is_empty();
            is_forgotten
                || cut(&expected.comm) == found.comm
                || known(&found.comm)
                || names.any(|name| name == found.comm)
        }
    };
    is(is_gone || is_task, "name of the task")?;
    is(is_time(expected.time, found.time, layout.time, start), "time")?;
    if let (Some(raw), Some(read)) = (&expected.stack, &found.stack) {
        let cut = |frame: &String| {
            let frame =
                if layout.lacks(Lack::Offsets) { frame.split('+').next() } else { frame.split('/').next() };
            frame.unwrap_or_default().to_owned()
        };
        let frames = if layout.lacks(Lack::StackEnds) { 8 } else { usize::MAX };
        let (raw, read): (Vec<String>, Vec<String>) =
            (raw.iter().take(frames).map(cut).collect(), read.iter().map(cut).collect());
        return is(raw == read, &format!("frames\n  {raw:?}\n  {read:?}"));
    }
    is(expected.stack.is_none() && found.stack.is_none(), "stack")?;
    if !layout.lacks(Lack::KernelText) {
        let (raw, read) = (masked(&expected.text, layout), masked(&found.text, layout));
        is(raw == read, &format!("text\n  {raw}\n  {read}"))?;
    }
    for (((_, name), raw), read) in ROLES.iter().zip(&expected.values).zip(&found.values) {
        if layout.lacks_field(&expected.name, name) {
            is(read.is_none(), &format!("{name} is there"))?;
            continue;
        }
        let is_same = match (raw, read) {
            (Some(Value::Number(raw)), Some(Value::Number(read)))
                if *name == "ptr" && layout.lacks(Lack::Pointers) =>
            {
                pointers.agree(*raw, *read)
            }
            (Some(Value::Name(raw)), Some(Value::Name(read))) if *name == "call_site" => {
                let cut = |site: &str| site.split('/').next().unwrap_or_default().to_owned();
                cut(raw) == cut(read)
            }
            (Some(Value::Name(raw)), Some(Value::Name(read))) if *name == "gfp_flags" => {
                // A number is named by the names of 6.1, where GFP_NOWAIT lacks the other flag.
                let flags = |names| {
                    let names = flags_of(names);
                    if names.contains("GFP_NOWAIT") { names.replace("|__GFP_NOWARN", "") } else { names }
                };
                flags_of(raw) == flags_of(read) || layout.lacks(Lack::KernelText) && flags(raw) == flags(read)
            }
            // Kernels print more than they record: `accounted` of kmalloc.
            (None, _) => true,
            _ => raw == read,
        };
        is(is_same, &format!("{name}: {raw:?} {read:?}"))?;
    }
    Ok(())
}

/// The text without what no ring buffer holds, and without pointers if they are hashed.
fn masked(text: &str, layout: &Layout) -> String {
    let word = |word: &str| {
        let key = word.split_once('=').map_or("", |(key, _)| key);
        if key == "gfp_flags" {
            return flags_of(word);
        }
        let is_hidden = key == "page" || key == "ptr" && layout.lacks(Lack::Pointers);
        if is_hidden { format!("{key}=") } else { word.to_owned() }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Names of flags in one order: kernels print them in several, text that is read back in that of 6.1.
fn flags_of(word: &str) -> String {
    let (key, names) = word.split_once('=').unwrap_or(("", word));
    // One name of two flags, which not every kernel has.
    let names = names.replace("GFP_HIGHUSER_MOVABLE", "GFP_HIGHUSER|__GFP_MOVABLE");
    let mut names: Vec<&str> = names.split('|').collect();
    names.sort_unstable();
    format!("{key}={}", names.join("|"))
}

fn is_time(raw: u64, read: u64, time: Time, start: &mut Option<i64>) -> bool {
    match time {
        Time::Nanos => raw == read,
        // Behind the microseconds are the nanoseconds that keep the order of lines.
        Time::Micros => (raw + 500) / 1000 == read / 1000,
        Time::MicrosCut => raw / 1000 == read / 1000,
        Time::FromStart(error_ns) => {
            let distance = raw as i64 - read as i64;
            (distance - *start.get_or_insert(distance)).unsigned_abs() <= error_ns
        }
    }
}

/// Every event has, in order, a line that ends as it is printed again.
pub fn is_printed_again(text: &str, read: &Rows, layout: &Layout) -> Result<(), String> {
    let mut lines = text.lines();
    for row in read.rows.iter().filter(|row| row.stack.is_none()) {
        let name = format!("{}: ", row.name);
        let is_event = |line: &&str| line.contains(&name);
        let line = lines.by_ref().find(is_event).ok_or_else(|| format!("no line of {row:?}"))?;
        let has_task = layout.comm_len().is_none() || line.trim_start().starts_with(&row.comm);
        let is_in =
            |line: &str| line.trim_end().ends_with(&row.text) || plain(line).ends_with(&plain(&row.text));
        let is_same = is_in(line) || without_instruction(line).is_some_and(is_in);
        if !is_same || !has_task {
            return Err(format!("not printed again\n  line {line}\n  event {row:?}"));
        }
    }
    Ok(())
}

/// A line of perf without the sampled instruction behind the text: address, function, and the object where it is printed.
fn without_instruction(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let mut words = line.rsplitn(3, ' ');
    let address = words.nth(1)?;
    if address.len() >= 8 && address.bytes().all(|b| b.is_ascii_hexdigit()) {
        return words.next();
    }
    line.strip_suffix(')')?.rsplitn(4, ' ').nth(3)
}

/// Numbers and functions in one notation: tools print pointers with 0x, and functions without their size.
fn plain(text: &str) -> String {
    let word = |word: &str| {
        let Some((key, value)) = word.split_once('=') else { return word.to_owned() };
        if key == "gfp_flags" {
            return flags_of(word);
        }
        let value = match key {
            "ptr" | "page" if value == "(nil)" => "",
            "ptr" | "page" => value.trim_start_matches("0x").trim_start_matches('0'),
            "call_site" => value.split('/').next().unwrap_or_default(),
            _ => value,
        };
        format!("{key}={value}")
    };
    // The kernel's option `fields` prints numbers once more behind each value.
    let is_again = |word: &&str| word.starts_with('(') && word.ends_with(')');
    text.trim_end().split(' ').filter(|word| !is_again(word)).map(word).collect::<Vec<_>>().join(" ")
}
