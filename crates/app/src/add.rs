//! Adding goals to the queue: all of them are drafted and checked, and then created at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use towline_config::GoalFile;
use towline_core::GoalId;
use towline_engine::AddingLock;
use towline_store::GoalRecord;

use crate::agents::first_notices;
use crate::context::Context;
use crate::draft::{Draft, Request, draft_of, notices_about};
use crate::error::{Action, Error};
use crate::goal_file;
use crate::notice::Notice;
use crate::scheduling::{Siblings, plain};
use crate::server::queue_goals;
use crate::unended::{Like, Unended};

/// The most goals that are added at once.
const MOST: usize = 1_000;

/// A goal that was asked for.
pub struct Added {
    pub record: GoalRecord,
    /// Whether it was added now. A goal's file whose goal is there and has not ended is not added again.
    pub is_new: bool,
    /// What the user should know about it.
    pub notices: Vec<Notice>,
}

/// A goal that is asked for, before anything is created.
enum Intake {
    There(Box<GoalRecord>),
    New(Box<Draft>),
}

/// A request with what its file sets.
struct Entry<'a> {
    request: &'a Request,
    file: GoalFile,
}

/// The entries of each folder by the names of their files.
type Folders = BTreeMap<PathBuf, BTreeMap<String, usize>>;

/// Adds goals to the queue: prerequisites first, otherwise in the order of the requests. Either all are created or, when one of them
/// is refused or anything fails, none. So a request that was cut off can be repeated.
pub async fn add(context: &Context, requests: &[Request], now: Timestamp) -> Result<Vec<Added>, Error> {
    if requests.len() > MOST {
        let what = format!("{} goals are too many at once: {MOST} are the most", requests.len());
        return Err(Error::usage(what).hint("add them in parts"));
    }
    let state = context.state()?;
    let has_files = requests.iter().any(|request| request.file.is_some());
    let _alone = if has_files { Some(AddingLock::take(&state.home).await?) } else { None };
    let planned = plan(context, requests, now).await?;
    let new = planned.iter().filter_map(|planned| match planned {
        Intake::New(draft) => Some(draft.goal.clone()),
        Intake::There(_) => None,
    });
    let queued = queue_goals(context, &state, new.collect(), now).await.map_err(|error| {
        let message = format!("no goal was added: {}", error.message());
        Error::Refused { kind: error.kind(), message, hint: error.way_out() }
    });
    let mut queued = queued?.into_iter();
    let mut added = Vec::new();
    for planned in planned {
        added.extend(match planned {
            Intake::There(record) => Some(Added { record: *record, is_new: false, notices: Vec::new() }),
            Intake::New(draft) => queued.next().map(|record| {
                let first = first_notices(context, &state.home, &draft);
                let notices = draft.notices.into_iter().chain(first).collect();
                Added { record, is_new: true, notices }
            }),
        });
    }
    Ok(added)
}

/// Drafts the goals in the order in which they are created. Everything that can be refused is looked at here.
async fn plan(context: &Context, requests: &[Request], now: Timestamp) -> Result<Vec<Intake>, Error> {
    let mut entries = Vec::new();
    for request in requests {
        let file =
            request.file.as_deref().map(|path| goal_file::read(&context.directory, path)).transpose()?;
        entries.push(Entry { request, file: file.unwrap_or_default() });
    }
    let folders = names_in_folders(&entries);
    let files: BTreeSet<PathBuf> = requests
        .iter()
        .filter_map(|request| context.directory.join(request.file.as_ref()?).canonicalize().ok())
        .collect();
    let mut ids: BTreeMap<usize, GoalId> = BTreeMap::new();
    let mut planned = Vec::new();
    let mut unended = Unended::new(context)?;
    for index in in_order(&entries, &folders)? {
        let entry = &entries[index];
        let beside = beside(&folders, entry).into_iter().flatten();
        let siblings: Siblings =
            beside.filter_map(|(name, other)| Some((name.clone(), *ids.get(other)?))).collect();
        let draft = draft_of(context, entry.request, entry.file.clone(), &siblings, now).await;
        let draft = draft.and_then(|draft| must_have_clone(context, draft));
        let mut draft = draft.map_err(|error| name_file(error, entry.request, requests))?;
        let is_file = entry.request.file.is_some();
        let plan = match unended.like(&draft.goal).await? {
            Some(Like::Same(there)) if is_file => Intake::There(there),
            like => {
                let root = Path::new(&draft.goal.workspace.repository);
                draft.notices =
                    draft.notices.into_iter().filter_map(|notice| in_queue(notice, root, &files)).collect();
                draft.notices.extend(notices_about(&draft.goal));
                draft.notices.extend(like.map(|like| Notice::AddedBefore(like.goal())));
                Intake::New(Box::new(draft))
            }
        };
        ids.insert(
            index,
            match &plan {
                Intake::There(record) => record.goal.id,
                Intake::New(draft) => draft.goal.id,
            },
        );
        planned.push(plan);
    }
    Ok(planned)
}

