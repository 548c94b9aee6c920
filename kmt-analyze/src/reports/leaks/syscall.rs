//! The system call that a stack came through.

/// Architectures and macros in the names of entries: `__x64_sys_pipe2`, `__do_sys_pipe2` (include/linux/syscalls.h and
/// asm/syscall_wrapper.h, 4.17 to 7.2).
const WRAPPERS: [&str; 10] = ["x64", "ia32", "x32", "arm64", "s390", "s390x", "riscv", "powerpc", "se", "do"];

/// Name of the system call in a stack, whose frames are given from the innermost.
pub fn of_stack(frames: &[String]) -> Option<&str> {
    frames.iter().rev().find_map(|frame| of_function(frame))
}

/// Name of the system call that a function is the entry of.
fn of_function(symbol: &str) -> Option<&str> {
    let end = symbol.find(['+', '.', ' ']).unwrap_or(symbol.len());
    let function = symbol.get(..end)?;
    // SyS_ until 4.16.
    let (before, call) = function.split_once("sys_").or_else(|| function.split_once("SyS_"))?;
    let before = before.strip_suffix("compat_").unwrap_or(before);
    let wrapper = before.strip_prefix("__").and_then(|before| before.strip_suffix('_'));
    let is_entry = before.is_empty() || wrapper.is_some_and(|wrapper| WRAPPERS.contains(&wrapper));
    (is_entry && !call.is_empty()).then_some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_system_calls() {
        for (symbol, call) in [
            ("__x64_sys_pipe2+0x14/0x20", Some("pipe2")),
            ("__se_sys_openat+0x1/0x2", Some("openat")),
            ("__do_sys_clone.constprop.0+0x1/0x2", Some("clone")),
            ("__arm64_sys_mmap+0x1/0x2", Some("mmap")),
            ("__ia32_compat_sys_ioctl+0x1/0x2", Some("ioctl")),
            ("__s390x_sys_read+0x1/0x2", Some("read")),
            ("sys_pipe2+0x1/0x2", Some("pipe2")),
            ("compat_sys_keyctl", Some("keyctl")),
            ("SyS_epoll_wait+0x1/0x2", Some("epoll_wait")),
            ("do_syscall_64+0x71/0x280", None),
            ("x64_sys_call+0x1/0x2", None),
            ("__do_syscall+0x1/0x2", None),
            ("__sys_sendmsg+0x1/0x2", None),
            ("sysfs_create_file+0x1/0x2", None),
            ("kernfs_sys_x+0x1/0x2", None),
            ("sys_", None),
            ("", None),
        ] {
            assert_eq!(of_function(symbol), call, "{symbol}");
        }
    }

    #[test]
    fn the_outermost_entry_counts() {
        let frames = ["alloc_pipe_info+0x1", "__do_sys_pipe+0x1", "__x64_sys_pipe2+0x1", "do_syscall_64+0x1"];
        let frames = frames.map(str::to_owned);
        assert_eq!(of_stack(&frames), Some("pipe2"));
        assert_eq!(of_stack(&frames[3..]), None);
    }
}
