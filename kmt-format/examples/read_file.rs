//! Reads a file and says what it holds.
//!
//!     cargo run -p kmt-format --example read_file [FILE.kmt]
//!
//! Without a file it reads one of the conformance vectors and checks what must be in it.

use kmt_format::Limits;
use kmt_format::read::{Event, Trace};
use kmt_format::schema::{Meaning, Role};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../format-spec/vectors/two-cpus-le64.kmt");
    let given = std::env::args_os().nth(1);
    let file = std::fs::read(given.as_deref().unwrap_or(golden.as_ref()))?;
    let trace = Trace::open(&file, Limits::default())?;
    for damage in trace.damages() {
        eprintln!("{} ({} bytes)", damage.error, damage.len);
    }
    // Events in the kernel's own order; what was lost stands before the run that it precedes.
    let (mut allocations, mut bytes) = (0, 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        if let Some(gap) = run.gap {
            println!("CPU {}: {} events lost", run.cpu, gap.loss.counted);
        }
        for index in run.range {
            let Some(event) = Event::new(trace.schema(), run.chunk, index) else { continue };
            if event.class().meaning == Meaning::KMALLOC {
                allocations += 1;
                bytes += event.uint_with(Role::BYTES_ALLOC).unwrap_or(0);
            }
        }
    }
    println!("{} events, {allocations} kmalloc of {bytes} bytes", trace.event_count());
    if given.is_none() {
        assert_eq!((trace.event_count(), allocations, bytes), (9, 4, 128 + 128 + 16 + 128));
    }
    Ok(())
}
