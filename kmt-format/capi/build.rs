//! Names the shared library's ABI, so that programs are not run with another one.

fn main() {
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") == "linux" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libkmt.so.0");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
