//! Events of the kernel's own `ftrace` system, which it prints in C and not by their `print fmt`.

use super::bprint::BinaryArguments;
use super::conversion::{TEXT_MAX, conversion};
use super::env::PrintEnv;
use super::eval::Evaluated;
use super::printf::text;
use crate::kernel::KernelVersion;
use crate::print_fmt::{Extent, Piece, pieces};
use crate::read::Event;
use crate::schema::Role;

/// The number in the field of that name.
pub(super) fn named(event: &Event<'_>, name: &str) -> Option<u64> {
    event.uint(event.class().field_named(name)?)
}

/// The text in the field of that name.
pub(super) fn text_named<'e>(event: &'e Event<'_>, name: &str) -> &'e [u8] {
    event.class().field_named(name).and_then(|f| event.text(f)).unwrap_or_default()
}

/// A line for a text that the file does not have.
pub(super) fn unresolved_line(out: &mut Vec<u8>, env: &PrintEnv<'_>, what: &str) {
    env.add_unresolved(what);
    out.extend_from_slice(b"?\n");
}

/// The function that the event is from, as the kernel puts it first.
pub(super) fn ip_prefix(out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
    env.ip_symbol(out, named(event, "ip").unwrap_or(0));
    out.extend_from_slice(b": ");
}

/// `trace_stack_print`, kernel/trace/trace_output.c.
pub(super) fn kernel_stack(out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
    const FTRACE_TRAMPOLINE: u64 = 0x7fff_ffff;
    out.extend_from_slice(b"<stack trace>\n");
    let field = event.class().field_with(Role::STACK);
    let bytes = field.and_then(|f| event.bytes(f)).unwrap_or_default();
    let end = u64::MAX >> crate::kernel::unused_bits(env.long_size as u32);
    let text_end = out.len().saturating_add(TEXT_MAX);
    for caller in bytes.chunks_exact(env.long_size).map(|c| env.order.uint(c)).take_while(|&c| c != end) {
        out.extend_from_slice(b" => ");
        match caller {
            FTRACE_TRAMPOLINE => out.extend_from_slice(b"[FTRACE TRAMPOLINE]"),
            _ => env.ip_symbol(out, caller),
        }
        out.push(b'\n');
        // A hostile file has names of symbols that are as long as a file can say.
        if out.len() >= text_end {
            break;
        }
    }
}

/// `trace_user_stack_print`, where no mappings of the task are known.
pub(super) fn user_stack(out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
    out.extend_from_slice(b"<user stack trace>\n");
    let bytes = event.class().field_named("caller").and_then(|f| event.bytes(f)).unwrap_or_default();
    let digits = env.long_size.saturating_mul(2);
    for caller in bytes.chunks_exact(env.long_size).map(|c| env.order.uint(c)).take_while(|&c| c != 0) {
        out.extend_from_slice(format!(" =>  <{caller:0digits$x}>\n").as_bytes());
    }
}

/// `trace_bprint_print`: the format is in the kernel, the arguments in the event.
pub(super) fn binary_print(out: &mut Vec<u8>, event: &Event<'_>, env: &PrintEnv<'_>) {
    ip_prefix(out, event, env);
    let format = named(event, "fmt").and_then(|a| env.printk_formats.get(&a));
    let Some(format) = format else {
        return unresolved_line(out, env, "the format of a trace_printk");
    };
    let mut arguments = BinaryArguments {
        bytes: event.class().field_named("buf").and_then(|f| event.bytes(f)).unwrap_or_default(),
        at: 0,
        order: env.order,
        long_size: env.long_size as u8,
        pointers_are_addresses: env.version.is_some_and(|v| v < KernelVersion::new(4, 16)),
    };
    let end = out.len().saturating_add(TEXT_MAX);
    for piece in pieces(format) {
        if out.len() >= end {
            break;
        }
        match piece {
            Piece::Literal(text) => out.extend_from_slice(&text),
            Piece::Spec(spec) => {
                let mut extent = |extent| match extent {
                    Some(Extent::Fixed(n)) => Some(n as i32),
                    Some(Extent::Argument) => arguments.extent(),
                    None => None,
                };
                let (width, precision) = (extent(spec.width), extent(spec.precision));
                let value = arguments.value(&spec);
                match (&value, spec.conversion) {
                    // Text that the kernel made of a pointer when the event was written.
                    (Evaluated::Bytes(bytes), b'p') => text(out, &spec, 0, None, bytes),
                    _ => conversion(out, &spec, width, precision, &value, env),
                }
            }
        }
    }
    out.truncate(end);
}
