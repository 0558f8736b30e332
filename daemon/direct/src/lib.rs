//! The child process that speaks to one phone without an adb server, by the crate adb_client: alone in knowing that crate.
//! What it is asked and answers is in `layerlab_farm::adb::direct::frames`. It need not worry about deadlines, since it is
//! killed at them.

mod inbox;
mod key;
mod look;
mod messages;
mod network;
mod outbox;
mod usb;

use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use adb_client::ADBDeviceExt;
use layerlab_farm::adb::direct::frames::{
    Answer, Failure, FailureKind, Frame, LOOK, Request, Target,
};

use inbox::{FileContent, FromPhone, Inbox, ToPhone};
use outbox::Outbox;

/// Serves the process's standard input until it ends. `what` is a target, or asks to look for phones. The key is made if
/// it is not there.
pub fn serve(what: &str, key: &Path) -> ! {
    let outbox = Outbox::default();
    // A library that panics is one that lost its phone.
    std::panic::set_hook(Box::new(move |panic| {
        outbox.fail(Failure::lost(panic.to_string().replace('\n', " ")));
    }));
    let inbox = Arc::new(Inbox::default());
    let (to_work, requests) = channel();
    let receiving = Arc::clone(&inbox);
    thread::spawn(move || receive(&receiving, &to_work));
    if what == LOOK {
        look::look(outbox);
    }
    match open(what, key, outbox) {
        Ok(device) => work(device, &requests, &inbox, outbox),
        Err(failure) => outbox.fail(failure),
    }
}

/// Takes in what the daemon says, until it says no more.
fn receive(inbox: &Inbox, to_work: &Sender<Request>) {
    let mut stdin = std::io::stdin().lock();
    while let Ok(Some(frame)) = Frame::read(&mut stdin) {
        match frame {
            Frame::Request(request) => {
                inbox.begin();
                if to_work.send(request).is_err() {
                    break;
                }
            }
            Frame::Data(bytes) => inbox.put(bytes),
            Frame::Answer(_) => break,
        }
    }
    // The daemon is gone. Whatever is being done is for nobody.
    process::exit(0);
}

fn open(what: &str, key: &Path, outbox: Outbox) -> Result<Box<dyn ADBDeviceExt>, Failure> {
    let target: Target = what.parse().map_err(Failure::lost)?;
    key::ensure(key).map_err(|error| {
        Failure::lost(format!("cannot make the key {}: {error}", key.display()))
    })?;
    match target {
        Target::Network(address) => network::open(&address, key, outbox),
        Target::Usb(serial) => usb::open(&serial, key),
    }
}

fn work(
    mut device: Box<dyn ADBDeviceExt>,
    requests: &Receiver<Request>,
    inbox: &Arc<Inbox>,
    outbox: Outbox,
) -> ! {
    outbox.ready();
    for request in requests {
        let (done, answer) = match request {
            Request::Exec { command } => {
                let mut to_phone = ToPhone(Arc::clone(inbox));
                let from_phone = Box::new(FromPhone::new(Arc::clone(inbox), outbox));
                let done = device.exec(&command, &mut to_phone, from_phone);
                (done, Answer::Ended)
            }
            Request::Push { path } => {
                let done = device.push(&mut FileContent::of(inbox), &path);
                (done, Answer::Pushed)
            }
        };
        inbox.end();
        match done {
            Ok(()) => outbox.say(&Frame::Answer(answer)),
            Err(error) => outbox.fail(Failure::new(FailureKind::Lost, error)),
        }
    }
    process::exit(0)
}
