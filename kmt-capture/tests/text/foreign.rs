//! Files without events are named, with what to do.

use std::fs;
use std::process::Command;

use crate::refused;

#[test]
fn files_that_are_attached_to_reports_are_named() {
    for (text, says) in [
        (
            "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit>\nkmem_cache_node      256    256    128   32    1 : tunables    0    0    0 : slabdata      8      8      0\n",
            &["/proc/slabinfo", "slabinfo.before"][..],
        ),
        (
            "unreferenced object 0xffff888100001000 (size 64):\n  comm \"sh\", pid 1, jiffies 42\n",
            &["kmemleak", "kmt-analyze leaks"],
        ),
        (
            "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n 4096 1 mm/slub.c:1 func:f\n",
            &["/proc/allocinfo", "kmt-analyze allocinfo"],
        ),
        (
            "[    9.1] sh: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL)\n",
            &["page allocation failure", "kmt-capture record"],
        ),
        ("PK\u{3}\u{4}\0\0", &["an archive (zip", "unpack"]),
        ("\u{7f}ELF\u{2}\u{1}\u{1}\0\0\0\0\0\0\0\0\0\u{4}\0\u{3e}\0", &["vmcore", "trace dump -t"]),
        (
            "# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:4\n",
            &["ftrace without events", "trace_pipe"],
        ),
        (
            "# tracer: function_graph\n#\n  24)   0.130 us    |    ___might_sleep();\n",
            &["lack the time and the task"],
        ),
        ("<!DOCTYPE html>\n<html><div class=\"trace-data\">eJzN</div></html>\n", &["systrace", "compressed"]),
    ] {
        let message = refused(text);
        assert!(
            says.iter().all(|part| message.contains(part)) && message.contains("hint: "),
            "{says:?}: {message}"
        );
    }
}

#[test]
fn a_folder_of_lttng_is_named() {
    let folder = std::env::temp_dir().join(format!("kmt-ctf-{}", std::process::id()));
    for name in ["metadata", "kernel/metadata"] {
        fs::create_dir_all(folder.join("kernel")).unwrap();
        fs::write(folder.join(name), b"\x57\x1d\xd1\x75").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
        let ran = command.arg("convert").arg(&folder).arg("-o").arg(folder.join("out.kmt")).output().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(
            ran.status.code() == Some(1) && message.contains("LTTng") && message.contains("babeltrace2"),
            "{message}"
        );
    }
}
