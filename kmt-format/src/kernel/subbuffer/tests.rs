use super::*;

const HEADER64: HeaderPage =
    HeaderPage { timestamp_offset: 0, commit_offset: 8, commit_size: 8, data_offset: 16, data_size: 240 };
const HEADER32: HeaderPage =
    HeaderPage { timestamp_offset: 0, commit_offset: 8, commit_size: 4, data_offset: 12, data_size: 244 };

struct Page {
    order: ByteOrder,
    header: HeaderPage,
    data: Vec<u8>,
}

impl Page {
    fn new(order: ByteOrder, header: HeaderPage) -> Self {
        Self { order, header, data: Vec::new() }
    }

    fn head(mut self, type_len: u64, delta: u64) -> Self {
        let word = match self.order {
            ByteOrder::Little => type_len | delta << 5,
            ByteOrder::Big => type_len << 27 | delta,
        };
        self.order.push(&mut self.data, word, 4);
        self
    }

    fn word(mut self, word: u64) -> Self {
        self.order.push(&mut self.data, word, 4);
        self
    }

    /// A short event with an 8-byte record whose id is `id`.
    fn event(self, id: u64, delta: u64) -> Self {
        let mut page = self.head(2, delta);
        page.order.push(&mut page.data, id, 2);
        page.data.extend([0; 6]);
        page
    }

    fn bytes(&self, time: u64, commit_upper: u64, tail: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.order.push(&mut out, time, 8);
        self.order.push(&mut out, self.data.len() as u64 | commit_upper, self.header.commit_size);
        out.extend(&self.data);
        out.extend(tail);
        out.resize(self.header.sub_buffer_len(), 0);
        out
    }

    fn times(&self, time: u64) -> Vec<(u64, u64)> {
        let bytes = self.bytes(time, 0, &[]);
        let page = SubBuffer::parse(&bytes, &self.header, self.order).unwrap();
        page.items()
            .filter_map(|item| match item.unwrap() {
                SubBufferItem::Event { time, record, .. } => Some((self.order.uint(&record[..2]), time)),
                SubBufferItem::Discarded => None,
            })
            .collect()
    }
}

fn each_kind(check: impl Fn(Page)) {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for header in [HEADER64, HEADER32] {
            check(Page::new(order, header));
        }
    }
}

#[test]
fn deltas_add_up_in_both_byte_orders() {
    each_kind(|page| assert_eq!(page.event(7, 0).event(8, 5).times(100), [(7, 100), (8, 105)]));
}

#[test]
fn long_form_event_is_read() {
    each_kind(|page| {
        let mut page = page.head(0, 3).word(4 + 120);
        page.order.push(&mut page.data, 9, 2);
        page.data.extend([0xaa; 118]);
        assert_eq!(page.event(1, 1).times(10), [(9, 13), (1, 14)]);
    });
}

#[test]
fn time_extend_adds_and_stamp_replaces() {
    each_kind(|page| {
        let page = page.event(1, 0).head(30, 7).word(2).event(2, 0).head(31, 1).word(100).event(3, 4);
        let extended = 1000 + (2 << 27) + 7;
        assert_eq!(page.times(1000), [(1, 1000), (2, extended), (3, (100 << 27) + 1 + 4)]);
    });
}

#[test]
fn stamp_regains_its_upper_bits() {
    assert_eq!(absolute_stamp(5, 3), 5);
    assert_eq!(absolute_stamp(3, 5), 3, "a small step back without upper bits is the clock's own");
    let upper = 0x18 << 56;
    assert_eq!(absolute_stamp(5, upper | 3), upper | 5);
    assert_eq!(absolute_stamp(3, upper | ((1 << 59) - 1)), upper + (1 << 59) + 3);
    assert_eq!(absolute_stamp(3, (1 << 59) - 1), (1 << 59) + 3, "the first wrap of 59 bits");
}

#[test]
fn discarded_events_keep_their_time() {
    each_kind(|page| {
        let page = page.event(1, 0).head(29, 9).word(8).word(0).event(2, 1).head(29, 1).word(4).event(3, 1);
        assert_eq!(page.times(50), [(1, 50), (2, 60), (3, 61)]);
    });
}

#[test]
fn null_padding_ends_the_sub_buffer() {
    each_kind(|page| assert_eq!(page.event(1, 0).head(29, 0).event(2, 0).times(1), [(1, 1)]));
}

#[test]
fn missed_events_in_every_encoding() {
    each_kind(|page| {
        let page = page.event(1, 0);
        let long = page.header.commit_size;
        let missed = |flags: u64, tail: &[u8]| {
            let bytes = page.bytes(0, flags, tail);
            SubBuffer::parse(&bytes, &page.header, page.order).unwrap().missed()
        };
        let mut count = Vec::new();
        page.order.push(&mut count, 42, long);
        assert_eq!(missed(0, &[]), Missed::No);
        assert_eq!(missed(0x8000_0000, &[]), Missed::Unknown);
        assert_eq!(missed(0xc000_0000, &count), Missed::Count(42));
        assert_eq!(missed(0x4000_0000, &count), Missed::Count(42));
        if long == 8 {
            assert_eq!(missed(0xffff_ffff_c000_0000, &count), Missed::Count(42));
            assert_eq!(missed(0xffff_ffff_8000_0000, &[]), Missed::Unknown);
        }
    });
}

#[test]
fn count_that_does_not_fit_is_unknown() {
    let mut page = Page::new(ByteOrder::Little, HEADER64);
    while page.data.len() + 12 <= 240 {
        page = page.event(1, 0);
    }
    let bytes = page.bytes(0, 0xc000_0000, &[]);
    assert_eq!(page.data.len(), 240);
    assert_eq!(SubBuffer::parse(&bytes, &HEADER64, page.order).unwrap().missed(), Missed::Unknown);
}

#[test]
fn damage_is_an_error_and_ends_the_walk() {
    each_kind(|page| {
        let page = page.event(1, 0).head(20, 0);
        let bytes = page.bytes(0, 0, &[]);
        let mut items = SubBuffer::parse(&bytes, &page.header, page.order).unwrap().items();
        assert!(matches!(items.next(), Some(Ok(SubBufferItem::Event { .. }))));
        let error = items.next().unwrap().unwrap_err();
        assert_eq!(error.offset(), Some(page.header.data_offset as u64 + 12));
        assert!(items.next().is_none());
    });
    let bytes = Page::new(ByteOrder::Little, HEADER64).bytes(0, 241, &[]);
    assert!(SubBuffer::parse(&bytes, &HEADER64, ByteOrder::Little).is_err());
    assert!(SubBuffer::parse(&bytes[..10], &HEADER64, ByteOrder::Little).is_err());
}
