//! Text of ftrace, trace-cmd or perf: records are rebuilt from its lines.

use std::collections::HashMap;

use kmt_common::kmt_file::KmtFile;
use kmt_format::kernel::ByteOrder;
use kmt_format::write::{Loss, Task};

use super::description::Description;
use super::driver::{self, EventSource};
use super::records::RecordConversion;
use super::silence::Silence;
use super::stacks::StackFormat;
use super::target_files::TargetFiles;
use super::text_boots::TextBoots;
use super::text_counts::TextCounts;
use super::text_description::describe;
use super::text_refusal::without_events;
use super::text_sections::{Shortage, TextSections};
use super::text_window::TextWindow;
use super::{ConvertOptions, Converted};
use crate::failure::{Failure, Result};
use crate::import::Bounds;
use crate::import::text::{
    Arg, CPUS_MAX, Comm, Graph, GraphKind, NO_TASK, Parsed, RecordLayout, Schema, Stamp, TextEvent,
    TextLayout, TextLine, TextSurvey, Unrecordable, could_be_event, event_name, fields_of, missing, parse,
};
use crate::output::Output;
use crate::record::Symbols;
use crate::uuid::Identity;
use crate::zero_times;
use kmt_common::text::count;

/// Converts a text.
pub fn convert(options: &ConvertOptions, bytes: &[u8], is_cut: bool, output: Output) -> Result<Converted> {
    let input = options.input.display();
    // A number of a line that is cut off may lack digits.
    let whole_lines = bytes.iter().rposition(|&b| b == b'\n').filter(|_| is_cut);
    let bytes = whole_lines.map_or(bytes, |end| &bytes[..=end]);
    let survey = TextSurvey::of(bytes);
    // Names of tasks can look like columns: then a few lines are events of a text that lacks some.
    let lacks_columns = || missing(bytes).is_some_and(|missing| missing.lacks_columns);
    if survey.events == 0 || survey.is_mostly_torn() && lacks_columns() {
        return Err(without_events(&options.input, bytes));
    }
    if options.verbatim {
        return Err(Failure::new(format!("{input} is text, not sub-buffers"))
            .hint("--verbatim works only with sub-buffers copied from a target, or with a trace.dat"));
    }
    let mut description = describe(survey);
    TargetFiles::of(&options.input, options.limits)?.complete(&mut description)?;
    if survey.has_functions {
        // Functions by name get addresses of our own, which go with a table of our own.
        (description.kallsyms, description.modules) = (None, None);
    }
    let stack = StackFormat::new(&description);
    description.formats.push(stack.format());
    let has_symbols = description.kallsyms.is_some() || options.symbols == Symbols::None;
    let boots = TextBoots::new((&input.to_string(), bytes), &survey.layout, options.boot, &mut description);
    let conversion =
        LineConversion { is_cut, ..LineConversion::new(stack, survey, options.limits.import, boots) };
    let source = TextLines { conversion, bytes, survey, has_symbols };
    driver::convert(options, description, Identity::of_file(bytes, ""), source, is_cut, output)
}

/// The lines of a text.
struct TextLines<'t> {
    conversion: LineConversion<'t>,
    bytes: &'t [u8],
    survey: TextSurvey,
    /// True if the file has the kernel's symbols, or is to have none.
    has_symbols: bool,
}

