//! `slice`: part of a trace, by time, CPU, task and event.

use std::collections::HashSet;

use kmt_common::tell;
use kmt_format::read::StackJoiner;
use kmt_format::schema::Meaning;

use super::copy::{Compress, Copy, failed};
use crate::commands::session::Session;
use crate::export::output::Target;
use crate::failure::{Failure, Outcome, Result};
use crate::open::outcome;
use crate::time_range::TimeRange;

/// What to keep.
#[derive(Debug)]
pub struct Options {
    /// Where to.
    pub target: Target,
    /// When.
    pub time: Option<TimeRange>,
    /// On which CPUs; empty: all.
    pub cpus: Vec<u32>,
    /// Of which tasks; empty: all.
    pub pids: Vec<i32>,
    /// Which events, SYSTEM:EVENT with * and ?; empty: all. Stacks go with their events.
    pub events: Vec<String>,
    /// How the file is stored.
    pub compress: Compress,
}

/// Writes a part of the trace.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let trace = session.trace;
    let window = options.time.as_ref().map(|t| t.resolve(session.unit(), session.first_time().unwrap_or(0)));
    let classes = classes(session, options)?;
    let keeps_cpu = |cpu: u32| options.cpus.is_empty() || options.cpus.contains(&cpu);
    let mut copy = Copy::new(session, &options.target, identity(session, options), options.compress)?;
    copy.clock(session)?;
    let note = describe(options);
    let mut pairs: Vec<(&str, &[u8])> =
        trace.metadata().pairs.iter().map(|(k, v)| (k.as_ref(), v.as_ref())).collect();
    pairs.push(("slice", note.as_bytes()));
    copy.writer.meta(&pairs).map_err(|e| failed(&e))?;
    for file in &trace.metadata().attachments {
        // Snapshots tell of the ends of the whole recording, and are kept as what they are.
        copy.writer.file_at(&file.name, &file.contents, file.times).map_err(|e| failed(&e))?;
    }
    copy.tasks(session, <[u8]>::to_vec)?;
    if window.is_none() {
        // Counters are of all the time.
        copy.counters(session, keeps_cpu)?;
    }
    copy.symbols(session, |address, name, owner| (address, name.to_vec(), owner.map(<[u8]>::to_vec)), true)?;
    let mut merge = match window {
        Some((first, last)) => trace.merge_between(first, last),
        None => trace.merge(),
    };
    let mut stacks: StackJoiner<bool> = StackJoiner::default();
    let mut record = Vec::new();
    while let Some(run) = merge.next_run() {
        if !keeps_cpu(run.cpu) {
            continue;
        }
        if let Some(gap) = run.gap.as_ref().filter(|gap| !gap.is_empty()) {
            stacks.gap(run.cpu);
            copy.gap(run.cpu, gap)?;
        }
        for event in run.events() {
            let of_task = options.pids.is_empty() || options.pids.contains(&event.pid());
            let keeps = of_task && classes.contains(&event.class_index());
            let of = stacks.see(&event, keeps);
            let is_stack = event.class().meaning == Meaning::KERNEL_STACK;
            if if is_stack { of.unwrap_or(keeps) } else { keeps } {
                event.to_record(&mut record);
                copy.event(run.cpu, event.time(), &record)?;
            }
        }
    }
    let damages = merge.damages().to_vec();
    let events = copy.finish()?;
    tell!("{events} events of {}", trace.event_count());
    if events == 0 {
        tell!("note: nothing is in that part of the trace");
    }
    Ok(outcome(&session.path, trace, &damages, session.losses.any()))
}

/// The classes that are kept.
fn classes(session: &Session<'_>, options: &Options) -> Result<HashSet<usize>> {
    let name = |c: &kmt_format::schema::EventClass| format!("{}:{}", c.system, c.name);
    let matches = |c: &kmt_format::schema::EventClass| {
        let full = name(c);
        options.events.iter().any(|pattern| {
            let pattern = pattern.as_bytes();
            glob(pattern, full.as_bytes())
                || glob(pattern, c.system.as_bytes())
                || glob(pattern, c.name.as_bytes())
        })
    };
    let all = session.trace.schema().classes();
    let kept: HashSet<usize> =
        all.filter(|(_, c)| options.events.is_empty() || matches(c)).map(|(index, _)| index).collect();
    if kept.is_empty() {
        let mut names: Vec<String> = session.trace.schema().classes().map(|(_, c)| name(c)).collect();
        names.sort();
        names.truncate(12);
        return Err(Failure::new(format!(
            "{} has no event {}",
            session.path.display(),
            options.events.join(", ")
        ))
        .hint(format!(
            "--event takes SYSTEM, EVENT or SYSTEM:EVENT with * and ?; this file has {}",
            names.join(", ")
        )));
    }
    Ok(kept)
}

/// Whether a pattern with `*` and `?` matches a name.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    // The place behind the last star, and how much of the name it has taken.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((behind, taken)) => {
                    star = Some((behind, taken + 1));
                    (p, n) = (behind, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

fn describe(options: &Options) -> String {
    let mut parts = Vec::new();
    parts.extend(options.time.as_ref().map(|t| format!("time {t}")));
    let list = |numbers: Vec<String>| numbers.join(",");
    if !options.cpus.is_empty() {
        parts.push(format!("cpu {}", list(options.cpus.iter().map(u32::to_string).collect())));
    }
    if !options.pids.is_empty() {
        parts.push(format!("pid {}", list(options.pids.iter().map(i32::to_string).collect())));
    }
    if !options.events.is_empty() {
        parts.push(format!("event {}", options.events.join(",")));
    }
    if parts.is_empty() { "all".to_owned() } else { parts.join("; ") }
}

/// The same part of the same trace has the same identity.
fn identity(session: &Session<'_>, options: &Options) -> [u8; 16] {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = session.trace.header().trace_uuid.into_iter().chain(describe(options).into_bytes());
    let hash = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    hash.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, matches) in [
            ("kmem:*", "kmem:kmalloc", true),
            ("*alloc", "kmem:kmalloc", true),
            ("k?em", "kmem", true),
            ("kmem", "kmem:kfree", false),
            ("*a*b", "xaybz", false),
            ("**", "", true),
            ("", "x", false),
        ] {
            assert_eq!(glob(pattern.as_bytes(), name.as_bytes()), matches, "{pattern} {name}");
        }
    }
}