/// The notice as it holds for a goal in the queue. The files of the goals themselves are no part of the work.
fn in_queue(notice: Notice, root: &Path, files: &BTreeSet<PathBuf>) -> Option<Notice> {
    let Notice::Uncommitted(mut paths) = notice else { return Some(notice) };
    paths.retain(|path| root.join(path).canonicalize().map_or(true, |path| !files.contains(&path)));
    (!paths.is_empty()).then_some(Notice::UncommittedInQueue(paths))
}

/// A request for each of these files, and for each file of a folder among them; the rest as in `common`.
pub fn goal_requests(context: &Context, paths: &[PathBuf], common: &Request) -> Result<Vec<Request>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if context.directory.join(path).is_dir() {
            files.extend(files_in(&context.directory, path)?);
        } else {
            files.push(path.clone());
        }
    }
    let mut known = BTreeSet::new();
    for file in &files {
        let path = context.directory.join(file);
        if !known.insert(path.canonicalize().unwrap_or(path)) {
            return Err(Error::usage(format!("{} is given twice", file.display()))
                .hint("each file is one goal; name it, or its folder, once"));
        }
    }
    Ok(files.into_iter().map(|file| Request { file: Some(file), ..common.clone() }).collect())
}

/// The goals' files in a folder, by name.
fn files_in(directory: &Path, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error: std::io::Error| Error::usage(format!("cannot read {}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory.join(folder)).map_err(failed)? {
        let name = PathBuf::from(entry.map_err(failed)?.file_name());
        let is_goal = name.extension().is_some_and(|ending| ending == "md" || ending == "toml");
        let is_hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
        let path = directory.join(folder).join(&name);
        if is_goal && !is_hidden && !path.is_dir() {
            must_be_inside(&directory.join(folder), &name)?;
            if !path.is_file() {
                return Err(Error::usage(format!("{} is not a regular file", path.display()))
                    .hint("remove it from the folder, or give each goal by its name"));
            }
            files.push(folder.join(name));
        }
    }
    if files.is_empty() {
        return Err(Error::usage(format!("{} has no goals", folder.display()))
            .hint("write each goal as a file that ends in .md or .toml"));
    }
    files.sort();
    Ok(files)
}

/// Refuses a symlink that leads out of its folder: a person who names a folder has not looked at each file, and the text of a goal is
/// sent to a model.
fn must_be_inside(folder: &Path, name: &Path) -> Result<(), Error> {
    let path = folder.join(name);
    let failed = |error: std::io::Error| Error::usage(format!("cannot read {}: {error}", path.display()));
    let target = path.canonicalize().map_err(failed)?;
    if target.starts_with(folder.canonicalize().map_err(failed)?) {
        return Ok(());
    }
    let what = format!("{} is a symlink to {}, outside the folder", path.display(), target.display());
    Err(Error::usage(what).hint("if that file is a goal, give it by its name instead of the folder"))
}

/// Work in place starts from a snapshot, which would be older than the user's files when the goal starts.
pub(crate) fn must_have_clone(context: &Context, draft: Draft) -> Result<Draft, Error> {
    if draft.goal.workspace.mode.is_in_place() {
        let home = context.home()?;
        // The snapshot is not needed; what cannot be removed now is left to `gc`.
        let _ = home.remove(&home.history(draft.goal.id));
        return Err(Error::usage("a goal that works in place cannot wait in the queue")
            .hint([("start it at once", Action::RunInPlace)]));
    }
    Ok(draft)
}

/// The error with the file that it is about, where there are several.
fn name_file(error: Error, request: &Request, requests: &[Request]) -> Error {
    match (error, &request.file) {
        (error, Some(file)) if requests.len() > 1 => {
            let (kind, hint) = (error.kind(), error.way_out());
            Error::Refused { kind, message: format!("{}: {}", file.display(), error.message()), hint }
        }
        (error, _) => error,
    }
}

/// The files of each folder, by the names that files beside them may use: whole, or without the ending where that names one file
/// alone.
fn names_in_folders(entries: &[Entry<'_>]) -> Folders {
    let name = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    let mut folders = Folders::new();
    let mut stems: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let Some(file) = &entry.request.file else { continue };
        if let (Some(folder), Some(whole)) = (file.parent(), file.file_name()) {
            folders.entry(folder.to_owned()).or_default().insert(name(whole), index);
            stems.entry(file.with_extension("")).or_default().push(index);
        }
    }
    for (stem, named) in stems {
        if let ([only], Some(folder), Some(stem)) = (&named[..], stem.parent(), stem.file_name()) {
            folders.entry(folder.to_owned()).or_default().entry(name(stem)).or_insert(*only);
        }
    }
    folders
}

/// The entries in an order in which each comes after those that it waits for.
fn in_order(entries: &[Entry<'_>], folders: &Folders) -> Result<Vec<usize>, Error> {
    let waits_for = |entry: &Entry<'_>| {
        let siblings = beside(folders, entry);
        let names = entry.file.after.iter();
        names.filter_map(|named| siblings?.get(plain(&named.goal)).copied()).collect::<Vec<_>>()
    };
    let edges: Vec<Vec<usize>> = entries.iter().map(waits_for).collect();
    sorted(&edges).map_err(|cycle| {
        let name = |index: &usize| {
            let file = entries[*index].request.file.as_deref().and_then(Path::file_name);
            file.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let names: Vec<String> = cycle.iter().map(name).collect();
        Error::usage(format!("these goals wait for each other: {}", names.join(" -> ")))
            .hint("take one of them out of `after`")
    })
}

/// The files in the folder of an entry's file.
fn beside<'a>(folders: &'a Folders, entry: &Entry<'_>) -> Option<&'a BTreeMap<String, usize>> {
    folders.get(entry.request.file.as_ref()?.parent()?)
}

/// Each after those that it waits for, otherwise in their order; or those that wait for each other, the first one again at the end.
fn sorted(edges: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut order = Vec::new();
    let mut is_done = vec![false; edges.len()];
    for start in 0..edges.len() {
        // Each with how many of those that it waits for were looked at.
        let mut path: Vec<(usize, usize)> = if is_done[start] { Vec::new() } else { vec![(start, 0)] };
        while let Some((at, looked)) = path.last_mut() {
            let Some(&next) = edges[*at].get(*looked) else {
                is_done[*at] = true;
                order.push(*at);
                path.pop();
                continue;
            };
            *looked += 1;
            if let Some(begin) = path.iter().position(|(passed, _)| *passed == next) {
                let cycle = path[begin..].iter().map(|(passed, _)| *passed);
                return Err(cycle.chain([next]).collect());
            }
            if !is_done[next] {
                path.push((next, 0));
            }
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symlink_in_a_folder_that_leads_out_of_it_is_refused_by_name() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let goals = dir.path().join("goals");
        std::fs::create_dir(&goals).expect("a folder");
        let write = |path: &str| std::fs::write(dir.path().join(path), "fix it").expect("written");
        write("secret.md");
        write("goals/a.md");
        // The folder itself may be reached by a symlink.
        std::os::unix::fs::symlink("goals", dir.path().join("alias")).expect("a symlink");
        std::os::unix::fs::symlink("a.md", goals.join("b.md")).expect("a symlink");
        for folder in ["goals", "alias"].map(Path::new) {
            let files = files_in(dir.path(), folder).expect("both are in it");
            assert_eq!(files, [folder.join("a.md"), folder.join("b.md")]);
        }
        std::os::unix::fs::symlink("../secret.md", goals.join("c.md")).expect("a symlink");
        let refused = || files_in(dir.path(), Path::new("goals")).expect_err("it is no goal").to_string();
        let socket = std::os::unix::net::UnixListener::bind(goals.join("0.md")).expect("a socket");
        assert!(refused().contains("goals/0.md is not a regular file"), "{}", refused());
        drop(socket);
        std::fs::remove_file(goals.join("0.md")).expect("removed");
        let refused = refused();
        assert!(refused.contains("goals/c.md is a symlink to"), "{refused}");
        assert!(refused.contains("secret.md, outside the folder"), "{refused}");
    }

    #[test]
    fn each_comes_after_those_that_it_waits_for_and_a_cycle_is_named() {
        assert_eq!(sorted(&[vec![], vec![], vec![]]), Ok(vec![0, 1, 2]));
        assert_eq!(sorted(&[vec![2, 1], vec![2], vec![]]), Ok(vec![2, 1, 0]));
        assert_eq!(sorted(&[vec![1], vec![2], vec![1]]), Err(vec![1, 2, 1]));
        assert_eq!(sorted(&[vec![0]]), Err(vec![0, 0]));
        let long: Vec<Vec<usize>> =
            (0..10_000).map(|n| if n < 9_999 { vec![n + 1] } else { vec![] }).collect();
        assert_eq!(sorted(&long).map(|order| order[0]), Ok(9_999));
    }
}
