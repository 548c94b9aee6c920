//! What is run on a mutation: commands in this process, and the programs themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use kmt_analyze::failure::Outcome;
use kmt_analyze::in_process;
use kmt_capture::convert::{Options, convert};
use kmt_format::Compression;

use super::Plan;
use super::inputs::{Input, Kind};
use super::mutation::Numbers;
use super::support::files::{Scratch, reports};

const FILE: &str = "mutant.kmt";

/// Commands beside the reports as text and JSON.
const OTHERS: [&str; 55] = [
    "verify",
    "verify --json",
    "info",
    "info --json",
    "dump",
    "dump --json",
    "dump --follow",
    "callgraph --json --top-down --min 0",
    "reconcile",
    "reconcile --json",
    "account",
    "who ffff888000010060",
    "who pfn=16",
    "pages --verbose --where pfn=0..99999999",
    "diff --by module --time +0..+0.01 --against +0.01..+1",
    "info --diff",
    "summary --compat perf-kmem --slab --caller --alloc",
    "summary --compat perf-kmem --page --caller --alloc",
    "summary --compat trace-cmd-mem",
    "diff --time +0..+0.01 --against +0.01..+1",
    "diff --by cache --json --time +0..+0.01 --against 0..99999999999",
    "callers --at +0.001",
    "callers --time +0..+0.5 --where size>100",
    "caches --where lifetime>1us --json",
    "pages --where order>0 --cpu 0",
    "lifetimes --pid 7 --comm cc1",
    "timeline --by call-site --steps 1000 --json",
    "all --threads 1",
    "all --time +0..+0.01 --json",
    "chart timeline --by call-site",
    "chart flame --weight live",
    "chart waste",
    "chart icicle",
    "chart lifetimes",
    "chart filling",
    "chart pageblocks",
    "chart latency",
    "report",
    "report --time +0..+0.01",
    "export perfetto --events",
    "export perfetto",
    "export pprof",
    "export dhat",
    "export folded --by live",
    "export csv",
    "export csv --of objects",
    "export ndjson --of call-sites",
    "export ndjson --of event-counts",
    "slice -o -",
    "slice -o - --time +0..+0.01 --compress lz4",
    "slice -o - --event kmem:* --pid 7",
    "recover -o -",
    "anonymize -o - --seed 7",
    "anonymize -o - --seed 7 --hide-symbols --hide-caches",
    "latency --threshold 1us --json",
];

/// One thing to run.
#[derive(Debug, Clone)]
pub enum Command {
    /// kmt-analyze in this process.
    Analyze(String),
    /// kmt-capture convert in this process; on what it makes, the commands follow.
    Convert,
    /// A program with its arguments, on files.
    Real(PathBuf, Vec<String>),
}

impl Command {
    pub fn text(&self) -> String {
        match self {
            Self::Analyze(args) => args.clone(),
            Self::Convert => "convert".to_owned(),
            Self::Real(program, args) => format!("{} {}", program.display(), args.join(" ")),
        }
    }
}

/// What is still to be run on a mutation.
pub struct Commands {
    left: Vec<Command>,
    kind: Kind,
    folder: PathBuf,
    is_real: bool,
    /// The file that kmt-analyze reads.
    kmt: Vec<u8>,
}

/// kmt-capture, if it was built beside this program.
fn capture() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_kmt-analyze")).with_file_name("kmt-capture");
    path.exists().then_some(path)
}

impl Commands {
    pub fn of(plan: &Plan, n: &mut Numbers, is_real: bool, scratch: &Scratch) -> Self {
        let mut all: Vec<String> = OTHERS.map(str::to_owned).to_vec();
        for report in reports() {
            all.extend([report.to_owned(), format!("{report} --json")]);
        }
        all.retain(|command| plan.without.is_empty() || !command.contains(&plan.without));
        // The last ones are run first.
        for at in (1..all.len()).rev() {
            all.swap(at, n.below(at + 1));
        }
        all.drain(..all.len().saturating_sub(plan.commands));
        if is_real {
            all.drain(..all.len().saturating_sub(8));
        }
        let folder = scratch.0.join("mutant");
        let left = all.into_iter().map(Command::Analyze).collect();
        Self { left, kind: plan.kind, folder, is_real, kmt: Vec::new() }
    }

