//! The notebook that the analysis wrote, as other programs find it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::kernel::analysis::{Analysis, fixture};

/// 12 × 8 inches at 200 dots.
pub const PICTURE_SIZE: [u64; 2] = [2_400, 1_600];

/// An exported notebook.
pub struct Notebook {
    pub path: PathBuf,
    pub content: Value,
}

/// What nbformat, nbconvert and a reader of pictures found.
pub struct Judgement {
    /// The cells with pictures: all of them are whole, and in the page.
    pub pictures: Vec<String>,
    /// The program that `nbconvert --to script` wrote; Python can read it.
    pub script: String,
}

impl Notebook {
    pub fn exported(analysis: &Analysis) -> Self {
        let done = analysis.home.finish(["sessions", "export", "s", "-o", "orders.ipynb"], "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        let path = analysis.home.path().join("orders.ipynb");
        let content = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        Self { path, content }
    }

    /// The cells of code.
    pub fn code(&self) -> Vec<&Value> {
        self.content["cells"].as_array().unwrap().iter().filter(|cell| cell["cell_type"] == "code").collect()
    }

    /// Asks the programs of others.
    pub fn judged(&self, analysis: &Analysis) -> Judgement {
        let folder = analysis.home.path().join("converted");
        std::fs::create_dir(&folder).unwrap();
        let mut command = Command::new(&analysis.python);
        command.arg(fixture("judge.py")).arg(&self.path).arg(&folder).current_dir(analysis.home.path());
        command.env_clear().envs(analysis.home.variables());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let found: Value = serde_json::from_slice(&done.stdout).unwrap();
        // The extension of the script is that of its language.
        assert_eq!(found["files"], serde_json::json!(["orders.html", "orders.py"]));
        let picture = |picture: &Value| {
            assert_eq!(picture["size"], serde_json::json!(PICTURE_SIZE), "{picture}");
            assert_eq!(picture["is_in_page"], true, "{picture}");
            assert!(picture["bytes"].as_u64().unwrap() > 1_000_000, "{picture}");
            picture["cell"].as_str().unwrap().to_owned()
        };
        Judgement {
            pictures: found["pictures"].as_array().unwrap().iter().map(picture).collect(),
            script: found["script"].as_str().unwrap().to_owned(),
        }
    }
}

/// What a cell printed to its standard output.
pub fn printed(cell: &Value) -> String {
    let outputs = cell["outputs"].as_array().unwrap().iter().filter(|output| output["name"] == "stdout");
    outputs.flat_map(|output| output["text"].as_array().unwrap()).map(|line| line.as_str().unwrap()).collect()
}

/// The text as a terminal shows it: what follows a carriage return stands in the place of what was there.
pub fn as_shown(text: &str) -> String {
    let shown = |line: &str| line.rsplit('\r').next().unwrap_or_default().to_owned() + "\n";
    text.lines().map(shown).collect()
}
