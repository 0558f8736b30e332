//! An instrument beside the device, whose lines come over TCP or from a serial port: a time in microseconds since any moment,
//! and a power in microwatts (docs/phones.md says all of it).

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use layerlab_profiles::Nanos;
use layerlab_profiles::energy::{Meter, MeterSource};

use super::{Drawn, MeterError, PowerMeter, PowerReadings};

/// Instruments are fast; what is left is the way of their lines.
const SETTLE: Nanos = Nanos::from_millis(1_000);

/// How long anything of an instrument is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often its reader looks whether anybody still wants its lines.
const LOOK: Duration = Duration::from_millis(200);

/// No line is longer.
const LONGEST_LINE: usize = 200;

/// What has come of an instrument.
#[derive(Default)]
struct Lines {
    /// Since the window began: the instrument's time in µs, and the power in µW.
    taken: Vec<(i64, i64)>,
    /// The least by which the device's clock was ahead of a line's time when it came, in ns: that of the line that came
    /// fastest.
    ahead_ns: Option<i64>,
    /// Why no more come.
    ended: Option<MeterError>,
    /// Whether any came at all.
    has_begun: bool,
}

struct Shared {
    address: String,
    lines: Mutex<Lines>,
    came: Condvar,
    is_wanted: AtomicBool,
}

impl Shared {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The instrument.
struct ExternalMeter {
    shared: Arc<Shared>,
    readings: PowerReadings,
    began: Nanos,
}

/// The instrument whose lines come from this address.
pub(super) fn connect(address: &str, start: Instant) -> Result<Box<dyn PowerMeter>, MeterError> {
    let unreachable = |error: &dyn std::fmt::Display| MeterError::Unreachable {
        address: address.to_owned(),
        reason: error.to_string(),
    };
    let all = address
        .to_socket_addrs()
        .map_err(|error| unreachable(&error))?;
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for one in all {
        match TcpStream::connect_timeout(&one, PATIENCE) {
            Ok(stream) => {
                let waits = stream.set_read_timeout(Some(LOOK));
                waits.map_err(|error| unreachable(&error))?;
                return begin(format!("tcp:{address}"), stream, start);
            }
            Err(error) => last = error,
        }
    }
    Err(unreachable(&last))
}

/// The instrument whose lines come from this file.
pub(super) fn open(path: &Path, start: Instant) -> Result<Box<dyn PowerMeter>, MeterError> {
    let address = path.display().to_string();
    let file = File::open(path).map_err(|error| MeterError::Unreachable {
        address: address.clone(),
        reason: error.to_string(),
    })?;
    begin(address, file, start)
}

/// Reads lines from now on, and waits for the first.
fn begin(
    address: String,
    stream: impl Read + Send + 'static,
    start: Instant,
) -> Result<Box<dyn PowerMeter>, MeterError> {
    let shared = Arc::new(Shared {
        address,
        lines: Mutex::new(Lines::default()),
        came: Condvar::new(),
        is_wanted: AtomicBool::new(true),
    });
    let reader = Arc::clone(&shared);
    // It ends when nobody wants its lines, at the latest with the next one.
    thread::spawn(move || {
        let ended = read_lines(stream, start, &reader);
        reader.lines().ended = Some(ended);
        reader.came.notify_all();
    });
    let meter = ExternalMeter {
        shared,
        readings: PowerReadings::default(),
        began: Nanos::ZERO,
    };
    drop(meter.wait_for(|lines| lines.has_begun)?);
    Ok(Box::new(meter))
}

/// Takes lines until there are no more. Why not.
fn read_lines(stream: impl Read, start: Instant, shared: &Shared) -> MeterError {
    let lost = |what| MeterError::Lost {
        address: shared.address.clone(),
        what,
    };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    // What came first may be the end of a line.
    let mut is_first = true;
    while shared.is_wanted.load(Ordering::Relaxed) {
        match reader
            .by_ref()
            .take(LONGEST_LINE as u64)
            .read_until(b'\n', &mut line)
        {
            Ok(0) => return lost("ended its lines"),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return lost("cannot be read any more"),
        }
        if !line.ends_with(b"\n") && line.len() < LONGEST_LINE {
            continue;
        }
        let now = i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        line.clear();
        let parsed = parse(&text);
        if text.is_empty() || text.starts_with('#') || (is_first && parsed.is_none()) {
            is_first = false;
            continue;
        }
        is_first = false;
        let Some((micros, power)) = parsed else {
            return MeterError::BadLine {
                address: shared.address.clone(),
                line: text,
            };
        };
        let mut lines = shared.lines();
        let ahead = now.saturating_sub(micros.saturating_mul(1_000));
        lines.ahead_ns = Some(lines.ahead_ns.map_or(ahead, |least| least.min(ahead)));
        lines.taken.push((micros, power));
        lines.has_begun = true;
        shared.came.notify_all();
    }
    lost("is not wanted any more")
}

/// A line: a time in microseconds and a power in microwatts, separated by spaces or a comma.
fn parse(line: &str) -> Option<(i64, i64)> {
    let mut fields = line
        .split([' ', '\t', ','])
        .filter(|field| !field.is_empty());
    let (time, power) = (fields.next()?, fields.next()?);
    match fields.next() {
        Some(_) => None,
        None => Some((time.parse().ok()?, power.parse().ok()?)),
    }
}

impl ExternalMeter {
    /// Waits until `enough` has come.
    fn wait_for(
        &self,
        enough: impl Fn(&Lines) -> bool,
    ) -> Result<MutexGuard<'_, Lines>, MeterError> {
        let deadline = Instant::now() + PATIENCE;
        let mut lines = self.shared.lines();
        while !enough(&lines) {
            if let Some(ended) = lines.ended.take() {
                lines.ended = Some(MeterError::Lost {
                    address: self.shared.address.clone(),
                    what: "ended its lines",
                });
                return Err(ended);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(MeterError::Lost {
                    address: self.shared.address.clone(),
                    what: "has sent nothing for five seconds",
                });
            }
            let waited = self.shared.came.wait_timeout(lines, left);
            lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(lines)
    }
}

impl Drop for ExternalMeter {
    fn drop(&mut self) {
        self.shared.is_wanted.store(false, Ordering::Relaxed);
    }
}

impl Lines {
    /// When a reading was taken, by the device's clock.
    fn at(&self, micros: i64) -> Nanos {
        let at = micros.saturating_mul(1_000) + self.ahead_ns.unwrap_or(0);
        Nanos::from_nanos(u64::try_from(at).unwrap_or(0))
    }
}

impl PowerMeter for ExternalMeter {
    fn meter(&self) -> Meter {
        Meter {
            source: MeterSource::External,
            name: self.shared.address.clone(),
            settle_ns: SETTLE,
        }
    }

