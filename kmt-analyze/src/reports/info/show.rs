//! `info --show NAME`: a file of the target that the recording keeps.

use kmt_common::tell;
use kmt_common::text::tame;
use kmt_format::read::Attachment;

use crate::failure::{Failure, Outcome, Result};
use crate::render::look::Look;
use crate::render::out::Out;
use crate::render::words::shown;
use crate::reports::common::Context;
use crate::trace::session::Session;

/// Prints the contents: on a terminal without control characters, else byte for byte.
///
/// Of several of that name the last one; `at`, an instant in the clock's unit, asks for the last one read until then.
pub fn run(context: &Context<'_, '_>, name: &str, at: Option<u64>) -> Result<Outcome> {
    let session = context.session;
    let all = &session.trace.metadata().attachments;
    let named: Vec<&Attachment<'_>> = all.iter().filter(|attachment| attachment.name == name).collect();
    if named.is_empty() {
        return Err(none(session, name, all));
    }
    let read_until = |attachment: &&&Attachment<'_>| match (at, attachment.times) {
        (Some(at), Some((_, to))) => to <= at,
        (Some(_), None) => false,
        (None, _) => true,
    };
    let found = named.iter().filter(read_until).max_by_key(|attachment| attachment.times);
    let Some(attachment) = found else {
        return Err(Failure::new(format!("{}: no {name} was read until then", session.path.display()))
            .hint("without --at the last one is shown"));
    };
    if named.len() > 1 && at.is_none() {
        let view = context.view(Look::default());
        let read = attachment.times.map_or(String::new(), |(_, to)| format!(", read at {}", view.time(to)));
        tell!("note: the last of {} named {name}{read}; --at T shows an earlier one", named.len());
    }
    let mut out = Out::stdout(&session.env);
    match session.env.is_terminal() {
        true => out.write(tame(&String::from_utf8_lossy(&attachment.contents)).as_bytes())?,
        false => out.write(&attachment.contents)?,
    };
    out.finish()?;
    Ok(Outcome::Done)
}

fn none(session: &Session<'_>, name: &str, all: &[Attachment<'_>]) -> Failure {
    let mut names: Vec<String> = all.iter().map(|attachment| shown(attachment.name.as_bytes())).collect();
    names.dedup();
    let failure = Failure::new(format!("{}: it has no file {name:?}", session.path.display()));
    match names.is_empty() {
        true => failure.hint("it has no files of the target at all; kmt-capture record stores them"),
        false => failure.hint(format!("it has {}", names.join(", "))),
    }
}
