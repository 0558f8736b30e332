//! Who answers behind each of the connections to phones. Phones on a network are asked for their serials, once for each
//! connection.

use std::collections::HashMap;

use futures_util::future::join_all;

use super::found::Found;
use super::list::{Row, State};
use super::naming::{is_of_network, name_by};
use super::phone::{Identity, Phone};
use super::route::Route;

/// Who was found behind which connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(HashMap<(String, String), Told>);

#[derive(Clone, Debug)]
struct Told {
    transport: Option<u32>,
    identity: Identity,
}

impl Names {
    /// The phones in `rows`, each with its name; one that is reached in two ways is there once. Those on a network that
    /// were not asked since they were connected are asked now, all at once.
    pub(super) async fn found(&mut self, route: &Route, rows: Vec<Row>) -> Vec<Found> {
        let key = |row: &Row| (route.place(), row.serial.clone());
        let unknown = rows.iter().filter(|row| {
            let told = self.0.get(&key(row));
            row.state == State::Ready
                && is_of_network(&row.serial)
                && told.is_none_or(|told| told.transport != row.transport)
        });
        let asked = join_all(unknown.map(|row| async move {
            let identity = identity(route, row).await;
            (key(row), row.transport, identity)
        }));
        for (key, transport, identity) in asked.await {
            match identity {
                Some(identity) => {
                    let told = Told {
                        transport,
                        identity,
                    };
                    self.0.insert(key, told);
                }
                // Another phone may be there now.
                None => drop(self.0.remove(&key)),
            }
        }
        let told = |row: &Row| self.0.get(&key(row));
        // What was told by a connection that is gone says nothing of now.
        let answer = |row: &Row| {
            let told = told(row)?;
            (row.state == State::Ready && told.transport == row.transport).then_some(&told.identity)
        };
        let answers: Vec<&Identity> = rows.iter().filter_map(answer).collect();
        let all = rows.iter().map(|row| {
            // One that cannot be asked now is called as before.
            let identity = told(row).map(|told| &told.identity);
            let identity = identity.filter(|one| !has_double(one, &answers));
            Found {
                name: match identity {
                    Some(identity) => name_by(route, &row.serial, identity),
                    None => route.name_of(&row.serial),
                },
                serial: answer(row).map(|identity| identity.serial.clone()),
                route: route.clone(),
                row: row.clone(),
            }
        });
        one_way_each(all.collect())
    }
}

/// Whether another phone that runs says the same of itself: its maker gave all of them one serial. Each keeps its address
/// then, or they would be taken for one.
fn has_double(one: &Identity, answers: &[&Identity]) -> bool {
    let mut others = answers.iter();
    others.any(|other| other.serial == one.serial && other.boot_id != one.boot_id)
}

/// Who the phone is, if it answers; asked twice, for one that is busy may be late.
async fn identity(route: &Route, row: &Row) -> Option<Identity> {
    let phone = Phone::new(route, row).ok()?;
    match phone.identity().await {
        Ok(identity) => Some(identity),
        Err(_) => match phone.identity().await {
            Ok(identity) => Some(identity),
            Err(error) => {
                tracing::warn!(phone = phone.name(), %error, "does not say who it is");
                None
            }
        },
    }
}

/// Of the ways to a phone, the best: one that works, and rather a cable than a network.
fn one_way_each(all: Vec<Found>) -> Vec<Found> {
    let mut kept: Vec<Found> = Vec::with_capacity(all.len());
    let rank = |found: &Found| {
        let works = found.row.state == State::Ready;
        (works, !is_of_network(&found.row.serial))
    };
    for found in all {
        match kept.iter_mut().find(|other| other.name == found.name) {
            Some(other) if rank(&found) > rank(other) => *other = found,
            Some(_) => {}
            None => kept.push(found),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::server::Server;
    use super::*;

    fn server() -> Route {
        Server::given("127.0.0.1:1".parse().expect("an address")).into()
    }

    fn row(serial: &str, state: State) -> Row {
        Row {
            serial: serial.to_owned(),
            state,
            transport: Some(1),
            model: None,
            usb_path: None,
        }
    }

    fn told(serial: &str, boot_id: &str) -> Told {
        Told {
            transport: Some(1),
            identity: Identity {
                serial: serial.to_owned(),
                boot_id: boot_id.to_owned(),
                abi: "arm64-v8a".to_owned(),
            },
        }
    }

    /// What phones are called that were asked before.
    async fn names(told: Vec<(&str, Told)>, rows: Vec<Row>) -> Vec<String> {
        let key = |listed: &str| ("127.0.0.1:1".to_owned(), listed.to_owned());
        let told = told.into_iter().map(|(listed, told)| (key(listed), told));
        let mut names = Names(told.collect());
        let found = names.found(&server(), rows).await;
        found.into_iter().map(|found| found.name).collect()
    }

    #[tokio::test]
    async fn a_phone_on_a_network_is_called_by_its_serial() {
        let asked = vec![
            ("10.0.0.1:37001", told("R58", "a")),
            ("adb-R59-x._adb-tls-connect._tcp", told("R59", "b")),
            ("10.0.0.2:37001", told("unknown", "c")),
        ];
        let rows = [
            "10.0.0.1:37001",
            "adb-R59-x._adb-tls-connect._tcp",
            "10.0.0.2:37001",
            "R60",
        ];
        let rows = rows.map(|serial| row(serial, State::Ready)).to_vec();
        let expected =
            ["R58", "R59", "10.0.0.2:37001", "R60"].map(|it| format!("{it}@127.0.0.1:1"));
        assert_eq!(names(asked, rows).await, expected);
    }

    #[tokio::test]
    async fn a_phone_that_is_reached_in_two_ways_is_one() {
        let asked = [("10.0.0.1:37001", told("R58", "a"))];
        let both = vec![
            row("10.0.0.1:37001", State::Ready),
            row("R58", State::Ready),
        ];
        let mut known = Names(
            asked
                .iter()
                .map(|(listed, told)| {
                    let key = ("127.0.0.1:1".to_owned(), (*listed).to_owned());
                    (key, told.clone())
                })
                .collect(),
        );
        let found = known.found(&server(), both).await;
        let listed: Vec<&str> = found.iter().map(|it| it.row.serial.as_str()).collect();
        assert_eq!(listed, ["R58"], "the cable");
        let moved = vec![
            row("10.0.0.1:37001", State::Offline),
            row("R58", State::Unauthorized),
        ];
        assert_eq!(known.found(&server(), moved).await.len(), 1);
    }

    #[tokio::test]
    async fn phones_to_which_their_maker_gave_one_serial_stay_two() {
        let asked = vec![
            ("10.0.0.1:5555", told("0123456789ABCDEF", "a")),
            ("10.0.0.2:5555", told("0123456789ABCDEF", "b")),
        ];
        let rows = ["10.0.0.1:5555", "10.0.0.2:5555"].map(|it| row(it, State::Ready));
        let expected = ["10.0.0.1:5555", "10.0.0.2:5555"].map(|it| format!("{it}@127.0.0.1:1"));
        assert_eq!(names(asked, rows.to_vec()).await, expected);
    }
}
