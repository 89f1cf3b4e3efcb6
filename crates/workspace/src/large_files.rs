//! Large files that git-lfs stores outside the repository: which ones a commit names, and copying them between stores.
//!
//! A commit has a pointer in the place of such a file: its SHA-256 and its size. Copies are checked against the pointer, and no
//! store ever shares a file with another one: git-lfs would make hard links, and whoever writes to one of them changes the
//! user's file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use towline_core::{Commit, GitSettings, hexadecimal};

use crate::git::{records, shown};
use crate::git_dir::ObjectFormat;
use crate::paths::from_bytes;
use crate::private_index::{PrivateIndex, joined};
use crate::settings::{filters, value_of};
use crate::tree::{Files, Mode, read_proven};
use crate::{Repository, WorkspaceError};

/// Git-lfs takes nothing longer for a pointer.
const LONGEST_POINTER: u64 = 1024;

/// What a commit has in the place of a large file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// The SHA-256 of the file, in hexadecimal digits.
    id: String,
    size: u64,
}

/// The pointers of a commit, by their paths.
pub(crate) type Pointers = BTreeMap<Vec<u8>, Pointer>;

impl Pointer {
    /// Takes more for a pointer than git-lfs does, so that nothing that it takes for one is missed.
    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let value = |key: &str| {
            text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(' ')).map(str::trim)
        };
        value("version")?;
        let id = value("oid")?.strip_prefix("sha256:")?.to_ascii_lowercase();
        let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = value("size")?.parse().ok()?;
        is_id.then_some(Self { id, size })
    }

    fn place_in(&self, store: &Path) -> PathBuf {
        store.join("objects").join(&self.id[..2]).join(&self.id[2..4]).join(&self.id)
    }

    /// Whether a store has a file by this name and of this size. No store has empty files.
    fn is_in(&self, store: &Path) -> bool {
        let is_file = |about: fs::Metadata| about.is_file() && about.len() == self.size;
        self.size == 0 || fs::metadata(self.place_in(store)).is_ok_and(is_file)
    }

    /// Copies the file from one store to another that lacks it. Nothing happens if the first one does not have it as the pointer
    /// describes.
    fn copy(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        let (from, target) = (self.place_in(from), self.place_in(to));
        let Ok(source) = towline_files::open_following(&from) else { return Ok(()) };
        let directory = target.parent().unwrap_or(to);
        fs::create_dir_all(directory).map_err(WorkspaceError::io("create", directory))?;
        let draft = directory.join(format!("{}.towline-{}", self.id, std::process::id()));
        let placed = self.write_draft(source, &draft).and_then(|is_it| match is_it {
            true => fs::rename(&draft, &target),
            false => fs::remove_file(&draft),
        });
        if placed.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&draft);
        }
        placed.map_err(WorkspaceError::io("write", &target))
    }

    /// Writes what is in the source, and returns whether that matches the pointer.
    fn write_draft(&self, source: File, draft: &Path) -> io::Result<bool> {
        match fs::remove_file(draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(draft)?;
        // The system shares the blocks of the two where the file system can.
        io::copy(&mut source.take(self.size.saturating_add(1)), &mut file)?;
        file.rewind()?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hexadecimal(&hasher.finalize()) == self.id),
                count => hasher.update(&buffer[..count]),
            }
        }
    }
}

impl Repository {
    /// The large files that a commit names. The repository is our own.
    pub(crate) fn pointers(&self, commit: &Commit) -> Result<Pointers, WorkspaceError> {
        let of_lfs = filters(&self.settings).filter(|filter| is_lfs(filter.command));
        let names: BTreeSet<&str> = of_lfs.map(|filter| filter.name).collect();
        if names.is_empty() {
            return Ok(Pointers::new());
        }
        let files = self.files_of(commit)?;
        if !self.attributes_of(&files)?.contains("filter") {
            return Ok(Pointers::new());
        }
        let index = self.index_of(commit)?;
        let is_file = |mode| matches!(mode, Mode::File | Mode::Executable);
        let paths = files.iter().filter(|(_, entry)| is_file(entry.mode)).map(|(path, _)| path.as_slice());
        let question = index.git.command("check-attr").args(["--cached", "-z", "--stdin", "filter"]);
        let answer = question.input(joined(paths)).run()?;
        let answer: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
        // Path, attribute and value of each.
        let converted = answer.chunks_exact(3).filter(|chunk| names.contains(shown(chunk[2]).as_str()));
        let converted: Vec<(&[u8], &str)> =
            converted.filter_map(|chunk| Some((chunk[0], files.get(chunk[0])?.id.as_str()))).collect();
        let texts = self.short_blobs(converted.iter().map(|(_, id)| *id).collect())?;
        let pointer = |(path, id): (&[u8], &str)| Some((path.to_vec(), Pointer::parse(texts.get(id)?)?));
        Ok(converted.into_iter().filter_map(pointer).collect())
    }

