//! Reads a trace: every kmalloc with its call site, and what all of them handed out.
//!
//! cargo run -p kmt-format --example reader -- trace.kmt

use kmt_format::print::PrintEnv;
use kmt_format::read::{Event, Trace};
use kmt_format::schema::{Meaning, Role};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    print!("{}", run(&std::fs::read(path)?)?);
    Ok(())
}

/// The text that it prints.
pub fn run(file: &[u8]) -> kmt_format::Result<String> {
    let trace = Trace::open(file)?;
    let header = trace.header();
    let names = PrintEnv::new(header.order, header.long_size).with_symbols(trace.symbols());
    let (mut out, mut bytes) = (String::new(), 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        if let Some(gap) = run.gap.filter(|gap| !gap.is_empty()) {
            out += &format!("CPU {}: {} events are missing here\n", run.cpu, gap.loss.counted);
        }
        for index in run.range {
            let Some(event) = Event::new(trace.schema(), run.chunk, index) else { continue };
            if event.class().meaning == Meaning::KMALLOC {
                let size = event.uint_with(Role::BYTES_ALLOC).unwrap_or(0);
                let site = names.symbol_with_offset(event.uint_with(Role::CALL_SITE).unwrap_or(0));
                out += &format!("{:>16} {size:>8} {}\n", event.time(), String::from_utf8_lossy(&site));
                bytes += size;
            }
        }
    }
    out += &format!("{bytes} bytes by kmalloc in {} events\n", trace.event_count());
    Ok(out)
}
