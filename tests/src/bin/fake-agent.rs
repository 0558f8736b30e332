//! An agent for what the real one cannot be made to do: speak another version, talk nonsense, die
//! between hello and work. `LAYERLAB_FAKE` says which.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it speaks as the real agent does"
)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

fn main() -> std::io::Result<()> {
    let behaviour = std::env::var("LAYERLAB_FAKE").unwrap_or_default();
    if behaviour == "dies" {
        eprintln!("layerlab-agent: the runtime's licence has expired");
        std::process::exit(1);
    }
    let listen =
        std::env::args().find_map(|arg| Some(arg.strip_prefix("--listen=unix:")?.to_owned()));
    let listener = UnixListener::bind(listen.expect("layerlab says where to listen"))?;
    println!("listening");
    for stream in listener.incoming() {
        let mut stream = stream?;
        let mut request = String::new();
        BufReader::new(stream.try_clone()?).read_line(&mut request)?;
        let answer = match behaviour.as_str() {
            "version" => {
                r#"{"type":"refused","refusal":"version","message":"this agent speaks protocol version 7, not 1"}"#
            }
            "hello-of-version" => {
                r#"{"type":"hello","protocol":7,"agent_version":"9","device":{"name":"x","simulated":false,"clock":"monotonic"},"system":"y","processors":[]}"#
            }
            _ => "HTTP/1.1 400 Bad Request",
        };
        writeln!(stream, "{answer}")?;
    }
    Ok(())
}
