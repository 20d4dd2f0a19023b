//! Recognizes the sessions that this user started. A store may come from somebody else, together with its project: what it
//! contains must not run only because the person trusts the project. Therefore, a session is stored with a code that only this
//! user can make, with a key in the user's configuration directory.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;

use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use ring::rand::{SecureRandom, SystemRandom};

use crate::environment::Environment;
use crate::files::create::create_private;
use crate::files::read_bounded;
use crate::settings::RunSettings;

/// The size of the key, in bytes.
const KEY_BYTES: usize = 32;

/// What the code of a session covers: its id, its settings, and its manifest, which contains the hashes of its documents.
fn covered(id: &str, settings: &RunSettings, manifest: &str) -> Option<Vec<u8>> {
    let settings = RunSettings { origin: None, ..settings.clone() };
    serde_json::to_vec(&(id, settings, manifest)).ok()
}

fn read_key(environment: &Environment) -> Option<Key> {
    let path = environment.config_directory()?.join("sessions.key");
    let bytes = read_bounded(&path, KEY_BYTES as u64).ok()?;
    (bytes.len() == KEY_BYTES).then(|| Key::new(HMAC_SHA256, &bytes))
}

/// Creates the key, unless there is one.
fn create_key(environment: &Environment) -> io::Result<()> {
    let directory = environment.config_directory().ok_or(io::ErrorKind::NotFound)?;
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    let mut bytes = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::ErrorKind::Other)?;
    create_private(&directory.join("sessions.key"), &bytes).map(drop)
}

/// The key, which is created if there is none. `None` without a configuration directory that can be written.
fn key(environment: &Environment) -> Option<Key> {
    read_key(environment).or_else(|| {
        create_key(environment).ok()?;
        read_key(environment)
    })
}

/// A code for a user of sessions that is always the same for this user of the machine, and from which nobody else can tell the user's id.
pub(crate) fn pseudonym(environment: &Environment, user: &str) -> Option<String> {
    let tag = sign(&key(environment)?, format!("participant\0{user}").as_bytes());
    Some(tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The code of a session that this user starts. `None` if the user has no configuration directory that can be written: the
/// session is then resumed like that of somebody else.
pub(crate) fn origin(environment: &Environment, id: &str, settings: &RunSettings, manifest: &str) -> Option<String> {
    let key = key(environment)?;
    let tag = sign(&key, &covered(id, settings, manifest)?);
    Some(tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether this user started the session with these settings and this manifest.
pub(crate) fn is_own(environment: &Environment, id: &str, settings: &RunSettings, manifest: &str) -> bool {
    let tag = settings.origin.as_deref().and_then(bytes);
    let (Some(key), Some(tag), Some(covered)) = (read_key(environment), tag, covered(id, settings, manifest)) else {
        return false;
    };
    verify(&key, &covered, &tag).is_ok()
}

/// The bytes of a text in hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_user_who_started_a_session_can_make_its_code() {
        let home = tempfile::tempdir().unwrap();
        let of =
            |name: &str| Environment::of([("XDG_CONFIG_HOME", home.path().join(name).to_string_lossy().into_owned())]);
        let (own, other) = (of("own"), of("other"));
        let settings = RunSettings { allowed: vec!["exec".to_owned()], ..RunSettings::default() };
        let origin = |by: &Environment| super::origin(by, "s", &settings, "{}");
        let sealed = RunSettings { origin: origin(&own), ..settings.clone() };
        assert!(is_own(&own, "s", &sealed, "{}"));
        assert_eq!(origin(&own), sealed.origin, "the key stays");
        assert!(!is_own(&own, "t", &sealed, "{}") && !is_own(&own, "s", &sealed, "{ }"));
        let more = RunSettings { allowed: vec!["exec".to_owned(), "command".to_owned()], ..sealed.clone() };
        assert!(!is_own(&own, "s", &more, "{}"));
        assert!(!is_own(&other, "s", &sealed, "{}"), "there is no key");
        let foreign = RunSettings { origin: origin(&other), ..settings.clone() };
        assert!(is_own(&other, "s", &foreign, "{}") && !is_own(&own, "s", &foreign, "{}"));
        for wrong in [None, Some(String::new()), Some("0é".to_owned()), Some("+1".repeat(32))] {
            assert!(!is_own(&own, "s", &RunSettings { origin: wrong, ..settings.clone() }, "{}"));
        }
        assert_eq!(pseudonym(&own, "ann"), pseudonym(&own, "ann"));
        assert_ne!(pseudonym(&own, "ann"), pseudonym(&own, "ben"));
        assert_ne!(pseudonym(&own, "ann"), pseudonym(&other, "ann"), "another key");
        let key = home.path().join("own/bcc-script/sessions.key");
        assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
