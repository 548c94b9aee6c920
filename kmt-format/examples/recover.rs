//! Makes a sound file of what a damaged one still holds.
//!
//!     cargo run -p kmt-format --example recover BROKEN.kmt WHOLE.kmt
//!
//! Without files it cuts one of the conformance vectors in its last event chunk and checks what comes back.

use kmt_format::Limits;
use kmt_format::edit::{Rewrite, RewriteOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let (file, to) = match args.as_slice() {
        [from, to] => (std::fs::read(from)?, Some(to)),
        _ => {
            let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../format-spec/vectors/many-le64.kmt");
            let mut file = std::fs::read(golden)?;
            // The records come last in their chunk: the first thirty of forty are left.
            let events = file.windows(4).position(|w| w == b"EVNT").ok_or("no events")? - 8;
            let total = u64::from_le_bytes(file[events + 16..events + 24].try_into()?) as usize;
            let body = u64::from_le_bytes(file[events + 24..events + 32].try_into()?) as usize;
            assert!(total >= 64 + body);
            file.truncate(events + 64 + body - 10 * 16);
            (file, None)
        }
    };
    let mut rewrite = Rewrite::new(&file, Limits::default(), RewriteOptions::default())?;
    let mut out = Vec::new();
    while let Some(bytes) = rewrite.next_bytes()? {
        out.extend(bytes);
    }
    let recovery = rewrite.recovery();
    let least = if recovery.missing_is_exact { "" } else { "at least " };
    println!("{} events, {least}{} missing", recovery.events, recovery.events_missing);
    match to {
        Some(to) => std::fs::write(to, out)?,
        None => {
            assert_eq!((recovery.events, recovery.events_unverified, recovery.events_missing), (30, 30, 10))
        }
    }
    Ok(())
}
