//! Follows a file that is still coming, on standard input.
//!
//!     kmt-capture convert saved/ -o - | cargo run -p kmt-format --example follow_pipe
//!
//! With `--golden` it reads one of the conformance vectors in small pieces and checks what must be in it.

use std::io::Read;

use kmt_format::Limits;
use kmt_format::read::{Arrived, Incremental};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_golden = std::env::args().any(|a| a == "--golden");
    let mut input: Box<dyn Read> = match is_golden {
        true => Box::new(std::fs::File::open(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../format-spec/vectors/losses-be32.kmt"
        ))?),
        false => Box::new(std::io::stdin().lock()),
    };
    let mut reader = Incremental::new(Limits::default());
    let mut buffer = vec![0; if is_golden { 100 } else { 1 << 16 }];
    let (mut events, mut lost) = (0, 0);
    loop {
        let len = input.read(&mut buffer)?;
        if len == 0 {
            reader.end();
        }
        reader.push(buffer.get(..len).unwrap_or_default());
        while let Some(arrived) = reader.next()? {
            match arrived {
                Arrived::Header(header) => {
                    println!("{}-endian, {} bit", header.order.name(), header.long_size * 8)
                }
                Arrived::Events(_, chunk) => {
                    events += chunk.records().len();
                    lost += chunk.info().loss.counted;
                }
                Arrived::Damage(damage) => eprintln!("{}", damage.error),
                _ => {}
            }
        }
        if len == 0 {
            break;
        }
    }
    let end = if reader.is_finished() { "finished" } else { "cut off" };
    println!("{events} events, {lost} lost before them, {end}");
    if is_golden {
        assert_eq!((events, lost, reader.is_finished()), (5, 15, true));
    }
    Ok(())
}
