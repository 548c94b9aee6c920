//! `vector-builder FOLDER` writes the vectors; `vector-builder --verify FOLDER` says whether they are what is there.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs, process};

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let (verify, folder) = match args.as_slice() {
        [folder] => (false, folder),
        [flag, folder] if flag == "--verify" => (true, folder),
        _ => {
            eprintln!("usage: vector-builder [--verify] FOLDER");
            process::exit(2);
        }
    };
    let folder = Path::new(folder);
    let vectors = vector_builder::vectors();
    let files = vectors.iter().flat_map(|v| {
        [
            (format!("{}.kmt", v.name), v.bytes.clone()),
            (format!("{}.json", v.name), v.json.clone().into_bytes()),
        ]
    });
    let files: Vec<(String, Vec<u8>)> = files.collect();
    let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), files.len(), "names are unique");
    let there = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.file_name());
    let stale: Vec<String> = there
        .map(|n| n.to_string_lossy().into_owned())
        .filter(|n| (n.ends_with(".kmt") || n.ends_with(".json")) && !names.contains(n.as_str()))
        .collect();
    if verify {
        let differs =
            files.iter().filter(|(name, bytes)| fs::read(folder.join(name)).ok().as_ref() != Some(bytes));
        let differs: Vec<&str> =
            differs.map(|(name, _)| name.as_str()).chain(stale.iter().map(String::as_str)).collect();
        if !differs.is_empty() {
            eprintln!("not what is built: {}", differs.join(" "));
            process::exit(1);
        }
        println!("{} vectors are what is built", vectors.len());
        return;
    }
    for name in stale {
        fs::remove_file(folder.join(name)).expect("a stale vector is removed");
    }
    fs::create_dir_all(folder).expect("the folder is made");
    for (name, bytes) in &files {
        fs::write(folder.join(name), bytes).expect("a vector is written");
    }
    println!("{} vectors", vectors.len());
}