    /// All attributes that may hold for these files, as text.
    pub(crate) fn attributes_of(&self, files: &Files) -> Result<String, WorkspaceError> {
        let is_file = |path: &[u8]| path == b".gitattributes" || path.ends_with(b"/.gitattributes");
        let ids = files.iter().filter(|(path, _)| is_file(path)).map(|(_, entry)| entry.id.as_str());
        let mut text = self.settings.attributes.clone();
        for blob in self.blobs(ids.collect())?.values() {
            text.push('\n');
            text.push_str(&shown(blob));
        }
        Ok(text)
    }

    /// An index with the files of a commit.
    fn index_of(&self, commit: &Commit) -> Result<PrivateIndex, WorkspaceError> {
        let index = PrivateIndex::empty(&self.git(), &self.git_dir)?;
        index.git.command("read-tree").arg(commit.as_str()).run()?;
        Ok(index)
    }

    /// Those of the blobs that are short enough for a pointer.
    fn short_blobs(&self, ids: BTreeSet<&str>) -> Result<HashMap<String, Vec<u8>>, WorkspaceError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let git = self.git();
        let sizes = git.command("cat-file").arg("--batch-check=%(objectname) %(objectsize)");
        let sizes = sizes.input(input.into_bytes()).line()?;
        let is_short = |size: &str| size.parse().is_ok_and(|size: u64| size <= LONGEST_POINTER);
        let short = sizes.lines().filter_map(|line| line.split_once(' ').filter(|(_, size)| is_short(size)));
        self.blobs(short.map(|(id, _)| id).collect())
    }

    fn blobs(&self, ids: BTreeSet<&str>) -> Result<HashMap<String, Vec<u8>>, WorkspaceError> {
        let Some(format) = ids.first().map(|id| ObjectFormat::of_id(id)) else { return Ok(HashMap::new()) };
        read_proven(&self.git(), ids.into_iter(), format)
    }

    /// Copies large files of the user's to a store that lacks them.
    pub(crate) fn lend_large_files(&self, pointers: &Pointers, to: &Path) -> Result<(), WorkspaceError> {
        match self.users_large_files() {
            Some(users) => copy_missing(pointers, &users, to),
            None => Ok(()),
        }
    }

    /// Copies large files of ours to the user's store if it lacks them.
    pub(crate) fn share_large_files(&self, pointers: &Pointers) -> Result<(), WorkspaceError> {
        match self.users_large_files() {
            Some(users) => copy_missing(pointers, &self.large_files(), &users),
            None => Ok(()),
        }
    }

    /// Where git-lfs has the files of our own repository.
    pub(crate) fn large_files(&self) -> PathBuf {
        self.git_dir.join("lfs")
    }

    /// Where git-lfs has the user's files.
    fn users_large_files(&self) -> Option<PathBuf> {
        let storage = value_of(&self.settings, "lfs.storage").unwrap_or("lfs");
        Some(self.lender()?.common_dir.join(storage))
    }

    /// The first large file of a checkout that is not there, or whose pointer is still in its place, unless the user wants it so.
    pub(crate) fn unfilled(
        &self,
        commit: &Commit,
        pointers: &Pointers,
        is_unfilled: impl Fn(&[u8], &Pointer) -> bool,
    ) -> Result<Option<WorkspaceError>, WorkspaceError> {
        let mut unfilled: BTreeMap<&Vec<u8>, &Pointer> =
            pointers.iter().filter(|(path, pointer)| is_unfilled(path, pointer)).collect();
        if !unfilled.is_empty() {
            let unwanted = self.unwanted_large_files(commit, pointers)?;
            unfilled.retain(|path, _| !unwanted.contains(*path));
        }
        Ok(unfilled.first_key_value().map(|(path, pointer)| WorkspaceError::LargeFileMissing {
            path: shown(path),
            id: pointer.id.clone(),
            size: pointer.size,
        }))
    }

    /// Whether our own store lacks a large file.
    pub(crate) fn lacks(&self, pointer: &Pointer) -> bool {
        !pointer.is_in(&self.large_files())
    }

    /// The large files that the user's settings leave out of every checkout.
    fn unwanted_large_files(
        &self,
        commit: &Commit,
        pointers: &Pointers,
    ) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
        let all = || pointers.keys().cloned().collect::<BTreeSet<_>>();
        if smudges_nothing(&self.settings) {
            return Ok(all());
        }
        let index = self.index_of(commit)?;
        let matching = |setting: &str| -> Result<Option<BTreeSet<Vec<u8>>>, WorkspaceError> {
            let patterns = value_of(&self.settings, setting).unwrap_or_default().split(',').map(str::trim);
            let patterns: Vec<String> = patterns
                .filter(|pattern| !pattern.is_empty())
                .map(|pattern| format!("--exclude={pattern}"))
                .collect();
            if patterns.is_empty() {
                return Ok(None);
            }
            // Git's ignore rules, by which git-lfs reads them as well.
            let list = index.git.command("ls-files").args(["--cached", "--ignored", "-z"]);
            let list = list.args(&patterns).run()?;
            Ok(Some(records(&list).map(<[u8]>::to_vec).collect()))
        };
        let mut unwanted = matching("lfs.fetchexclude")?.unwrap_or_default();
        if let Some(wanted) = matching("lfs.fetchinclude")? {
            unwanted.extend(all().difference(&wanted).cloned());
        }
        Ok(unwanted)
    }
}

