//! A `trace.dat` of trace-cmd.

use std::collections::HashSet;

use kmt_common::kmt_file::KmtFile;
use kmt_format::Error;
use kmt_format::kernel::{ByteOrder, ClockUnit, HeaderPage, OrderVote, TraceClock, vote_byte_order};

use super::boots::{Boots, last_boot_note};
use super::description::{Description, format_id};
use super::driver::{self, EventSource};
use super::event_names::EventNames;
use super::sub_buffers::SubBufferConversion;
use super::target_files::TargetFiles;
use super::{ConvertOptions, Converted};
use crate::failure::{Failure, Result};
use crate::import::ImportError;
use crate::import::trace_dat::{BufferInstance, CpuData, TraceDat};
use crate::input::Kind;
use crate::output::Output;
use crate::uuid::Identity;
use kmt_common::text::count;

/// Sub-buffers of each CPU that are compared with a layout.
const ORDER_SAMPLES: usize = 16;

/// Converts one buffer of a `trace.dat`.
pub fn convert(options: &ConvertOptions, bytes: &[u8], is_cut: bool, output: Output) -> Result<Converted> {
    let failed = |fault: ImportError| Failure::new(format!("{}: {fault}", options.input.display()));
    let remedy = "`trace-cmd dump --validate` checks the file; `trace-cmd restore` joins the parts of an interrupted recording";
    let inflated_max = options.limits.of(Kind::Inflated, bytes.len() as u64);
    let mut file =
        TraceDat::open(bytes, inflated_max, options.limits.import).map_err(|f| failed(f).hint(remedy))?;
    let header_page = file.data.layout().map_err(failed)?;
    let (instance, note) = choose(options, &file)?;
    file.notes.extend(note);
    instance.check_overlaps().map_err(failed)?;
    let (header_page, order) = layout(&file, &instance, header_page);
    let mut description = describe(&mut file, &instance, header_page.long_size());
    description.order = Some(order);
    description.sub_buffer_len = Some(header_page.sub_buffer_len());
    TargetFiles::of(&options.input, options.limits)?.complete(&mut description)?;
    let uuid = Identity::of_file(bytes, &instance.name);
    let names = EventNames::new(&description.formats, order, header_page.long_size());
    let unit = description.clock.as_ref().map_or(ClockUnit::Nanoseconds, |clock| clock.unit);
    let side = options.boot.and_then(|boot| {
        let boots = times(&file, &instance, (header_page, order), unit);
        description.take_side(boot, boots.side(boot))
    });
    let boots = (Boots::new(unit), side);
    let sub_buffers = SubBufferConversion::new((header_page, order), options.verbatim, names, boots);
    let source =
        InstanceBuffers { sub_buffers, options, file: &file, instance: &instance, header_page, order };
    driver::convert(options, description, uuid, source, is_cut, output)
}

/// Times of all events of a buffer.
fn times(
    file: &TraceDat<'_>,
    instance: &BufferInstance,
    (header_page, order): (HeaderPage, ByteOrder),
    unit: ClockUnit,
) -> Boots {
    let mut boots = Boots::new(unit);
    for data in &instance.cpus {
        boots.begin(data.cpu, String::new());
        // Damage is reported when events are converted, and ends the same sub-buffers there.
        let Ok((mut pieces, _)) = file.sub_buffers(instance, data) else { continue };
        while let Ok(Some((_, piece))) = pieces.next_piece() {
            let sub_buffers = piece.chunks(header_page.sub_buffer_len());
            sub_buffers.for_each(|bytes| boots.look_at(bytes, &header_page, order));
        }
    }
    boots
}

fn instances_hint(file: &TraceDat<'_>) -> String {
    let name = |i: &BufferInstance| match i.name.as_str() {
        "" => "\"\" (the top level)".to_owned(),
        name => format!("{name:?}"),
    };
    format!("--instance NAME selects a buffer; this file has {}", listed(file.instances.iter().map(name)))
}

/// The first names, and how many there are more.
fn listed(names: impl Iterator<Item = String>) -> String {
    const LISTED_MAX: usize = 20;
    let mut names = names;
    let mut listed: Vec<String> = names.by_ref().take(LISTED_MAX).collect();
    let more = names.count();
    listed.extend((more > 0).then(|| format!("and {more} more")));
    listed.join(", ")
}

