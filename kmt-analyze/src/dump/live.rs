//! `dump --follow`: prints events as they arrive.
//!
//! `trace/follow` reads chunks as they arrive and gives events in order; lines, conditions and stacks are those of
//! `dump`. A loss between an event and its stack separates them. It ends with the recording, or when the output is
//! closed.

use kmt_format::read::{Event, StackJoiner};

use super::conditions::{self, Conditions};
use super::{DumpOptions, LineFormat, Owner, Printer};
use crate::env::Env;
use crate::failure::{Outcome, Result};
use crate::render::out::Out;
use crate::trace::event_names::SelectedEvents;
use crate::trace::follow::{self, Sink, Source};
use crate::trace::parts;

/// Prints the events of a growing file, or of a stream.
pub fn run(options: &DumpOptions, env: &Env) -> Result<Outcome> {
    conditions::check(&options.conditions)?;
    follow::run(
        parts::only(&options.files, "dump --follow", |files| parts::the_newest(files, "dump", env))?,
        LiveDump {
            options,
            selected: SelectedEvents::new(&options.events.event),
            conditions: None,
            stacks: StackJoiner::default(),
            out: Out::stdout(env),
            left: options.lines.unwrap_or(usize::MAX),
            is_terminal: env.is_terminal(),
        },
        env,
    )
}

struct LiveDump<'o> {
    options: &'o DumpOptions,
    selected: SelectedEvents<'o>,
    /// Made when the first event is there.
    conditions: Option<Conditions<'o>>,
    stacks: StackJoiner<Owner>,
    out: Out,
    left: usize,
    is_terminal: bool,
}

impl Sink for LiveDump<'_> {
    type Cache<'r> = Printer<'r>;

    fn see<'r>(
        &mut self,
        source: &Source<'r>,
        printer: &mut Option<Printer<'r>>,
        event: &Event<'_>,
    ) -> Result<bool> {
        let Self { options, selected, conditions, stacks, out, left, is_terminal } = self;
        if *left == 0 {
            return Ok(false);
        }
        let new = || Printer::new(source.schema, source.metadata, source.print_env(), *is_terminal);
        let is_selected = options.selects(event, selected, source.schema)
            && (options.conditions.is_empty() || {
                let conditions = conditions
                    .get_or_insert_with(|| Conditions::new(&options.conditions, source.metadata, None, None));
                printer.get_or_insert_with(new).meets(event, conditions)
            });
        let own = Owner::of(event, is_selected);
        let of = stacks.see(event, own);
        if !of.unwrap_or(own).is_selected {
            return Ok(true);
        }
        *left -= 1;
        let printer = printer.get_or_insert_with(new);
        let line = match options.line_format() {
            LineFormat::Kernel => printer.kernel(event),
            LineFormat::Jsonl => printer.json(event, of.and_then(|of| of.named(source.schema))),
        };
        Ok(out.write(line)? && *left > 0)
    }

    fn gap(&mut self, cpu: u32) {
        self.stacks.gap(cpu);
    }

    fn pause(&mut self) -> Result<bool> {
        self.out.flush()
    }

    fn end(&mut self, _: Option<&Source<'_>>) -> Result<()> {
        self.conditions.iter().for_each(Conditions::tell);
        self.out.flush().map(drop)
    }
}
