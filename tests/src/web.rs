//! A lab on the web, asked as programs elsewhere ask it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::lab::Lab;

/// Longer than any answer takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// What a daemon logs when its lab is on the web, before the address.
const ON_THE_WEB: &str = "the lab is on the web at http://";

/// What is answered.
#[derive(Debug)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// The headers, by their names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answered {
    /// The body, which is JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A header's value; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map_or("", |(_, value)| value)
    }

    /// That it is a problem document of this status, which says so much.
    #[track_caller]
    pub fn is_problem(&self, status: u16, said: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["status"], status, "{self:?}");
        let kind = problem["type"].as_str().expect("a type");
        assert!(kind.starts_with("urn:layerlab:problem:"), "{self:?}");
        let detail = problem["detail"].as_str().expect("a sentence");
        assert!(detail.contains(said), "{self:?}");
    }
}

/// Asks a lab over the web, with or without a token.
#[derive(Clone, Debug)]
pub struct WebClient {
    agent: ureq::Agent,
    /// Where the lab listens.
    pub address: String,
    token: Option<String>,
}

impl WebClient {
    /// Of the lab's daemon that was started last, which is waited for; without a token.
    #[track_caller]
    pub fn of(lab: &Lab) -> WebClient {
        let addresses = || -> Vec<String> {
            let log = lab.log();
            let lines = log.lines();
            let ends = lines.filter_map(|line| line.split_once(ON_THE_WEB));
            ends.map(|(_, address)| address.trim().to_owned()).collect()
        };
        let opened = || lab.log().matches("the lab is open").count();
        lab.wait_for("a lab on the web", || {
            (1..=addresses().len()).contains(&opened())
        });
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(DEADLINE));
        WebClient {
            agent: config.build().into(),
            address: addresses().pop().expect("there is one"),
            token: None,
        }
    }

    /// The same with a token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> WebClient {
        WebClient {
            token: Some(token.trim().to_owned()),
            ..self.clone()
        }
    }

    /// The same with the token of another client.
    #[must_use]
    pub fn with_token_of(&self, other: &WebClient) -> WebClient {
        WebClient {
            token: other.token.clone(),
            ..self.clone()
        }
    }

    /// The same with a new token of this role.
    #[must_use]
    pub fn with_role(&self, lab: &Lab, role: &str) -> WebClient {
        let name = format!("the.{role}");
        self.with_token(&lab.succeed(&["token", "create", &name, "--role", role]))
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What is at a path.
    #[track_caller]
    pub fn get(&self, path: &str) -> Answered {
        self.get_with(path, &[])
    }

    /// The same with further headers.
    #[track_caller]
    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answered {
        let mut request = self.agent.get(self.url(path));
        if let Some((name, value)) = self.own_header() {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answered(request.call())
    }

    /// Removes what is at a path.
    #[track_caller]
    pub fn delete(&self, path: &str) -> Answered {
        let mut request = self.agent.delete(self.url(path));
        if let Some((name, value)) = self.own_header() {
            request = request.header(name, value);
        }
        answered(request.call())
    }

    /// Sends a body of a media type to a path.
    #[track_caller]
    pub fn post(&self, path: &str, media_type: &str, body: &str) -> Answered {
        self.post_with(path, media_type, body, &[])
    }

    /// The same with further headers.
    #[track_caller]
    pub fn post_with(
        &self,
        path: &str,
        media_type: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Answered {
        let mut request = self.agent.post(self.url(path)).content_type(media_type);
        if let Some((name, value)) = self.own_header() {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answered(request.send(body))
    }

    /// The events that happened after the one of number `after`, as they come.
    #[track_caller]
    pub fn events(&self, after: i64) -> EventReader {
        let mut request = self.agent.get(self.url("/api/v1/events"));
        if let Some((name, value)) = self.own_header() {
            request = request.header(name, value);
        }
        let request = request.header("last-event-id", after.to_string());
        let response = request.call().expect("an answer");
        let kind = response.headers().get("content-type");
        assert_eq!(kind.expect("a type"), "text/event-stream");
        EventReader(BufReader::new(response.into_body().into_reader()))
    }

    fn own_header(&self) -> Option<(&'static str, String)> {
        let token = self.token.as_ref()?;
        Some(("authorization", format!("Bearer {token}")))
    }

    /// What the lab says to these bytes until it ends the connection.
    #[track_caller]
    pub fn said_to(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("a lab");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        // It may have refused before it has read all.
        let _ = stream.write_all(bytes);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// A stream of events that is read.
pub struct EventReader(BufReader<ureq::BodyReader<'static>>);

impl EventReader {
    /// The next event, with its number; nothing if the stream ends.
    pub fn next_event(&mut self) -> Option<(i64, Value)> {
        let (mut number, mut data) = (None, None);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => number = id.parse().ok(),
                Some(("data", json)) => data = serde_json::from_str(json).ok(),
                _ if line.trim_end().is_empty() => {
                    if let (Some(number), Some(data)) = (number.take(), data.take()) {
                        return Some((number, data));
                    }
                }
                _ => {}
            }
        }
    }

    /// All events up to the first of this kind.
    #[track_caller]
    pub fn until(&mut self, kind: &str) -> Vec<(i64, Value)> {
        let mut events = Vec::new();
        loop {
            let event = self.next_event();
            let event = event.unwrap_or_else(|| panic!("no {kind} after {events:?}"));
            let is_last = event.1["kind"] == kind;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }
}

#[track_caller]
fn answered(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answered {
    let mut response = response.expect("an answer");
    let text = |value: &ureq::http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let headers = response.headers().iter();
    Answered {
        status: response.status().as_u16(),
        headers: headers
            .map(|(name, value)| (name.as_str().to_owned(), text(value)))
            .collect(),
        body: response.body_mut().read_to_string().expect("a body"),
    }
}
