//! Messages of protobuf, as Perfetto writes them, and those of its traces.

/// Bytes of a message.
pub type Message = Vec<u8>;

fn varint(out: &mut Message, mut value: u64) {
    while value > 127 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A number.
pub fn num(field: u64, value: u64) -> Message {
    let mut out = Vec::new();
    varint(&mut out, field << 3);
    varint(&mut out, value);
    out
}

/// A message or a text. Its length has four bytes, as that of nested messages in real traces.
pub fn msg(field: u64, content: impl AsRef<[u8]>) -> Message {
    let (mut out, content) = (Vec::new(), content.as_ref());
    varint(&mut out, field << 3 | 2);
    let len = content.len() as u32;
    out.extend([0, 7, 14].map(|shift| (len >> shift) as u8 | 0x80));
    out.push((len >> 21) as u8);
    out.extend_from_slice(content);
    out
}

/// Parts, one after the other.
pub fn all(parts: impl IntoIterator<Item = Message>) -> Message {
    parts.into_iter().flatten().collect()
}

/// Numbers from field 1 on.
pub fn nums<const N: usize>(values: [u64; N]) -> Message {
    all(values.into_iter().enumerate().map(|(at, value)| num(at as u64 + 1, value)))
}

/// An event of a task: the number of its message, and the message.
pub fn event(time: u64, pid: u64, number: u64, message: Message) -> Message {
    msg(2, all([num(1, time), num(2, pid), msg(number, message)]))
}

/// kmalloc without allocation flags.
pub fn kmalloc(time: u64, ptr: u64) -> Message {
    let message = all([num(1, 64), num(2, 50), num(3, 0xffff_ffff_8120_0010), num(5, ptr)]);
    event(time, 7, 299, message)
}

/// kfree.
pub fn kfree(time: u64, ptr: u64) -> Message {
    event(time, 7, 298, nums([0xffff_ffff_8120_0020, ptr]))
}

/// A bundle of a CPU.
pub fn bundle(cpu: u64, parts: impl IntoIterator<Item = Message>) -> Message {
    msg(1, all([num(1, cpu), all(parts)]))
}

/// A packet of a sequence, whose number comes last.
pub fn packet(sequence: u64, parts: impl IntoIterator<Item = Message>) -> Message {
    msg(1, all([all(parts), num(3, 0), num(10, sequence)]))
}

/// Facts about the kernel.
pub fn system_info(release: &str, machine: &str) -> Message {
    let uname = all([msg(1, "Linux"), msg(2, "#1 SMP"), msg(3, release), msg(4, machine)]);
    packet(1, [msg(45, all([msg(1, uname), num(6, 16_384)]))])
}
