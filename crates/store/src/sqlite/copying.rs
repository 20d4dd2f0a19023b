//! Reads and writes copies of sessions and plans.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, Row, Transaction, params};
use tokio::sync::mpsc::{Receiver, channel};

use crate::contract::Store;
use crate::copying::{HiddenRows, KeptEdit, PlanCopy, SessionCopy, StoreCopying};
use crate::error::StoreError;
use crate::link_rows::{LinkRow, LinkTalkRow};
use crate::plan_contract::PlanStore;
use crate::rows::{DocumentRow, TextRow, VariableRow};
use crate::sqlite::blobs::Blobs;
use crate::sqlite::error::{Failure, thread_ended};
use crate::sqlite::links::put_link;
use crate::sqlite::plans::{put_plan, sought};
use crate::sqlite::read::{all, key_of};
use crate::sqlite::readers::ReadSize;
use crate::sqlite::replaced::{history, insert_history};
use crate::sqlite::store::SqliteStore;
use crate::sqlite::write::{Count, count, create, put_newer_variables};

fn hidden(connection: &Connection, session: i64) -> rusqlite::Result<HiddenRows> {
    let documents = "SELECT d.sha256, d.text FROM session_document AS s JOIN document AS d ON d.key = s.document
                     WHERE s.session = ? ORDER BY d.sha256";
    // Among them are the parts of large rows: which of them are texts of their own is not stored.
    let texts = "SELECT b.sha256 FROM session_blob AS s JOIN blob AS b ON b.key = s.blob
                 WHERE s.session = ? ORDER BY b.sha256";
    Ok(HiddenRows {
        documents: all(connection, documents, [session], |row| {
            Ok(DocumentRow { sha256: row.get(0)?, text: row.get(1)? })
        })?,
        answers: all(connection, "SELECT id FROM answer WHERE session = ? ORDER BY id", [session], |row| row.get(0))?,
        texts: all(connection, texts, [session], |row| row.get(0))?,
        replaced: history(connection, session)?,
    })
}

/// A text of a session that is copied, or that there are no more.
type NextText = Option<TextRow>;

/// Writes a session. Its texts arrive one by one; without their end, nothing is written.
fn put(
    transaction: &Transaction<'_>,
    store: &str,
    copy: &SessionCopy,
    texts: &mut Receiver<NextText>,
) -> Result<(), Failure> {
    create(transaction, store, &copy.new_row(), &copy.hidden.documents, &copy.rows)?;
    let id = copy.row.id.as_str();
    let Some(session) = key_of(transaction, id)? else {
        return Err(StoreError::NotFound { store: store.to_owned(), id: id.to_owned() }.into());
    };
    let sql = "UPDATE head SET revision = ? WHERE session = ?";
    transaction.prepare_cached(sql)?.execute(params![Count(copy.row.revision), session])?;
    insert_history(transaction, session, &copy.hidden.replaced)?;
    let blobs = Blobs { connection: transaction };
    loop {
        match texts.blocking_recv() {
            Some(Some(text)) => blobs.put_text(session, &text)?,
            Some(None) => return Ok(()),
            // They cannot be read, which is reported.
            None => return Err(thread_ended(store).into()),
        }
    }
}

/// A copy is written by a process that does nothing else, so its other writes block the thread.
#[async_trait]
impl StoreCopying for SqliteStore {
    async fn hidden_rows(&self, id: &str) -> Result<HiddenRows, StoreError> {
        self.within(id, ReadSize::Many, hidden).await
    }

    async fn put_session(&self, copy: SessionCopy, from: &dyn Store) -> Result<(), StoreError> {
        let hashes = copy.hidden.texts.clone();
        let id = copy.row.id.clone();
        // One text waits while another one is written.
        let (sender, mut receiver) = channel::<NextText>(1);
        let file = Arc::clone(&self.file);
        let writing =
            self.threads.run(move || file.write(|transaction| put(transaction, &file.store, &copy, &mut receiver)));
        let reading = async move {
            for sha256 in hashes {
                let Some(text) = from.text(&id, &sha256).await? else { continue };
                // The writer has failed, and says why.
                if sender.send(Some(TextRow { sha256, text })).await.is_err() {
                    return Ok(());
                }
            }
            let _ = sender.send(None).await;
            Ok(())
        };
        let (written, read): (_, Result<(), StoreError>) = tokio::join!(writing, reading);
        read.and(written)
    }

    async fn users(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT user FROM user_variable UNION SELECT user FROM plan ORDER BY 1";
        self.read(ReadSize::Many, |connection| all(connection, sql, [], |row| row.get(0))).await
    }

    async fn put_user_variables(&self, user: &str, rows: &[VariableRow]) -> Result<(), StoreError> {
        self.file.write(|transaction| put_newer_variables(transaction, user, rows))
    }

    async fn plan_copy(&self, plan: u64) -> Result<Option<PlanCopy>, StoreError> {
        let Some(stored) = self.plan_tasks(plan).await? else { return Ok(None) };
        let sql = "SELECT number, key, result FROM plan_edit WHERE plan = ? ORDER BY number";
        let edit = |row: &Row<'_>| Ok(KeptEdit { number: count(row, 0)?, key: row.get(1)?, result: row.get(2)? });
        let edits = self.read(ReadSize::Many, move |connection| all(connection, sql, [sought(plan)], edit)).await?;
        Ok(Some(PlanCopy { stored, edits }))
    }

    async fn put_plan(&self, copy: &PlanCopy) -> Result<bool, StoreError> {
        self.file.write(|transaction| put_plan(transaction, &self.file.store, copy))
    }

    async fn put_link(&self, link: &LinkRow, talks: &[LinkTalkRow]) -> Result<bool, StoreError> {
        self.file.write(|transaction| put_link(transaction, link, talks))
    }
}
