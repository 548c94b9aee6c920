//! pprof: allocated, live and wasted objects and bytes.
//!
//! Samples are the points of `points`: a stack with sums of its objects, or of pages. Addresses keep their functions
//! and source lines, also inlined ones, where the file or debug information has them. The field numbers come from
//! pprof's profile.proto (`proto`); the file is compressed with gzip, as pprof expects it.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use indexmap::{IndexMap, IndexSet};
use prost::Message as _;

use super::output::Export;
use super::points::{self, Point, Points, frames};
use super::proto::pprof::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use super::tabular::object::{Resolver, lives};
use super::{ExportOptions, report_trust};
use crate::failure::{Failure, Outcome, Result};
use crate::render::words::escaped;
use crate::reports::common::basis::Input;
use crate::reports::common::page_sums::TRACER;
use crate::reports::common::{Context, ReportContext};
use crate::source::SourceTable;
use crate::trace::faults::Faults;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Values of a sample; the first four have the names of pprof's heap profiles.
const VALUES: [(&str, &str); 5] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
    ("waste_space", "bytes"),
];

/// Writes a gzipped profile.
pub fn run(session: &Session<'_>, options: &ExportOptions) -> Result<Outcome> {
    let mut out = Export::open_binary(&options.target(), &session.env)?;
    let faults =
        if options.pages { pages(session, options, &mut out)? } else { slab(session, options, &mut out)? };
    out.finish()?;
    Ok(outcome(session, &faults))
}

fn slab(session: &Session<'_>, options: &ExportOptions, out: &mut Export) -> Result<Faults> {
    let mut lives = lives(session, &options.selection, &options.target(), Input::SlabAllocs)?;
    report_trust(session, &options.selection, &lives.result);
    let names = Resolver::new(session, &lives.result);
    let (_, last) = options.selection.span(session);
    let points = Points::of(&mut lives, &names, last, false)?;
    // Without frees, objects in use are unknown.
    let context = Context { session, selection: &options.selection, limit: 0 };
    let ends_known = ReportContext::new(&context, &lives.result).basis().ends(None);
    let mut builder = ProfileBuilder::new(session, options, ends_known);
    for (key, point) in &points.points {
        let labels = [("cache", key.3.as_str()), ("api", key.2.name())];
        builder.add_sample(&frames(key, &lives, &names), point, &labels, |address| names.symbol(address));
    }
    out.write(&builder.packed(session)?)?;
    Ok(lives.result.faults)
}

/// Objects are pages.
fn pages(session: &Session<'_>, options: &ExportOptions, out: &mut Export) -> Result<Faults> {
    let pages = points::page_points(session, &options.selection)?;
    report_trust(session, &options.selection, &pages.result);
    let symbols = session.symbolizer();
    let mut builder = ProfileBuilder::new(session, options, pages.ends_known);
    for page in &pages.points {
        builder.add_sample(&page.frames, &page.point, &[("pages", page.kind.as_str())], |a| symbols.shown(a));
    }
    out.write(&builder.packed(session)?)?;
    Ok(pages.result.faults)
}

/// A profile to which samples are added.
struct ProfileBuilder<'s, 'd> {
    source: &'s SourceTable<'d>,
    profile: Profile,
    /// Texts by number; 0 is the empty text.
    texts: IndexSet<String>,
    code: CodeTable,
    /// False if values in use are left out.
    ends_known: bool,
}

impl<'s, 'd> ProfileBuilder<'s, 'd> {
    fn new(session: &'s Session<'d>, options: &ExportOptions, ends_known: bool) -> Self {
        let (first, last) = options.selection.span(session);
        let mut texts = IndexSet::from([String::new()]);
        let source = session.source();
        let has_lines = !source.is_empty();
        let profile = Profile {
            sample_type: VALUES
                .iter()
                .filter(|(kind, _)| ends_known || !kind.starts_with("inuse"))
                .filter(|(kind, _)| !options.pages || !kind.starts_with("waste"))
                .map(|(kind, unit)| ValueType {
                    kind: number(&mut texts, kind),
                    unit: number(&mut texts, unit),
                })
                .collect(),
            mapping: vec![Mapping {
                id: 1,
                filename: number(&mut texts, "[kernel]"),
                has_functions: true,
                has_filenames: has_lines,
                has_line_numbers: has_lines,
                has_inline_frames: has_lines,
            }],
            drop_frames: number(&mut texts, TRACER),
            time_nanos: session.time_of_day(first).unwrap_or(0),
            duration_nanos: last.saturating_sub(first).min(i64::MAX as u64) as i64,
            default_sample_type: number(&mut texts, "alloc_space"),
            ..Profile::default()
        };
        Self { source, profile, texts, code: CodeTable::default(), ends_known }
    }

