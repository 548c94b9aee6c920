//! System calls, which the kernel prints in C and not by their `print fmt`: `sys_dup2(oldfd: 0xb, newfd: 1)` and
//! `sys_dup2 -> 0x1` (kernel/trace/trace_syscalls.c).

use super::env::PrintEnv;
use crate::kernel::{FieldKind, KernelVersion, unused_bits};
use crate::read::Event;
use crate::schema::EventClass;

/// First kernel that prints `0x`, and numbers below ten without it.
const PREFIXES: KernelVersion = KernelVersion::new(6, 18);

/// True for an event of a system call that the kernel prints so. Kernels since 6.19 add the text of arguments in user
/// space, by rules of each call: these print by their `print fmt`.
pub(super) fn is_plain(class: &EventClass, start: &str) -> bool {
    let has_texts = class.fields.iter().any(|field| field.kind != FieldKind::Scalar);
    class.system == "syscalls" && class.name.starts_with(start) && !has_texts
}

/// `print_syscall_enter`.
pub(super) fn enter(out: &mut Vec<u8>, name: &str, event: &Event<'_>, env: &PrintEnv<'_>) {
    let has_prefix = env.version.is_none_or(|version| version >= PREFIXES);
    let class = event.class();
    out.extend_from_slice(format!("sys_{}(", name.strip_prefix("sys_enter_").unwrap_or(name)).as_bytes());
    // The first field of its own is the number of the call.
    let arguments = class.fields.iter().enumerate().skip(class.common_count.saturating_add(1));
    for (number, (index, field)) in arguments.enumerate() {
        let separator = if number > 0 { ", " } else { "" };
        let value = event.uint(index).unwrap_or(0);
        let text = match value {
            0..10 => format!("{separator}{}: {value}", field.name),
            _ if has_prefix => format!("{separator}{}: {value:#x}", field.name),
            _ => format!("{separator}{}: {value:x}", field.name),
        };
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(b")\n");
}

/// `print_syscall_exit`.
pub(super) fn exit(out: &mut Vec<u8>, name: &str, event: &Event<'_>, env: &PrintEnv<'_>) {
    let value = event.class().field_named("ret").and_then(|field| event.uint(field)).unwrap_or(0);
    // A long of the traced kernel.
    let value = value & (u64::MAX >> unused_bits(env.long_size as u32));
    let name = name.strip_prefix("sys_exit_").unwrap_or(name);
    out.extend_from_slice(format!("sys_{name} -> {value:#x}\n").as_bytes());
}
