//! A real browser, without a window: Debian's Chromium, driven by WebDriver. It looks at the lab's pages as people do.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::error::CmdError;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::skip::skip;
use crate::wait::{DEADLINE, in_vain, wait_for};

/// What the driver says when it is ready, before its port.
const READY: &str = "started successfully on port ";

/// The first plan of a profile learns its accuracy, which takes a minute and more on a busy machine.
const LONGEST_ANSWER: Duration = Duration::from_secs(300);

/// What pages are shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// Both.
    pub const ALL: [Theme; 2] = [Theme::Light, Theme::Dark];

    /// Its name in CSS.
    pub fn name(self) -> &'static str {
        match self {
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}

/// A browser with one window, gone when the test is over.
pub struct Browser {
    // In the order in which they end.
    client: Client,
    session: String,
    driver: Driver,
    runtime: Runtime,
    _folder: TempDir,
}

/// The process that drives the browser, and ends it.
struct Driver {
    process: Child,
    address: String,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program that is found where programs are.
fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&paths).map(|folder| folder.join(name));
    found.find(|path| path.is_file())
}

impl Browser {
    /// Opens one; none if this machine has none, which is said.
    #[track_caller]
    pub fn open() -> Option<Browser> {
        let (Some(chromium), Some(driver)) = (program("chromium"), program("chromedriver")) else {
            skip(
                "a browser",
                "install it: apt install chromium chromium-driver",
            );
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let driver = Driver::start(driver.as_os_str(), folder.path().as_os_str());
        let mut arguments = vec![
            "--headless=new".to_owned(),
            "--disable-gpu".to_owned(),
            // Shared memory is small in containers.
            "--disable-dev-shm-usage".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ),
        ];
        if rustix::process::geteuid().is_root() {
            // Chromium's own sandbox refuses to be root's. It shows pages of the lab alone.
            arguments.push("--no-sandbox".to_owned());
        }
        let capabilities = json!({
            "goog:chromeOptions": { "binary": chromium, "args": arguments },
            "timeouts": { "pageLoad": LONGEST_ANSWER.as_millis(), "script": LONGEST_ANSWER.as_millis() },
        });
        let Value::Object(capabilities) = capabilities else {
            unreachable!("it is an object");
        };
        let runtime = Runtime::new().expect("a runtime");
        let client = runtime.block_on(async {
            let mut builder = ClientBuilder::new(HttpConnector::new());
            let connected = builder.capabilities(capabilities).connect(&driver.address);
            let connected = timeout(DEADLINE, connected).await;
            connected.expect("a browser in time").expect("a browser")
        });
        let session = runtime.block_on(client.session_id());
        Some(Browser {
            client,
            session: session.expect("a session").expect("its name"),
            driver,
            runtime,
            _folder: folder,
        })
    }

    #[track_caller]
    fn done<T>(&self, what: &str, doing: impl Future<Output = Result<T, CmdError>>) -> T {
        let done = self
            .runtime
            .block_on(async { timeout(LONGEST_ANSWER, doing).await });
        match done {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => panic!("{what}: {error}\n{}", self.clue()),
            Err(_) => panic!("{}", in_vain(what)),
        }
    }

    /// What the page says, for a test that failed.
    fn clue(&self) -> String {
        let script = "return location.href + '\\n' + document.body.innerText";
        let said = self.runtime.block_on(self.client.execute(script, vec![]));
        said.map_or_else(|error| error.to_string(), |said| said.to_string())
    }

    /// Goes to an address.
    #[track_caller]
    pub fn goes_to(&self, address: &str) {
        self.done(address, self.client.goto(address));
    }

    /// Logs in to the lab at `address`, with a token.
    #[track_caller]
    pub fn logs_in(&self, address: &str, token: &str) {
        self.goes_to(&format!("http://{address}/"));
        self.fills_in("#token", token.trim());
        self.clicks("form.login button");
        self.waits_for("the first page", "location.pathname == '/'");
    }

    /// The path of the page that is shown.
    #[track_caller]
    pub fn path(&self) -> String {
        self.reads("location.pathname")
    }

    /// Clicks the first of what a selector finds, when it is there. A page that is left by that has been replaced when this
    /// returns.
    #[track_caller]
    pub fn clicks(&self, css: &str) {
        self.clicks_first(Locator::Css(css));
    }

    /// Clicks the first link or button with these words.
    #[track_caller]
    pub fn clicks_words(&self, words: &str) {
        let path = format!("//*[self::a or self::button][normalize-space()='{words}']");
        self.clicks_first(Locator::XPath(&path));
    }

    #[track_caller]
    fn clicks_first(&self, locator: Locator<'_>) {
        let has_clicked = || {
            let clicked = async { self.client.find(locator).await?.click().await };
            match self.runtime.block_on(clicked) {
                Ok(()) => true,
                // A live page may have replaced it in between.
                Err(error) if error.is_no_such_element() => false,
                Err(error) if error.is_stale_element_reference() => false,
                Err(error) => panic!("{locator:?}: {error}\n{}", self.clue()),
            }
        };
        wait_for(&format!("{locator:?}"), has_clicked, || self.clue());
    }

