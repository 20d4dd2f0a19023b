//! The links of a SQLite store.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::error::StoreError;
use crate::link_contract::LinkStore;
use crate::link_rows::{LinkRow, LinkTalkRow, TalkOutcome};
use crate::sqlite::error::Failure;
use crate::sqlite::read::all;
use crate::sqlite::readers::ReadSize;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::write::count;

const LINK: &str = "SELECT id, token_sha256, created_at, expires_at, revoked_at, body,
    (SELECT count(*) FROM talk WHERE talk.link = link.id) FROM link";

const TALK: &str = "SELECT link, secret_sha256, session, began_at, consent, is_started, withdrawn_at FROM talk";

fn link_row(row: &Row<'_>) -> rusqlite::Result<LinkRow> {
    Ok(LinkRow {
        id: row.get(0)?,
        token_sha256: row.get(1)?,
        created_at: row.get(2)?,
        expires_at: row.get(3)?,
        revoked_at: row.get(4)?,
        body: row.get(5)?,
        talks: count(row, 6)?,
    })
}

fn talk_row(row: &Row<'_>) -> rusqlite::Result<LinkTalkRow> {
    Ok(LinkTalkRow {
        link: row.get(0)?,
        secret_sha256: row.get(1)?,
        session: row.get(2)?,
        began_at: row.get(3)?,
        consent: row.get(4)?,
        is_started: row.get(5)?,
        withdrawn_at: row.get(6)?,
    })
}

fn talk(connection: &Connection, link: &str, secret: &str) -> rusqlite::Result<Option<LinkTalkRow>> {
    let sql = format!("{TALK} WHERE link = ? AND secret_sha256 = ?");
    connection.prepare_cached(&sql)?.query_row([link, secret], talk_row).optional()
}

fn link_of(connection: &Connection, id: &str) -> rusqlite::Result<Option<LinkRow>> {
    connection.prepare_cached(&format!("{LINK} WHERE id = ?"))?.query_row([id], link_row).optional()
}

fn create(transaction: &Transaction<'_>, link: &LinkRow) -> Result<bool, Failure> {
    let sql = "INSERT INTO link (id, token_sha256, created_at, expires_at, revoked_at, body) VALUES (?, ?, ?, ?, ?, ?)
               ON CONFLICT DO NOTHING";
    let LinkRow { id, token_sha256, created_at, expires_at, revoked_at, body, .. } = link;
    let parameters = params![id, token_sha256, created_at, expires_at, revoked_at, body];
    Ok(transaction.prepare_cached(sql)?.execute(parameters)? > 0)
}

fn revoke(transaction: &Transaction<'_>, link: &str, at: &str) -> Result<bool, Failure> {
    let sql = "UPDATE link SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?";
    Ok(transaction.prepare_cached(sql)?.execute([at, link])? > 0)
}

/// In one transaction, so that of two attempts the second one sees the first.
fn start(transaction: &Transaction<'_>, new: &LinkTalkRow, limit: Option<u64>) -> Result<TalkOutcome, Failure> {
    if let Some(earlier) = talk(transaction, &new.link, &new.secret_sha256)? {
        return Ok(TalkOutcome::Repeated(earlier));
    }
    let Some(link) = link_of(transaction, &new.link)?.filter(|link| link.revoked_at.is_none()) else {
        return Ok(TalkOutcome::Closed);
    };
    if limit.is_some_and(|limit| link.talks >= limit) {
        return Ok(TalkOutcome::UsedUp);
    }
    insert_talk(transaction, new)?;
    Ok(TalkOutcome::Begun)
}

fn insert_talk(transaction: &Transaction<'_>, new: &LinkTalkRow) -> rusqlite::Result<()> {
    let sql = "INSERT INTO talk (link, secret_sha256, session, began_at, consent, is_started, withdrawn_at)
               VALUES (?, ?, ?, ?, ?, ?, ?)";
    let LinkTalkRow { link, secret_sha256, session, began_at, consent, is_started, withdrawn_at } = new;
    let parameters = params![link, secret_sha256, session, began_at, consent, is_started, withdrawn_at];
    transaction.prepare_cached(sql)?.execute(parameters)?;
    Ok(())
}

