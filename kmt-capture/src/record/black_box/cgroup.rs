//! Memory of the cgroup that a condition is about: the one whose limit was reached, or whose pressure is watched.
//!
//! Sources: the kernel log (`dump_oom_summary`, mm/oom_kill.c, Linux 4.19 and later), and the files of the memory controller of
//! either version (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst).

use std::fs;
use std::path::{Path, PathBuf};

/// Where memory controllers are mounted, that of version 1 first: where both are there, it has the memory.
const ROOTS: [&str; 3] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// Files that are kept, of both versions.
const FILES: [&str; 12] = [
    "memory.current",
    "memory.usage_in_bytes",
    "memory.max",
    "memory.limit_in_bytes",
    "memory.high",
    "memory.swap.current",
    "memory.swap.max",
    "memory.kmem.usage_in_bytes",
    "memory.failcnt",
    "memory.events",
    "memory.pressure",
    "memory.stat",
];

/// The cgroup whose limit led to the last kill in a kernel log; `None`: the whole machine's memory did.
pub fn of_kill(log: &str) -> Option<&str> {
    let last = log.lines().rev().find(|line| line.contains("oom-kill:constraint="))?;
    let (_, rest) = last.split_once(",oom_memcg=")?;
    // A path may have commas.
    rest.rsplit_once(",task_memcg=").map(|(path, _)| path)
}

/// `cgroup PATH`, then `FILE LINE` for each line of its files; `None`: it is not there (any more).
pub fn memory(path: &str) -> Option<Vec<u8>> {
    memory_in(&ROOTS.map(Path::new), path)
}

fn memory_in(roots: &[&Path], path: &str) -> Option<Vec<u8>> {
    let dirs = roots.iter().map(|root| match Path::new(path).strip_prefix("/sys/fs/cgroup") {
        Ok(_) => PathBuf::from(path),
        Err(_) => root.join(path.trim_start_matches('/')),
    });
    let dir = dirs.into_iter().find(|dir| dir.join("memory.stat").exists())?;
    let mut out = format!("cgroup {path}\n");
    for name in FILES {
        let text = fs::read_to_string(dir.join(name)).unwrap_or_default();
        text.lines().for_each(|line| out.push_str(&format!("{name} {line}\n")));
    }
    Some(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup_of_a_kill_is_in_the_kernel_log() {
        let of_group = "[   51.9] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,b/c,task_memcg=/a,b/c/d,task=tail,pid=7,uid=0\n";
        assert_eq!(of_kill(of_group), Some("/a,b/c"));
        let of_machine = "[   52.9] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/x,task=tail,pid=7,uid=0\n";
        assert_eq!(of_kill(&format!("{of_group}{of_machine}")), None, "the last one counts");
        assert_eq!(of_kill("[    1.0] text\n"), None);
    }

    #[test]
    fn the_files_of_a_cgroup_have_its_path_first() {
        let root = std::env::temp_dir().join(format!("kmt-cgroup-{}", std::process::id()));
        let group = root.join("a/b");
        fs::create_dir_all(&group).unwrap();
        assert_eq!(memory_in(&[&root], "/a/b"), None, "without the controller");
        fs::write(group.join("memory.stat"), "anon 4096\nfile 0\n").unwrap();
        fs::write(group.join("memory.max"), "max\n").unwrap();
        let expected = "cgroup /a/b\nmemory.max max\nmemory.stat anon 4096\nmemory.stat file 0\n";
        let found = memory_in(&[Path::new("/nonexistent"), &root], "/a/b").unwrap();
        assert_eq!(String::from_utf8(found).unwrap(), expected);
        fs::remove_dir_all(root).unwrap();
    }
}
