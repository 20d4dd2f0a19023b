//! The pictures of a Markdown file as files of their own, in a folder beside it.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bcc_lang::message::msg;
use bcc_runtime::notebook::export::image::PictureFile;

use crate::error::EngineError;
use crate::files::create::create_in;
use crate::files::read_bounded;
use crate::files::within::normalize;
use crate::project::absolute;

/// What other programs wrote may lack the padding, or have bits in its last digit that mean nothing.
pub(crate) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A folder for pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureFolder {
    folder: PathBuf,
    /// How the Markdown file refers to it.
    pub address: String,
}

impl PictureFolder {
    /// The folder at `folder`, for the Markdown file at `file`, or for one in the current directory.
    ///
    /// # Errors
    /// `Usage`: it is not in the directory of the file, so that the two could not be moved together.
    pub fn for_document(folder: &Path, file: Option<&Path>) -> Result<Self, EngineError> {
        let file = normalize(&absolute(file.unwrap_or(Path::new("notebook.md"))));
        let directory = file.parent().unwrap_or(Path::new("/"));
        let place = normalize(&absolute(folder));
        let inside = place.strip_prefix(directory).ok().filter(|inside| !inside.as_os_str().is_empty());
        let Some(address) = inside.and_then(Path::to_str) else {
            let (shown, directory) = (folder.display(), directory.display());
            return Err(EngineError::usage(msg!("the folder of pictures {shown} is not in {directory}"))
                .with_help("choose a folder beside the Markdown file, so that both can be moved together"));
        };
        Ok(Self { folder: place.clone(), address: encoded(address) })
    }

    /// Writes a picture, unless it is there. A file of this name with another content is not replaced.
    pub(crate) fn add(&self, picture: &PictureFile) -> Result<(), EngineError> {
        let path = self.folder.join(&picture.name);
        let failed =
            |error: io::Error| EngineError::failed(msg!("{path} cannot be written: {error}", path = path.display()));
        let bytes = LENIENT.decode(&picture.base64);
        let bytes = bytes.map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        if create_in(&self.folder, &picture.name, &bytes).map_err(failed)? {
            return Ok(());
        }
        match read_bounded(&path, bytes.len() as u64).map_err(failed)? == bytes {
            true => Ok(()),
            false => Err(EngineError::usage(msg!(
                "{path} exists, and is not the picture of the notebook",
                path = path.display()
            ))
            .with_help("choose another folder")),
        }
    }
}

/// A path as an address.
pub fn encoded(path: &str) -> String {
    let mut address = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => address.push(char::from(byte)),
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_pictures_is_beside_its_file() {
        let address = |folder: &str, file: Option<&str>| {
            PictureFolder::for_document(Path::new(folder), file.map(Path::new)).ok().map(|folder| folder.address)
        };
        assert_eq!(address("/a/b/pics", Some("/a/b/x.md")).as_deref(), Some("pics"));
        assert_eq!(address("/a/b/../b/p q/图", Some("/a/b/x.md")).as_deref(), Some("p%20q/%E5%9B%BE"));
        assert_eq!(address("pics", None).as_deref(), Some("pics"));
        for (folder, file) in [("/a/c", "/a/b/x.md"), ("/a/b", "/a/b/x.md"), ("/a/b/../../c", "/a/b/x.md")] {
            assert_eq!(address(folder, Some(file)), None, "{folder}");
        }
    }
}
