//! A whole file of what happens to a writer.

use std::collections::BTreeMap;

use crate::bytes::{Bytes, crc32, read};
use crate::classes::Class;
use crate::codec;
use crate::events::{self, Chunk, class_bits};
use crate::folds;
use crate::kernel::sub_buffer;
use crate::model::{Event, Fold, How, Layout, Loss, Op};
use crate::schema;

/// The identity of all vectors.
pub const UUID: [u8; 16] = *b"KMT test vectors";
const NO_STREAM: u32 = u32::MAX;

/// Position of a chunk, for the index and for searches.
#[derive(Debug, Clone)]
pub struct Placed {
    /// Kind.
    pub kind: [u8; 4],
    /// Its start.
    pub offset: usize,
    /// Its end.
    pub end: usize,
    /// t_base, t_last, first_event, lost, count, flags, classes.
    pub head: [u64; 7],
}

/// A built file.
#[derive(Debug, Clone, Default)]
pub struct File {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Its chunks.
    pub chunks: Vec<Placed>,
    /// Classes in the order of their numbers, of each part of the file.
    pub classes: Vec<&'static Class>,
    /// CPU, events before, loss: of each chunk that has one.
    pub losses: Vec<(u32, u64, Loss)>,
}

#[derive(Default)]
struct Stream {
    open: Vec<(usize, Event)>,
    raw: Vec<(Vec<Event>, Loss, How)>,
    loss: Loss,
    events: u64,
    sequence: u32,
    last_time: Option<u64>,
}

struct Builder {
    layout: Layout,
    file: File,
    loose_sequence: u32,
    first_class: usize,
    classes_written: usize,
    streams: BTreeMap<u32, Stream>,
}

/// Builds a file.
pub fn build(ops: &[Op], layout: Layout) -> File {
    let mut builder = Builder {
        layout,
        file: File::default(),
        loose_sequence: 0,
        first_class: 0,
        classes_written: 0,
        streams: BTreeMap::new(),
    };
    builder.header(ops.iter().any(|op| matches!(op, Op::Fold(_))));
    ops.iter().for_each(|op| builder.op(op));
    builder.finish();
    builder.file
}

impl Builder {
    fn pad(&self, len: usize) -> usize {
        if self.layout.padded { len + 8 } else { len }
    }

    /// The head of a structure, filled up to a longer one.
    fn grown(&self, bytes: &Bytes, len: usize) -> Bytes {
        let mut out = bytes.clone();
        out.fill(0xee, self.pad(len));
        out
    }

    fn bytes(&self) -> Bytes {
        Bytes::new(self.layout.big)
    }

    fn header(&mut self, is_folded: bool) {
        let Layout { long, padded, .. } = self.layout;
        let len = if padded { 128 } else { 64 };
        let mut out = self.bytes();
        out.raw(b"\x89KMT\r\n\x1a\n")
            .number(0x0102_0304, 4)
            .number(1, 2)
            .number(if padded { 9 } else { 0 }, 2);
        out.u32(len).u32(is_folded.into()).u32(if padded { 0x8000 } else { 0 });
        out.raw(&[2, 4, long as u8, 8, long as u8, 8, 12, 0])
            .u32(0)
            .raw(&UUID)
            .fill(if padded { 0xee } else { 0 }, len - 4);
        let crc = crc32(&out.data);
        out.number(crc.into(), 4);
        self.file.bytes = out.data.clone();
        self.loose(b"HDRC", 0, &out.data);
    }

