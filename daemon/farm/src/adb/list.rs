//! The server's list of phones: every phone, in whatever state, with the reason and the remedy.

use super::fault::Fault;

/// One phone in the server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The server's name for the phone: its USB serial, or its network address.
    pub serial: String,
    /// Whether it can be used, and if not, why.
    pub state: State,
    /// The server's number for the connection to it. Given anew after each plugging in.
    pub transport: Option<u32>,
    /// What the phone says that it is, as far as the server knows.
    pub model: Option<String>,
    /// The USB port that it is at, such as `1-4.2`.
    pub usb_path: Option<String>,
}

/// The state of a phone, as the server tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It can be used.
    Ready,
    /// The server cannot talk to it.
    Offline,
    /// Its owner has not allowed this host.
    Unauthorized,
    /// It is being asked.
    Authorizing,
    /// The server is connecting to it.
    Connecting,
    /// This user may not open its USB device.
    NoPermissions,
    /// Another program has its USB device.
    Busy,
    /// It can be seen on the network, and nobody has asked for it.
    Announced,
    /// Nothing answers at its network address.
    Unreachable(String),
    /// It runs another system than Android: its bootloader, recovery, sideload.
    OtherSystem(String),
    /// A word that this layerlab does not know.
    Unknown(String),
}

/// The words of the server, of which some contain spaces.
const OTHER_SYSTEMS: [&str; 5] = ["recovery", "rescue", "sideload", "bootloader", "host"];

/// What follows the state in the long list.
const QUALIFIERS: [&str; 6] = [
    "usb:",
    "product:",
    "model:",
    "device:",
    "features:",
    "transport_id:",
];

impl State {
    fn parse(word: &str) -> Option<State> {
        Some(match word {
            "device" => State::Ready,
            "offline" | "detached" => State::Offline,
            "unauthorized" => State::Unauthorized,
            "authorizing" => State::Authorizing,
            "connecting" => State::Connecting,
            _ if word.starts_with("no permissions") => State::NoPermissions,
            _ if OTHER_SYSTEMS.contains(&word) => State::OtherSystem(word.to_owned()),
            _ => return None,
        })
    }

    /// A word for it.
    pub fn name(&self) -> &str {
        match self {
            State::Ready => "ready",
            State::Offline => "offline",
            State::Unauthorized => "unauthorized",
            State::Authorizing => "authorizing",
            State::Connecting => "connecting",
            State::NoPermissions => "no permissions",
            State::Busy => "busy",
            State::Announced => "announced",
            State::Unreachable(_) => "unreachable",
            State::OtherSystem(word) | State::Unknown(word) => word,
        }
    }

    /// Why the phone is in this state, for a person.
    pub fn reason(&self) -> String {
        match self {
            State::Ready => "it can be used".to_owned(),
            State::Offline => "it does not answer".to_owned(),
            State::Unauthorized => "it has not allowed this host to debug it".to_owned(),
            State::Authorizing => "it is being asked whether this host may debug it".to_owned(),
            State::Connecting => "it is being connected to".to_owned(),
            State::NoPermissions => "this user may not open its USB device".to_owned(),
            State::Busy => "another program uses it over USB, most likely an adb server".to_owned(),
            State::Announced => {
                "it announces itself on the network and is not connected".to_owned()
            }
            State::Unreachable(reason) => format!("it cannot be reached at its address ({reason})"),
            State::OtherSystem(word) => format!("it runs {word} instead of Android"),
            State::Unknown(word) => format!("the adb server calls its state `{word}`"),
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            State::Ready => "",
            State::Offline => "unplug it and plug it in again",
            State::Unauthorized => "unlock it and accept the prompt on the phone",
            State::Authorizing | State::Connecting => "wait a moment",
            State::NoPermissions => {
                "install udev rules for phones: sudo apt install android-sdk-platform-tools-common && sudo usermod -aG plugdev $USER, \
                 then restart this computer (the adb server keeps the rights that it was started with)"
            }
            State::Busy => {
                "end that program (adb kill-server), or reach the phone through it: --adb-server"
            }
            State::Announced => "name its address, with --device or --adb-connect",
            State::Unreachable(_) => {
                "check the address, and that debugging over the network is switched on"
            }
            State::OtherSystem(_) => "start Android on it",
            State::Unknown(_) => "unplug it and plug it in again, or update layerlab",
        }
    }

    /// What is at fault for the recovery ladder; `None` when only a person can help, elsewhere than at
    /// the phone's prompt.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            State::Offline | State::Unreachable(_) => Some(Fault::Offline),
            State::Ready
            | State::Unauthorized
            | State::Authorizing
            | State::Connecting
            | State::Announced => Some(Fault::Away),
            State::NoPermissions | State::Busy | State::OtherSystem(_) | State::Unknown(_) => None,
        }
    }
}