    /// Adds a stack, innermost frame first.
    fn add_sample(
        &mut self,
        frames: &[u64],
        point: &Point,
        labels: &[(&str, &str)],
        symbol: impl Fn(u64) -> String,
    ) {
        let mut location =
            |address: &u64| self.code.location(*address, &symbol, self.source, &mut self.texts);
        let location_id = frames.iter().map(&mut location).collect();
        let value = [
            point.allocs,
            point.bytes_alloc,
            point.live,
            point.bytes_live,
            point.bytes_alloc.saturating_sub(point.bytes_req),
        ];
        let types = self.profile.sample_type.len() + if self.ends_known { 0 } else { 2 };
        let value = value
            .iter()
            .zip(VALUES)
            .take(types)
            .filter(|(_, (kind, _))| self.ends_known || !kind.starts_with("inuse"))
            .map(|(&v, _)| v.min(i64::MAX as u64) as i64)
            .collect();
        let texts = &mut self.texts;
        let label = labels
            .iter()
            .map(|(key, text)| Label { key: number(texts, key), text: number(texts, text) })
            .collect();
        self.profile.sample.push(Sample { location_id, value, label });
    }

    fn packed(mut self, session: &Session<'_>) -> Result<Vec<u8>> {
        if session.losses.any() {
            let lost = session.losses.lost_since_first();
            let note = format!("{lost} events were lost: these are lower bounds");
            self.profile.comment.push(number(&mut self.texts, &note));
        }
        let location = |((address, line), id)| Location { id, mapping_id: 1, address, line };
        self.profile.location = self.code.locations.into_iter().zip(1..).map(location).collect();
        let function = |((name, filename), id)| Function { id, name, system_name: name, filename };
        self.profile.function = self.code.functions.into_iter().zip(1..).map(function).collect();
        self.profile.string_table = self.texts.into_iter().collect();
        let mut gz = GzEncoder::new(Vec::new(), Compression::default());
        let packed = gz.write_all(&self.profile.encode_to_vec()).and_then(|()| gz.finish());
        packed.map_err(|e| Failure::new(format!("compressing the profile: {e}")))
    }
}

/// Number of a text.
fn number(texts: &mut IndexSet<String>, text: &str) -> i64 {
    let number = match texts.get_index_of(text) {
        Some(number) => number,
        None => texts.insert_full(text.to_owned()).0,
    };
    number as i64
}

/// Locations and functions, numbered from 1.
#[derive(Default)]
struct CodeTable {
    /// Lines by address.
    locations: IndexMap<u64, Vec<Line>>,
    /// Numbers of name and file.
    functions: IndexSet<(i64, i64)>,
}

impl CodeTable {
    /// An address: its functions with their lines, the innermost inlined one first.
    fn location(
        &mut self,
        address: u64,
        symbol: &impl Fn(u64) -> String,
        source: &SourceTable<'_>,
        texts: &mut IndexSet<String>,
    ) -> u64 {
        if let Some(at) = self.locations.get_index_of(&address) {
            return at as u64 + 1;
        }
        let symbol = symbol(address);
        let own = symbol.split("+0x").next().unwrap_or(&symbol);
        let frames = source.frames(address);
        let mut line: Vec<Line> = frames
            .iter()
            .map(|frame| {
                // Assembler code has lines, and no functions.
                let name = match frame.function.as_ref() {
                    "" => own.to_owned(),
                    name => escaped(name.as_bytes()),
                };
                let names = (number(texts, &name), number(texts, &escaped(frame.file.as_bytes())));
                Line { function_id: self.function(names), line: frame.line.into() }
            })
            .collect();
        if line.is_empty() {
            line.push(Line { function_id: self.function((number(texts, own), 0)), line: 0 });
        }
        self.locations.insert_full(address, line).0 as u64 + 1
    }

    fn function(&mut self, names: (i64, i64)) -> u64 {
        self.functions.insert_full(names).0 as u64 + 1
    }
}
