//! Kernel stacks as areas of vmalloc (CONFIG_VMAP_STACK): then VmallocUsed of /proc/meminfo has them, beside KernelStack.

/// Callers of areas of stacks (kernel/fork.c, 4.9 to 7.2); some are inlined in others.
const MAKERS: [&str; 5] =
    ["alloc_thread_stack_node", "dup_task_struct", "copy_process", "_do_fork", "kernel_clone"];

/// True if stacks are areas of vmalloc, by the kernel's configuration or by /proc/vmallocinfo. `None`: unknown. Areas without one
/// of a stack prove nothing.
pub fn are_areas(config: Option<&str>, areas: Option<&str>) -> Option<bool> {
    if let Some(config) = config {
        return Some(config.lines().any(|line| line.trim_end() == "CONFIG_VMAP_STACK=y"));
    }
    let is_stack = |line: &str| MAKERS.iter().any(|maker| line.contains(&format!(" {maker}+")));
    areas.is_some_and(|areas| areas.lines().any(is_stack)).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_decides_and_areas_of_stacks_prove() {
        let stack = "0x1-0x2 20480 dup_task_struct+0x1/0x2 pages=4 vmalloc\n";
        assert_eq!(are_areas(Some("CONFIG_VMAP_STACK=y\n"), None), Some(true));
        assert_eq!(are_areas(Some("# CONFIG_VMAP_STACK is not set\n"), Some(stack)), Some(false));
        assert_eq!(are_areas(None, Some(stack)), Some(true));
        assert_eq!(are_areas(None, Some("0x1-0x2 8192 bpf_prog_alloc+0x1/0x2 pages=1 vmalloc\n")), None);
        assert_eq!(are_areas(None, None), None);
    }
}