/// Reads the answer to `host:devices-l` or one message of `host:track-devices-l`.
pub(super) fn parse(list: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut record = String::new();
    for line in list.lines() {
        // A serial may contain a line feed; a record ends with its transport.
        if !record.is_empty() {
            record.push('\n');
        }
        record.push_str(line);
        if ends_record(&record) {
            rows.extend(row(&record));
            record.clear();
        }
    }
    rows.extend(row(&record));
    rows
}

fn ends_record(record: &str) -> bool {
    record
        .rsplit_once("transport_id:")
        .is_some_and(|(_, id)| !id.is_empty() && id.trim().chars().all(|c| c.is_ascii_digit()))
}

/// The serial may contain anything, the rest may not: so the line is read from its end.
fn row(record: &str) -> Option<Row> {
    let mut rest = record.trim_end();
    let (mut transport, mut model, mut usb_path) = (None, None, None);
    while let Some((head, word)) = rest.rsplit_once(' ') {
        if !QUALIFIERS
            .iter()
            .any(|qualifier| word.starts_with(qualifier))
            && !is_usb_path(word)
        {
            break;
        }
        match word.split_once(':') {
            Some(("transport_id", id)) => transport = id.parse().ok(),
            Some(("model", name)) => model = Some(name.to_owned()),
            Some(("usb", path)) => usb_path = Some(path.to_owned()),
            None => usb_path = Some(word.to_owned()),
            _ => {}
        }
        rest = head.trim_end();
    }
    // "no permissions (user in plugdev group; are your udev rules wrong?); see [http://…]"
    if let Some(at) = rest.rfind(" no permissions") {
        return Some(Row {
            serial: rest[..at].trim_end().to_owned(),
            state: State::NoPermissions,
            transport,
            model,
            usb_path,
        });
    }
    let (serial, word) = rest.rsplit_once([' ', '\t'])?;
    let state = State::parse(word).unwrap_or_else(|| State::Unknown(word.to_owned()));
    Some(Row {
        serial: serial.trim_end().to_owned(),
        state,
        transport,
        model,
        usb_path,
    })
}

/// Servers name the USB port of a phone without a key: `1-4.2`.
fn is_usb_path(word: &str) -> bool {
    let mut parts = word.split(['-', '.']);
    word.contains('-')
        && parts.all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(list: &str) -> Row {
        let rows = parse(list);
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.into_iter().next().expect("one")
    }

    #[test]
    fn every_state_is_told_apart() {
        let cases = [
            (
                "device usb:1-4 product:oriole model:Pixel_6 device:oriole transport_id:3",
                State::Ready,
            ),
            ("offline transport_id:3", State::Offline),
            ("unauthorized usb:1-1 transport_id:3", State::Unauthorized),
            ("authorizing transport_id:3", State::Authorizing),
            ("connecting transport_id:3", State::Connecting),
            (
                "recovery usb:1-1.2 product:a model:b device:c transport_id:3",
                State::OtherSystem("recovery".to_owned()),
            ),
            (
                "sideload transport_id:3",
                State::OtherSystem("sideload".to_owned()),
            ),
            (
                "bootloader transport_id:3",
                State::OtherSystem("bootloader".to_owned()),
            ),
            (
                "no permissions (user in plugdev group; are your udev rules wrong?); see [http://developer.android.com/tools/device.html] usb:1-1 transport_id:3",
                State::NoPermissions,
            ),
            (
                "no permissions; see [http://developer.android.com/tools/device.html] 1-1 transport_id:3",
                State::NoPermissions,
            ),
            (
                "sulking transport_id:3",
                State::Unknown("sulking".to_owned()),
            ),
        ];
        for (text, state) in cases {
            let row = one(&format!("{:<22} {text}\n", "ABC"));
            assert_eq!((row.serial.as_str(), row.state), ("ABC", state), "{text}");
            assert_eq!(row.transport, Some(3), "{text}");
        }
    }

    #[test]
    fn a_model_is_read() {
        let row =
            one("ABC device usb:1-4 product:oriole model:Pixel_6 device:oriole transport_id:3\n");
        assert_eq!(row.model.as_deref(), Some("Pixel_6"));
        assert_eq!(row.usb_path.as_deref(), Some("1-4"));
    }

    #[test]
    fn a_serial_may_contain_anything() {
        for serial in [
            "; $(reboot) ' \" \n ..",
            "x device",
            "\u{1f4f1} phone",
            "device transport",
            "a\nb\nc",
        ] {
            let row = one(&format!("{serial:<22} unauthorized transport_id:7\n"));
            assert_eq!(row.serial, serial.trim_end());
            assert_eq!(row.state, State::Unauthorized);
        }
    }

    #[test]
    fn an_empty_list_has_no_rows() {
        assert_eq!(parse(""), []);
    }

    #[test]
    fn whoever_cannot_be_used_has_a_remedy() {
        for word in [
            "offline",
            "unauthorized",
            "authorizing",
            "connecting",
            "no permissions",
            "recovery",
        ] {
            let state = State::parse(word).expect("a state");
            assert!(
                !state.reason().is_empty() && !state.remedy().is_empty(),
                "{word}"
            );
        }
    }
}
