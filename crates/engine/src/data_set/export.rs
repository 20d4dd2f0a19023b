//! Exports the sessions of a filter as a data set.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use bcc_store::contract::Store;
use bcc_store::rows::{SessionFilter, SessionRow};
use bcc_store::session_pages::SessionPages;
use jiff::Timestamp;

use crate::clock::now;
use crate::data_set::catalog::VariableCatalog;
use crate::data_set::codebook::Codebook;
use crate::data_set::collect::InterviewReader;
use crate::data_set::columns::DataSetLayout;
use crate::data_set::file_names::{DistinctNames, file_name};
use crate::data_set::follow_ups::write_follow_ups;
use crate::data_set::interview::Interview;
use crate::data_set::participants::ParticipantNames;
use crate::data_set::project_file::ProjectWriter;
use crate::data_set::read_me::{ScriptSummary, read_me};
use crate::data_set::request::{DataSetFormat, DataSetReport, DataSetRequest, MAX_NAMED_FAILURES};
use crate::data_set::spool::InterviewSpool;
use crate::data_set::tables::TableFiles;
use crate::data_set::transcript::TranscriptText;
use crate::data_set::zip_file::zip_of;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::files::export_folder::{ExportFolder, FILE_LIST, FolderPlace, SeekableFile, examine_place};
use crate::settings::{continued_session, forked_session, repeats_answers, replays_recording};
use crate::stored_programs::StoredPrograms;

/// How often a session is read again that changes while it is read.
const MAX_READS: usize = 5;

/// The name of the description of the data set.
const READ_ME: &str = "README.md";

/// Writes the sessions of a filter into the folder `place`. What is there already is replaced only if it is an earlier export that
/// nobody has changed. If this fails, nothing is left of it.
///
/// # Errors
/// `Usage`: no session is selected, something else is at the place, or this build does not have the format. `Failed`: the folder
/// cannot be written, or no session can be read. The errors of a store that cannot be used.
pub async fn export_data_set(
    store: &dyn Store,
    environment: &Environment,
    request: &DataSetRequest,
    place: &Path,
) -> Result<DataSetReport, EngineError> {
    check_format(request.format)?;
    check_place(place)?;
    let mut export = DataSetExport::new(store, environment, request, place);
    let folder = export.folder().await?;
    // Again: writing it may have taken a while.
    check_place(place)?;
    export.written(folder.finish())?;
    Ok(export.report)
}

/// Writes the sessions of a filter as a data set into one file (ZIP) without a name, which exists as long as it is open. Until it is
/// complete, its parts are in a hidden folder in `directory`.
///
/// # Errors
/// As [`export_data_set`].
pub async fn export_data_set_file(
    store: &dyn Store,
    environment: &Environment,
    request: &DataSetRequest,
    directory: &Path,
) -> Result<(DataSetReport, SeekableFile), EngineError> {
    check_format(request.format)?;
    let place = directory.join("data-set");
    let mut export = DataSetExport::new(store, environment, request, &place);
    let folder = export.folder().await?;
    let file = export.written(zip_of(folder))?;
    Ok((export.report, file))
}

fn check_format(format: DataSetFormat) -> Result<(), EngineError> {
    if format == DataSetFormat::Parquet && !cfg!(feature = "parquet") {
        return Err(EngineError::usage("this build of bcc-script cannot write Parquet")
            .with_help("choose the format `csv` or `jsonl`, or build it with the feature `parquet`"));
    }
    Ok(())
}

/// Refuses a place at which something of somebody would be replaced.
fn check_place(place: &Path) -> Result<(), EngineError> {
    let shown = place.display();
    let help = "nothing was written; name a new folder, or remove this one";
    let message = match examine_place(place) {
        Ok(FolderPlace::Free | FolderPlace::Unchanged) => return Ok(()),
        Ok(FolderPlace::Foreign(name)) => msg!("{shown} has a file that is not part of an earlier export: {name}"),
        Ok(FolderPlace::Changed(name)) => {
            msg!("{shown} is an earlier export, in which this file was changed or removed: {name}")
        }
        Ok(FolderPlace::NoFolder) => msg!("{shown} is not a folder, but a data set needs one"),
        Err(error) => msg!("{shown} cannot be read: {error}"),
    };
    Err(EngineError::usage(message).with_help(help))
}

