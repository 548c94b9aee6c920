//! Any bytes as each of the kernel's text files.

use kmt_format::kernel::{
    ByteOrder, CpuStats, EventFormat, HeaderPage, TraceClock, Uname, page_size_from_snapshots,
    parse_kallsyms, parse_modules, parse_saved_cmdlines, parse_saved_tgids,
};
use kmt_format::print::PrintEnv;

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = HeaderPage::parse(&text);
    let _ = EventFormat::parse(&text, 8);
    let _ = CpuStats::parse(&text).and_then(|s| s.lost_events());
    let _ = TraceClock::parse(&text);
    let _ = Uname::parse(&text).and_then(|u| u.version());
    let _ = page_size_from_snapshots(&text, &text);
    let _ = parse_saved_tgids(&text);
    let _ = parse_saved_cmdlines(data);
    let _ = PrintEnv::new(ByteOrder::Little, 8).with_printk_formats(data);
    let modules = parse_modules(&text);
    let symbols = parse_kallsyms(data, &modules, 4096);
    assert!(symbols.symbols.is_sorted_by_key(|s| s.address));
}
