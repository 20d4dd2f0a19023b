//! New databases on the PostgreSQL server of the tests (`.ci/postgres/run`).

use tokio_postgres::{Client, Config, NoTls};

/// The URL of the server, if there is one: `BCC_TEST_POSTGRES`. `BCC_REQUIRE_POSTGRES` says that there must be.
pub fn server() -> Option<String> {
    let url = std::env::var("BCC_TEST_POSTGRES").ok();
    assert!(url.is_some() || std::env::var_os("BCC_REQUIRE_POSTGRES").is_none(), "BCC_TEST_POSTGRES is not set");
    url
}

/// A connection to a database.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = url.parse::<Config>().unwrap().connect(NoTls).await.unwrap();
    // It ends when its server is killed.
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// The URL of a new database on this server.
pub async fn new_database(server: &str) -> String {
    let name = format!("bcc_{}", uuid::Uuid::new_v4().simple());
    connect(server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let (start, _) = server.rsplit_once('/').unwrap();
    format!("{start}/{name}")
}

/// The same database through PgBouncer.
pub fn pooled(url: &str) -> String {
    let (start, name) = url.rsplit_once('/').unwrap();
    format!("{start}:6432/{name}")
}
