//! Where a session store is: a file, or a database.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_store::contract::Store;
use bcc_store::copying::StoreCopying;
use bcc_store::error::StoreError;
#[cfg(feature = "postgres")]
use bcc_store::postgres::store::PostgresStore;
use bcc_store::sqlite::open::{open, open_read_only};
#[cfg(not(feature = "postgres"))]
use bcc_store::sqlite::store::SqliteStore;

use crate::error::EngineError;
use crate::project::absolute;

/// The place of a session store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Database(DatabaseUrl),
}

/// The URL of a database. It may have a password, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The URL, with its password.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else { return formatter.write_str("postgres://…") };
        // Parameters may have a password as well, and a password may have any character: what is before the last `@` is not shown.
        let without_parameters = |place: &str| place.split(['?', '#']).next().unwrap_or_default().to_owned();
        match rest.rsplit_once('@') {
            None => write!(formatter, "{scheme}://{}", without_parameters(rest)),
            Some((user, place)) => {
                let user = user.split([':', '?', '#', '/']).next().unwrap_or_default();
                write!(formatter, "{scheme}://{user}@{}", without_parameters(place))
            }
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl StorePlace {
    /// The place that a person gave: a URL that starts with `postgres://` or `postgresql://`, or a path.
    pub fn of(given: &Path) -> Self {
        let url = given.to_str().map(str::trim).and_then(|url| url.split_once("://"));
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-'))
        };
        match url.filter(|(scheme, _)| is_scheme(scheme)) {
            // One of another kind may have a password, too, and is refused when it is opened.
            Some((scheme, rest)) => Self::Database(DatabaseUrl(format!("{}://{rest}", scheme.to_ascii_lowercase()))),
            None => Self::File(absolute(given)),
        }
    }

    /// The file of the store, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Database(_) => None,
        }
    }

    /// Whether the file of the store exists. A database is asked when it is used.
    pub fn exists(&self) -> bool {
        self.file().is_none_or(Path::exists)
    }

    /// How it is named with `--store`, without a password.
    pub fn named(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Database(url) => PathBuf::from(url.to_string()),
        }
    }

    /// Opens the store, which is created if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open(&self) -> Result<Arc<dyn Store>, EngineError> {
        match self {
            Self::File(path) => Ok(Arc::new(open(path)?)),
            Self::Database(url) => database(url).map(|store| store as Arc<dyn Store>),
        }
    }

    /// The layout of a database, 0 if there is no store yet, and the newest one that this version knows; none for a file. Changes nothing.
    ///
    /// # Errors
    /// Those of the store.
    #[cfg_attr(not(feature = "postgres"), allow(clippy::unused_async, reason = "without databases, nothing is asked"))]
    pub async fn layouts(&self) -> Result<Option<(u32, u32)>, EngineError> {
        let Self::Database(url) = self else { return Ok(None) };
        #[cfg(feature = "postgres")]
        return Ok(Some(database(url)?.layouts().await?));
        #[cfg(not(feature = "postgres"))]
        return database(url).map(|_| None);
    }

    /// Opens the store to copy it. Its file may be read-only, and none is created. One of an earlier release is migrated.
    ///
    /// # Errors
    /// Those of the store; `Usage` if there is none.
    pub fn open_to_copy_from(&self) -> Result<Arc<dyn StoreCopying>, EngineError> {
        let Self::File(path) = self else { return self.open_to_copy_into() };
        let read_only = match open_read_only(path) {
            Err(StoreError::Missing { .. }) => {
                let shown = path.display();
                return Err(EngineError::usage(bcc_lang::message::msg!("there is no store at {shown}")));
            }
            read_only => read_only,
        };
        // Where sessions can be locked, they are.
        match (open(path), read_only) {
            (Err(StoreError::ReadOnly { .. } | StoreError::Denied { .. }), read_only) => Ok(Arc::new(read_only?)),
            (writable, _) => Ok(Arc::new(writable?)),
        }
    }

    /// Opens the store to copy another one into it. It is created if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open_to_copy_into(&self) -> Result<Arc<dyn StoreCopying>, EngineError> {
        match self {
            Self::File(path) => Ok(Arc::new(open(path)?)),
            Self::Database(url) => database(url).map(|store| store as Arc<dyn StoreCopying>),
        }
    }

    /// Opens the store for a process with many sessions.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open_shared(&self) -> Result<Arc<dyn Store>, EngineError> {
        match self {
            Self::File(path) => Ok(Arc::new(open(path)?.with_group_commits()?)),
            Self::Database(url) => shared_database(url),
        }
    }

    /// Opens the store for reading, so that no file is created. None if the file is not a complete store, because the process that
    /// created it was killed.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open_for_reading(&self) -> Result<Option<Arc<dyn Store>>, EngineError> {
        let path = match self {
            Self::File(path) => path,
            Self::Database(url) => return database(url).map(|store| Some(store as Arc<dyn Store>)),
        };
        match open_read_only(path) {
            Err(StoreError::Missing { .. }) => Ok(None),
            // A store of an earlier release is migrated, if possible.
            Err(outdated @ StoreError::Outdated { .. }) => Ok(Some(Arc::new(open(path).map_err(|_| outdated)?))),
            opened => Ok(Some(Arc::new(opened?))),
        }
    }
}

