//! Records of a chunk with several epochs, in any range.

use crate::kernel::ByteOrder;
use crate::read::Trace;
use crate::write::{Writer, WriterOptions};

const KFREE: &str = "name: kfree\nID: 1\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";

#[test]
fn records_of_any_range_have_their_times() {
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
    writer.add_format("kmem", KFREE).unwrap();
    // Some epochs have no record, some have one or many.
    let mut times: Vec<u64> = (0..60u64).map(|n| n * n * n % 977 + ((n / 7) << 32) * (1 + n / 20)).collect();
    times.sort_unstable();
    for time in &times {
        writer.add_event(0, *time, &[1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    }
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let (at, _) = &trace.streams()[&0].chunks[0];
    let chunk = trace.read(at).unwrap();
    assert!(chunk.epochs.len() > 8 && chunk.records().len() == times.len());
    for start in 0..=times.len() {
        for end in start..=times.len() {
            let mut found = Vec::new();
            chunk.for_each_in(start..end, |time, _| found.push(time));
            assert_eq!(found, times[start..end], "{start}..{end}");
            for stop in start..=end {
                let mut index = start;
                let done = chunk.for_each_while(start..end, |time, _| {
                    assert_eq!(time, times[index]);
                    index += 1;
                    index <= stop
                });
                assert_eq!(done, (stop - start).min(end - start), "{start}..{end} until {stop}");
            }
        }
    }
}
