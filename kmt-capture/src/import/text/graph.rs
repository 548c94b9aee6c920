//! Lines of the function graph tracer.

use super::columns::{comm_and_pid, event_column, number, stamp};
use super::line_types::{Graph, GraphKind, TextEvent, TextLine};

/// The function graph tracer, with times and tasks: `TIME |  CPU)  COMM-PID  | FLAGS |  DURATION |  CALLS`, where CALLS is
/// `/* EVENT: TEXT */`, or a begin or an end of a function.
pub(super) fn graph(line: &[u8]) -> Option<TextLine<'_>> {
    let mut rest = line;
    let time = next_column(&mut rest)?;
    let stamp = stamp(&[time, b":"].concat())?.0;
    let close = rest.iter().take(8).position(|&b| b == b')')?;
    let cpu = u32::try_from(number(rest.get(..close)?.trim_ascii())?).ok()?;
    let (comm, pid) = task_column(rest.get(close + 1..)?, &mut rest)?;
    let mut flags: &[u8] = b"";
    let mut duration = next_column(&mut rest)?;
    if !duration.is_empty() && !duration.ends_with(b"us") {
        flags = duration;
        duration = next_column(&mut rest)?;
    }
    let head = TextEvent { comm, pid, tgid: None, cpu, flags, stamp, system: None, name: b"", text: b"" };
    let code = rest.trim_ascii();
    if let Some(text) = code.strip_prefix(b"/* ").and_then(|c| c.strip_suffix(b"*/")) {
        let (system, name, text) = event_column(text.trim_ascii_end())?;
        return Some(TextLine::Event(TextEvent { system, name, text, ..head }));
    }
    let indent = rest.len() - rest.trim_ascii_start().len();
    let depth = (indent.saturating_sub(2) / 2) as u64;
    let graph = Graph { depth, duration_ns: duration_ns(duration), ..calls(code)? };
    Some(TextLine::Graph(TextEvent { system: Some(b"ftrace"), ..head }, graph))
}

/// `COMM-PID` before a `|`; `rest` begins after it. A name may have such a sign, and the columns behind end without a number:
/// the last of several places is right.
fn task_column<'a>(text: &'a [u8], rest: &mut &'a [u8]) -> Option<(&'a [u8], i32)> {
    /// Columns of the longest task and of its blanks.
    const LEN_MAX: usize = 40;
    let mut bars: Vec<usize> =
        text.iter().take(LEN_MAX).enumerate().filter(|(_, b)| **b == b'|').map(|(at, _)| at).collect();
    bars.reverse();
    let (at, task) = bars.into_iter().find_map(|at| {
        let task = comm_and_pid(text.get(..at)?.trim_ascii())?;
        task.has_dash.then_some((at, task))
    })?;
    *rest = text.get(at + 1..)?;
    Some((task.comm, task.pid))
}

/// `function() {`, `function();`, `} /* function */`, `}`.
fn calls(code: &[u8]) -> Option<Graph<'_>> {
    let graph_line = |kind, function| Some(Graph { kind, depth: 0, function, duration_ns: None });
    if let Some(rest) = code.strip_prefix(b"}") {
        let comment = rest.trim_ascii().strip_prefix(b"/*").and_then(|c| c.strip_suffix(b"*/"));
        let comment = comment.unwrap_or_default().trim_ascii();
        let end = comment.windows(5).position(|w| w == b" ret=" || w == b" (ret").unwrap_or(comment.len());
        return graph_line(GraphKind::End, comment.get(..end).filter(|f| !f.is_empty()));
    }
    let function = code.get(..code.iter().position(|&b| b == b'(')?)?.trim_ascii_end();
    // Its result or its caller may follow.
    let code =
        code.windows(3).position(|w| w == b" /*").map_or(code, |at| code.get(..at).unwrap_or_default());
    let kind = match code.trim_ascii_end().last()? {
        b'{' => GraphKind::Begin,
        b';' => GraphKind::Leaf,
        _ => return None,
    };
    if function.is_empty() { None } else { graph_line(kind, Some(function)) }
}

/// `! 123.456 us`; the mark says how long that is.
fn duration_ns(text: &[u8]) -> Option<u64> {
    let text = text.get(text.iter().position(u8::is_ascii_digit)?..)?.strip_suffix(b"us")?.trim_ascii_end();
    let (us, fraction) = match text.iter().position(|&b| b == b'.') {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, &b"0"[..]),
    };
    let digits = u32::try_from(fraction.len()).ok().filter(|d| *d <= 3)?;
    number(us)?.checked_mul(1000)?.checked_add(number(fraction)? * 10u64.pow(3 - digits))
}

/// Text before the next `|`.
fn next_column<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let at = rest.iter().position(|&b| b == b'|')?;
    let column = rest.get(..at)?.trim_ascii();
    *rest = rest.get(at + 1..)?;
    Some(column)
}

#[cfg(test)]
mod tests {
    use super::super::layout::TextLayout;
    use super::super::line::parse;
    use super::*;

    #[test]
    fn functions_of_the_graph_tracer() {
        let graph = |line: &str| match parse(line.as_bytes(), &TextLayout::default()).line {
            TextLine::Graph(event, graph) => {
                let function = graph.function.map(|f| String::from_utf8_lossy(f).into_owned());
                (event.cpu, event.pid, graph.kind, graph.depth, function, graph.duration_ns)
            }
            other => panic!("{line:?}: {other:?}"),
        };
        use GraphKind::{Begin, End, Leaf};
        let name = |name: &str| Some(name.to_owned());
        let head = "   12.404427 |   0)    true-704    ";
        for (rest, kind, depth, function, duration) in [
            ("|               |  shrink_slab() {", Begin, 0, name("shrink_slab"), None),
            ("|   0.123 us    |      f [ext4]();", Leaf, 2, name("f [ext4]"), Some(123)),
            ("| ! 1234.5 us   |    }", End, 1, None, Some(1_234_500)),
            ("| @ 100234 us   |  } /* shrink_slab */", End, 0, name("shrink_slab"), Some(100_234_000)),
            ("| d... | + 12.345 us |  } /* f ret=0x0 */", End, 0, name("f"), Some(12_345)),
        ] {
            assert_eq!(graph(&format!("{head}{rest}")), (0, 704, kind, depth, function, duration), "{rest}");
        }
    }
}
