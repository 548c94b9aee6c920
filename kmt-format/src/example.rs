//! The trace on which the documentation's examples run.

use crate::Loss;
use crate::error::Result;
use crate::kernel::{ByteOrder, TraceClock, parse_kallsyms};
use crate::write::{Task, Writer, WriterOptions};

const COMMON: &str = "format:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

const KMALLOC: &str = "\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n\
    \tfield:size_t bytes_alloc;\toffset:32;\tsize:8;\tsigned:0;\n\n\
    print fmt: \"call_site=%pS ptr=%p bytes_req=%zu bytes_alloc=%zu\", (void *)REC->call_site, REC->ptr, \
    REC->bytes_req, REC->bytes_alloc\n";

const STACK: &str = "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:unsigned long caller[];\toffset:16;\tsize:0;\tsigned:0;\n\n\
    print fmt: \"\\t=> %ps\\n\", (void *)REC->caller[0]\n";

const SYMBOLS: &[u8] =
    b"ffffffff81000000 T _text\nffffffff81000100 T alloc_file\nffffffff81000200 T do_open\n\
    ffffffff81000300 T _end\n";

/// A trace of two CPUs: three allocations by `cat`, one of them with its call chain, and a loss of seven events.
///
/// # Errors
///
/// Returns none.
pub fn example() -> Result<Vec<u8>> {
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8).page_size(4096))?;
    writer.add_format("kmem", &format!("name: kmalloc\nID: 11\n{COMMON}{KMALLOC}"))?;
    writer.add_format("ftrace", &format!("name: kernel_stack\nID: 4\n{COMMON}{STACK}"))?;
    writer.add_clock(&TraceClock::named("mono"))?;
    writer.add_metadata(&[("kernel.release", b"6.12.0")])?;
    writer.add_tasks(&[Task::new(77, b"cat").tgid(77)])?;
    writer.add_symbols(&parse_kallsyms(SYMBOLS, &[], 4096), &[])?;
    writer.add_event(0, 1_000, &kmalloc(0xffff_ffff_8100_0110, 100, 128))?;
    writer.add_event(0, 1_000, &stack(&[0xffff_ffff_8100_0110, 0xffff_ffff_8100_0220]))?;
    writer.add_event(1, 2_000, &kmalloc(0xffff_ffff_8100_0110, 30, 32))?;
    writer.add_loss(1, Loss::counted(7))?;
    writer.add_event(1, 3_000, &kmalloc(0xffff_ffff_8100_0220, 64, 64))?;
    writer.finish()
}

fn common(id: u16) -> Vec<u8> {
    let mut record = id.to_le_bytes().to_vec();
    record.extend([0, 0]);
    record.extend(77i32.to_le_bytes());
    record
}

fn kmalloc(call_site: u64, bytes_req: u64, bytes_alloc: u64) -> Vec<u8> {
    let mut record = common(11);
    let ptr = 0xffff_8880_0123_4000u64;
    record.extend([call_site, ptr, bytes_req, bytes_alloc].iter().flat_map(|n| n.to_le_bytes()));
    record
}

fn stack(addresses: &[u64]) -> Vec<u8> {
    let mut record = common(4);
    record.extend((addresses.len() as u64).to_le_bytes());
    record.extend(addresses.iter().flat_map(|a| a.to_le_bytes()));
    record
}