    fn loose(&mut self, kind: &[u8; 4], flags: u8, body: &[u8]) {
        let sequence = self.loose_sequence;
        self.loose_sequence += 1;
        self.chunk(kind, flags, NO_STREAM, sequence, body, 0, None, [0; 7]);
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of a chunk header")]
    fn chunk(
        &mut self,
        kind: &[u8; 4],
        flags: u8,
        stream: u32,
        sequence: u32,
        body: &[u8],
        prefix_len: usize,
        records: Option<(usize, usize)>,
        head: [u64; 7],
    ) {
        let Layout { big, long, .. } = self.layout;
        let may_encode = self.layout.codec != 0 && ![b"HDRC", b"INDX", b"TRLR"].contains(&kind);
        let mut codec = 0;
        let mut stored = body.to_vec();
        if may_encode {
            let mut rest = body[prefix_len..].to_vec();
            if let Some((start, count)) = records {
                codec::filter(&mut rest, start - prefix_len, count, 8 + long, big);
            }
            let frame_len = rest.len().div_ceil(self.layout.frames).max(1);
            let encoded = match self.layout.codec {
                1 => codec::lz4(&rest),
                _ if rest.is_empty() => codec::zstd(&rest),
                _ => rest.chunks(frame_len).flat_map(codec::zstd).collect(),
            };
            if encoded.len() < rest.len() {
                codec = self.layout.codec | u8::from(records.is_some()) << 4;
                stored = [&body[..prefix_len], &encoded].concat();
            }
        }
        let total = (64 + stored.len()).next_multiple_of(64);
        let mut rest = stored.clone();
        rest.resize(total - 64, 0);
        let mut out = self.bytes();
        out.raw(b"KMTC").raw(&UUID[..4]).raw(kind).raw(&[flags, codec]).number(0, 2);
        out.number(total as u64, 8).number(stored.len() as u64, 8).number(body.len() as u64, 8);
        out.number(stream.into(), 4).number(sequence.into(), 4).number(crc32(&rest).into(), 4);
        out.u32(prefix_len).number(crc32(&stored[..prefix_len]).into(), 4);
        let crc = crc32(&out.data);
        out.number(crc.into(), 4);
        let offset = self.file.bytes.len();
        self.file.bytes.extend(out.data);
        self.file.bytes.extend(rest);
        self.file.chunks.push(Placed { kind: *kind, offset, end: offset + total, head });
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Event(cpu, event) => self.event(*cpu, event),
            Op::Lost(cpu, loss) => self.lost(*cpu, *loss),
            Op::Flush(cpu) => self.flush(*cpu),
            Op::SubBuffer(cpu, events, loss) => self.sub_buffer(*cpu, events, *loss, How::default()),
            Op::SubBufferWith(cpu, events, loss, how) => self.sub_buffer(*cpu, events, *loss, *how),
            Op::Append => {
                self.finish();
                self.first_class = self.file.classes.len();
                self.classes_written = self.first_class;
            }
            Op::Fold(fold) => self.fold(fold),
            Op::Unknown(kind, flags, body) => self.loose(kind, *flags, body),
            other => {
                let (kind, flags, body) = schema::metadata(other, &self.layout);
                self.loose(kind, flags, &body);
            }
        }
    }

    fn number_of(&mut self, class: &'static Class) -> usize {
        let known = self.file.classes.iter().skip(self.first_class).position(|c| c.id == class.id);
        known.map_or_else(
            || {
                self.file.classes.push(class);
                self.file.classes.len() - 1
            },
            |i| i + self.first_class,
        )
    }

    /// The number of the class that an id names in this part of the file.
    fn class_now(&self, id: u16) -> usize {
        self.file.classes.iter().rposition(|c| c.id == id).expect("the class is there")
    }

    fn event(&mut self, cpu: u32, event: &Event) {
        let class = self.number_of(event.class);
        let stream = self.streams.entry(cpu).or_default();
        let falls = stream.open.last().is_some_and(|(_, last)| event.time < last.time);
        if falls || !stream.raw.is_empty() {
            self.close(cpu);
        }
        let stream = self.streams.entry(cpu).or_default();
        stream.open.push((class, event.clone()));
    }

    fn fold(&mut self, fold: &Fold) {
        for class in folds::classes(fold) {
            self.number_of(class);
        }
        self.schema();
        let (body, head_len) = folds::body(fold, &self.layout, &|id| self.class_now(id));
        let sequence = self.loose_sequence;
        self.loose_sequence += 1;
        self.chunk(b"FOLD", 1, NO_STREAM, sequence, &body, head_len, None, [0; 7]);
    }

    fn lost(&mut self, cpu: u32, loss: Loss) {
        let stream = self.streams.entry(cpu).or_default();
        if !stream.open.is_empty() || !stream.raw.is_empty() {
            self.close(cpu);
        }
        let old = &mut self.streams.entry(cpu).or_default().loss;
        let counted = old.counted + loss.counted;
        *old = Loss {
            counted,
            uncounted: old.uncounted | loss.uncounted,
            damaged: old.damaged | loss.damaged,
            overwritten: old.overwritten | loss.overwritten,
        };
    }

    fn sub_buffer(&mut self, cpu: u32, events: &[Event], loss: Loss, how: How) {
        for event in events {
            self.number_of(event.class);
        }
        if loss != Loss::default() {
            self.lost(cpu, loss);
        }
        let stream = self.streams.entry(cpu).or_default();
        let last = stream.raw.last().and_then(|(events, ..)| events.last());
        let falls = last.zip(events.first()).is_some_and(|(last, first)| first.time < last.time);
        if falls || !stream.open.is_empty() {
            self.close(cpu);
        }
        self.streams.entry(cpu).or_default().raw.push((events.to_vec(), loss, how));
    }

    fn flush(&mut self, cpu: u32) {
        let is_empty = |s: &Stream| s.open.is_empty() && s.raw.is_empty() && s.loss == Loss::default();
        if self.streams.get(&cpu).is_some_and(|s| !is_empty(s)) {
            self.close(cpu);
        }
    }