/// Whether the pointer of a large file is still in its place.
pub(crate) fn is_pointer_on_disk(top: &Path, path: &[u8]) -> bool {
    let text = towline_files::read(&top.join(from_bytes(path)), LONGEST_POINTER);
    text.is_ok_and(|text| Pointer::parse(&text).is_some())
}

fn copy_missing(pointers: &Pointers, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    pointers.values().filter(|pointer| !pointer.is_in(to)).try_for_each(|pointer| pointer.copy(from, to))
}

fn is_lfs(command: &str) -> bool {
    command.contains("git-lfs") || command.contains("git lfs")
}

/// Whether the user has git-lfs leave all pointers as they are, as `git lfs install --skip-smudge` does.
fn smudges_nothing(settings: &GitSettings) -> bool {
    let skips = |command: &str| command.split_whitespace().any(|word| word == "--skip" || word == "-s");
    let mut writers = filters(settings).filter(|filter| filter.key != "clean" && is_lfs(filter.command));
    writers.all(|filter| skips(filter.command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_has_an_id_and_a_size() {
        let id = "4d7a".repeat(16);
        let pointer = |text: String| Pointer::parse(text.as_bytes());
        let version = "version https://git-lfs.github.com/spec/v1";
        let expected = Some(Pointer { id: id.clone(), size: 12 });
        assert_eq!(pointer(format!("{version}\noid sha256:{id}\nsize 12\n")), expected);
        assert_eq!(pointer(format!("\n {version}\r\noid sha256:{id}\r\nsize 12")), expected);
        for text in [
            String::new(),
            format!("{version}\nsize 12\n"),
            format!("{version}\noid sha256:{id}\nsize many\n"),
            format!("{version}\noid sha256:../{id}\nsize 12\n"),
            format!("{version}\noid sha256:{}\nsize 12\n", &id[1..]),
            format!("oid sha256:{id}\nsize 12\n"),
        ] {
            assert_eq!(pointer(text.clone()), None, "{text}");
        }
    }
}
