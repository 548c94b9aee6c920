//! Opens the file: mapped if it is a regular file, else read into memory.
//!
//! Damage is reported with a command that repairs it. Source lines of the addresses in the trace are looked up here too, if the
//! command line has debug information.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use kmt_common::foreign::{self, Foreign, ctf_folder};
use kmt_common::input::InputBytes;
use kmt_common::recording::{convert_command, recording};
use kmt_common::recovery::{warn_of_damages, warn_of_early_end, warn_of_missing_end};
use kmt_common::text::count as number_of;
use kmt_common::{shell, tell};
use kmt_format::Fault;
use kmt_format::raw::MAGIC;
use kmt_format::read::Trace;
use kmt_format::schema::Role;
use kmt_format::tables::SourceLine;

use crate::env::Env;
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::source::{LookedUp, ModulePaths, SourceTable, Target, look_up};
use crate::trace::faults::Faults;
use crate::trace::session::Session;

/// Opens `path` for reading; `-` is standard input.
pub fn bytes(path: &Path) -> Result<InputBytes> {
    bytes_in(path, &Env::default())
}

/// Opens `path` for reading in the environment of a command.
pub(crate) fn bytes_in(path: &Path, env: &Env) -> Result<InputBytes> {
    if let Some(bytes) = env.files.get(path) {
        return Ok(InputBytes::InMemory(bytes));
    }
    if path == Path::new("-") {
        return read_trace(path, std::io::stdin().lock()).map(InputBytes::InMemory);
    }
    let file = File::open(path).map_err(|e| Failure::io("opening", path, &e))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        let directory = || {
            if has_proc_texts(path) {
                return proc_texts(&[path]);
            }
            Failure::new(format!("{} is a directory", path.display())).hint(format!(
                "if it holds saved ring buffers, `{}` makes a .kmt file of them",
                convert_command(path)
            ))
        };
        return Err(ctf_folder(path).unwrap_or_else(directory));
    }
    InputBytes::of_file(path, file, |file| read(path, file))
}

/// True if a directory has texts of /proc, and no ring buffers that they describe.
pub fn has_proc_texts(path: &Path) -> bool {
    let has = |name: &str| path.join(name).exists();
    ["meminfo", "meminfo.before", "meminfo.after"].iter().any(|name| has(name))
        && !has("tracefs")
        && !has("per_cpu")
}

/// The refusal of such directories, with the command that reads them.
pub fn proc_texts(paths: &[&Path]) -> Failure {
    let words: Vec<String> = paths.iter().map(|path| shell::path(path)).collect();
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let is = if paths.len() > 1 { "are directories" } else { "is a directory" };
    Failure::new(format!("{} {is} with texts of /proc, not a recording", names.join(" and ")))
        .hint(format!("kmt-analyze balance {}", words.join(" ")))
}

/// Length of the part of a stream that shows whether it is a .kmt file: a damaged header has its copy within it, in bytes.
const START_LEN: u64 = 256 << 10;

/// Reads a stream; if it does not begin as a .kmt file does, only its begin: it may have no end.
fn read_trace(path: &Path, mut from: impl Read) -> Result<Vec<u8>> {
    let mut bytes = read(path, from.by_ref().take(START_LEN))?;
    if !Trace::open(&bytes).is_err_and(|error| error.fault() != Fault::Limit) {
        from.read_to_end(&mut bytes).map_err(|e| Failure::io("reading", path, &e))?;
    }
    Ok(bytes)
}

fn read(path: &Path, mut from: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(|e| Failure::io("reading", path, &e))?;
    Ok(bytes)
}

/// Files of which a .kmt file can be made.
const INPUTS: &str = "kmt-capture convert makes .kmt files of saved ring buffers, trace.dat, perf.data, and text of ftrace, trace-cmd or perf script";

/// The refusal of a file that is not a .kmt file: with its name, if it is known.
fn other_file(path: &Path, bytes: &[u8], failure: Failure) -> Failure {
    if let Some(recording) = recording(bytes) {
        let hint = format!("`{}` makes a .kmt file of it", convert_command(path));
        return Failure::new(format!("{} is {recording}, not a .kmt file", path.display())).hint(hint);
    }
    let foreign = Foreign::of(bytes).or_else(|| Foreign::in_general(bytes));
    foreign.map_or_else(|| failure.hint(INPUTS), |kind| kind.refuse(path))
}

/// The remedy for a damaged file.
pub fn repair(path: &Path) -> String {
    let whole = shell::path(&path.with_extension("whole.kmt"));
    format!("`kmt-analyze recover {} -o {whole}` makes a sound file of it", shell::path(path))
}

/// Opens the trace in `bytes`.
pub fn trace<'d>(path: &Path, bytes: &'d [u8]) -> Result<Trace<'d>> {
    trace_in(path, bytes, &Env::default())
}

