//! Writes a trace from nothing: two events of one CPU, a loss between them, a name for a task.
//!
//! cargo run -p kmt-format --example writer -- made.kmt

use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::write::{Task, Writer, WriterOptions};
use kmt_format::{Loss, Result};

/// The kernel's description of the event: `events/kmem/kfree/format`.
const FORMAT: &str = "name: kfree\nID: 458\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\n\
    print fmt: \"call_site=%pS ptr=%p\", (void *)REC->call_site, REC->ptr\n";

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    std::fs::write(path, run()?)?;
    Ok(())
}

/// The file.
pub fn run() -> Result<Vec<u8>> {
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8).page_size(4096))?;
    let id = writer.add_format("kmem", FORMAT)?;
    writer.add_clock(&TraceClock::named("mono"))?;
    writer.add_metadata(&[("source", b"an example")])?;
    writer.add_tasks(&[Task::new(77, b"init").tgid(77)])?;
    let mut record = id.to_le_bytes().to_vec();
    record.extend([0, 0]);
    record.extend(77i32.to_le_bytes());
    record.extend(0xffff_ffff_8100_0010u64.to_le_bytes());
    record.extend(0xffff_8880_0123_4000u64.to_le_bytes());
    writer.add_event(0, 1_000_000, &record)?;
    writer.add_loss(0, Loss::counted(3))?;
    writer.add_event(0, 2_000_000, &record)?;
    writer.finish()
}