#[cfg(feature = "postgres")]
fn database(url: &DatabaseUrl) -> Result<Arc<PostgresStore>, EngineError> {
    Ok(Arc::new(PostgresStore::new(url.expose())?))
}

/// The same for a process with many sessions.
#[cfg(feature = "postgres")]
fn shared_database(url: &DatabaseUrl) -> Result<Arc<dyn Store>, EngineError> {
    Ok(Arc::new(PostgresStore::new(url.expose())?.with_many_sessions()))
}

#[cfg(not(feature = "postgres"))]
fn shared_database(url: &DatabaseUrl) -> Result<Arc<dyn Store>, EngineError> {
    database(url).map(|store| store as Arc<dyn Store>)
}

#[cfg(not(feature = "postgres"))]
fn database(url: &DatabaseUrl) -> Result<Arc<SqliteStore>, EngineError> {
    let url = url.to_string();
    Err(EngineError::usage(bcc_lang::message::msg!("the store {url} cannot be used: this build has no PostgreSQL"))
        .with_help("build it with the feature `postgres`, or specify a file with `--store`"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::StorePlace;

    #[test]
    fn the_password_of_a_database_is_not_shown() {
        for (given, shown) in [
            ("postgres://u:geheim@host:5432/db?password=geheim", "postgres://u@host:5432/db"),
            ("postgresql://u:ge@heim@host/db", "postgresql://u@host/db"),
            ("postgres://u:ge?heim@host:1/db", "postgres://u@host:1/db"),
            ("postgres://u:ge#heim/x@host/db?sslmode=require", "postgres://u@host/db"),
            ("POSTGRES://u:geheim@host/db", "postgres://u@host/db"),
            (" Postgresql://u:geheim@host/db", "postgresql://u@host/db"),
            ("postgresql+asyncpg://u:geheim@host/db", "postgresql+asyncpg://u@host/db"),
            ("mysql://u:geheim@host/db", "mysql://u@host/db"),
            ("postgres://host/db?user=u&password=geheim", "postgres://host/db"),
            ("postgres://%2Frun%2Fpostgresql/db", "postgres://%2Frun%2Fpostgresql/db"),
        ] {
            let place = StorePlace::of(Path::new(given));
            assert_eq!(place.named(), Path::new(shown));
            assert!(!format!("{place:?}").contains("heim"), "{place:?}");
            assert!(place.file().is_none() && place.exists());
        }
        assert!(StorePlace::of(Path::new("postgres.db")).file().is_some());
        assert!(StorePlace::of(Path::new("./a/b:c")).file().is_some());
    }
}
