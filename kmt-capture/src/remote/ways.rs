//! Refusal where no program records on the target: the ways to record there, and the command that builds a program.

use kmt_common::shell;

use super::facts::RemoteFacts;
use crate::failure::{Failure, Result};

/// Targets of Rust with musl, by machine: `rustup` has them, and programs for them need no other compiler.
const TARGETS: [(&str, &str); 4] = [
    ("x86_64", "x86_64-unknown-linux-musl"),
    ("i686", "i686-unknown-linux-musl"),
    ("aarch64", "aarch64-unknown-linux-musl"),
    ("armv7", "armv7-unknown-linux-musleabihf"),
];

/// No program runs on the target, for this reason.
pub fn none(reason: &str, facts: &RemoteFacts, again: &str) -> Failure {
    let can_build = facts.unfit().is_none() && target(facts).is_some();
    let build = match can_build {
        true => format!(", `{again} --build` prints the command that builds one"),
        false => String::new(),
    };
    Failure::new(reason).hint(format!(
        "`{again} --script` records now, with a shell script: it keeps only the last events that fit its buffers. To keep all, a static program is needed: the package kmt-targets of the release has those of six machines{build}, and `{again} --binary FILE` sends one"
    ))
}

/// The command with the same target, for more options.
pub fn again(host: Option<&str>, via: Option<&str>) -> String {
    let target = match (host, via) {
        (Some(host), _) => shell::word(host),
        (None, Some(via)) => shell::option("--via", via),
        (None, None) => "HOST".to_owned(),
    };
    format!("kmt-capture remote {target}")
}

/// The commands that build a program for the target, and its use.
pub fn build(facts: &RemoteFacts, again: &str) -> Result<String> {
    let Some((machine, target)) = target(facts) else {
        return Err(Failure::new(format!("no command is known that builds a program for {}", facts.machine))
            .hint(format!("`{again} --script` records with the shell script")));
    };
    let root = format!("kmt-{machine}");
    let linker = format!("CARGO_TARGET_{}_LINKER", target.replace('-', "_").to_uppercase());
    Ok(format!(
        "rustup target add {target}\n\
         {linker}=rust-lld cargo install kmt-capture --no-default-features --target {target} --root {root}\n\
         # then: {again} --binary {root}/bin/kmt-capture"
    ))
}

fn target(facts: &RemoteFacts) -> Option<(&'static str, &'static str)> {
    let machine = facts.program_machine()?;
    TARGETS.into_iter().find(|(name, _)| *name == machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_depend_on_the_machine() {
        let facts = |machine: &str| {
            let mut facts = RemoteFacts::default();
            facts.machine = machine.to_owned();
            facts
        };
        let again = again(None, Some("adb shell"));
        let said = |failure: Failure| failure.to_string();
        let aarch64 = build(&facts("aarch64"), &again).unwrap();
        assert!(
            aarch64.contains("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld cargo install"),
            "{aarch64}"
        );
        assert!(
            said(build(&facts("mips"), &again).unwrap_err())
                .contains("no command is known that builds a program for mips")
        );
        assert!(
            said(none("a reason", &facts("aarch64"), &again))
                .contains("`kmt-capture remote --via 'adb shell' --build` prints")
        );
        let first = said(none("a reason", &facts("aarch64"), &again));
        assert!(
            first.contains("hint: `kmt-capture remote --via 'adb shell' --script` records now"),
            "{first}"
        );
        assert!(
            aarch64.ends_with(
                "# then: kmt-capture remote --via 'adb shell' --binary kmt-aarch64/bin/kmt-capture"
            )
        );
        assert_eq!(super::again(Some("root@board"), None), "kmt-capture remote root@board");
        let mips = said(none("a reason", &facts("mips"), &again));
        assert!(mips.contains("--script") && !mips.contains("--build"), "{mips}");
    }
}
