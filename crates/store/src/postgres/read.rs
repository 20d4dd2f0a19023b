//! Reads rows.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::postgres::client::Parameter;
use crate::postgres::text::{TextColumn, TextParameter};
use crate::rows::{
    CellRow, CounterRow, FrameRow, JournalRow, MessageRow, OpenRequest, RequestRow, SessionCursor, SessionFilter,
    SessionRow, VariableRow,
};

/// The columns of a session, in the order of [`session_row`].
pub(crate) const SESSION: &str =
    "SELECT s.id, s.user_name, h.status, s.script, s.script_name, s.script_sha256, s.started_at,
    h.updated_at, h.revision, h.last_seq, h.answers, h.location, s.settings, s.manifest, h.head
    FROM bcc_script.session AS s JOIN bcc_script.head AS h ON h.session = s.key";

/// The columns of a request, in the order of [`request_row`].
pub(crate) const REQUEST: &str =
    "r.id, r.kind, r.prompt, r.schema, r.decisions, r.approvers, r.due_at, r.opened_at, r.answered_at";

/// The columns of a variable, in the order of [`variable_row`].
pub(crate) const VARIABLE: &str = "v.scope, v.path, v.name, v.value, v.source, v.round, v.at, v.sensitive";

pub(crate) type RowResult<T> = Result<T, tokio_postgres::Error>;

pub(crate) fn text(row: &Row, column: usize) -> RowResult<String> {
    row.try_get::<_, TextColumn>(column).map(|text| text.0)
}

pub(crate) fn optional_text(row: &Row, column: usize) -> RowResult<Option<String>> {
    Ok(row.try_get::<_, Option<TextColumn>>(column)?.map(|text| text.0))
}

/// A number that is never negative.
pub(crate) fn count(row: &Row, column: usize) -> RowResult<u64> {
    row.try_get::<_, i64>(column).map(i64::unsigned_abs)
}

/// A limit or the number of a row, as a number of the database.
pub(crate) fn limit(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn round(number: Option<i64>) -> Option<u32> {
    number.map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

pub(crate) fn session_row(row: &Row) -> RowResult<SessionRow> {
    Ok(SessionRow {
        id: text(row, 0)?,
        user: text(row, 1)?,
        status: text(row, 2)?,
        script: text(row, 3)?,
        script_name: optional_text(row, 4)?,
        script_sha256: text(row, 5)?,
        started_at: text(row, 6)?,
        updated_at: text(row, 7)?,
        revision: count(row, 8)?,
        last_seq: count(row, 9)?,
        answers: count(row, 10)?,
        location: text(row, 11)?,
        settings: text(row, 12)?,
        manifest: text(row, 13)?,
        head: text(row, 14)?,
    })
}

pub(crate) fn frame_row(row: &Row) -> RowResult<FrameRow> {
    Ok(FrameRow { key: text(row, 0)?, state: text(row, 1)? })
}

pub(crate) fn variable_row(row: &Row) -> RowResult<VariableRow> {
    Ok(VariableRow {
        scope: text(row, 0)?,
        path: text(row, 1)?,
        name: text(row, 2)?,
        value: text(row, 3)?,
        source: text(row, 4)?,
        round: round(row.try_get(5)?),
        at: text(row, 6)?,
        sensitive: row.try_get(7)?,
    })
}

pub(crate) fn counter_row(row: &Row) -> RowResult<CounterRow> {
    Ok(CounterRow { name: text(row, 0)?, count: count(row, 1)? })
}

pub(crate) fn journal_row(row: &Row) -> RowResult<JournalRow> {
    Ok(JournalRow { seq: count(row, 0)?, at: text(row, 1)?, kind: text(row, 2)?, body: text(row, 3)? })
}

pub(crate) fn message_row(row: &Row) -> RowResult<MessageRow> {
    Ok(MessageRow {
        number: count(row, 0)?,
        role: text(row, 1)?,
        text: text(row, 2)?,
        at: text(row, 3)?,
        action_id: text(row, 4)?,
        round: round(row.try_get(5)?).unwrap_or_default(),
        message_id: text(row, 6)?,
    })
}

pub(crate) fn cell_row(row: &Row) -> RowResult<CellRow> {
    Ok(CellRow { number: count(row, 0)?, id: text(row, 1)?, body: text(row, 2)? })
}

pub(crate) fn request_row(row: &Row) -> RowResult<RequestRow> {
    Ok(RequestRow {
        id: text(row, 0)?,
        kind: text(row, 1)?,
        prompt: text(row, 2)?,
        schema: optional_text(row, 3)?,
        decisions: optional_text(row, 4)?,
        approvers: optional_text(row, 5)?,
        due_at: optional_text(row, 6)?,
        opened_at: text(row, 7)?,
        answered_at: optional_text(row, 8)?,
    })
}

/// A row of a request and the id of its session.
pub(crate) fn open_request(row: &Row) -> RowResult<OpenRequest> {
    Ok(OpenRequest { session: text(row, 9)?, request: request_row(row)? })
}

/// The statement for a page of sessions, and its parameters.
pub(crate) struct PageQuery<'q> {
    pub(crate) sql: String,
    texts: Vec<TextParameter<'q>>,
    limit: i64,
}

impl<'q> PageQuery<'q> {
    pub(crate) fn new(filter: &'q SessionFilter, after: Option<&'q SessionCursor>, at_most: usize) -> Self {
        let (mut conditions, mut texts) = (vec!["true".to_owned()], vec![]);
        let mut add = |condition: &str, values: &[&'q str]| {
            let mut condition = condition.to_owned();
            for value in values {
                texts.push(TextParameter(value));
                condition = condition.replacen('?', &format!("${}", texts.len()), 1);
            }
            conditions.push(condition);
        };
        if let Some(id) = &filter.id {
            // The index has the first characters of each id.
            add("left(s.id, 100) >= left(?, 100)", &[id]);
            add("left(s.id, 100) <= left(?, 100) || chr(1114111)", &[id]);
            add("starts_with(s.id, ?)", &[id]);
        }
        for (column, value) in
            [("s.script", &filter.script), ("h.status", &filter.status), ("s.user_name", &filter.user)]
        {
            if let Some(value) = value {
                add(&format!("{column} = ?"), &[value]);
            }
        }
        if let Some(since) = &filter.since {
            add("h.period >= left(?, 15) AND rtrim(h.updated_at, 'Z') >= rtrim(?, 'Z')", &[since, since]);
        }
        if let Some(SessionCursor { updated_at, id }) = after {
            add(
                "h.period <= left(?, 15) AND (rtrim(h.updated_at, 'Z') < rtrim(?, 'Z')
                 OR (rtrim(h.updated_at, 'Z') = rtrim(?, 'Z') AND s.id > ?))",
                &[updated_at, updated_at, updated_at, id],
            );
        }
        let (conditions, place) = (conditions.join(" AND "), texts.len() + 1);
        let order = "ORDER BY h.period DESC, rtrim(h.updated_at, 'Z') DESC, s.id";
        let sql = format!("{SESSION} WHERE {conditions} {order} LIMIT ${place}");
        Self { sql, texts, limit: limit(at_most) }
    }

    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        let texts = self.texts.iter().map(|text| (text as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT));
        texts.chain([(&self.limit as &(dyn tokio_postgres::types::ToSql + Sync), Type::INT8)]).collect()
    }
}
