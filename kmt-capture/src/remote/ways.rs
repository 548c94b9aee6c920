//! Refusal where no program records on the target: the ways to record there, and the command that builds a program.

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
pub fn none(reason: &str, facts: &RemoteFacts) -> Failure {
    let can_build = facts.unfit().is_none() && target(facts).is_some();
    let build = if can_build { "; --build prints the command that builds one" } else { "" };
    Failure::new(reason).hint(format!(
        "the package kmt-targets of the release has the programs; --binary FILE sends another one{build}; --script records with the shell script, which keeps only the last events that fit its buffers"
    ))
}

/// The commands that build a program for the target, and its use.
pub fn build(facts: &RemoteFacts) -> Result<String> {
    let Some((machine, target)) = target(facts) else {
        return Err(Failure::new(format!("no command is known that builds a program for {}", facts.machine))
            .hint("--script records with the shell script"));
    };
    let root = format!("kmt-{machine}");
    let linker = format!("CARGO_TARGET_{}_LINKER", target.replace('-', "_").to_uppercase());
    Ok(format!(
        "rustup target add {target}\n\
         {linker}=rust-lld cargo install kmt-capture --no-default-features --target {target} --root {root}\n\
         # then: --binary {root}/bin/kmt-capture"
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
        let said = |failure: Failure| failure.to_string();
        let aarch64 = build(&facts("aarch64")).unwrap();
        assert!(
            aarch64.contains("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld cargo install"),
            "{aarch64}"
        );
        assert!(
            said(build(&facts("mips")).unwrap_err())
                .contains("no command is known that builds a program for mips")
        );
        assert!(said(none("a reason", &facts("aarch64"))).contains("--build prints"));
        let mips = said(none("a reason", &facts("mips")));
        assert!(mips.contains("--script") && !mips.contains("--build"), "{mips}");
    }
}
