//! Any bytes as a file of trace-cmd, of perf, of Perfetto, or as text of events.

use kmt_capture::import::perf_data::{Item, PerfData, Rounds};
use kmt_capture::import::perfetto::{self, Functions, Reader, Survey};
use kmt_capture::import::text::{
    RecordLayout, Schema, TextLine, TextSurvey, could_be_event, fields_of, parse,
};
use kmt_capture::import::trace_dat::TraceDat;
use kmt_capture::import::{Bounds, inflated_max};
use kmt_format::kernel::{ByteOrder, SubBuffer};
use kmt_format::write::{Writer, WriterOptions};

/// A trace.dat: everything that it says, and every sub-buffer of every CPU of every buffer.
pub fn trace_dat(data: &[u8]) {
    let Ok(file) = TraceDat::open(data, inflated_max(data.len() as u64), Bounds::default()) else { return };
    let Ok(layout) = file.data.layout() else { return };
    for instance in &file.instances {
        for cpu in &instance.cpus {
            let Ok((mut sub_buffers, _)) = file.sub_buffers(instance, cpu) else { continue };
            while let Ok(Some((offset, piece))) = sub_buffers.next_piece() {
                assert!(offset <= data.len() as u64);
                for bytes in piece.chunks(layout.sub_buffer_len()) {
                    let Ok(sub_buffer) = SubBuffer::parse(bytes, &layout, file.start.order) else { continue };
                    sub_buffer.items().for_each(drop);
                }
            }
        }
    }
}

/// A perf.data: all records in the order of time.
pub fn perf_data(data: &[u8]) {
    let Ok(file) = PerfData::open(data, Bounds::default()) else { return };
    if let Some((_, tracing)) = &file.tracing {
        let _ = tracing.layout();
    }
    let mut rounds = Rounds::new(&file);
    let mut events = 0u64;
    let read: Result<_, ()> = rounds.read(&mut |item| {
        if let Item::Event { raw, chain, .. } = item {
            assert!(!raw.is_empty() && chain.len() % 8 == 0);
            events += 1;
        }
        Ok(())
    });
    if let Ok(Some(fault)) = read {
        assert!(fault.offset <= data.len() as u64 + 8, "{fault}");
    }
}

/// A trace of Perfetto: every event has a record in a layout that was made before, and can be written.
pub fn perfetto(data: &[u8]) {
    perfetto::is_trace(data);
    let bounds = Bounds { waiting: Some(10_000), sequences: 8, ..Bounds::default() };
    let most = inflated_max(data.len() as u64);
    let survey = Survey::of(data, most, &bounds);
    let long_size = survey.long_size();
    let options = WriterOptions::new(ByteOrder::Little, long_size).trace_uuid([7; 16]);
    let Ok(mut writer) = Writer::new(options) else { return };
    let functions = Functions::own(long_size, bounds.functions);
    let mut reader = Reader::new(data, &survey, most, bounds, functions);
    let mut invalid = 0;
    let read: Result<(), ()> = reader.read(&mut |item| {
        match item {
            perfetto::Item::Format { system, format } => {
                invalid += u64::from(writer.add_format(system, format).is_err());
            }
            perfetto::Item::Event { cpu, time, record } => {
                let written = writer.add_event(cpu, time, record);
                assert!(written.is_ok() || invalid > 0, "{written:?}");
            }
            perfetto::Item::Lost { cpu, loss } => {
                writer.add_loss(cpu, loss).expect("a CPU that a file can have")
            }
            perfetto::Item::Name { .. } => {}
        }
        Ok(())
    });
    assert!(read.is_ok());
    if let Some(fault) = &reader.fault {
        assert!(fault.offset <= data.len() as u64, "{fault}");
    }
}

/// Text: what is made of it can be written, every record in the layout that was made for it.
pub fn ftrace_text(data: &[u8]) {
    let survey = TextSurvey::of(data);
    let bounds = Bounds::default();
    let mut schema = Schema::new(survey.long_size, ByteOrder::Little, survey.notations, &bounds);
    let options = WriterOptions::new(ByteOrder::Little, survey.long_size).trace_uuid([7; 16]);
    let Ok(mut writer) = Writer::new(options) else { return };
    let (mut pairs, mut record) = (Vec::new(), Vec::new());
    for line in data.split(|&b| b == b'\n') {
        let event = match parse(line, &survey.layout).line {
            TextLine::Event(event) => event,
            TextLine::Chain(address, Some(symbol)) => {
                schema.symbols.set_address(symbol, address);
                continue;
            }
            TextLine::Frame(frame) => {
                schema.symbols.address(frame);
                continue;
            }
            _ => {
                could_be_event(line);
                continue;
            }
        };
        fields_of(event.name, event.text, bounds.pairs as usize, &mut pairs);
        match schema.record(&event, &pairs, &mut record) {
            Ok(RecordLayout::New(system, format)) => {
                if writer.add_format(&system, &format).is_err() {
                    return;
                }
            }
            Ok(RecordLayout::Known) => {}
            Err(_) => continue,
        }
        let written = writer.add_event(event.cpu, 1, &record);
        assert!(written.is_ok() || event.cpu == u32::MAX, "{written:?}");
    }
    let table = schema.symbols.kernel_symbols();
    assert!(table.symbols.is_sorted_by_key(|s| s.address));
}