    fn close(&mut self, cpu: u32) {
        self.schema();
        let layout = self.layout;
        let stream = self.streams.entry(cpu).or_default();
        let open = std::mem::take(&mut stream.open);
        let raw = std::mem::take(&mut stream.raw);
        let loss = std::mem::take(&mut stream.loss);
        let times: Vec<u64> =
            open.iter().map(|(_, e)| e).chain(raw.iter().flat_map(|(e, ..)| e)).map(|e| e.time).collect();
        let time_before = stream.last_time.unwrap_or(0);
        let (t_base, t_last) =
            (*times.first().unwrap_or(&time_before), *times.last().unwrap_or(&time_before));
        let mut flags = 1;
        if !times.is_empty() && stream.last_time.is_some_and(|last| t_base < last) {
            flags |= 4;
        }
        if !times.is_empty() {
            stream.last_time = Some(t_last);
        }
        let (first_event, sequence) = (stream.events, stream.sequence);
        stream.sequence += 1;
        stream.events += times.len() as u64;
        if loss != Loss::default() {
            self.file.losses.push((cpu, first_event, loss));
        }
        let raw_classes = raw.iter().flat_map(|(events, ..)| events).map(|e| self.class_now(e.class.id));
        let classes = class_bits(open.iter().map(|(class, _)| *class).chain(raw_classes));
        let head = [t_base, t_last, first_event, loss.counted, times.len() as u64, loss.flags(), classes];
        if raw.is_empty() {
            let chunk = Chunk { events: &open, loss, first_event, time_before };
            let (body, records_at) = events::body(&chunk, &layout);
            let head_len = read(&body, 0, 4, layout.big) as usize;
            let prefix_len = if layout.codec == 0 && !layout.records_first { records_at } else { head_len };
            let records = Some((records_at, open.len()));
            self.chunk(b"EVNT", flags, cpu, sequence, &body, prefix_len, records, head);
        } else {
            let (body, head_len) = raw_body(&raw, &head, self.classes_written, &layout);
            self.chunk(b"RAWP", flags, cpu, sequence, &body, head_len, None, head);
        }
    }

    fn schema(&mut self) {
        if self.classes_written < self.file.classes.len() {
            let first = self.classes_written;
            self.classes_written = self.file.classes.len();
            let body = schema::schema(&self.file.classes[first..], first, &self.layout);
            self.loose(b"SCHM", 1, &body);
        }
    }

    fn finish(&mut self) {
        let cpus: Vec<u32> = self.streams.keys().copied().collect();
        cpus.into_iter().for_each(|cpu| self.flush(cpu));
        if !self.layout.trailer {
            return;
        }
        self.schema();
        if self.first_class < self.file.classes.len() {
            let body = schema::schema(&self.file.classes[self.first_class..], self.first_class, &self.layout);
            self.loose(b"SCHM", 1, &body);
        }
        let index_offset = if self.layout.index { self.file.bytes.len() } else { 0 };
        if self.layout.index {
            let body = self.index();
            self.loose(b"INDX", 0, &body);
        }
        let events = self.file.chunks.iter().filter(|c| [*b"EVNT", *b"RAWP"].contains(&c.kind));
        let count: u64 = events.clone().map(|c| c.head[4]).sum();
        let len: usize = events.map(|c| c.end - c.offset).sum();
        let mut body = self.bytes();
        body.u32(self.pad(40)).u32(self.file.chunks.len() + 1).number(self.file.bytes.len() as u64 + 128, 8);
        body.number(count, 8).number(len as u64, 8).number(index_offset as u64, 8);
        let body = self.grown(&body, 40);
        self.loose(b"TRLR", 0, &body.data);
    }

    fn index(&self) -> Vec<u8> {
        let mut out = self.bytes();
        out.u32(self.pad(16)).u32(self.pad(120)).u32(self.file.chunks.len()).u32(0);
        let mut out = self.grown(&out, 16);
        for chunk in &self.file.chunks {
            let [t_base, t_last, first_event, lost, count, flags, classes] = chunk.head;
            let mut row = self.bytes();
            row.number(chunk.offset as u64, 8).number(t_base, 8).number(t_last, 8).number(first_event, 8);
            row.number(lost, 8).number(count, 4).number(flags, 4).number(classes, 8);
            row.raw(&self.file.bytes[chunk.offset..chunk.offset + 64]);
            out.raw(&self.grown(&row, 120).data);
        }
        out.data
    }
}

fn raw_body(
    raw: &[(Vec<Event>, Loss, How)],
    head: &[u64; 7],
    class_limit: usize,
    layout: &Layout,
) -> (Vec<u8>, usize) {
    let Layout { big, long, sub_buffer_len, .. } = *layout;
    let [t_base, t_last, first_event, lost, count, flags, classes] = *head;
    let head_len = if layout.padded { 80 } else { 72 };
    let mut out = Bytes::new(big);
    out.u32(head_len)
        .number(flags, 4)
        .number(lost, 8)
        .number(t_base, 8)
        .number(t_last, 8)
        .number(first_event, 8);
    out.number(count, 4).u32(sub_buffer_len).u32(raw.len());
    out.number(0, 2)
        .number(8, 2)
        .number(long as u64, 2)
        .number(8 + long as u64, 2)
        .u32(class_limit)
        .number(classes, 8)
        .fill(0xee, head_len);
    for (events, loss, how) in raw {
        out.raw(&sub_buffer(events, *loss, *how, layout));
    }
    (out.data, head_len)
}
