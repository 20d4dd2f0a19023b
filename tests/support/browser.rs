//! A browser for the tests: Chromium and its driver, both of the system.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::wait::Wait;
use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{Value, json};

use crate::process::TIMEOUT;

/// The pause between two looks at the page: each is a request to the driver, which the page competes with.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// The browser: `BCC_TEST_BROWSER`, or one in PATH.
fn browser() -> Option<PathBuf> {
    let configured = std::env::var_os("BCC_TEST_BROWSER").filter(|path| !path.is_empty()).map(PathBuf::from);
    configured.or_else(|| ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(in_path))
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// Whether the tests may not pass without a browser.
fn is_required() -> bool {
    std::env::var_os("BCC_REQUIRE_BROWSER").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Says that something is missing; panics if it is required.
pub fn missing<T>(reason: &str) -> Option<T> {
    assert!(!is_required(), "{reason}");
    eprintln!("passes without a browser: {reason}");
    None
}

/// How a browser looks at the page.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub width: u32,
    pub height: u32,
    /// Whether it is a phone: with a touch screen, and without a keyboard.
    pub is_phone: bool,
    pub is_dark: bool,
}

pub const DESKTOP: Look = Look { width: 1100, height: 800, is_phone: false, is_dark: false };

pub const PHONE: Look = Look { width: 360, height: 720, is_phone: true, is_dark: false };

/// A browser with its driver. Both end with it.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    client: Client,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser. None if there is none.
    pub async fn start(look: Look) -> Option<Self> {
        let (Some(browser), Some(driver)) = (browser(), in_path("chromedriver")) else {
            return missing("no chromium and chromedriver: `.ci/browser/run` installs them");
        };
        let profile = tempfile::tempdir().unwrap();
        let (driver, port) = start_driver(&driver, profile.path());
        let width = look.width.max(500);
        let mut arguments = vec![
            "--headless=new".to_owned(),
            // In a container, there is no sandbox and little shared memory.
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            // What a person wants of a browser costs each test time, and asks servers that are not there.
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-default-apps".to_owned(),
            "--disable-extensions".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-sync".to_owned(),
            "--no-first-run".to_owned(),
            format!("--user-data-dir={}", profile.path().join("profile").display()),
            format!("--window-size={width},{}", look.height),
        ];
        if look.is_dark {
            arguments.push("--force-dark-mode".to_owned());
        }
        let mut options = json!({ "binary": browser, "args": arguments });
        if look.is_phone {
            let metrics = json!({ "width": look.width, "height": look.height, "pixelRatio": 2.0, "touch": true });
            options["mobileEmulation"] = json!({ "deviceMetrics": metrics });
        }
        let mut capabilities = Capabilities::new();
        capabilities.insert("goog:chromeOptions".to_owned(), options);
        let mut builder = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
        builder.capabilities(capabilities);
        let client = builder.connect(&format!("http://127.0.0.1:{port}")).await.unwrap();
        let session = client.session_id().await.unwrap().unwrap();
        Some(Self { driver, port, session, client, _profile: profile })
    }

    pub async fn open(&self, address: &str) {
        self.client.goto(address).await.unwrap();
    }

    /// Runs a script in each page that is opened from now on, before its own ones.
    #[allow(dead_code, reason = "not every test binary does")]
    pub async fn run_before_pages(&self, script: &str) {
        self.command("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script }));
    }

    /// Goes on as if the machine were in this time zone, as `Asia/Shanghai`.
    #[allow(dead_code, reason = "not every test binary does")]
    pub async fn set_time_zone(&self, name: &str) {
        self.command("Emulation.setTimezoneOverride", &json!({ "timezoneId": name }));
    }

    /// Gives a command of the DevTools protocol.
    fn command(&self, name: &str, parameters: &Value) {
        let body = json!({ "cmd": name, "params": parameters }).to_string();
        let (session, port) = (&self.session, self.port);
        let request = format!(
            "POST /session/{session}/goog/cdp/execute HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status).unwrap();
        assert!(status.contains(" 200 "), "{status}");
    }

    /// Opens another tab, and goes there.
    pub async fn open_tab(&self, address: &str) {
        let tab = self.client.new_window(true).await.unwrap();
        self.client.switch_to_window(tab.handle).await.unwrap();
        self.open(address).await;
    }

    /// Goes to the tab with this number.
    pub async fn switch(&self, number: usize) {
        let tabs = self.client.windows().await.unwrap();
        self.client.switch_to_window(tabs.into_iter().nth(number).unwrap()).await.unwrap();
    }

    pub async fn reload(&self) {
        self.client.refresh().await.unwrap();
    }

    pub async fn address(&self) -> String {
        self.client.current_url().await.unwrap().to_string()
    }

    fn wait(&self) -> Wait<'_> {
        self.client.wait().at_most(TIMEOUT).every(POLL_INTERVAL)
    }

    /// Waits for an element that is shown.
    pub async fn element(&self, css: &str) -> Element {
        let found = self.wait().for_element(Locator::Css(css)).await;
        match found {
            Ok(element) => element,
            Err(error) => panic!("{css}: {error}; the page says: {}", self.text().await),
        }
    }

    /// Waits for an element of this kind with this text.
    pub async fn element_with(&self, name: &str, text: &str) -> Element {
        let path = format!("//{name}[not(ancestor-or-self::*[@hidden]) and contains(normalize-space(.), \"{text}\")]");
        let found = self.wait().for_element(Locator::XPath(&path)).await;
        match found {
            Ok(element) => element,
            Err(error) => panic!("{name} with {text:?}: {error}; the page says: {}", self.text().await),
        }
    }

    /// Waits until the page shows this text.
    pub async fn shows(&self, text: &str) {
        self.element_with("*[not(self::script) and not(*)]", text).await;
    }

    /// Waits until nothing matches this.
    pub async fn vanishes(&self, css: &str) {
        // Until then there is an element without it.
        self.element(&format!("html:not(:has({css}))")).await;
    }

    pub async fn click(&self, button: &str) {
        self.element_with("button[not(@disabled)]", button).await.click().await.unwrap();
    }

    /// Opens what is folded under this line.
    pub async fn click_summary(&self, text: &str) {
        self.element_with("summary", text).await.click().await.unwrap();
    }

    /// Writes into the field of answers when it is the person's turn, and sends.
    pub async fn say(&self, text: &str) {
        self.element("form.answer button[type=submit]:not(:disabled)").await;
        self.element("#answer").await.send_keys(text).await.unwrap();
        self.element("form.answer button[type=submit]").await.click().await.unwrap();
    }

    /// Says yes to the question of a dialog of the browser.
    pub async fn accept(&self) {
        self.client.accept_alert().await.unwrap();
    }

    /// Presses keys where the focus is.
    pub async fn press(&self, keys: &str) {
        self.client.active_element().await.unwrap().send_keys(keys).await.unwrap();
    }

    /// Presses Tab until the focus is on an element with this text.
    pub async fn tab_to(&self, text: &str) {
        for _ in 0..30 {
            self.press(&Key::Tab.to_string()).await;
            let focused = self.run("return document.activeElement.textContent").await;
            if focused.as_str().is_some_and(|focused| focused.trim() == text) {
                return;
            }
        }
        panic!("{text} is not reached with the keyboard");
    }

    /// The result of a script in the page.
    pub async fn run(&self, script: &str) -> Value {
        self.client.execute(script, vec![]).await.unwrap()
    }

    /// Goes into the frame with this number; [`Browser::leave_frame`] leads back.
    pub async fn enter_frame(&self, number: u16) {
        self.client.enter_frame(number).await.unwrap();
    }

    pub async fn leave_frame(&self) {
        self.client.enter_parent_frame().await.unwrap();
    }

    /// The result that a script in the page passes to the function which is its last argument.
    pub async fn run_async(&self, script: &str) -> Value {
        self.client.execute_async(script, vec![]).await.unwrap()
    }

    pub async fn text(&self) -> String {
        self.run("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// The texts of the messages.
    pub async fn messages(&self) -> Vec<String> {
        let script =
            "return [...document.querySelectorAll('.messages .message .text')].map((text) => text.textContent)";
        self.run(script).await.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    /// Waits until there are exactly this many messages, and returns their texts.
    pub async fn until_messages(&self, count: usize) -> Vec<String> {
        let too_many = format!(".messages .message[data-id]:nth-child({})", count + 1);
        self.element(&format!("html:not(:has({too_many})) .messages .message[data-id]:nth-child({count})")).await;
        self.messages().await
    }

    /// Waits until the field for an answer holds this text, for less time than the driver gives a script.
    pub async fn until_answer_holds(&self, text: &str) {
        let script = format!(
            "const [done] = arguments; const end = performance.now() + 25000; \
            (function look() {{ const {{ value }} = document.querySelector('#answer'); \
            if (value === {} || performance.now() > end) done(value); else setTimeout(look, 20); }})()",
            json!(text)
        );
        assert_eq!(self.run_async(&script).await, text);
    }

    pub async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser when its session ends, and not when it is killed.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = stream.set_read_timeout(Some(TIMEOUT));
            let request = format!(
                "DELETE /session/{} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n\r\n",
                self.session, self.port
            );
            let _ = stream.write_all(request.as_bytes());
            // The response comes when the browser has ended; the connection stays open.
            let _ = stream.read(&mut [0; 512]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Starts the driver on a free port, which it prints. It takes the port for IPv4 first, and gives up if that one is not free for IPv6, which
/// happens when many tests open ports at once: then it is started again.
fn start_driver(driver: &Path, home: &Path) -> (Child, u16) {
    let mut said = String::new();
    for _ in 0..10 {
        let mut command = Command::new(driver);
        command.arg("--port=0").env("HOME", home).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.by_ref().map_while(Result::ok) {
            let port = line.split_once("successfully on port ").map(|(_, port)| port.trim_end_matches('.').parse());
            if let Some(Ok(port)) = port {
                // It must not wait for a reader.
                std::thread::spawn(move || lines.for_each(drop));
                return (child, port);
            }
            said.push_str(&line);
            said.push('\n');
        }
        let status = child.wait().unwrap();
        said.push_str(&format!("{status}\n"));
    }
    panic!("the driver never said a port:\n{said}");
}