impl EventSource for TextLines<'_> {
    fn convert(&mut self, file: &mut KmtFile) -> Result<u64> {
        let end = self.bytes.iter().rposition(|&b| b == b'\n');
        let (whole, last) = match end {
            Some(end) => (self.bytes.get(..end), self.bytes.get(end + 1..)),
            None => (None, Some(self.bytes)),
        };
        for line in whole.iter().flat_map(|whole| whole.split(|&b| b == b'\n')) {
            self.conversion.line(line, file)?;
            file.write_if_large()?;
        }
        let last = last.unwrap_or_default();
        // A number of a line that is cut off may lack digits.
        self.conversion.is_cut |= !last.is_empty() && self.conversion.lacks_entries_beside_one();
        if !self.conversion.is_cut {
            self.conversion.line(last, file)?;
        }
        if let Some(refusal) = self.conversion.boots.times.refusal() {
            return Err(refusal);
        }
        Ok(self.conversion.finish(self.has_symbols, file)?)
    }

    fn missing(&self) -> u64 {
        self.conversion.counts.shortage.missing()
    }

    fn is_cut(&self) -> bool {
        self.conversion.is_cut
    }

    /// A text without events is refused before.
    fn empty(&self) -> Option<Failure> {
        None
    }

    fn summary(&self, events: u64, file: &KmtFile) -> String {
        let bits = self.survey.long_size * 8;
        format!(
            "{} of {} from text of a {bits}-bit kernel",
            count(events, "event"),
            count(file.cpus.len() as u64, "CPU")
        )
    }

    fn notes(&self, description: Description) -> Vec<String> {
        let mut notes = description.notes;
        notes.retain(|n| !n.starts_with("no kallsyms") && !n.starts_with("no modules"));
        let LineConversion { counts, schema, bounds, silence, boots, window, .. } = &self.conversion;
        counts.notes(schema, bounds, &mut notes);
        notes.extend(window.note());
        if counts.shortage.missing() > 0 {
            notes.push(silence.note());
        }
        notes.extend(zero_times::note(boots.times.at_zero()));
        notes
    }
}

/// Event of the stack whose frames are being collected.
#[derive(Clone, Copy)]
struct PendingStack {
    cpu: u32,
    time: u64,
    /// Of perf's text: an event is always followed by its call chain, if there is one.
    is_chain: bool,
}

/// Conversion of the lines of a text.
struct LineConversion<'t> {
    records: RecordConversion,
    schema: Schema,
    comms: HashMap<i32, (Vec<u8>, i32)>,
    pairs: Vec<Arg<'t>>,
    record: Vec<u8>,
    frames: Vec<u8>,
    stacked: Option<PendingStack>,
    /// Common fields of the record of that stack, those of its own line.
    common: Vec<u8>,
    /// Functions that are open, by task, or by CPU of the idle task: depth and name.
    graph: HashMap<i64, Vec<(u64, &'t [u8])>>,
    has_functions: bool,
    last: (u64, u32, u64),
    /// True if a log lost lines since the last event.
    has_log_gap: bool,
    /// True if the text ends before its content does: entries that its last header counts are behind the last line.
    is_cut: bool,
    layout: TextLayout,
    counts: TextCounts,
    sections: TextSections,
    silence: Silence,
    window: TextWindow,
    bounds: Bounds,
    boots: TextBoots,
}

impl<'t> LineConversion<'t> {
    fn new(stack: StackFormat, survey: TextSurvey, bounds: Bounds, boots: TextBoots) -> Self {
        Self {
            records: RecordConversion::new(stack, ByteOrder::Little),
            schema: Schema::new(survey.long_size, ByteOrder::Little, survey.notations, &bounds),
            comms: HashMap::new(),
            pairs: Vec::new(),
            record: Vec::new(),
            frames: Vec::new(),
            stacked: None,
            common: Vec::new(),
            graph: HashMap::new(),
            has_functions: survey.has_functions,
            last: (0, 0, 0),
            has_log_gap: false,
            is_cut: false,
            layout: survey.layout,
            counts: TextCounts::default(),
            sections: TextSections::default(),
            silence: Silence::default(),
            window: TextWindow::default(),
            bounds,
            boots,
        }
    }

