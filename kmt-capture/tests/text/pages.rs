//! Pages: failed allocations, and names that events had.

use crate::{converted, line};

/// Printers without addresses write page=0 for all pages.
#[test]
fn a_page_without_an_address_is_no_failure() {
    const FAILED: Option<u64> = Some(u64::MAX);
    for (page, pfn, expected) in [
        ("0000000000000000", "970744", Some(970_744)),
        ("0x0", "0x1234", Some(0x1234)),
        ("(null)", "970744", Some(970_744)),
        ("(null)", "0", FAILED),
        ("(nil)", "0x0", FAILED),
        ("0x0", "0x0", FAILED),
        ("0000000000000000", "0", FAILED),
        ("0000000000000000", "18446744073709551615", FAILED),
        ("ffffea0000000000", "0", Some(0)),
    ] {
        let event =
            format!("mm_page_alloc: page={page} pfn={pfn} order=2 migratetype=0 gfp_flags=GFP_KERNEL");
        let read = converted(&line(1, &event));
        read.is_whole();
        assert_eq!(read.frames, [expected], "{event}");
    }
}

/// Kernels before 3.3.
#[test]
fn old_names_of_events() {
    let text = [
        line(
            1,
            "mm_page_alloc: page=ffffea0003db9f40 pfn=1155800 order=0 migratetype=0 gfp_flags=GFP_KERNEL",
        ),
        line(2, "mm_pagevec_free: page=ffffea0003db9f40 pfn=1155800 order=0 cold=1"),
        line(2, "mm_page_free_direct: page=ffffea0003db9f40 pfn=1155800 order=0"),
    ]
    .concat();
    let read = converted(&text);
    read.is_whole();
    let meanings: Vec<_> =
        read.texts().iter().map(|text| text.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(meanings, ["mm_page_alloc", "mm_page_free_batched", "mm_page_free"]);
    assert_eq!(read.frames, [Some(1_155_800); 3]);
}
