//! A story in every byte order, word size and codec reads the same, as it was written.

use kmt_format::Compression;
use kmt_format::kernel::ByteOrder;
use kmt_format::read::Trace;
use kmt_format::write::Loss;

use super::look;
use super::story::{self, Step};

pub fn run(data: &[u8]) {
    let story = story::of(data, true);
    let mut first: Option<Vec<((u32, u64), String)>> = None;
    for (order, long, compression) in [
        (ByteOrder::Little, 8, Compression::None),
        (ByteOrder::Big, 8, Compression::Lz4),
        (ByteOrder::Little, 4, Compression::Zstd),
        (ByteOrder::Big, 4, Compression::None),
    ] {
        let file = story::write(&story, order, long, compression);
        let trace = Trace::open(&file).expect("what was written can be opened");
        assert_eq!(trace.damages(), []);
        assert!(trace.is_finished());
        look::at(&trace);
        as_told(&story, &trace);
        let events = look::events(&trace);
        assert_eq!(first.get_or_insert_with(|| events.clone()), &events);
    }
    // Numbers of 64 bits too, where the target has them.
    let story = story::of(data, false);
    let file = story::write(&story, ByteOrder::Little, 8, Compression::Lz4);
    as_told(&story, &Trace::open(&file).expect("what was written can be opened"));
}

fn as_told(story: &[Step], trace: &Trace<'_>) {
    for cpu in 0..2 {
        let told = story.iter().filter_map(|s| match s {
            Step::Event(c, _, time, ..) if *c == cpu => Some(*time),
            _ => None,
        });
        let chunks = trace.streams().get(&cpu).map_or(&[][..], |s| &s.chunks);
        let read: Vec<_> = chunks.iter().map(|(c, _)| trace.read(c).expect("a sound chunk")).collect();
        let times = read.iter().flat_map(|c| (0..c.records().len()).filter_map(|i| c.time(i)));
        assert!(told.eq(times));
        let lost = |s: &Step| match s {
            Step::Lost(c, loss) if *c == cpu => *loss,
            _ => Loss::default(),
        };
        let all = story.iter().map(lost).fold(Loss::default(), Loss::and);
        assert_eq!(chunks.iter().map(|(_, i)| i.loss).fold(Loss::default(), Loss::and), all);
    }
}
