//! Feeds readers with damaged files: `fuzz INPUTS [TARGET]`. Prints a row for each target, keeps the inputs that were
//! finds in `target/fuzz`, and fails if there were any.

#![expect(clippy::print_stdout, reason = "its table is what it is for")]
#![expect(clippy::print_stderr, reason = "as is what went wrong")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;

use layerlab_tests::fuzz::mutate;
use layerlab_tests::fuzz::targets::{TARGETS, Target};
use layerlab_tests::fuzz::work::{DEADLINE, HUNG, feed};
use layerlab_tests::process_usage::ProcessUsage;
use layerlab_tests::proof::table::markdown;
use layerlab_tests::root;
use tempfile::TempDir;

/// After so many finds a target is left: they are most often the same.
const MOST_FINDS: usize = 20;

const USAGE: &str = "usage: fuzz INPUTS [TARGET]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // A process of its own for the inputs: it can die without taking this one along.
    if let ["work", target, first, end, folder] = args[..] {
        return work(target, first, end, Path::new(folder));
    }
    let (inputs, names) = match args[..] {
        [inputs] => (inputs, TARGETS.to_vec()),
        [inputs, target] => (inputs, vec![target]),
        _ => return wrong(USAGE),
    };
    let Ok(inputs) = inputs.parse::<u64>() else {
        return wrong(&format!("{inputs} is no number of inputs: {USAGE}"));
    };
    if let Some(unknown) = names.iter().find(|name| !TARGETS.contains(name)) {
        let known = TARGETS.join(", ");
        return wrong(&format!(
            "there is no target `{unknown}`: choose one of {known}"
        ));
    }
    let mut rows = Vec::new();
    let mut finds = 0;
    for name in names {
        let fuzzed = Fuzzed::run(name, inputs);
        finds += fuzzed.finds;
        rows.push(fuzzed.row(name));
    }
    let heads = [
        "target",
        "inputs",
        "accepted",
        "finds",
        "longest, ms",
        "most memory, MiB",
        "seconds",
    ];
    print!("{}", markdown(&heads, &rows));
    match finds {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn wrong(sentence: &str) -> ExitCode {
    eprintln!("{sentence}");
    ExitCode::from(2)
}

/// What became of the inputs of one target.
#[derive(Default)]
struct Fuzzed {
    inputs: u64,
    accepted: u64,
    finds: usize,
    longest_ms: u64,
    memory_kib: u64,
    seconds: f64,
}

impl Fuzzed {
    fn run(name: &str, inputs: u64) -> Fuzzed {
        let target = Target::named(name).expect("a target");
        let begin = Instant::now();
        let mut fuzzed = Fuzzed::default();
        let mut next = 0;
        while next < inputs && fuzzed.finds < MOST_FINDS {
            let folder = folder();
            let worked = Command::new(std::env::current_exe().expect("this program"))
                .args(["work", name, &next.to_string(), &inputs.to_string()])
                .arg(folder.path())
                .output()
                .expect("this program runs");
            let text = String::from_utf8_lossy(&worked.stdout).into_owned();
            for line in text.lines() {
                fuzzed.heed(name, &target, line);
            }
            if worked.status.success() {
                next = inputs;
                break;
            }
            let died_at = progress(folder.path());
            let last_words = String::from_utf8_lossy(&worked.stderr).into_owned();
            let why = death(worked.status, last_words.trim());
            fuzzed.find(name, &target, died_at, &why);
            next = died_at + 1;
        }
        fuzzed.inputs = next;
        fuzzed.seconds = begin.elapsed().as_secs_f64();
        fuzzed
    }

    /// Takes in a line of a working process.
    fn heed(&mut self, name: &str, target: &Target, line: &str) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let number = |text: &str| text.parse::<u64>().expect("a number");
        match words[..] {
            ["accepted", count] => self.accepted += number(count),
            ["longest", ms] => self.longest_ms = self.longest_ms.max(number(ms)),
            ["memory", kib] => self.memory_kib = self.memory_kib.max(number(kib)),
            ["panic", index, message] => {
                self.find(
                    name,
                    target,
                    number(index),
                    &format!("it panics: {message}"),
                );
            }
            _ => {}
        }
    }

    /// Keeps the input of a find, and says what it was.
    fn find(&mut self, name: &str, target: &Target, index: u64, why: &str) {
        self.finds += 1;
        let folder = root().join("target/fuzz");
        let path = folder.join(format!("{name}-{index}"));
        let input = mutate::input(target.format, &target.seeds, index);
        std::fs::create_dir_all(&folder).expect("room in target");
        std::fs::write(&path, input).expect("room in target");
        eprintln!("{name}, input {index} ({}): {why}", path.display());
    }

    fn row(&self, name: &str) -> Vec<String> {
        vec![
            name.to_owned(),
            self.inputs.to_string(),
            self.accepted.to_string(),
            self.finds.to_string(),
            self.longest_ms.to_string(),
            (self.memory_kib / 1024).to_string(),
            format!("{:.0}", self.seconds),
        ]
    }
}

fn death(status: ExitStatus, last_words: &str) -> String {
    match status.code() {
        Some(code) if code == i32::from(HUNG) => format!("it does not answer within {DEADLINE:?}"),
        _ => format!("the process died ({status}): {last_words}"),
    }
}

/// Works on inputs, and says on standard output what became of them.
fn work(name: &str, first: &str, end: &str, folder: &Path) -> ExitCode {
    let (Some(target), Ok(first), Ok(end)) = (Target::named(name), first.parse(), end.parse())
    else {
        return wrong(USAGE);
    };
    let progress = File::create(folder.join(PROGRESS)).expect("a file in the folder");
    let scratch = folder.join("scratch");
    std::fs::create_dir_all(&scratch).expect("a folder in the folder");
    let outcome = feed(
        &target,
        first,
        end,
        &scratch,
        &progress,
        |index, message| {
            let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
            println!("panic {index} {message}");
        },
    );
    println!("accepted {}", outcome.accepted);
    println!("longest {}", outcome.longest.as_millis());
    println!("memory {}", ProcessUsage::own().peak_bytes / 1024);
    ExitCode::SUCCESS
}

/// A folder for the files of a reader: in memory where there is one, since a disk would take most of the time.
fn folder() -> TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    folder.expect("a folder for temporary files")
}

/// Beside what the reader writes, so that no input can change it.
const PROGRESS: &str = "progress";

/// The input at which a process died.
fn progress(folder: &Path) -> u64 {
    let mut bytes = [0; 8];
    let file = File::open(folder.join(PROGRESS)).expect("progress");
    file.read_exact_at(&mut bytes, 0)
        .expect("a process that died at an input");
    u64::from_le_bytes(bytes)
}