/// Writes a link as it was copied, with conversations. False if some of it was left out.
pub(crate) fn put_link(transaction: &Transaction<'_>, link: &LinkRow, talks: &[LinkTalkRow]) -> Result<bool, Failure> {
    create(transaction, link)?;
    if link_of(transaction, &link.id)?.is_none_or(|there| there.token_sha256 != link.token_sha256) {
        return Ok(false);
    }
    if let Some(at) = &link.revoked_at {
        revoke(transaction, &link.id, at)?;
    }
    let mut is_complete = true;
    for new in talks {
        match talk(transaction, &link.id, &new.secret_sha256)? {
            None => insert_talk(transaction, new)?,
            Some(there) if there.session == new.session => update(transaction, new)?,
            Some(_) => is_complete = false,
        }
    }
    Ok(is_complete)
}

fn update(transaction: &Transaction<'_>, talk: &LinkTalkRow) -> Result<(), Failure> {
    let sql = "UPDATE talk SET is_started = max(is_started, ?), withdrawn_at = coalesce(withdrawn_at, ?)
               WHERE link = ? AND secret_sha256 = ?";
    let parameters = params![talk.is_started, talk.withdrawn_at, talk.link, talk.secret_sha256];
    transaction.prepare_cached(sql)?.execute(parameters)?;
    Ok(())
}

#[async_trait]
impl LinkStore for SqliteStore {
    async fn create_link(&self, link: &LinkRow) -> Result<bool, StoreError> {
        let link = link.clone();
        self.run(move |file| file.write(|transaction| create(transaction, &link))).await
    }

    async fn links(&self) -> Result<Vec<LinkRow>, StoreError> {
        let sql = format!("{LINK} ORDER BY created_at DESC, id");
        self.read(ReadSize::Many, move |connection| all(connection, &sql, [], link_row)).await
    }

    async fn link_of_token(&self, sha256: &str) -> Result<Option<LinkRow>, StoreError> {
        let sha256 = sha256.to_owned();
        self.read(ReadSize::Few, move |connection| {
            let sql = format!("{LINK} WHERE token_sha256 = ?");
            connection.prepare_cached(&sql)?.query_row([sha256], link_row).optional()
        })
        .await
    }

    async fn revoke_link(&self, link: &str, at: &str) -> Result<bool, StoreError> {
        let (link, at) = (link.to_owned(), at.to_owned());
        self.run(move |file| file.write(|transaction| revoke(transaction, &link, &at))).await
    }

    async fn start_talk(&self, talk: &LinkTalkRow, limit: Option<u64>) -> Result<TalkOutcome, StoreError> {
        let talk = talk.clone();
        self.run(move |file| file.write(|transaction| start(transaction, &talk, limit))).await
    }

    async fn talk(&self, link: &str, secret_sha256: &str) -> Result<Option<LinkTalkRow>, StoreError> {
        let (link, secret) = (link.to_owned(), secret_sha256.to_owned());
        self.read(ReadSize::Few, move |connection| talk(connection, &link, &secret)).await
    }

    async fn talks(&self, link: &str) -> Result<Vec<LinkTalkRow>, StoreError> {
        let link = link.to_owned();
        self.read(ReadSize::Many, move |connection| {
            all(connection, &format!("{TALK} WHERE link = ? ORDER BY began_at, secret_sha256"), [link], talk_row)
        })
        .await
    }

    async fn update_talk(&self, talk: &LinkTalkRow) -> Result<(), StoreError> {
        let talk = talk.clone();
        self.run(move |file| file.write(|transaction| update(transaction, &talk))).await
    }

    async fn forget_user(&self, user: &str) -> Result<(), StoreError> {
        let user = user.to_owned();
        self.run(move |file| {
            file.with_secure_delete(|| {
                file.write(|transaction| {
                    let sql = "DELETE FROM user_variable WHERE user = ?";
                    transaction.prepare_cached(sql)?.execute([&user])?;
                    Ok(())
                })
            })
        })
        .await
    }
}