    #[track_caller]
    fn element(&self, css: &str) -> Element {
        self.done(css, self.client.find(Locator::Css(css)))
    }

    /// Fills a field in.
    #[track_caller]
    pub fn fills_in(&self, css: &str, text: &str) {
        let element = self.element(css);
        self.done(css, async {
            element.clear().await?;
            element.send_keys(text).await
        });
    }

    /// What a person reads in what a selector finds first.
    #[track_caller]
    pub fn text(&self, css: &str) -> String {
        let element = self.element(css);
        self.done(css, element.text())
    }

    /// What an expression of JavaScript is in the page.
    #[track_caller]
    pub fn evaluates(&self, expression: &str) -> Value {
        let script = format!("return ({expression})");
        self.done(expression, self.client.execute(&script, vec![]))
    }

    /// The same, of a text.
    #[track_caller]
    pub fn reads(&self, expression: &str) -> String {
        let value = self.evaluates(expression);
        value
            .as_str()
            .map_or_else(|| panic!("{expression} is {value}"), str::to_owned)
    }

    /// Runs a script that calls its last argument when it is done; what it calls it with.
    #[track_caller]
    pub fn runs(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.done("a script", self.client.execute_async(script, arguments))
    }

    /// Runs a script.
    #[track_caller]
    pub fn does(&self, script: &str) {
        self.done("a script", self.client.execute(script, vec![]));
    }

    /// Waits until an expression of JavaScript is true in the page. While another page comes it is not.
    #[track_caller]
    pub fn waits_for(&self, awaited: &str, expression: &str) {
        let script = format!("return Boolean({expression})");
        let is_so = || {
            let said = self.client.execute(&script, vec![]);
            let said = self.runtime.block_on(said);
            said.is_ok_and(|said| said == Value::Bool(true))
        };
        wait_for(&format!("{awaited} ({expression})"), is_so, || self.clue());
    }

    /// Does something in a window of its own, which is closed then.
    #[track_caller]
    pub fn in_another_window(&self, doing: impl FnOnce()) {
        let here = self.done("this window", self.client.window());
        let other = self.done("a window", self.client.new_window(false)).handle;
        self.done("that window", self.client.switch_to_window(other));
        doing();
        self.done("its end", self.client.close_window());
        self.done("this window", self.client.switch_to_window(here));
    }

    /// Has Chromium do what WebDriver has no word for.
    #[track_caller]
    fn chromium(&self, command: &str, parameters: &Value) -> Value {
        let url = format!(
            "{}/session/{}/goog/cdp/execute",
            self.driver.address, self.session
        );
        let body = json!({ "cmd": command, "params": parameters }).to_string();
        let request = ureq::post(&url).content_type("application/json");
        let mut answer = request.send(body).expect("an answer");
        // A picture of a long page has megabytes.
        let body = answer
            .body_mut()
            .with_config()
            .limit(256 << 20)
            .read_to_string();
        let answer: Value = serde_json::from_str(&body.expect("a body")).expect("JSON");
        answer["value"].clone()
    }

    /// Shows pages in a theme from now on.
    #[track_caller]
    pub fn shows_in(&self, theme: Theme) {
        let feature = json!({ "name": "prefers-color-scheme", "value": theme.name() });
        self.chromium(
            "Emulation.setEmulatedMedia",
            &json!({ "features": [feature] }),
        );
    }

    /// Is so wide from now on, in pixels of CSS.
    #[track_caller]
    pub fn is_wide(&self, width: u32) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.chromium("Emulation.setDeviceMetricsOverride", &size);
    }

    /// A picture of the page, all of it, as PNG in base64.
    #[track_caller]
    pub fn picture(&self) -> String {
        let wanted = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.chromium("Page.captureScreenshot", &wanted);
        picture["data"].as_str().expect("a picture").to_owned()
    }
}

impl Driver {
    #[track_caller]
    fn start(program: &OsStr, folder: &OsStr) -> Driver {
        let mut process = Command::new(program)
            .arg("--port=0")
            // Chromium leaves files in its folder for temporary ones.
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the driver starts");
        let said = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut lines = said.lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, rest) = line.split_once(READY)?;
            Some(rest.trim_end_matches('.').to_owned())
        });
        // Whatever else it says nobody reads, but it must be able to say it.
        std::thread::spawn(move || lines.for_each(drop));
        let port = port.expect("the driver says its port");
        Driver {
            process,
            address: format!("http://127.0.0.1:{port}"),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser with the session.
        let client = self.client.clone();
        let _ = self
            .runtime
            .block_on(async { timeout(DEADLINE, client.close()).await });
    }
}
