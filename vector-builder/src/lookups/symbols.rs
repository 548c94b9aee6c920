//! The symbol of an address.

use serde_json::{Value as Json, json};

use super::Case;
use crate::cases::Maker;
use crate::model::{Op, Symbol};

fn base(m: Maker) -> u64 {
    if m.long == 8 { 0xffff_ffff_8100_0000 } else { 0xc010_0000 }
}

/// A symbol that is found: address, name, offset, owner.
fn found(address: u64, name: &str, offset: u64, owner: Option<&str>) -> Json {
    json!([address, name, offset, owner])
}

pub fn nothing(address: u64) -> Json {
    json!([address, null, null, null])
}

/// Sizes, gaps, owners, several at one address; both bounds of the image are known.
pub fn symbols(m: Maker) -> Case {
    let b = base(m);
    let (nfs, bpf, half, zero) = (Some("nfs"), Some("bpf"), Some("half"), Some("zero"));
    // A base of 0 is not known, also if the size is.
    let owners =
        vec![("nfs", b + 0x9000, 0x1000), ("bpf", 0, 0), ("half", b + 0x2_0000, 0), ("zero", 0, 0x100)];
    let rows: Vec<Symbol> = vec![
        (0x1000, 0x10, b'A', 0, "cpu_area"),
        (b - 0x10, 0x10, b't', 0, "before"),
        (b, 0x100, b'T', 0, "_stext"),
        (b + 0x100, 0x80, b't', 0, "first"),
        (b + 0x100, 0x80, b't', 0, "second"),
        (b + 0x100, 0x200, b't', 2, "wide"),
        (b + 0x200, 0, b't', 0, "unsized"),
        (b + 0x300, 0xffff_ffff, b't', 0, "gap"),
        (b + 0x400, 0xffff_fffe, b't', 0, "long"),
        (b + 0x480, 0x80, b'A', 0, "absolute"),
        (b + 0x800, 0, b'T', 0, "_end"),
        (b + 0x8ff0, 0x40, b't', 1, "early"),
        (b + 0x9000, 0x40, b't', 1, "nfs_open"),
        (b + 0x9040, 0, b't', 1, "nfs_last"),
        (b + 0x2_0000, 0, b't', 3, "half_known"),
        (b + 0x20_0000, 0, b't', 2, "program"),
        (b + 0x40_0000, 0x10, b't', 4, "of_zero"),
        (b + 0x40_0100, 0, b't', 4, "last_of_zero"),
    ];
    let asked = vec![
        nothing(0),
        nothing(0x1008),
        nothing(b - 8),
        nothing(b - 1),
        found(b, "_stext", 0, None),
        found(b + 0xff, "_stext", 0xff, None),
        found(b + 0x100, "first", 0, None),
        found(b + 0x17f, "first", 0x7f, None),
        nothing(b + 0x180),
        nothing(b + 0x1ff),
        found(b + 0x200, "unsized", 0, None),
        found(b + 0x2ff, "unsized", 0xff, None),
        found(b + 0x3ff, "gap", 0xff, None),
        found(b + 0x47f, "long", 0x7f, None),
        found(b + 0x4ff, "absolute", 0x7f, None),
        nothing(b + 0x500),
        found(b + 0x800, "_end", 0, None),
        nothing(b + 0x801),
        nothing(b + 0x8ff8),
        found(b + 0x9000, "nfs_open", 0, nfs),
        found(b + 0x903f, "nfs_open", 0x3f, nfs),
        found(b + 0x9fff, "nfs_last", 0xfbf, nfs),
        nothing(b + 0xa000),
        found(b + 0x2_0100, "half_known", 0x100, half),
        found(b + 0x11_ffff, "half_known", 0xf_ffff, half),
        nothing(b + 0x12_0000),
        found(b + 0x2f_ffff, "program", 0xf_ffff, bpf),
        nothing(b + 0x30_0000),
        found(b + 0x40_0008, "of_zero", 8, zero),
        found(b + 0x50_00ff, "last_of_zero", 0xf_ffff, zero),
        nothing(b + 0x50_0100),
    ];
    (vec![Op::Symbols(owners, rows, (b, b + 0x800))], json!({"symbols": asked}))
}

