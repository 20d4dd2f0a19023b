//! JupyterLab, which opens the notebook in a browser.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::browser::{Browser, DESKTOP, Look};
use crate::kernel::analysis::Analysis;
use crate::kernel::analysis::notebook::{Notebook, PICTURE_SIZE};
use crate::process::{POLL_INTERVAL, TIMEOUT};
use crate::test_kernel::kernel_variables;

/// The word that the server asks for; it is on loopback only.
const TOKEN: &str = "only-for-this-test";

/// All cells are in the page, also those below the window; and nobody is asked whether JupyterLab may fetch news.
const SETTINGS: [(&str, &str); 2] = [
    ("notebook-extension/tracker", r#"{ "windowingMode": "none" }"#),
    ("apputils-extension/notification", r#"{ "fetchNews": "false" }"#),
];

/// The pictures that are loaded, as widths and heights, and the pictures that are not.
const PICTURES: &str = "const images = [...document.querySelectorAll('.jp-OutputArea-output img')];
    return images.map((image) => image.complete ? [image.naturalWidth, image.naturalHeight] : null)";

/// JupyterLab, which ends with the test.
struct JupyterLab {
    child: Child,
    address: String,
}

impl JupyterLab {
    fn start(analysis: &Analysis) -> Self {
        let home = &analysis.home;
        for (plugin, settings) in SETTINGS {
            home.put(&format!("settings/@jupyterlab/{plugin}.jupyterlab-settings"), settings);
        }
        let mut command = Command::new(&analysis.python);
        command.args(["-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]);
        command.args(["--ServerApp.port=0", &format!("--IdentityProvider.token={TOKEN}")]);
        // It asks no other machine for anything.
        command.args(["--LabApp.news_url=None", "--LabApp.extension_manager=readonly"]);
        command.arg("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate");
        command.env_clear().envs(home.variables()).envs(kernel_variables(&analysis.python)).current_dir(home.path());
        command.env("JUPYTERLAB_SETTINGS_DIR", home.path().join("settings"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lab = Self { child, address: String::new() };
        let mut lines = lines.map_while(Result::ok);
        let said: Vec<String> = lines
            .by_ref()
            .take_while(|line| {
                let address = line.split_once("http://127.0.0.1:").and_then(|(_, rest)| rest.split_once("/lab"));
                if let Some((port, _)) = address {
                    lab.address = format!("http://127.0.0.1:{port}");
                }
                lab.address.is_empty()
            })
            .collect();
        assert!(!lab.address.is_empty(), "JupyterLab does not start: {said:#?}");
        // It must not wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        lab
    }
}

impl Drop for JupyterLab {
    fn drop(&mut self) {
        // It ends its kernels when it is asked to end, and not when it is killed.
        if let Some(id) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(id, Signal::TERM);
        }
        let deadline = Instant::now() + TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(POLL_INTERVAL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens the notebook in JupyterLab: it shows all cells, these texts and this number of pictures, and no dialog.
/// With `BCC_SCREENSHOTS=FOLDER`, what is shown is written there.
pub async fn opened(analysis: &Analysis, notebook: &Notebook, name: &str, texts: &[&str], pictures: usize) {
    let Some(browser) = Browser::start(Look { width: 1300, height: 1000, ..DESKTOP }).await else { return };
    let lab = JupyterLab::start(analysis);
    let file = notebook.path.file_name().unwrap().to_string_lossy().into_owned();
    browser.open(&format!("{}/lab/tree/{file}?token={TOKEN}", lab.address)).await;
    let cells = notebook.content["cells"].as_array().unwrap().len();
    browser
        .element(&format!(".jp-Notebook .jp-Cell:nth-of-type({cells}), .jp-Notebook .jp-Cell:nth-child({cells})"))
        .await;
    for text in texts {
        browser.shows(text).await;
    }
    let deadline = Instant::now() + TIMEOUT;
    let expected = json!(vec![PICTURE_SIZE; pictures]);
    loop {
        let found = browser.run(PICTURES).await;
        if found == expected {
            break;
        }
        assert!(Instant::now() < deadline, "{found}; the page says: {}", browser.text().await);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let shown = browser.run("return document.querySelectorAll('.jp-Notebook .jp-Cell').length").await;
    assert_eq!(shown, Value::from(cells));
    let dialogs =
        browser.run("return [...document.querySelectorAll('.jp-Dialog')].map((dialog) => dialog.innerText)").await;
    assert_eq!(dialogs, json!([]));
    if let Some(folder) = std::env::var_os("BCC_SCREENSHOTS") {
        for number in 0..pictures {
            let scroll = format!(
                "document.querySelectorAll('.jp-OutputArea-output img')[{number}].scrollIntoView({{ block: 'end' }})"
            );
            browser.run(&scroll).await;
            let path = std::path::Path::new(&folder).join(format!("{name}-{number}.png"));
            std::fs::write(path, browser.screenshot().await).unwrap();
        }
    }
}