    fn line(&mut self, line: &'t [u8], file: &mut KmtFile) -> kmt_format::Result<()> {
        self.counts.lines += 1;
        let Parsed { line: parsed, is_ambiguous } = parse(line, &self.layout);
        if is_ambiguous {
            self.counts.add(|counts| &mut counts.ambiguous);
        }
        if !matches!(parsed, TextLine::Frame(_) | TextLine::Chain(..)) {
            self.end_stack(file)?;
        }
        let (shortage, overwritten) = self.sections.line(&parsed);
        self.short(shortage);
        self.window.header(overwritten);
        if !self.boots.is_converted(&parsed) {
            return Ok(());
        }
        match parsed {
            TextLine::Event(event) if event.cpu < CPUS_MAX => self.event(&event, file),
            TextLine::Function(event, function, caller) if event.cpu < CPUS_MAX => {
                let arg = |key: &'static [u8], value| Arg { before: b" ", key, name: key, value };
                let args = [arg(b"ip", function), arg(b"parent_ip", caller)];
                self.record(&event, &args, file)
            }
            TextLine::Graph(event, graph) if event.cpu < CPUS_MAX => self.graph(&event, &graph, file),
            TextLine::Comm(Comm { comm, tgid, pid, stamp }) if pid != 0 => {
                let (Stamp::Time(since, _) | Stamp::Count(since)) = stamp;
                self.name(pid, comm, tgid, since, file)
            }
            TextLine::Frame(frame) => {
                self.frame(frame);
                Ok(())
            }
            TextLine::Chain(address, symbol) => {
                if self.stacked.is_some() && address != 0 {
                    let address = self.chained(address, symbol);
                    self.frames.extend_from_slice(&address.to_le_bytes());
                }
                Ok(())
            }
            TextLine::Lost(cpu, count) if cpu < CPUS_MAX => {
                let loss = count.map_or_else(Loss::uncounted, Loss::counted);
                file.lose(cpu, loss)
            }
            // Only between events the lines were events, too.
            TextLine::LogGap => {
                self.has_log_gap |= self.last != (0, 0, 0);
                Ok(())
            }
            TextLine::Written(_) | TextLine::Comm(_) | TextLine::Remark => Ok(()),
            _ if could_be_event(line) => {
                self.counts.add(|counts| &mut counts.torn);
                file.lose_unreadable(self.last.1)
            }
            _ => {
                self.counts.add(|counts| &mut counts.other);
                Ok(())
            }
        }
    }

    /// True if the header counts more entries than were read, and one.
    fn lacks_entries_beside_one(&self) -> bool {
        self.sections.shortage().is_some_and(|shortage| shortage.missing() > 1)
    }

    fn short(&mut self, shortage: Option<Shortage>) {
        if let Some(shortage) = shortage {
            self.counts.short(shortage);
        }
    }

    /// Writes how many entries have no line. Neither their CPUs nor their times are known: each CPU has a mark.
    fn mark_shortage(&self, file: &mut KmtFile) -> kmt_format::Result<()> {
        let missing = self.counts.shortage.missing();
        if missing == 0 {
            return Ok(());
        }
        file.writer.add_metadata(&[("input.missing", missing.to_string().as_bytes())])?;
        if let Some((from, to)) = self.silence.outstanding() {
            file.writer.add_metadata(&[("input.silence", format!("{from} {to}").as_bytes())])?;
        }
        file.cpus
            .keys()
            .try_for_each(|&cpu| file.writer.add_loss(cpu, Loss::uncounted().and(Loss::damaged_input())))
    }

    fn event(&mut self, event: &TextEvent<'t>, file: &mut KmtFile) -> kmt_format::Result<()> {
        if event.name == b"kernel_stack" {
            let time = self.time(event);
            self.stack_follows(event, time, false);
            // `trace-cmd report -N` prints the first frame in the line of the event.
            if let Some(frame) = event.text.trim_ascii_start().strip_prefix(b"=> ") {
                self.frame(frame);
            }
            return Ok(());
        }
        if event.name == b"user_stack" {
            // Its frames follow, and have no stack of the kernel before them.
            return Ok(());
        }
        let event = &TextEvent { name: event_name(event.name), ..*event };
        let mut pairs = std::mem::take(&mut self.pairs);
        let most = usize::try_from(self.bounds.pairs).unwrap_or(usize::MAX);
        if !fields_of(event.name, event.text, most, &mut pairs) {
            self.counts.add(|counts| &mut counts.cut);
        }
        let recorded = self.record(event, &pairs, file);
        self.pairs = pairs;
        recorded
    }

