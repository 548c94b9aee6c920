//! Events of which perf recorded only some: how many events a sample represents.

use std::collections::BTreeMap;
use std::fmt::Write;

use kmt_common::text::shown;
use kmt_format::kernel::{ByteOrder, EventFormat};
use kmt_format::schema::Meaning;

use crate::convert::description::Description;
use crate::import::perf_data::PerfData;

/// The sampled events of a file, by id.
#[derive(Debug, Default)]
pub struct Sampling {
    events: BTreeMap<u64, Sampled>,
    /// Call sites of an event of which sums are kept; what comes beyond has the mean of its event.
    sites_max: u64,
    /// Samples that came beyond.
    beyond: u64,
}

/// One of them.
#[derive(Debug, Default)]
struct Sampled {
    /// SYSTEM:EVENT.
    name: String,
    /// Events from one sample to the next; 0: it varies.
    period: u64,
    all: Count,
    /// Of an allocation of a slab object: offset and size of call_site, bytes_req and bytes_alloc in its records.
    fields: Option<[(usize, usize); 3]>,
    sites: BTreeMap<[u64; 3], Count>,
}

/// Samples, and the events that they stand for.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    samples: u64,
    events: u64,
}

impl Count {
    fn add(&mut self, period: u64) {
        self.samples += 1;
        self.events = self.events.saturating_add(period);
    }
}

impl Sampling {
    /// Of a file with that description; sums of at most `sites_max` call sites of an event are kept.
    pub fn new(file: &PerfData<'_>, description: &Description, sites_max: u64) -> Self {
        let sampled = file.attrs.iter().filter(|a| a.is_tracepoint() && a.is_sampled());
        let mut events: BTreeMap<u64, Sampled> =
            sampled.map(|a| (a.config, Sampled { period: a.period, ..Sampled::default() })).collect();
        for (system, _, text) in &description.formats {
            let Ok(format) = EventFormat::parse(text, description.long_size) else { continue };
            let Some(sampled) = events.get_mut(&format.id.into()) else { continue };
            sampled.name = format!("{system}:{}", format.name);
            let field = |name: &str| {
                let field = format.fields.iter().find(|f| f.name == name)?;
                Some((field.offset as usize, field.size as usize)).filter(|(_, size)| *size <= 8)
            };
            // The name is repeated for each call site: it must be one that reports know, and short.
            if Meaning::of(system, &format.name).is_slab_alloc() {
                let fields = (field("call_site"), field("bytes_req"), field("bytes_alloc"));
                sampled.fields =
                    if let (Some(a), Some(b), Some(c)) = fields { Some([a, b, c]) } else { None };
            }
        }
        Self { events, sites_max, beyond: 0 }
    }

    /// Counts the events that a sample represents, if it is of such an event.
    pub fn add(&mut self, raw: &[u8], period: Option<u64>, order: ByteOrder) {
        if self.events.is_empty() {
            return;
        }
        let id = order.uint(raw.get(..2).unwrap_or_default());
        let Some(sampled) = self.events.get_mut(&id) else { return };
        let period = period.unwrap_or(sampled.period).max(1);
        sampled.all.add(period);
        let Some(fields) = sampled.fields else { return };
        let site = fields.map(|(at, size)| order.uint(raw.get(at..at + size).unwrap_or_default()));
        if (sampled.sites.len() as u64) < self.sites_max || sampled.sites.contains_key(&site) {
            sampled.sites.entry(site).or_default().add(period);
        } else {
            self.beyond += 1;
        }
    }

    /// Counts for the file: by event, and by call site, bytes asked for and handed out.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let (mut events, mut sites) = (String::new(), String::new());
        for sampled in self.events.values() {
            let Sampled { name, all, period, .. } = sampled;
            let _ = writeln!(events, "{name} {} {} {period}", all.samples, all.events);
            for ([call_site, req, alloc], count) in &sampled.sites {
                let _ =
                    writeln!(sites, "{name} {call_site:#x} {req} {alloc} {} {}", count.samples, count.events);
            }
        }
        let pairs = [("perf/sampled", events), ("perf/sampled_sites", sites)];
        pairs.into_iter().filter(|(_, text)| !text.is_empty()).collect()
    }

    /// A note on each.
    pub fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let beyond = (self.beyond > 0).then(|| {
            format!(
                "{} samples are from call sites beyond the first {} of their event: the mean of the event is used for them; --limit sampled_sites=SIZE raises the limit",
                self.beyond, self.sites_max
            )
        });
        let sampled = self.events.values().map(|s| {
            format!(
                "{} was sampled: {} of about {} events; lifetimes and live figures need all events: record with -c 1",
                shown(s.name.as_bytes()),
                s.all.samples,
                s.all.events
            )
        });
        sampled.chain(beyond)
    }
}