/// Opens the trace in `bytes` within the limits of a command.
pub(crate) fn trace_in<'d>(path: &Path, bytes: &'d [u8], env: &Env) -> Result<Trace<'d>> {
    Trace::builder().limits(env.limits.file).open(bytes).map_err(|error| {
        let failure = Failure::new(format!("{}: {error}", path.display()));
        match error.fault() {
            Fault::Input if bytes.is_empty() => foreign::empty(path),
            Fault::Input if !bytes.starts_with(&MAGIC) => other_file(path, bytes, failure),
            Fault::Input => failure.hint(INPUTS),
            Fault::Limit => failure.hint(limits::REMEDY),
            _ => failure,
        }
    })
}

/// A session with the source lines that the command line asks for.
pub(crate) fn session_in<'d>(path: &Path, trace: &'d Trace<'d>, env: &Env) -> Result<Session<'d>> {
    let session = Session::in_env(path, trace, env);
    let table = SourceTable::of_file(trace, env.source.rules()?);
    if !env.source.is_given() {
        return Ok(session.with_source(table));
    }
    let modules = env.source.modules.as_deref().map(ModulePaths::read).transpose()?.unwrap_or_default();
    Ok(session.with_source(table.looked_up(lines_of(trace, env)?, modules)))
}

/// Prints faults on stderr; returns whether the run is complete. `found` has those of reading the events.
pub fn outcome(session: &Session<'_>, found: &Faults) -> Outcome {
    let is_sound = report_faults(&session.path, session.trace, found);
    if is_sound && !session.losses.any() { Outcome::Done } else { Outcome::Incomplete }
}

/// Events that a recovery did not find, by the text that it left in the file: `1 damaged places, 42 events missing, ...`
/// (spec section "Recovery", 14); 0: there is none.
fn missing_when_recovered(trace: &Trace<'_>) -> u64 {
    let text = trace.metadata().text("recovery").unwrap_or_default();
    let before = text.split(" events missing").next().filter(|before| before.len() < text.len());
    let number = before.and_then(|before| before.rsplit(' ').next()?.parse().ok());
    number.unwrap_or(0)
}

/// Prints faults of a file on stderr; returns true if there are none.
pub fn report_faults(path: &Path, trace: &Trace<'_>, found: &Faults) -> bool {
    let name = path.display();
    let count = found.damaged_places(trace);
    warn_of_damages(path, trace.damages().iter().chain(&found.damages), count, "cannot be used", "");
    for error in &found.limits {
        tell!("warning: {name}: {error}");
        tell!("hint: {}", limits::REMEDY);
    }
    if !trace.is_finished() {
        warn_of_missing_end(path);
    } else if trace.early_end().is_some() {
        warn_of_early_end(path);
    }
    let missing: u64 = trace.streams().values().fold(0, |sum, s| sum.saturating_add(s.events_missing));
    if missing > 0 {
        tell!("warning: {name}: {missing} events are missing with the chunks that held them");
    }
    // Behind damaged chunks at the end of a CPU there is none whose number shows that they are missing.
    let unseen = missing_when_recovered(trace).saturating_sub(missing);
    if unseen > 0 {
        tell!(
            "warning: {name} was recovered from a damaged file: {} of it are missing, without a mark",
            number_of(unseen, "event")
        );
    }
    let is_whole = trace.is_finished() && missing == 0 && unseen == 0;
    count == 0 && found.limits.is_empty() && is_whole
}

/// Addresses of a stack that are looked up.
const DEPTH_MAX: usize = 512;

/// Looks up the lines of all return addresses of a trace.
pub fn lines_of(trace: &Trace<'_>, env: &Env) -> Result<Vec<SourceLine<'static>>> {
    let metadata = trace.metadata();
    let Some(symbols) = trace.symbols() else {
        return Err(Failure::new("the file has no symbols, so its addresses have no place in a vmlinux")
            .hint("record or convert it with /proc/kallsyms, which root can read"));
    };
    let build_ids = metadata.pairs.iter().filter_map(|(key, value)| {
        let module = key.strip_prefix("build_id")?;
        let module = if module.is_empty() { module } else { module.strip_prefix('/')? };
        Some((module, std::str::from_utf8(value).ok()?))
    });
    let target = Target { symbols, release: metadata.text("kernel.release"), build_ids: build_ids.collect() };
    let LookedUp { lines, notes } = look_up(&target, &env.source, &env.files, &addresses(trace))?;
    for note in notes {
        tell!("note: {note}");
    }
    Ok(lines)
}

/// Return addresses of a trace: callers of the allocator, and stacks.
pub(super) fn addresses(trace: &Trace<'_>) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            found.extend(event.uint_with(Role::CALL_SITE));
            found.extend(event.stack().into_iter().flat_map(|stack| stack.addresses().take(DEPTH_MAX)));
        }
    }
    found
}