    /// The stack of a line follows.
    fn stack_follows(&mut self, event: &TextEvent<'_>, time: u64, is_chain: bool) {
        Schema::common(&mut self.common, event, ByteOrder::Little);
        self.stacked = Some(PendingStack { cpu: event.cpu, time, is_chain });
    }

    /// A frame of the stack of the line before.
    fn frame(&mut self, frame: &[u8]) {
        if self.stacked.as_ref().is_some_and(|stack| !stack.is_chain) {
            if let Some(address) = self.schema.symbols.frame(frame) {
                self.frames.extend_from_slice(&address.to_le_bytes());
            }
        }
    }

    /// A begin or an end of a function.
    fn graph(
        &mut self,
        event: &TextEvent<'t>,
        graph: &Graph<'t>,
        file: &mut KmtFile,
    ) -> kmt_format::Result<()> {
        let task = if event.pid == 0 { -1 - i64::from(event.cpu) } else { event.pid.into() };
        let open = self.graph.entry(task).or_default();
        // What is as deep or deeper is over, also where its end is not in the text: depths rise.
        let entered = open.partition_point(|(depth, _)| *depth < graph.depth);
        let entered = open.drain(entered..).next().filter(|(depth, _)| *depth == graph.depth);
        let function = graph.function.or(entered.map(|(_, function)| function));
        let Some(function) = function else {
            self.counts.add(|counts| &mut counts.nameless);
            return Ok(());
        };
        if graph.kind == GraphKind::Begin {
            open.push((graph.depth, function));
        }
        let arg = |key: &'static [u8], value| Arg { before: b" ", key, name: key, value };
        let depth = graph.depth.to_string();
        let begin = [arg(b"func", function), arg(b"depth", depth.as_bytes())];
        if graph.kind != GraphKind::End {
            self.record(&TextEvent { name: b"funcgraph_entry", ..*event }, &begin, file)?;
        }
        let (Some(length), true) = (graph.duration_ns, graph.kind != GraphKind::Begin) else { return Ok(()) };
        let stamp = match event.stamp {
            Stamp::Time(time, _) => time,
            Stamp::Count(count) => count,
        };
        // A leaf's line has the time of its begin, that of an end its own.
        let (call, ret) = match graph.kind {
            GraphKind::End => (stamp.saturating_sub(length), stamp),
            _ => (stamp, stamp.saturating_add(length)),
        };
        let (call, ret) = (call.to_string(), ret.to_string());
        let [func, depth] = begin;
        let end = [func, depth, arg(b"calltime", call.as_bytes()), arg(b"rettime", ret.as_bytes())];
        self.record(&TextEvent { name: b"funcgraph_exit", ..*event }, &end, file)
    }

    /// The address of a frame: as it is printed, unless functions have addresses of our own.
    fn chained(&mut self, address: u64, symbol: Option<&[u8]>) -> u64 {
        let Some(symbol) = symbol else { return address };
        if self.has_functions {
            return self.schema.symbols.address(symbol).unwrap_or(address);
        }
        self.schema.symbols.set_address(symbol, address);
        address
    }

