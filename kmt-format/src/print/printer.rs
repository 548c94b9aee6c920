//! Prints the events of a trace, one call each.

use std::collections::HashMap;

use super::{EventText, PrintEnv};
use crate::read::{Event, Trace};

/// Prints the events of a trace as the kernel does.
///
/// ```
/// use kmt_format::print::Printer;
/// use kmt_format::read::Trace;
///
/// # let file = kmt_format::example()?;
/// let trace = Trace::open(&file)?;
/// let mut printer = Printer::new(&trace);
/// for event in trace.events()? {
///     print!("{:>14} {}", event.time(), printer.text(&event));
/// }
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Printer<'t> {
    env: PrintEnv<'t>,
    /// Print fmts by index of the class, parsed when they are first needed.
    texts: HashMap<usize, EventText>,
    line: Vec<u8>,
}

impl<'t> Printer<'t> {
    /// For the events of a trace, with its symbols, strings and constants.
    pub fn new(trace: &'t Trace<'t>) -> Self {
        let env = PrintEnv::of(trace.header(), trace.metadata(), trace.symbols());
        Self { env, texts: HashMap::new(), line: Vec::new() }
    }

    /// The text that the kernel prints after the time: for most events `NAME: TEXT` and a newline. Bytes that are no UTF-8
    /// are replaced.
    pub fn text(&mut self, event: &Event<'_>) -> String {
        let Self { env, texts, line } = self;
        let text = texts.entry(event.class_index()).or_insert_with(|| EventText::new(event.class(), env));
        line.clear();
        text.write(line, event, env);
        String::from_utf8_lossy(line).into_owned()
    }
}