/// What is known of the selected sessions before any of them is read.
#[derive(Default)]
struct SelectedSessions {
    scripts: BTreeSet<String>,
    /// The ids of those that another one continues: it has everything that they had before the step from which it runs again.
    continued: HashSet<String>,
    /// The ids of those that give the answers of another one again.
    repeated: HashSet<String>,
}

impl SelectedSessions {
    async fn of(store: &dyn Store, filter: &SessionFilter) -> Result<Self, EngineError> {
        let mut selected = Self::default();
        let mut retries: HashMap<String, (String, String)> = HashMap::new();
        let mut sessions = SessionPages::new(store, filter.clone());
        while let Some(row) = sessions.next().await? {
            if repeats_answers(&row.settings) {
                selected.repeated.insert(row.id);
            } else if let Some(earlier) = continued_session(&row.settings) {
                retries.insert(row.id, (earlier, row.started_at));
            }
            selected.scripts.insert(row.script);
        }
        let first = |id: &str| {
            let mut first = id.to_owned();
            // The settings in a store of somebody else can name each other.
            for _ in 0..=retries.len() {
                let Some((earlier, _)) = retries.get(&first) else { break };
                first.clone_from(earlier);
            }
            first
        };
        let mut newest: BTreeMap<String, (&str, &str)> = BTreeMap::new();
        for (id, (_, started_at)) in &retries {
            let first = first(id);
            if selected.repeated.contains(&first) {
                selected.repeated.insert(id.clone());
                continue;
            }
            selected.continued.insert(first.clone());
            let counts = newest.entry(first).or_insert((started_at.as_str(), id.as_str()));
            *counts = (*counts).max((started_at.as_str(), id.as_str()));
        }
        selected.continued.extend(retries.keys().filter(|id| !selected.repeated.contains(*id)).cloned());
        for (_, id) in newest.values() {
            selected.continued.remove(*id);
        }
        Ok(selected)
    }
}

struct DataSetExport<'e> {
    store: &'e dyn Store,
    request: &'e DataSetRequest,
    place: &'e Path,
    programs: StoredPrograms,
    participants: ParticipantNames<'e>,
    created: Timestamp,
    report: DataSetReport,
}

impl<'e> DataSetExport<'e> {
    fn new(store: &'e dyn Store, environment: &'e Environment, request: &'e DataSetRequest, place: &'e Path) -> Self {
        Self {
            store,
            request,
            place,
            programs: StoredPrograms::default(),
            participants: ParticipantNames::new(environment),
            created: now(),
            report: DataSetReport::default(),
        }
    }

    /// Writes all files.
    async fn folder(&mut self) -> Result<ExportFolder, EngineError> {
        let selected = SelectedSessions::of(self.store, &self.request.filter).await?;
        if selected.scripts.is_empty() {
            return Err(EngineError::usage("no session is selected, and nothing was written")
                .with_help("`bcc-script sessions list` with the same filters shows which sessions there are"));
        }
        let mut folder = self.written(ExportFolder::start(self.place))?;
        let mut names = DistinctNames::with(&[READ_ME, FILE_LIST]);
        let mut summaries = Vec::new();
        for script in &selected.scripts {
            let name = names.take(&file_name(script));
            summaries.extend(self.script(&mut folder, script, &name, &selected).await?);
        }
        if self.report.sessions == 0 && self.report.failed == 0 {
            return Err(EngineError::usage("all selected sessions repeat another one, and nothing was written")
                .with_help("select the sessions that they repeat"));
        }
        if self.report.sessions == 0 {
            let error = EngineError::failed("none of the selected sessions can be read, and nothing was written");
            return Err(match self.report.failures.first() {
                Some((id, reason)) => error.with_help(msg!("session `{id}`: {reason}")),
                None => error,
            });
        }
        let text = read_me(self.request, &self.report, &summaries, self.created);
        self.written(folder.whole_file(READ_ME, text.as_bytes()))?;
        Ok(folder)
    }

    fn written<T>(&self, result: io::Result<T>) -> Result<T, EngineError> {
        result.map_err(|error| {
            let place = self.place.display();
            EngineError::failed(msg!("the data set cannot be written to {place}: {error}"))
                .with_help("nothing was left there; free some space or choose another folder, and try again")
        })
    }