    /// Makes a record of an event and its fields, and writes it.
    fn record(
        &mut self,
        event: &TextEvent<'_>,
        args: &[Arg<'_>],
        file: &mut KmtFile,
    ) -> kmt_format::Result<()> {
        if std::mem::take(&mut self.has_log_gap) {
            // The lines may have been of any CPU.
            let cpus: Vec<u32> = file.cpus.keys().copied().collect();
            cpus.into_iter().try_for_each(|cpu| file.lose(cpu, Loss::uncounted()))?;
        }
        let time = self.time(event);
        if event.pid == NO_TASK {
            self.counts.add(|counts| &mut counts.taskless);
        }
        self.task(event, time, file)?;
        self.window.entry(event.cpu, file)?;
        match self.schema.record(event, args, &mut self.record) {
            Ok(RecordLayout::Known) => {}
            Ok(RecordLayout::New(system, format)) => {
                self.counts.has_kmem |= system == "kmem";
                let added = file.writer.add_format(&system, &format);
                let declared =
                    added.and_then(|id| if system == "kmem" { file.writer.declare(id) } else { Ok(()) });
                if declared.is_err() {
                    self.counts.add(|counts| &mut counts.kinds_left_out);
                    return file.lose_unreadable(event.cpu);
                }
            }
            Err(reason) => {
                self.counts.add(|counts| match reason {
                    Unrecordable::PointerNotPrinted => &mut counts.unprinted,
                    Unrecordable::TooManyKinds => &mut counts.layouts_left_out,
                    Unrecordable::Unreadable => &mut counts.unreadable,
                });
                return file.lose_unreadable(event.cpu);
            }
        }
        if self.records.event(file, event.cpu, time, &self.record).is_err() {
            self.counts.add(|counts| &mut counts.kinds_left_out);
            return file.lose_unreadable(event.cpu);
        }
        self.stack_follows(event, time, true);
        Ok(())
    }

    /// The time of an event. A text is in order, but its times are rough: where the CPU changes within one time,
    /// the order of the lines is kept by a nanosecond each.
    fn time(&mut self, event: &TextEvent<'_>) -> u64 {
        let (stamp, finest) = match event.stamp {
            Stamp::Time(time, digits) => {
                self.silence.see(time);
                (time, 10u64.pow(9 - u32::from(digits)))
            }
            Stamp::Count(count) => (count, 1),
        };
        let (last, cpu, step) = self.last;
        let step = match (stamp == last, cpu == event.cpu) {
            (true, true) => step,
            // Not so far that the time would print as the next one.
            (true, false) => (step + 1).min((finest / 2).saturating_sub(1)),
            (false, _) => 0,
        };
        self.last = (stamp, event.cpu, step);
        stamp.saturating_add(step)
    }

    fn task(&mut self, event: &TextEvent<'_>, time: u64, file: &mut KmtFile) -> kmt_format::Result<()> {
        if event.comm == b"<...>" || event.pid == 0 {
            return Ok(());
        }
        self.name(event.pid, event.comm, event.tgid.unwrap_or(0), time, file)
    }

    /// Adds the name of a task, if it is a new one.
    fn name(
        &mut self,
        pid: i32,
        comm: &[u8],
        tgid: i32,
        since: u64,
        file: &mut KmtFile,
    ) -> kmt_format::Result<()> {
        if self.comms.get(&pid).is_some_and(|(had, t)| had == comm && (*t == tgid || tgid == 0)) {
            return Ok(());
        }
        self.comms.insert(pid, (comm.to_vec(), tgid));
        self.records.task(file, Task::new(pid, comm.to_vec()).tgid(tgid).since(since))
    }

    /// Writes the stack whose frames have been collected.
    fn end_stack(&mut self, file: &mut KmtFile) -> kmt_format::Result<()> {
        let Some(PendingStack { cpu, time, is_chain }) = self.stacked.take() else { return Ok(()) };
        if !self.frames.is_empty() {
            self.records.stack(file, cpu, time, &self.common, &self.frames)?;
        } else if !is_chain {
            self.counts.add(|counts| &mut counts.frameless);
        }
        self.frames.clear();
        Ok(())
    }

    fn finish(&mut self, has_symbols: bool, file: &mut KmtFile) -> kmt_format::Result<u64> {
        self.end_stack(file)?;
        // Each CPU has a mark at its end where the text is cut: all before it is whole.
        self.short(self.sections.shortage().filter(|_| !self.is_cut));
        self.mark_shortage(file)?;
        self.window.finish(file)?;
        self.records.flush_tasks(file)?;
        zero_times::write(&mut file.writer, self.boots.times.at_zero())?;
        if !has_symbols && !self.schema.symbols.is_empty() {
            file.writer.add_symbols(&self.schema.symbols.kernel_symbols(), &[])?;
        }
        file.end_cpus()?;
        Ok(self.records.events)
    }
}
