//! Converts one ring buffer: `header_page`, the `format` files of kmem, and what `trace_pipe_raw` of CPU 0 gave.
//!
//! cargo run -p kmt-format --example converter -- saved/tracefs out.kmt

use std::fs;
use std::path::Path;

use kmt_format::kernel::{HeaderPage, OrderVote, vote_byte_order};
use kmt_format::write::{Keep, Writer, WriterOptions};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (input, output) = (args.next().ok_or("which directory?")?, args.next().ok_or("which file?")?);
    fs::write(output, run(Path::new(&input))?)?;
    Ok(())
}

/// The file that a directory laid out like tracefs becomes.
pub fn run(tracefs: &Path) -> Result<Vec<u8>> {
    let layout = HeaderPage::parse(&fs::read_to_string(tracefs.join("events/header_page"))?)?;
    let raw = fs::read(tracefs.join("per_cpu/cpu0/trace_pipe_raw"))?;
    // The buffer itself tells its byte order.
    let mut vote = OrderVote::default();
    for bytes in raw.chunks(layout.sub_buffer_len()).take(8) {
        vote_byte_order(&mut vote, bytes, &layout, |_| true);
    }
    let order = vote.winner().ok_or("no events, so no byte order")?;
    let mut writer = Writer::new(WriterOptions::new(order, layout.long_size()))?;
    for event in fs::read_dir(tracefs.join("events/kmem"))? {
        let format = event?.path().join("format");
        if format.is_file() {
            writer.add_format("kmem", &fs::read_to_string(format)?)?;
        }
    }
    for bytes in raw.chunks(layout.sub_buffer_len()) {
        let found = writer.add_sub_buffer(0, bytes, &layout, Keep::Decoded, |_, _| true)?;
        if let Some(damage) = found.damage {
            eprintln!("warning: a sub-buffer is damaged: {damage}");
        }
    }
    Ok(writer.finish()?)
}