    pub fn next(&mut self) -> Option<Command> {
        self.left.pop()
    }

    /// Puts the mutation where commands find it.
    pub fn prepare(&mut self, mutant: &Input) {
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder).expect("our own folder");
        for (name, bytes) in mutant {
            let path = self.input().join(name);
            let path = if name.is_empty() { self.input() } else { path };
            fs::create_dir_all(path.parent().expect("in a folder")).expect("our own folder");
            fs::write(path, bytes).expect("our own folder");
        }
        if self.kind == Kind::Kmt {
            self.kmt.clone_from(&mutant[0].1);
        }
        if self.kind != Kind::Kmt || self.left.len() % 4 == 0 {
            self.left.push(Command::Convert);
        }
        if self.is_real {
            self.with_programs();
        }
    }

    fn input(&self) -> PathBuf {
        self.folder.join("input")
    }

    fn output(&self) -> PathBuf {
        self.folder.join("output.kmt")
    }

    /// The same commands through the programs.
    fn with_programs(&mut self) {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let kmt = if self.kind == Kind::Kmt { self.input() } else { self.output() };
        let program = PathBuf::from(env!("CARGO_BIN_EXE_kmt-analyze"));
        let real = |command: Command| match command {
            // The program waits for more of a file without an end.
            Command::Analyze(args) if !args.contains("--follow") => {
                let mut args: Vec<String> = args.split(' ').map(str::to_owned).collect();
                args.push(text(kmt.clone()));
                Some(Command::Real(program.clone(), args))
            }
            _ => None,
        };
        let mut left: Vec<Command> = std::mem::take(&mut self.left).into_iter().filter_map(real).collect();
        let convert =
            ["convert", &text(self.input()), "--force", "-o", &text(self.output())].map(str::to_owned);
        left.extend(capture().map(|program| Command::Real(program, convert.to_vec())));
        self.left = left;
    }
}

/// Runs a command; what is wrong with how it ended.
pub fn run(command: &Command, on: &mut Commands) -> Option<String> {
    match command {
        Command::Analyze(args) => analyze(args, &on.kmt),
        Command::Convert => {
            let (input, output) = (on.input(), on.output());
            let options = Options {
                input,
                output: output.clone(),
                force: true,
                compression: Compression::None,
                verbatim: false,
                quiet: true,
                symbols: kmt_capture::record::Symbols::Used,
                instance: None,
                boot: None,
                survivors: None,
                limits: kmt_capture::convert::Limits::default(),
            };
            match convert(&options) {
                Ok(_) => on.kmt = fs::read(output).expect("it was written"),
                Err(_) if on.kind != Kind::Kmt => on.left.clear(),
                Err(_) => {}
            }
            None
        }
        Command::Real(program, args) => process(program, args),
    }
}

fn analyze(args: &str, file: &[u8]) -> Option<String> {
    let mut words: Vec<&str> = args.split(' ').collect();
    words.push(FILE);
    let ran = in_process::run(&words, &[(FILE, file)]);
    let makes_a_file = words.contains(&"-o") && words[0] != "export";
    match ran.ended {
        Ok(_) if makes_a_file => {
            let verified = in_process::run(&["verify", FILE], &[(FILE, &ran.written)]);
            (!matches!(verified.ended, Ok(Outcome::Done)))
                .then(|| format!("what was made: {:?}", verified.ended))
        }
        Ok(_) => None,
        Err(what) => what.contains("Usage:").then_some(what),
    }
}

/// Longest time of a program.
const PATIENCE: Duration = Duration::from_secs(15);

fn process(program: &Path, args: &[String]) -> Option<String> {
    let mut child = Process::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let begin = Instant::now();
    loop {
        match child.try_wait().expect("our own child") {
            Some(status) if matches!(status.code(), Some(0 | 1 | 3)) => return None,
            Some(status) => return Some(format!("a program ended with {status}")),
            None if begin.elapsed() > PATIENCE => {
                child.kill().ok();
                child.wait().ok();
                return Some("a program has no end".to_owned());
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}
