//! TLS to a PostgreSQL server: its certificate is verified, and `sslmode=require` is a condition.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ROOT;
use crate::database::server;
use crate::databases::Cable;
use crate::process::{Finished, Home, Running};

/// A server with TLS, which is stopped on drop.
struct TlsDatabase {
    place: PathBuf,
    port: u16,
    _directory: Home,
}

impl TlsDatabase {
    fn start() -> Self {
        let directory = Home::new();
        let place = directory.path().join("database");
        // The server runs as another user.
        for above in directory.path().ancestors().take(2) {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            let _ = std::fs::set_permissions(above, mode);
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let database = Self { place, port, _directory: directory };
        database.run(&["--start-tls", database.place.to_str().unwrap(), &port.to_string()]);
        database
    }

    fn run(&self, arguments: &[&str]) {
        let script = Path::new(ROOT).join(".ci/postgres/run");
        assert!(Command::new(script).args(arguments).status().unwrap().success(), "{arguments:?}");
    }

    fn certificate(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }
}

impl Drop for TlsDatabase {
    fn drop(&mut self) {
        let script = Path::new(ROOT).join(".ci/postgres/run");
        let _ = Command::new(script).arg("--stop").arg(&self.place).status();
    }
}

/// Lists the sessions of a store, with the certificates in this file as those of the system.
fn list(store: &str, certificates: &Path) -> Finished {
    let home = Home::new();
    let mut command = home.command(["sessions", "list", "--store", store]);
    command.env("SSL_CERT_FILE", certificates);
    Running::start(command).finish()
}

#[test]
fn a_database_that_must_have_tls_is_used_only_with_a_certificate_that_is_trusted_and_fits() {
    let Some(plain) = server() else { return };
    let database = TlsDatabase::start();
    let (ca, other) = (database.certificate("ca.pem"), database.certificate("other_ca.pem"));
    let url = |host: &str| format!("postgres://postgres@{host}:{}/postgres?sslmode=require", database.port);
    let trusted = list(&url("localhost"), &ca);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    for (host, certificates) in [("localhost", &other), ("127.0.0.1", &ca)] {
        let refused = list(&url(host), certificates);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.err.contains("its certificate is not trusted, or is not one for this host"),
            "{host}: {}",
            refused.err
        );
    }
    // The other server of the tests has no TLS.
    let cable = Cable::to(&plain);
    let refused = list(&format!("{}?sslmode=require", cable.url(&plain)), &ca);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("the server has no TLS, which `sslmode` of its address requires"), "{}", refused.err);
    assert_eq!(list(&format!("{}?sslmode=prefer", cable.url(&plain)), &ca).code, Some(0));
}
