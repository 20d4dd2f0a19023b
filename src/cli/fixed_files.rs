//! What became of files that were mended, in lines for people: of `migrate` and of `validate --fix`.

use bcc_authoring::fix::fix::FixedFile;

/// What became of a file that was to be written, in a line.
pub fn told(file: &FixedFile) -> String {
    let (name, count) = (file.after.name(), file.made.len());
    match &file.kept {
        Some(kept) => format!("{name}: not mended: {kept}; {}", kept.help()),
        None if count == 1 => format!("{name}: 1 finding mended"),
        None => format!("{name}: {count} findings mended"),
    }
}

/// That fixes of a file were not tried, in a line.
pub fn untried(name: &str) -> String {
    format!("{name}: not all fixes were tried, because too many of them do not go together; make some by hand first")
}
