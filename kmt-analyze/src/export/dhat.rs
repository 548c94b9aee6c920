//! DHAT's JSON, version 2 (valgrind, dh_view.js; also read by the Firefox Profiler).
//!
//! Points are stacks with a cache as their outermost frame, from `points`. Peaks need all births and ends in the order
//! of time, 24 bytes each. Objects of unknown age are reported on standard error, because DHAT shows a lifetime for
//! every block.

use std::collections::HashMap;

use kmt_common::tell;
use kmt_common::text::json_safe;
use kmt_format::kernel::ClockUnit;
use serde_json::{Value, json};

use super::output::Export;
use super::points::{PointKey, Points, frames};
use super::tabular::object::{ObjectLives, Resolver, lives};
use super::{ExportOptions, report_trust};
use crate::failure::{Outcome, Result};
use crate::render::words::escaped;
use crate::reports::common::ages::unknown_age_note;
use crate::reports::common::basis::Input;
use crate::source::SourceTable;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Peaks of one point: bytes and objects, at the end, at its own peak, at the global peak.
#[derive(Debug, Clone, Copy, Default)]
struct PeakSizes {
    now: (i64, i64),
    most: (i64, i64),
    at_peak: (i64, i64),
}

/// Writes the file. Needs 24 bytes of memory for each birth and each end, since peaks are found in time order.
pub fn run(session: &Session<'_>, options: &ExportOptions) -> Result<Outcome> {
    let mut out = Export::open(&options.target(), &session.env)?;
    let mut lives = lives(session, &options.selection, &options.target(), Input::SlabLives)?;
    report_trust(session, &options.selection, &lives.result);
    let names = Resolver::new(session, &lives.result);
    let (first, last) = options.selection.span(session);
    let points = Points::of(&mut lives, &names, last, true)?;
    if let Some(note) = unknown_age_note(points.unknown_age) {
        tell!("note: {note} The lifetimes (tl) are without it.");
    }
    let (held, peak) = peaks(&points);
    let (unit, large) = match session.unit() {
        ClockUnit::Nanoseconds => ("ns", "ms"),
        ClockUnit::Ticks => ("tick", "Mtick"),
    };
    let head = json!({
        "dhatFileVersion": 2,
        "mode": "kernel-heap",
        "verb": "Allocated",
        "bklt": true,
        "bkacc": false,
        "tu": unit,
        "Mtu": large,
        "tuth": 100_000,
        "cmd": session.path.file_name().map(|n| n.to_string_lossy()).unwrap_or_default(),
        "pid": 0,
        "tg": peak.saturating_sub(first),
        "te": last.saturating_sub(first),
    });
    let head = head.to_string();
    // A file may have as many rows as allocations: they are written one by one.
    out.write(json_safe(head.trim_end_matches('}')).as_bytes())?;
    out.write(b",\"pps\":[")?;
    let mut table = FrameTable::new();
    for (index, ((key, point), held)) in points.points.iter().zip(&held).enumerate() {
        let path = table.path(key, &lives, &names, session.source());
        let row = json!({
            "tb": point.bytes_alloc, "tbk": point.allocs,
            "tl": point.lifetimes,
            "mb": held.most.0, "mbk": held.most.1,
            "gb": held.at_peak.0, "gbk": held.at_peak.1,
            "eb": point.bytes_live, "ebk": point.live,
            "fs": path,
        });
        out.write(format!("{}{row}", if index > 0 { "," } else { "" }).as_bytes())?;
    }
    out.write(b"],\"ftbl\":[")?;
    for (index, name) in table.names.iter().enumerate() {
        let name = Value::from(name.as_str()).to_string();
        out.write(format!("{}{}", if index > 0 { "," } else { "" }, json_safe(&name)).as_bytes())?;
    }
    out.write(b"]}")?;
    out.finish()?;
    Ok(outcome(session, &lives.result.faults))
}

/// Names of frames, each once, in the order in which they are first used.
struct FrameTable {
    names: Vec<String>,
    addresses: HashMap<u64, usize>,
    caches: HashMap<String, usize>,
}

impl FrameTable {
    fn new() -> Self {
        Self { names: vec!["[root]".to_owned()], addresses: HashMap::new(), caches: HashMap::new() }
    }

    /// Numbers of the frames of a point, innermost first. The outermost frame is the cache: one stack may allocate from
    /// several.
    fn path(
        &mut self,
        key: &PointKey,
        lives: &ObjectLives,
        names: &Resolver<'_, '_>,
        source: &SourceTable<'_>,
    ) -> Vec<usize> {
        let mut path = Vec::new();
        for address in frames(key, lives, names) {
            path.push(*self.addresses.entry(address).or_insert_with(|| {
                let frame = source.shown(address).map(|frame| {
                    let (function, line) = (frame.function.as_bytes(), frame.file_and_line());
                    format!("{} ({})", escaped(function), escaped(line.as_bytes()))
                });
                let frame = frame.unwrap_or_else(|| names.symbol(address));
                self.names.push(format!("{address:#x}: {frame}"));
                self.names.len() - 1
            }));
        }
        if !self.caches.contains_key(&key.3) {
            self.caches.insert(key.3.clone(), self.names.len());
            self.names.push(format!("[{}]", key.3));
        }
        path.extend(self.caches.get(&key.3));
        path
    }
}

/// Own peak of each point, its memory at the global peak, and the time of that.
fn peaks(points: &Points) -> (Vec<PeakSizes>, u64) {
    let mut held = vec![PeakSizes::default(); points.points.len()];
    let add = |held: &mut PeakSizes, bytes: i64| {
        held.now.0 += bytes;
        held.now.1 += bytes.signum();
    };
    let (mut live, mut most, mut peak) = (0i64, 0i64, 0u64);
    for &(time, number, bytes) in &points.changes {
        live += bytes;
        if live > most {
            (most, peak) = (live, time);
        }
        let held = &mut held[number as usize];
        add(held, bytes);
        if held.now.0 > held.most.0 {
            held.most = held.now;
        }
    }
    held.iter_mut().for_each(|h| h.now = (0, 0));
    let mut live = 0i64;
    for &(_, number, bytes) in &points.changes {
        if live == most && most > 0 {
            break;
        }
        live += bytes;
        add(&mut held[number as usize], bytes);
    }
    held.iter_mut().for_each(|h| h.at_peak = h.now);
    (held, peak)
}