/// The buffer that was asked for; else the top level if it holds anything; else the first that does.
fn choose(options: &ConvertOptions, file: &TraceDat<'_>) -> Result<(BufferInstance, Option<String>)> {
    let found = match &options.instance {
        Some(name) => file.instances.iter().find(|i| i.name == *name),
        None => file.instances.iter().find(|i| i.has_data()).or(file.instances.first()),
    };
    let Some(found) = found else {
        let name = options.instance.as_deref().unwrap_or_default();
        return Err(Failure::new(format!("{} has no buffer {name:?}", options.input.display()))
            .hint(instances_hint(file)));
    };
    let others: Vec<&str> = file
        .instances
        .iter()
        .filter(|i| i.has_data() && i.name != found.name && options.instance.is_none())
        .map(|i| i.name.as_str())
        .collect();
    let note = (!others.is_empty()).then(|| {
        format!(
            "buffer {:?} is converted; --instance NAME selects another: {}",
            found.name,
            listed(others.iter().map(|&name| name.to_owned()))
        )
    });
    Ok((found.clone(), note))
}

/// How the sub-buffers look: their size may be another one than that of the buffer whose header_page is in the file
/// or than the one that the file claims, and a file put together on another machine has that one's byte order.
fn layout(
    file: &TraceDat<'_>,
    instance: &BufferInstance,
    header_page: HeaderPage,
) -> (HeaderPage, ByteOrder) {
    let ids: HashSet<u16> = file.data.formats.iter().filter_map(|(_, _, text)| format_id(text)).collect();
    let claimed = instance.page_size.unwrap_or(file.start.page_size) as usize;
    let claimed = HeaderPage { data_size: claimed.saturating_sub(header_page.data_offset), ..header_page };
    let pieces = file.first_pieces(instance);
    let mut best = (0, header_page, file.start.order);
    for candidate in [header_page, claimed] {
        let len = candidate.sub_buffer_len();
        if candidate.data_size == 0 || len > HeaderPage::SUB_BUFFER_LEN_MAX {
            continue;
        }
        let mut vote = OrderVote::default();
        for piece in &pieces {
            for sub_buffer in piece.chunks(len).take(ORDER_SAMPLES) {
                vote_byte_order(&mut vote, sub_buffer, &candidate, |id| ids.contains(&id));
            }
        }
        let bytes = u64::from(vote.little.max(vote.big)).saturating_mul(len as u64);
        if let Some(order) = vote.winner().filter(|_| bytes > best.0) {
            best = (bytes, candidate, order);
        }
    }
    (best.1, best.2)
}

fn describe(file: &mut TraceDat<'_>, instance: &BufferInstance, long_size: usize) -> Description {
    let data = std::mem::take(&mut file.data);
    let options = &file.options;
    let mut pairs = Vec::new();
    let mut pair = |key: &str, value: &str| pairs.push((key.to_owned(), value.as_bytes().to_vec()));
    if let Some(clock) = &options.trace_clock {
        pair("tracefs/trace_clock", clock.trim_end());
    }
    if let Some(version) = &options.version {
        pair("trace_dat/trace_cmd", version);
    }
    if !instance.name.is_empty() {
        pair("trace_dat/instance", &instance.name);
    }
    for (key, value) in &options.kept {
        pair(&format!("trace_dat/{key}"), value);
    }
    let named = instance.clock.as_deref().filter(|name| !name.is_empty()).map(TraceClock::named);
    let clock = named.or_else(|| options.trace_clock.as_deref().and_then(TraceClock::parse));
    let mut notes = std::mem::take(&mut file.notes);
    if clock.is_none() {
        notes.push("no trace_clock: time stamps are assumed to be in nanoseconds".to_owned());
    }
    let mut files = vec![("events/header_page".to_owned(), data.header_page.into_bytes())];
    files.push(("events/header_event".to_owned(), data.header_event));
    let more = [
        ("printk_formats", Some(data.printk_formats)),
        ("btf", options.btf.clone()),
        ("last_boot_info", options.last_boot_info.clone()),
    ];
    let more = more.into_iter().filter_map(|(name, bytes)| Some((name.to_owned(), bytes?)));
    files.extend(more.filter(|(_, bytes)| !bytes.is_empty()));
    notes.extend(options.last_boot_info.as_deref().and_then(last_boot_note));
    // Counters are those of the top level, CPU by CPU; those of instances are not in the file.
    let counted = options.cpu_stats.iter().filter(|_| instance.name.is_empty());
    let stats: Vec<_> =
        instance.cpus.iter().zip(counted).map(|(data, text)| (data.cpu, Some(text.clone()), None)).collect();
    if stats.is_empty() {
        notes.push("no stats: only losses marked in sub-buffers are known".to_owned());
    }
    if options.uname.is_none() {
        notes.push("no uname: flag columns and widths follow the newest kernel".to_owned());
    }
    let kept = |bytes: Vec<u8>| Some(bytes).filter(|b| !b.is_empty());
    Description {
        source: format!("trace.dat version {}", file.start.version),
        long_size,
        page_size: Some((file.start.page_size.into(), "trace.dat")),
        uname_text: options.uname.clone(),
        clock,
        pairs,
        formats: data
            .formats
            .into_iter()
            .map(|(system, offset, text)| (system, format!("the format at offset {offset}"), text))
            .collect(),
        files,
        saved_cmdlines: kept(data.saved_cmdlines),
        stats,
        modules: options.modules.as_ref().map(|b| String::from_utf8_lossy(b).into_owned()),
        kallsyms: kept(data.kallsyms),
        keeps_unknown: true,
        notes,
        ..Description::default()
    }
}

