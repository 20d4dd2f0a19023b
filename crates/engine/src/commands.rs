//! Runs the programs of actions of the type `command` in folders of the project.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

use crate::files::within::resolve_within;
use bcc_runtime::effects::commands::{CommandRequest, Commands};
use bcc_runtime::effects::process::{ProcessRequest, ProcessResult, StartError, run};

pub(crate) struct ProjectCommands;

#[async_trait]
impl Commands for ProjectCommands {
    async fn run(&self, request: &CommandRequest<'_>) -> Result<ProcessResult, StartError> {
        let directory = folder(request.process.directory, Path::new(request.folder))?;
        run(&ProcessRequest { working_directory: &directory, ..request.process.clone() }).await
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// The real path of a folder of the project in `root`.
fn folder(root: &Path, folder: &Path) -> Result<PathBuf, StartError> {
    let failed = |message| StartError {
        message,
        help: Message::word(
            "`cwd` must be the path of a folder in the project, relative to the project, as in `cwd: build`",
        ),
    };
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !folder.components().all(is_inside) {
        return Err(failed(Message::word("its `cwd` leads out of the project")));
    }
    let resolved = resolve_within(root, &root.join(folder)).and_then(|path| match path.is_dir() {
        true => Ok(path),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    resolved.map_err(|error| failed(msg!("its `cwd` cannot be used: {error}", error = error.to_message())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_is_inside_the_project() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("project");
        fs::create_dir_all(root.join("build/deep")).unwrap();
        fs::create_dir(outer.path().join("other")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        symlink("build/deep", root.join("inner")).unwrap();
        symlink("../other", root.join("outer")).unwrap();
        let real = fs::canonicalize(&root).unwrap();
        for (path, expected) in
            [("", ""), (".", ""), ("build", "build"), ("./build/./deep", "build/deep"), ("inner", "build/deep")]
        {
            assert_eq!(
                folder(&root, Path::new(path)).unwrap(),
                if expected.is_empty() { real.clone() } else { real.join(expected) }
            );
        }
        let absolute = root.join("build");
        let table = [
            ("..", "leads out"),
            ("build/../..", "leads out"),
            ("build/..", "leads out"),
            ("/", "leads out"),
            (absolute.to_str().unwrap(), "leads out"),
            ("outer", "leads out of the project"),
            ("missing", "cannot be used"),
            ("file", "cannot be used"),
        ];
        for (path, expected) in table {
            let error = folder(&root, Path::new(path)).unwrap_err().message.to_string();
            assert!(error.contains(expected), "{path}: {error}");
        }
    }
}