    fn begin(&mut self, now: Nanos) -> Result<(), MeterError> {
        self.readings.begin();
        self.began = now;
        self.shared.lines().taken.clear();
        self.poll(now)
    }

    fn poll(&mut self, _now: Nanos) -> Result<(), MeterError> {
        // The lock must not be held in the arms.
        let has_ended = self.shared.lines().ended.is_some();
        match has_ended {
            true => self.wait_for(|_| false).map(drop),
            false => Ok(()),
        }
    }

    fn end(&mut self, now: Nanos) -> Result<Drawn, MeterError> {
        let is_past = |lines: &Lines| {
            let last = lines.taken.last();
            last.is_some_and(|&(micros, _)| lines.at(micros) >= now)
        };
        let lines = self.wait_for(is_past)?;
        let taken: Vec<(Nanos, i64)> = lines
            .taken
            .iter()
            .map(|&(micros, power)| (lines.at(micros), power))
            .filter(|(at, _)| (self.began..=now).contains(at))
            .collect();
        drop(lines);
        for (at, power) in taken {
            self.readings.add(at, power, 1.0);
        }
        self.readings.drawn(self.began, now)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::process::Command;

    use super::*;

    fn now(start: Instant) -> Nanos {
        start.elapsed().into()
    }

    /// Sends a reading every millisecond, of a power that changes after a while, by a clock of its own, until nobody listens.
    fn play(mut to: impl Write, begins: &str) {
        let _ = to.write_all(begins.as_bytes());
        for tick in 0_u64.. {
            let power = 500_000 + 1_000 * (tick % 3);
            let line = format!("{} {power}\n", 77_000_000 + tick * 1_000);
            if to
                .write_all(line.as_bytes())
                .and_then(|()| to.flush())
                .is_err()
            {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn window(meter: &mut dyn PowerMeter, start: Instant) -> Result<Drawn, MeterError> {
        meter.begin(now(start))?;
        let ends = now(start) + Nanos::from_millis(60);
        while now(start) < ends {
            meter.poll(now(start))?;
            thread::sleep(Duration::from_millis(1));
        }
        meter.end(now(start))
    }

    fn assert_half_a_watt(drawn: &Drawn) {
        assert!(drawn.readings > 5, "{drawn:?}");
        assert_eq!(drawn.step_uw, Some(1_000));
        // Of at least 60 ms, and of no more than the test had.
        let joules = drawn.energy.as_nanojoules() as f64 / 1e9;
        assert!((0.03..60.0).contains(&joules), "{drawn:?}");
    }

    #[test]
    fn lines_over_tcp_become_windows_by_the_devices_clock() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        thread::spawn(move || {
            let (stream, _) = listener.accept().expect("the meter's reader");
            // The end of a line that began before, and a comment.
            play(stream, "123\n# power of the main supply\n");
        });
        let start = Instant::now();
        let mut meter = connect(&address, start).expect("an instrument");
        for _ in 0..2 {
            let drawn = window(meter.as_mut(), start).expect("lines");
            assert_half_a_watt(&drawn);
        }
    }

    #[test]
    fn a_serial_port_is_read_as_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let port = folder.path().join("port");
        let made = Command::new("mkfifo").arg(&port).status().expect("mkfifo");
        assert!(made.success());
        let writer = port.clone();
        thread::spawn(move || play(File::create(writer).expect("the port"), ""));
        let start = Instant::now();
        let mut meter = open(&port, start).expect("an instrument");
        assert_half_a_watt(&window(meter.as_mut(), start).expect("lines"));
    }

    fn that_sends(text: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the meter's reader");
            stream.write_all(text.as_bytes()).expect("a reader");
        });
        address
    }

    #[test]
    fn an_instrument_that_says_something_else_or_nothing_more_is_named() {
        let start = Instant::now();
        let after = |text| {
            let mut meter = connect(&that_sends(text), start)?;
            window(meter.as_mut(), start)
        };
        let refused = after("1000 5\nvolts 3\n")
            .expect_err("no power")
            .to_string();
        assert!(refused.contains("\"volts 3\""), "{refused}");
        let refused = after("1000 5\n1001 5\n").expect_err("an end").to_string();
        assert!(refused.contains("ended its lines"), "{refused}");
        let nobody = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = nobody.local_addr().expect("bound").to_string();
        drop(nobody);
        let refused = connect(&address, start).err().expect("nobody").to_string();
        assert!(refused.contains(&address), "{refused}");
    }

    #[test]
    fn a_line_is_a_time_and_a_power() {
        assert_eq!(parse("15 -3"), Some((15, -3)));
        assert_eq!(parse("15,\t3"), Some((15, 3)));
        for line in ["", "15", "15 3 2", "1.5 3", "x 3"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
