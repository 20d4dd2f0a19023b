//! The links of a PostgreSQL store.

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::StoreError;
use crate::link_contract::LinkStore;
use crate::link_rows::{LinkRow, LinkTalkRow, TalkOutcome};
use crate::postgres::error::Concern;
use crate::postgres::read::{RowResult, count, limit as number, optional_text, text};
use crate::postgres::schema::{if_known, is_known};
use crate::postgres::store::PostgresStore;
use crate::postgres::text::TextParameter;

const LINK: &str = "SELECT id, token_sha256, created_at, expires_at, revoked_at, body,
    (SELECT count(*) FROM bcc_script.talk WHERE talk.link = link.id) FROM bcc_script.link";

const TALK: &str =
    "SELECT link, secret_sha256, session, began_at, consent, is_started, withdrawn_at FROM bcc_script.talk";

fn link_row(row: &Row) -> RowResult<LinkRow> {
    Ok(LinkRow {
        id: text(row, 0)?,
        token_sha256: text(row, 1)?,
        created_at: text(row, 2)?,
        expires_at: optional_text(row, 3)?,
        revoked_at: optional_text(row, 4)?,
        body: text(row, 5)?,
        talks: count(row, 6)?,
    })
}

fn talk_row(row: &Row) -> RowResult<LinkTalkRow> {
    Ok(LinkTalkRow {
        link: text(row, 0)?,
        secret_sha256: text(row, 1)?,
        session: text(row, 2)?,
        began_at: text(row, 3)?,
        consent: optional_text(row, 4)?,
        is_started: row.try_get(5)?,
        withdrawn_at: optional_text(row, 6)?,
    })
}

#[async_trait]
impl LinkStore for PostgresStore {
    async fn create_link(&self, link: &LinkRow) -> Result<bool, StoreError> {
        let sql = &format!(
            "INSERT INTO bcc_script.link (id, token_sha256, created_at, expires_at, revoked_at, body)
            SELECT $1, $2, $3, $4, $5, $6 WHERE {} ON CONFLICT DO NOTHING RETURNING id",
            is_known()
        );
        let (expires_at, revoked_at) = (link.expires_at.as_deref(), link.revoked_at.as_deref());
        let (expires_at, revoked_at) = (expires_at.map(TextParameter), revoked_at.map(TextParameter));
        let parameters = &[
            (&TextParameter(&link.id) as _, Type::TEXT),
            (&TextParameter(&link.token_sha256) as _, Type::TEXT),
            (&TextParameter(&link.created_at) as _, Type::TEXT),
            (&expires_at as _, Type::TEXT),
            (&revoked_at as _, Type::TEXT),
            (&TextParameter(&link.body) as _, Type::TEXT),
        ];
        Ok(self.one(sql, parameters, Concern::default(), |row| text(row, 0)).await?.is_some())
    }

    async fn links(&self) -> Result<Vec<LinkRow>, StoreError> {
        self.all(&format!("{LINK} ORDER BY created_at DESC, id"), &[], link_row).await
    }

    async fn link_of_token(&self, sha256: &str) -> Result<Option<LinkRow>, StoreError> {
        let sql = format!("{LINK} WHERE token_sha256 = $1");
        self.one(&sql, &[(&TextParameter(sha256), Type::TEXT)], Concern::default(), link_row).await
    }

    async fn revoke_link(&self, link: &str, at: &str) -> Result<bool, StoreError> {
        let sql = &format!(
            "UPDATE bcc_script.link SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 AND {} RETURNING id",
            is_known()
        );
        let parameters = &[(&TextParameter(link) as _, Type::TEXT), (&TextParameter(at) as _, Type::TEXT)];
        Ok(self.one(sql, parameters, Concern::default(), |row| text(row, 0)).await?.is_some())
    }

    async fn start_talk(&self, talk: &LinkTalkRow, limit: Option<u64>) -> Result<TalkOutcome, StoreError> {
        let sql = &if_known("SELECT bcc_script.start_talk($1, $2, $3, $4, $5, $6, $7, $8)");
        let (consent, withdrawn_at) = (talk.consent.as_deref(), talk.withdrawn_at.as_deref());
        let (consent, withdrawn_at) = (consent.map(TextParameter), withdrawn_at.map(TextParameter));
        let limit = limit.map(number);
        let parameters = &[
            (&TextParameter(&talk.link) as _, Type::TEXT),
            (&TextParameter(&talk.secret_sha256) as _, Type::TEXT),
            (&TextParameter(&talk.session) as _, Type::TEXT),
            (&TextParameter(&talk.began_at) as _, Type::TEXT),
            (&consent as _, Type::TEXT),
            (&talk.is_started as _, Type::BOOL),
            (&withdrawn_at as _, Type::TEXT),
            (&limit as _, Type::INT8),
        ];
        let outcome = self.one(sql, parameters, Concern::default(), |row| text(row, 0)).await?;
        Ok(match outcome.as_deref() {
            Some("begun") => TalkOutcome::Begun,
            Some("repeated") => match self.talk(&talk.link, &talk.secret_sha256).await? {
                Some(earlier) => TalkOutcome::Repeated(earlier),
                None => TalkOutcome::Closed,
            },
            Some("used_up") => TalkOutcome::UsedUp,
            _ => TalkOutcome::Closed,
        })
    }

    async fn talk(&self, link: &str, secret_sha256: &str) -> Result<Option<LinkTalkRow>, StoreError> {
        let sql = format!("{TALK} WHERE link = $1 AND secret_sha256 = $2");
        let parameters = &[(&TextParameter(link) as _, Type::TEXT), (&TextParameter(secret_sha256) as _, Type::TEXT)];
        self.one(&sql, parameters, Concern::default(), talk_row).await
    }

    async fn talks(&self, link: &str) -> Result<Vec<LinkTalkRow>, StoreError> {
        let sql = format!("{TALK} WHERE link = $1 ORDER BY began_at, secret_sha256");
        self.all(&sql, &[(&TextParameter(link), Type::TEXT)], talk_row).await
    }

    async fn update_talk(&self, talk: &LinkTalkRow) -> Result<(), StoreError> {
        let sql = &format!(
            "UPDATE bcc_script.talk SET is_started = is_started OR $3, withdrawn_at = coalesce(withdrawn_at, $4)
            WHERE link = $1 AND secret_sha256 = $2 AND {}",
            is_known()
        );
        let withdrawn_at = talk.withdrawn_at.as_deref().map(TextParameter);
        let parameters = &[
            (&TextParameter(&talk.link) as _, Type::TEXT),
            (&TextParameter(&talk.secret_sha256) as _, Type::TEXT),
            (&talk.is_started as _, Type::BOOL),
            (&withdrawn_at as _, Type::TEXT),
        ];
        self.database.rows(sql, parameters, Concern::default()).await?;
        Ok(())
    }

    async fn forget_user(&self, user: &str) -> Result<(), StoreError> {
        let sql = &format!("DELETE FROM bcc_script.user_variable WHERE user_name = $1 AND {}", is_known());
        self.database.rows(sql, &[(&TextParameter(user), Type::TEXT)], Concern::default()).await?;
        Ok(())
    }
}