/// The ring buffers of one instance.
struct InstanceBuffers<'a, 'd> {
    sub_buffers: SubBufferConversion,
    options: &'a ConvertOptions,
    file: &'a TraceDat<'d>,
    instance: &'a BufferInstance,
    header_page: HeaderPage,
    order: ByteOrder,
}

impl EventSource for InstanceBuffers<'_, '_> {
    fn convert(&mut self, file: &mut KmtFile) -> Result<u64> {
        for data in &self.instance.cpus {
            self.cpu(data, file)?;
        }
        self.sub_buffers.finish(file)
    }

    fn missing(&self) -> u64 {
        self.sub_buffers.undecoded()
    }

    fn notes(&self, description: Description) -> Vec<String> {
        description.all_notes().into_iter().chain(self.sub_buffers.notes()).collect()
    }

    fn empty(&self) -> Option<Failure> {
        let input = self.options.input.display();
        let failure = Failure::new(format!("{input}: the buffer holds no events"));
        Some(failure.hint(instances_hint(self.file)))
    }

    fn summary(&self, events: u64, file: &KmtFile) -> String {
        format!(
            "{} of {} from a trace.dat of version {}, {}-endian, {}-bit",
            count(events, "event"),
            count(file.cpus.values().filter(|stats| stats.bytes > 0).count() as u64, "CPU"),
            self.file.start.version,
            self.order.name(),
            self.header_page.long_size() * 8,
        )
    }
}

impl InstanceBuffers<'_, '_> {
    /// Converts the sub-buffers of one CPU.
    fn cpu(&mut self, data: &CpuData, file: &mut KmtFile) -> Result<()> {
        let name = self.options.input.display().to_string();
        self.sub_buffers.begin(file, data.cpu, name)?;
        if data.len == 0 {
            return Ok(());
        }
        let (mut pieces, torn) = match self.file.sub_buffers(self.instance, data) {
            Ok(found) => found,
            Err(fault) => return self.damaged(data.cpu, &fault, file),
        };
        let sub_buffer_len = self.sub_buffers.sub_buffer_len();
        loop {
            match pieces.next_piece() {
                Ok(None) => break,
                Ok(Some((offset, piece))) => {
                    for (number, sub_buffer) in piece.chunks(sub_buffer_len).enumerate() {
                        let start = offset + (number * sub_buffer_len) as u64;
                        if let Some(damage) = self.sub_buffers.add(file, sub_buffer)? {
                            self.undecodable(file, data.cpu, start, &damage);
                        }
                        file.write_if_large()?;
                    }
                }
                Err(fault) => {
                    self.damaged(data.cpu, &fault, file)?;
                    break;
                }
            }
        }
        if let Some(fault) = torn {
            self.damaged(data.cpu, &fault, file)?;
        }
        self.sub_buffers.end(file)
    }

    /// Reports a sub-buffer that could not be decoded to its end.
    fn undecodable(&self, file: &mut KmtFile, cpu: u32, start: u64, error: &Error) {
        let fault = ImportError::at(start + error.offset().unwrap_or(0), error.kind().to_string());
        let input = self.options.input.display();
        self.sub_buffers.report(file, format_args!("{input}: CPU {cpu}: {fault}"));
    }

    fn damaged(&self, cpu: u32, fault: &ImportError, file: &mut KmtFile) -> Result<()> {
        let input = self.options.input.display();
        Ok(self.sub_buffers.damaged(file, format_args!("{input}: CPU {cpu}: {fault}"))?)
    }
}
