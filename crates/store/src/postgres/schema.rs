//! The layouts of the store in a database, oldest first. A released one never changes.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use crate::error::StoreError;

/// Each changes the layout with its index to the next one.
const MIGRATIONS: &[&str] = &[
    concat!(include_str!("layout_1.sql"), include_str!("functions_1.sql")),
    include_str!("functions_2.sql"),
    include_str!("links_1.sql"),
    include_str!("lease_requests_1.sql"),
    include_str!("owners_1.sql"),
];

/// The key of the advisory lock of migrations.
const MIGRATION_LOCK: i64 = 0x6263_6373;

/// The layout that this version writes.
pub(crate) fn newest() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// The condition of a statement that writes: no newer release has changed the layout since this process connected. Otherwise, the
/// statement fails with [`StoreError::Newer`], and has no effect.
pub(crate) fn is_known() -> String {
    format!("bcc_script.knows_layout({})", newest())
}

/// A statement that writes with a function, and with this condition only.
pub(crate) fn if_known(sql: &str) -> String {
    format!("{sql} WHERE {}", is_known())
}

/// The layout of the database; 0 if it has none yet.
pub(crate) async fn layout(client: &Client) -> Result<u32, Error> {
    // Not with `to_regclass`, which may not yet know in a transaction what another one has just created.
    let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = 'bcc_script' AND c.relname = 'layout')";
    let rows = client.query_typed(sql, &[]).await?;
    let exists: bool = rows.first().map_or(Ok(false), |row| row.try_get(0))?;
    if !exists {
        return Ok(0);
    }
    let rows = client.query_typed("SELECT layout FROM bcc_script.layout", &[]).await?;
    let layout: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(u32::try_from(layout).unwrap_or(u32::MAX))
}

/// Brings the database to the newest layout. Any number of processes may do this at the same time. After a failure, or without the end,
/// the connection may be in a transaction.
///
/// Errors: [`StoreError::Newer`].
pub(crate) async fn migrate(client: &Client, store: &str) -> Result<Result<(), StoreError>, Error> {
    let known = newest();
    let mut found = layout(client).await?;
    if found < known {
        client.batch_execute("BEGIN").await?;
        apply(client).await?;
        client.batch_execute("COMMIT").await?;
        found = layout(client).await?;
    }
    Ok(match found > known {
        true => Err(StoreError::Newer { store: store.to_owned(), found, known }),
        false => Ok(()),
    })
}

/// Applies the migrations that are missing, in a transaction.
async fn apply(client: &Client) -> Result<(), Error> {
    client.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&MIGRATION_LOCK, Type::INT8)]).await?;
    // Another process may have done it meanwhile.
    let found = layout(client).await?;
    if found == 0 {
        let sql = "CREATE SCHEMA IF NOT EXISTS bcc_script; CREATE TABLE bcc_script.layout (layout bigint NOT NULL);
                   INSERT INTO bcc_script.layout VALUES (0)";
        client.batch_execute(sql).await?;
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        client.batch_execute(migration).await?;
        client.batch_execute("UPDATE bcc_script.layout SET layout = layout + 1").await?;
    }
    Ok(())
}
