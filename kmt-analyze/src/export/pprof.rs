//! pprof: allocated, live and wasted objects and bytes.

use std::collections::HashMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;

use super::Options;
use super::objects::{Resolver, lives};
use super::output::Export;
use super::points::{Points, frames};
use super::proto::pprof::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use crate::analysis::page_callers::TRACER;
use crate::failure::{Failure, Outcome, Result};
use crate::reports::common::basis::{Basis, Input};
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Values of a sample; the names of the first four are those that pprof knows of heap profiles.
const VALUES: [(&str, &str); 5] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
    ("waste_space", "bytes"),
];

/// Writes a gzipped profile.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let mut out = Export::open_binary(&options.target)?;
    let mut lives = lives(session, &options.selection, &options.target, Input::SlabAllocs)?;
    let names = Resolver::new(session, &lives.result);
    let (first, last) = options.selection.span(session);
    let points = Points::of(&mut lives, &names, last, false)?;
    // Without frees nothing is known to be in use.
    let ends_known = Basis::of(session, &lives.result).ends(None);
    let mut texts = Texts::default();
    let mut code = Code::default();
    let mut profile = Profile {
        sample_type: VALUES
            .iter()
            .filter(|(kind, _)| ends_known || !kind.starts_with("inuse"))
            .map(|(kind, unit)| ValueType { kind: texts.number(kind), unit: texts.number(unit) })
            .collect(),
        mapping: vec![Mapping { id: 1, filename: texts.number("[kernel]"), has_functions: true }],
        drop_frames: texts.number(TRACER),
        time_nanos: session.time_of_day(first).unwrap_or(0),
        duration_nanos: last.saturating_sub(first).min(i64::MAX as u64) as i64,
        default_sample_type: texts.number("alloc_space"),
        ..Profile::default()
    };
    let (cache_key, api_key) = (texts.number("cache"), texts.number("api"));
    for (place, point) in &points.points {
        let location_id =
            frames(place, &lives, &names).iter().map(|&a| code.location(a, &names, &mut texts)).collect();
        let value = [
            point.allocs,
            point.bytes_alloc,
            point.live,
            point.bytes_live,
            point.bytes_alloc.saturating_sub(point.bytes_req),
        ];
        profile.sample.push(Sample {
            location_id,
            value: value
                .iter()
                .zip(VALUES)
                .filter(|(_, (kind, _))| ends_known || !kind.starts_with("inuse"))
                .map(|(v, _)| v)
                .map(|&v| v.min(i64::MAX as u64) as i64)
                .collect(),
            label: vec![
                Label { key: cache_key, text: texts.number(&place.3) },
                Label { key: api_key, text: texts.number(place.2.name()) },
            ],
        });
    }
    if session.losses.any() {
        let note = format!("{} events were lost: these are lower bounds", session.losses.lost_events());
        profile.comment.push(texts.number(&note));
    }
    (profile.location, profile.function) = (code.locations, code.functions);
    profile.string_table = texts.texts;
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    let packed = gz.write_all(&profile.encode_to_vec()).and_then(|()| gz.finish());
    out.write(&packed.map_err(|e| Failure::new(format!("compressing the profile: {e}")))?)?;
    out.finish()?;
    Ok(outcome(&session.path, session.trace, &lives.result.damages, session.losses.any()))
}

/// Texts by number; 0 is the empty one.
struct Texts {
    texts: Vec<String>,
    numbers: HashMap<String, i64>,
}

impl Default for Texts {
    fn default() -> Self {
        Self { texts: vec![String::new()], numbers: HashMap::from([(String::new(), 0)]) }
    }
}

impl Texts {
    fn number(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as i64;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Places in code and functions, numbered from 1.
#[derive(Default)]
struct Code {
    locations: Vec<Location>,
    functions: Vec<Function>,
    by_address: HashMap<u64, u64>,
    by_name: HashMap<i64, u64>,
}

impl Code {
    fn location(&mut self, address: u64, names: &Resolver<'_, '_>, texts: &mut Texts) -> u64 {
        if let Some(&id) = self.by_address.get(&address) {
            return id;
        }
        let symbol = names.symbol(address);
        let name = texts.number(symbol.split("+0x").next().unwrap_or(&symbol));
        let function_id = match self.by_name.get(&name) {
            Some(&id) => id,
            None => {
                let id = self.functions.len() as u64 + 1;
                self.functions.push(Function { id, name, system_name: name });
                self.by_name.insert(name, id);
                id
            }
        };
        let id = self.locations.len() as u64 + 1;
        self.locations.push(Location { id, mapping_id: 1, address, line: vec![Line { function_id }] });
        self.by_address.insert(address, id);
        id
    }
}
