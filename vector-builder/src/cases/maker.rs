//! Events of the vectors: one of each class that they use, with numbers of the vector's choice.
//!
//! Addresses are near the top of the address space, and have as many bytes as long.

use crate::bytes::{Bytes, number};
use crate::classes::{
    ARRAYS, CACHE_ALLOC, CACHE_FREE, Class, EMPTY, EXIT, KFREE, KMALLOC, PAGE_ALLOC, STACK, TAIL,
};
use crate::model::{Event, Value};

/// Makes events in one byte order and word size.
#[derive(Debug, Clone, Copy)]
pub struct Maker {
    /// Byte order.
    pub big: bool,
    /// Size of long.
    pub long: usize,
}

/// An event of task 42 with these numbers.
pub fn plain(time: u64, class: &'static Class, numbers: &[u64]) -> Event {
    let values = numbers.iter().copied().map(Value::Number).collect();
    Event { time, class, context: [1, 0, 42], values }
}

impl Maker {
    /// An address, near the top of the address space.
    pub fn address(self, low: u64) -> u64 {
        if self.long == 8 { 0xffff_8880_0000_0000 + low } else { 0xc000_0000 + low }
    }

    /// `kmem:kmalloc`.
    pub fn kmalloc(self, time: u64, ptr: u64, bytes: u64) -> Event {
        let numbers =
            [self.address(0x100), self.address(ptr), bytes, bytes.next_power_of_two(), 0xcc0, u64::MAX];
        plain(time, &KMALLOC, &numbers)
    }

    /// `kmem:kmem_cache_free`.
    pub fn free(self, time: u64, ptr: u64, name: &str) -> Event {
        let mut event = plain(time, &CACHE_FREE, &[self.address(0x200), self.address(ptr)]);
        event.values.push(Value::Array([name.as_bytes(), b"\0"].concat()));
        event
    }

    /// `kmem:kfree`.
    pub fn kfree(self, time: u64, ptr: u64) -> Event {
        plain(time, &KFREE, &[self.address(0x400), self.address(ptr)])
    }

    /// `kmem:kmem_cache_alloc`.
    pub fn cache_alloc(self, time: u64, ptr: u64, name: &str) -> Event {
        let mut event = plain(time, &CACHE_ALLOC, &[self.address(0x500), self.address(ptr)]);
        event.values.push(Value::Array([name.as_bytes(), b"\0"].concat()));
        event.values.extend([192, 192, 0xcc0].map(Value::Number));
        event
    }

    /// `kmem:mm_page_alloc`.
    pub fn page(self, time: u64, pfn: u64, order: u64) -> Event {
        plain(time, &PAGE_ALLOC, &[pfn, order, 0x40dc0, 1])
    }

    /// `ftrace:kernel_stack`.
    pub fn stack(self, time: u64, depth: u64) -> Event {
        let mut event = plain(time, &STACK, &[depth]);
        let callers = (0..depth).flat_map(|i| number(self.address(0x1000 + 16 * i), self.long, self.big));
        event.values.push(Value::Array(callers.collect()));
        event
    }

    /// `ftrace:funcgraph_exit`.
    pub fn exit(self, time: u64, entered: u64, returned: u64) -> Event {
        plain(time, &EXIT, &[self.address(0x300), entered, returned, 3])
    }

    /// `odd:arrays`.
    pub fn arrays(self, time: u64, comm: &str, tail: &[u64]) -> Event {
        let mut numbers = Bytes::new(self.big);
        tail.iter().for_each(|n| {
            numbers.number(*n, 4);
        });
        let raw = vec![1, 2, 3, 4, 5];
        let values =
            vec![Value::Array(comm.into()), Value::Array(raw), Value::Array(numbers.data), Value::Number(1)];
        Event { time, class: &ARRAYS, context: [0, 1, u64::from(u32::MAX)], values }
    }

    /// `ftrace:raw_data`, whose record ends at a multiple of 4.
    pub fn tail(self, time: u64, bytes: &[u8]) -> Event {
        let mut event = plain(time, &TAIL, &[7]);
        event.values.push(Value::Array(bytes.to_vec()));
        event
    }

    /// `odd:empty`.
    pub fn empty(self, time: u64) -> Event {
        plain(time, &EMPTY, &[])
    }

    /// The same event of another task.
    pub fn of(self, pid: u64, mut event: Event) -> Event {
        event.context = [0, 2, pid];
        event
    }
}