/// The same symbols with one bound of the image, or none.
pub fn bounds(m: Maker, start: bool, end: bool) -> Case {
    let b = base(m);
    let rows: Vec<Symbol> = vec![
        (0x800, 0x10, b't', 0, "low"),
        (0x1000, 0x10, b'A', 0, "cpu_area"),
        (b, 0x100, b'T', 0, "_stext"),
        (b + 0x100, 0, b't', 0, "unsized"),
        (b + 0x200, 0x10, b'a', 0, "absolute"),
        (b + 0x300, 0x10, b't', 0, "behind"),
        // The smallest size that bounds nothing.
        (b + 0x400, 0xffff_ffff, b't', 0, "gap"),
    ];
    let when = |is: bool, row: Json| if is { row } else { nothing(row[0].as_u64().unwrap_or(0)) };
    let asked = vec![
        when(!start, found(0x808, "low", 8, None)),
        nothing(0x1008),
        found(b + 8, "_stext", 8, None),
        when(end, found(b + 0x180, "unsized", 0x80, None)),
        when(start, found(b + 0x208, "absolute", 8, None)),
        when(!end, found(b + 0x308, "behind", 8, None)),
        nothing(b + 0x408),
    ];
    let bound = |is: bool, address: u64| if is { address } else { 0 };
    let bounds = (bound(start, b), bound(end, b + 0x210));
    (vec![Op::Symbols(vec![], rows, bounds)], json!({"symbols": asked}))
}

/// Symbols at one address in many chunks, with bounds that the last chunk which knows them gives.
pub fn many_parts(m: Maker, parts: u64) -> Case {
    const NAMES: [&str; 12] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11"];
    let b = base(m);
    let mut ops = Vec::new();
    let mut asked = vec![nothing(b + 0xf8)];
    for part in 0..parts {
        let own = b + 0x1000 - 0x40 * part;
        let name = NAMES[part as usize];
        let last = part + 1 == parts;
        // The last part has two symbols at the address, and a shorter size.
        let size = if last { 0x20 } else { 0x40 };
        let mut rows: Vec<Symbol> = vec![(b + 0x100, size, b't', 0, name)];
        if last {
            rows.push((b + 0x100, size, b't', 0, "another"));
        }
        rows.push((own, 0x40, b'T', 0, "own"));
        let bounds = match part {
            0 => (b + 0x80, b + 0x110),
            1 => (b + 0x100, b + 0x2000),
            _ => (0, 0),
        };
        ops.push(Op::Symbols(vec![], rows, bounds));
        asked.push(found(own + 0x3f, "own", 0x3f, None));
    }
    let name = NAMES[parts as usize - 1];
    asked.extend([found(b + 0x100, name, 0, None), found(b + 0x11f, name, 0x1f, None)]);
    // An earlier chunk's symbol would hold it: it is not tried.
    asked.push(nothing(b + 0x120));
    (ops, json!({"symbols": asked}))
}

/// Symbols of modules beside their owner, at its end, and longer than it; no bound of the image is known.
pub fn owners() -> Case {
    let (edge, large, short, top) = (0x1000_0000, 0x2000_0000, 0x3000_0000, u64::MAX - 0xfff);
    let owners = vec![
        ("edge", edge, 0x1000),
        ("large", large, 16 << 20),
        ("short", short, 0x1000),
        ("top", top, 0x2000),
    ];
    let rows: Vec<Symbol> = vec![
        // The largest size that bounds.
        (0x1000, 0xffff_fffe, b't', 0, "bounded"),
        (edge + 0x1000, 0x40, b't', 1, "at_end"),
        (edge + 0x1100, 0x40, b't', 1, "behind"),
        (large, 4 << 20, b't', 2, "four_mib"),
        (short + 0xf00, 0x280, b't', 3, "reaches_out"),
        (u64::MAX - 0x3f, 0x40, b't', 4, "last"),
    ];
    let asked = vec![
        found(0x1005, "bounded", 5, None),
        nothing(edge + 0x1008),
        nothing(edge + 0x1108),
        found(large + (2 << 20), "four_mib", 2 << 20, Some("large")),
        found(short + 0x1100, "reaches_out", 0x200, Some("short")),
        found(u64::MAX - 9, "last", 0x36, Some("top")),
    ];
    (vec![Op::Symbols(owners, rows, (0, 0))], json!({"symbols": asked}))
}
