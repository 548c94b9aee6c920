//! Columns that the lines of a text lack, if none can be read.

use super::columns::{Stamp, comm_and_pid, next_word, number, stamp, without_end};
use super::prefix::without_prefix;
use super::torn::could_be_event;

/// Columns that are missing, and how a recording has them.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    /// Columns, `the time and the task`.
    pub columns: String,
    /// Options, and how they are set.
    pub hint: String,
    /// True if columns are missing; else their order is unknown.
    pub lacks_columns: bool,
}

/// Columns that the lines with events lack; `None` if no line looks like one with an event.
pub fn missing(text: &[u8]) -> Option<Missing> {
    // `kmalloc: ` at the begin of a line is the name of an event, not of a file.
    let bare = |line| {
        let line = without_end(line);
        if could_be_event(line) { line } else { without_prefix(line) }
    };
    let mut lines = text.split(|&b| b == b'\n').map(bare);
    let is_graph = |line: &[u8]| line.starts_with(b"# tracer: function_graph");
    let line = lines.find(|line| is_graph(line) || could_be_event(line))?;
    let line = if is_graph(line) { lines.find(|line| graph_cpu(line).is_some())? } else { line };
    Some(graph_cpu(line).map_or_else(|| of_line(line), |at| of_graph(line, at)))
}

/// Offset behind the CPU of a line of the function graph tracer: `TIME |  CPU)`.
fn graph_cpu(line: &[u8]) -> Option<usize> {
    let start =
        line.iter().position(|&b| b == b'|').filter(|&at| is_time(line.get(..at).unwrap_or_default()));
    let start = start.map_or(0, |at| at + 1);
    let close = line.get(start..)?.iter().take(8).position(|&b| b == b')')? + start;
    number(line.get(start..close)?.trim_ascii())?;
    line.get(close..)?.contains(&b'|').then_some(close + 1)
}

fn is_time(word: &[u8]) -> bool {
    matches!(stamp(&[word.trim_ascii(), b":"].concat()), Some((Stamp::Time(..), _)))
}

fn of_graph(line: &[u8], cpu_end: usize) -> Missing {
    let has_time = line.get(..cpu_end).unwrap_or_default().contains(&b'|');
    let task = line.get(cpu_end..).and_then(|rest| rest.split(|&b| b == b'|').next()).unwrap_or_default();
    let has_task = comm_and_pid(task.trim_ascii()).is_some_and(|task| task.has_dash);
    let lacks = [(has_time, "the time", "funcgraph-abstime"), (has_task, "the task", "funcgraph-proc")];
    let of = |part: fn(&(bool, &'static str, &'static str)) -> &'static str| {
        lacks.iter().filter(|lack| !lack.0).map(part).collect::<Vec<_>>()
    };
    let options: Vec<String> =
        of(|lack| lack.2).iter().map(|name| format!("`echo {name} > trace_options`")).collect();
    Missing::new(&of(|lack| lack.1), &format!("record with {}", options.join(" and ")))
}

fn of_line(line: &[u8]) -> Missing {
    let (mut has_cpu, mut has_time, mut rest) = (false, false, line);
    while let Some(word) = next_word(&mut rest) {
        let inner = word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]"));
        has_cpu |= inner.is_some_and(|inner| number(inner).is_some());
        has_time |= word.strip_suffix(b":").is_some_and(is_time);
    }
    let lacks: Vec<&str> = [(has_cpu, "the CPU"), (has_time, "the time")]
        .iter()
        .filter(|lack| !lack.0)
        .map(|lack| lack.1)
        .collect();
    let hint = "record with `echo context-info > trace_options`; without the option `raw`; or use perf script with -F comm,tid,cpu,time,event,trace";
    Missing::new(&lacks, hint)
}

impl Missing {
    /// `the CPU and the time`. Lines that lack nothing have other columns.
    fn new(columns: &[&str], hint: &str) -> Self {
        let lacks_columns = !columns.is_empty();
        let columns =
            if lacks_columns { columns.join(" and ") } else { "a known order of columns".to_owned() };
        Self { columns, hint: hint.to_owned(), lacks_columns }
    }
}