    /// Writes the folder of one script; none if no session of it can be read.
    async fn script(
        &mut self,
        folder: &mut ExportFolder,
        script: &str,
        name: &str,
        selected: &SelectedSessions,
    ) -> Result<Option<ScriptSummary>, EngineError> {
        let mut catalog = VariableCatalog::default();
        let mut spool = self.written(InterviewSpool::new(folder))?;
        let filter = SessionFilter { script: Some(script.to_owned()), ..self.request.filter.clone() };
        let mut sessions = SessionPages::new(self.store, filter);
        while let Some(row) = sessions.next().await? {
            // The same person would count twice.
            if selected.repeated.contains(&row.id) {
                self.report.repeated += 1;
                continue;
            }
            if selected.continued.contains(&row.id) {
                self.report.continued += 1;
                continue;
            }
            let (is_fork, is_replay) = (forked_session(&row.settings).is_some(), replays_recording(&row.settings));
            match self.interview(row, &mut catalog).await {
                Ok(Some(interview)) => {
                    self.written(spool.add(&interview))?;
                    self.report.forks += u64::from(is_fork);
                    self.report.replays += u64::from(is_replay);
                }
                Ok(None) => {}
                Err((
                    _,
                    error @ (EngineError::StoreGone { .. }
                    | EngineError::StoreNewer { .. }
                    | EngineError::StoreUnavailable { .. }),
                )) => {
                    return Err(error);
                }
                Err((id, error)) => {
                    self.report.failed += 1;
                    if self.report.failures.len() < MAX_NAMED_FAILURES {
                        self.report.failures.push((id, error.to_message()));
                    }
                }
            }
        }
        if spool.count == 0 {
            return Ok(None);
        }
        self.report.sessions += spool.count;
        self.report.scripts += 1;
        let left_out = self.written(self.files(folder, script, name, &catalog, &mut spool))?;
        Ok(Some(ScriptSummary::new(name, script, &catalog, spool.count, left_out)))
    }

    /// Reads a session as it was at one time, also if another process runs it. None if it was deleted meanwhile.
    async fn interview(
        &self,
        mut row: SessionRow,
        catalog: &mut VariableCatalog,
    ) -> Result<Option<Interview>, (String, EngineError)> {
        let reader = InterviewReader {
            store: self.store,
            programs: &self.programs,
            participants: &self.participants,
            include_sensitive: self.request.include_sensitive,
        };
        let id = row.id.clone();
        let failed = |error: EngineError| (id.clone(), error);
        for _ in 0..MAX_READS {
            let stored = reader.stored(&row).await.map_err(failed)?;
            let after = self.store.session(&row.id).await.map_err(|error| failed(error.into()))?;
            match after {
                None => return Ok(None),
                Some(after) if after.revision == row.revision => {
                    return reader.interview(&row, &stored, catalog).await.map(Some).map_err(failed);
                }
                Some(after) => row = after,
            }
        }
        Err(failed(EngineError::failed("it changes all the time")))
    }

    /// Writes the files of a script. Returns how many variables were left out.
    fn files(
        &self,
        folder: &mut ExportFolder,
        script: &str,
        name: &str,
        catalog: &VariableCatalog,
        spool: &mut InterviewSpool,
    ) -> io::Result<usize> {
        let DataSetRequest { format, include_sensitive, language, .. } = *self.request;
        let layout = DataSetLayout::new(catalog, include_sensitive);
        let prefix = format!("{name}/");
        folder.folder(&format!("{prefix}transcripts"))?;
        let mut tables =
            TableFiles { folder: &mut *folder, prefix: prefix.clone(), format, has_user: include_sensitive };
        if format != DataSetFormat::Qdpx {
            tables.interviews(spool, &layout)?;
        }
        tables.conversations(spool)?;
        if format == DataSetFormat::Qdpx {
            let file = format!("{prefix}interviews.qdpx");
            let project = ProjectWriter::new(script, self.created, catalog, &layout, include_sensitive);
            project.write(folder.seekable(&file)?, spool)?;
            folder.complete_seekable(&file)?;
        }
        let codebook = Codebook::new(catalog, &layout, format, include_sensitive);
        codebook.write(folder, &prefix, language)?;
        write_follow_ups(folder, &prefix, spool, language)?;
        // Ids may differ only in the case of letters, which some file systems do not tell apart.
        let mut names = DistinctNames::default();
        spool.each(|interview| {
            let file = format!("{prefix}transcripts/{}.txt", names.take(&file_name(&interview.id)));
            folder.whole_file(&file, TranscriptText::of(&interview).text.as_bytes())
        })?;
        Ok(codebook.left_out())
    }
}
